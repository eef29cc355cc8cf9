"""Every statement of MovieRecapsQA's text that figures decide, and a change that turns it round."""

import json
from pathlib import Path

import pytest

from lmms_eval_tasks.leaderboards import leaderboard
from lmms_eval_tasks.leaderboards.movierecapsqa_claims import STATEMENTS, claims
from lmms_eval_tasks.leaderboards.movierecapsqa_contradictions import contradictions
from tests.leaderboards.movierecapsqa_boards import NAME, changed, figures, names, states

CASES_FILE = Path(__file__).resolve().parents[1] / "cases" / "movierecapsqa_contradictions.json"
PINNED = json.loads(CASES_FILE.read_text(encoding="utf-8"))["claims"]
LLAVA, MINICPM, QWEN = "LLaVA-NeXT-Video", "Mini-CPM-o", "Qwen2.5VL"
NOVA, CLAUDE, GEMINI, GPT = "Amazon Nova Lite", "Claude 3.5 Sonnet", "Gemini-2.5-Flash", "GPT-4o"
OF = dict.fromkeys((LLAVA, MINICPM, QWEN), "open") | dict.fromkeys(
    (NOVA, CLAUDE, GEMINI, GPT), "proprietary"
)
OPEN, PROPRIETARY = "Open-Source Models", "Proprietary Models"


def four(**by_model):
    """Table 4 with other figures of a model; keys are the names above in small letters."""
    spelled = {
        "llava": LLAVA, "minicpm": MINICPM, "qwen": QWEN, "nova": NOVA,
        "claude": CLAUDE, "gemini": GEMINI, "gpt": GPT,
    }  # fmt: skip
    return figures(*((4, OF[spelled[m]], spelled[m], f) for m, f in by_model.items()))


def people(**values):
    return changed(4, "human", "Avg. Human*", **values)


# Each statement, and a change that turns it round.
FLIPS = {
    "videos": lambda: states(statistics_films="61"),
    "questions": lambda: states(abstract_questions_k="8.3"),
    "minutes": lambda: states(abstract_scenes_min="15"),
    "recap_length": lambda: states(genre_low_min="12"),
    "modalities": lambda: changed(3, "modality", "Multimodal", questions="3526"),
    "categories": lambda: changed(3, "total", "Total", questions="8230"),
    "statistics_table": lambda: states(statistics_table="2"),
    "dimensions": lambda: names(listed_dimensions=["Factuality", "Relevance", "Coherence"]),
    "fluency_scale": lambda: four(gpt={"helmet_fluency": "2.40"}),
    "variances": lambda: four(gpt={"relevance_var": "4.20"}),
    "models": lambda: states(introduction_models="8"),
    "human_questions": lambda: states(table5_human_questions="117"),
    "human_metrics": lambda: names(
        human_metrics=[
            "ROUGE-L",
            "BERTScore",
            "HELMET Fluency",
            "HELMET Correctness",
            "Factuality",
            "Relevance",
        ]
    ),
    "prior_benchmarks": lambda: names(open_ended_benchmarks=["Video-Bench"]),
    "script": lambda: names(dialogue_inputs=["subtitles"]),
    "semantic_ranges": lambda: four(qwen={"bertscore": "0.70"}),
    "semantic_variance": lambda: four(llava={"rouge_l_var": "0.04"}),
    "better_separation": lambda: four(llava={"rouge_l": "0.90"}),
    "correctness": lambda: states(minicpm_correctness="1.25"),
    "factuality": lambda: states(best_factuality="4.58"),
    "wider_spread": lambda: four(llava={"factuality": "2.00", "relevance": "2.00"}),
    "variance_range": lambda: states(variance_low="1.80"),
    "reference_variance": lambda: states(reference_variance_low="0.01"),
    "variance_higher": lambda: four(
        **{
            name: {"factuality_var": "4.00"}
            for name in ("llava", "minicpm", "qwen", "nova", "claude", "gemini", "gpt")
        }
    ),
    "only_ours": lambda: people(bertscore="0.60"),
    "gap": lambda: people(factuality="4.09", relevance="4.07"),
    "lowest_scores": lambda: changed(5, "relevance_open", OPEN, vision="3.51"),
    "often_improves": lambda: changed(
        5,
        "factuality_proprietary",
        "(only dialogue)",
        dialogue="0",
        vision="0",
        multimodal="0",
        crd="-0.1",
        npa="-0.1",
    ),
    "vision_lowest": lambda: changed(5, "factuality_human", "Human*", vision="3.99"),
    "drops": lambda: states(open_vision="3.06"),
    "relevance_ranges": lambda: states(open_relevance_low="3.53"),
    "people_relevance": lambda: changed(5, "relevance_human", "Human*", vision="3.94"),
    "dialogue_alone": lambda: changed(5, "relevance_proprietary", "(only dialogue)", temp="0.00"),
    "quoted_gains": lambda: states(gain_vision="0.70"),
    "factuality_trend": lambda: changed(
        5, "factuality_proprietary", "(only dialogue)", multimodal="0.74"
    ),
    "relevance_trend": lambda: changed(
        5, "relevance_proprietary", "(only dialogue)", vision="0.38"
    ),
    "proprietary_lead": lambda: changed(5, "relevance_open", OPEN, vision="3.63"),
    "frames_vision": lambda: states(open_frames_vision="3.14"),
    "advantage": lambda: figures(
        (5, "factuality_proprietary", PROPRIETARY, {"dialogue": "3.55", "multimodal": "3.34"}),
        (5, "relevance_proprietary", PROPRIETARY, {"multimodal": "3.78"}),
    ),
    "smaller_drops": lambda: changed(5, "factuality_open", "(only frames)", npa="-0.22"),
    "easiest": lambda: changed(5, "factuality_open", OPEN, temp="3.12"),
    "hardest": lambda: changed(5, "factuality_open", OPEN, th="2.92"),
    "people_sta": lambda: changed(5, "factuality_human", "Human*", th="4.16"),
    "sta_gap": lambda: states(sta_gap_high="1.33"),
    "double": lambda: changed(5, "factuality_human", "Human*", crd="4.30"),
    "sta_inputs": lambda: states(sta_frames_only="0.19"),
}


def test_all_claims_are_the_pinned_ones():
    checked = claims(leaderboard(NAME))
    assert [[claim.key, claim.holds] for claim in checked] == PINNED
    assert all(claim.follow for claim in checked if not claim.holds)
    assert len({statement.key for statement in STATEMENTS}) == len(STATEMENTS)
    assert set(FLIPS) == {statement.key for statement in STATEMENTS}


@pytest.mark.parametrize(("key", "holds"), PINNED)
def test_every_claim_follows_the_figures(key, holds):
    assert {claim.key: claim.holds for claim in claims(FLIPS[key]())}[key] is not holds


def test_the_contradictions_named_in_issue_5():
    board = leaderboard(NAME)
    failed = {claim.key: claim for claim in claims(board) if not claim.holds}
    assert "three dimensions" in failed["dimensions"].says
    assert "lists 2" in failed["dimensions"].evidence
    assert "3.05 +0.08, which is 3.13, for 3.15" in failed["frames_vision"].evidence
    found = {each.kind: each.findings for each in contradictions(board)}
    assert "0.88 against 0.63 to 0.69" in found["bertscore"][0].text
    assert found["facts"][0].figures == {"printed": 16462, "follows": 13320}


def test_evidence_that_is_computed():
    by_key = {claim.key: claim.evidence for claim in claims(leaderboard(NAME))}
    assert "5 of 7 models are above the best" in by_key["correctness"]
    assert "Amazon Nova Lite 1.96, Claude 3.5 Sonnet 1.80" in by_key["variance_range"]
    assert "for 9 of 9 rows" in by_key["fluency_scale"]
    # 0.89 / 9 and 1.42 / 9 against 1.80 / 25 and 2.35 / 25.
    assert "0.072 to 0.094" in by_key["variance_higher"]
    assert "0.099 to 0.158" in by_key["variance_higher"]
    assert "HELMET Correctness 0.28, Factuality 0.21, Relevance 0.12" in by_key["wider_spread"]
    assert by_key["double"] == "Table 5: 1.75 and 2.11 times"
