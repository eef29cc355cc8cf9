"""Every statement of HAVEN's text that figures decide, and a change that turns it round."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from lmms_eval_tasks.leaderboards import haven_paper, leaderboard
from lmms_eval_tasks.leaderboards.haven_claims import STATEMENTS, UNDECIDED, claims
from lmms_eval_tasks.leaderboards.haven_contradictions import contradictions
from tests.leaderboards.haven_boards import NAME, changed, figures, names, states, table
from tests.leaderboards.maverix_boards import of, with_rows

CASES_FILE = Path(__file__).resolve().parents[1] / "cases" / "haven_contradictions.json"
PINNED = json.loads(CASES_FILE.read_text(encoding="utf-8"))["claims"]
PROXY, GPT, GLM = "text-proxy LLM", "GPT-5.2", "GLM-4.6V"
INTERN, QWEN3, QWEN25, LLAMA = "InternVideo2.5", "Qwen3-VL", "Qwen2.5-VL", "VideoLLaMA3"


def kappas(value):
    board = leaderboard(NAME)
    for row in of(board, 2).rows:
        board = figures((2, row.name, {"kappa": value}), group=row.group, board=board)
    return board


def without(number, *rows):
    """The leaderboard without rows of a table."""
    return with_rows(
        leaderboard(NAME), number, lambda old: [row for row in old if row.name not in rows]
    )


def comparable():
    """Every text metric of every row as the text proxy's."""
    board = leaderboard(NAME)
    metrics = {3: ("v2t_bs", "v2vt_bs"), 4: ("v2t_geval", "v2t_rouge", "v2vt_geval", "v2vt_rouge")}
    for number, used in metrics.items():
        columns = {name: str(table(number).row("proxy", PROXY).printed(name)) for name in used}
        for row in of(board, number).rows:
            if row.figures[used[0]] is not None:
                board = figures((number, row.name, columns), board=board)
    return board


# Each statement, and a change that turns it round.
FLIPS = {
    "datasets": lambda: without(1, "OVP"),
    "videos": lambda: changed(1, "OVP", videos="51"),
    "shots": lambda: changed(1, "MR.HiSum", shots="19.2"),
    "frames": lambda: states(frames_per_video="166.6"),
    "tasks": lambda: states(tasks="8"),
    "dimensions": lambda: names(dimensions=["summarization", "saliency ranking"]),
    "budget": lambda: states(budget_percent="20"),
    "models": lambda: without(3, QWEN25),
    "not_run": lambda: changed(3, GLM, v2t_bs="0.86", v2v_f1="0.2", v2vt_bs="0.8", v2vt_f1="0.2"),
    "proxy_tasks": lambda: changed(3, PROXY, temporal_doc="0.100"),
    "proxy_orders": lambda: names(proxy_orders_in_text=["event", "sentences"]),
    "assessed": lambda: states(assessed_videos="20"),
    "rated": lambda: without(2, "Conciseness"),
    "possible": lambda: changed(2, "Completeness", exact="41.0"),
    "high_scores": lambda: changed(2, "Readability", group="document", score="4.00"),
    "moderate": lambda: kappas("0.50"),
    "subjective": lambda: changed(2, "Readability", group="document", kappa="-0.59"),
    "same_videos": lambda: changed(3, INTERN, v2vt_f1="0.072"),
    "above_proxy": lambda: changed(3, QWEN3, v2v_f1="0.171"),
    "best_selection": lambda: states(videollama3_p="0.293"),
    "f1_range": lambda: changed(3, LLAMA, v2v_f1="0.301"),
    "above_random": lambda: states(budget_percent="5", keyframe_percent="5"),
    "qwen3_frames": lambda: changed(3, QWEN3, v2vt_f1="0.146"),
    "near_highest": lambda: changed(4, QWEN25, v2t_geval="3.170"),
    "internvideo_text": lambda: changed(4, INTERN, v2t_geval="2.500"),
    "not_improved": lambda: figures(
        *((4, name, {"clipscore_change": "0.010"}) for name in (PROXY, INTERN, QWEN3, QWEN25))
    ),
    "proxy_stable": lambda: changed(4, PROXY, v2vt_rouge="0.224"),
    "degrade": lambda: figures(
        *((4, name, {"v2vt_geval": "2.000"}) for name in (INTERN, QWEN25, LLAMA))
    ),
    "videollama3_stable": lambda: changed(4, LLAMA, v2vt_p="0.280", v2vt_r="0.300"),
    "videollama3_strong": lambda: changed(3, QWEN3, v2vt_f1="0.268"),
    "trade_off": lambda: changed(4, INTERN, v2vt_rouge="0.151"),
    "qwen_text": lambda: changed(4, QWEN25, v2vt_geval="3.371"),
    "bertscore": lambda: changed(3, QWEN25, v2t_bs="0.881"),
    "comparable": comparable,
    "separation": lambda: changed(4, INTERN, v2t_geval="1.000"),
    "proxy_order": lambda: changed(3, PROXY, temporal="0.036"),
    "document_order": lambda: figures(
        *((3, name, {"temporal_doc": "0.001"}) for name in (INTERN, QWEN25, LLAMA))
    ),
    "gain_most": lambda: changed(3, QWEN3, temporal_doc="0.380"),
    "quoted_gains": lambda: states(gain_first_percent="64.7", gain_second_percent="108"),
    "drop": lambda: changed(3, LLAMA, temporal_doc="0.052"),
    "best_order": lambda: changed(3, QWEN3, temporal="0.281"),
    "best_open_order": lambda: changed(3, GLM, temporal_doc="0.299"),
    "proxy_grounds": lambda: changed(3, PROXY, grounding_f1="0.400"),
    "best_grounding": lambda: changed(3, PROXY, grounding_f1="0.509"),
    "open_grounding": lambda: changed(3, INTERN, grounding_f1="0.450"),
    "glm_above": lambda: changed(3, QWEN3, grounding_f1="0.457"),
    "far_behind": lambda: changed(3, LLAMA, grounding_f1="0.200"),
    "same_modality": lambda: changed(3, GPT, grounding_f1="0.540"),
    "document_saliency": lambda: changed(3, INTERN, saliency_doc="0.169"),
    "large_gap": lambda: changed(3, QWEN25, saliency_doc="0.130"),
    "best_saliency": lambda: changed(3, QWEN3, saliency="0.211"),
    "middle": lambda: changed(3, PROXY, saliency="0.188"),
    "strong_yet_moderate": lambda: changed(3, LLAMA, saliency_doc="0.185"),
    "chain": lambda: figures(
        (3, GPT, {"saliency_doc": "0.211"}), (3, GLM, {"saliency_doc": "0.165"})
    ),
}  # fmt: skip


def test_all_claims_are_the_pinned_ones():
    checked = claims(leaderboard(NAME))
    assert [[claim.key, claim.holds] for claim in checked] == PINNED
    assert all(claim.follow for claim in checked if not claim.holds)
    assert len({statement.key for statement in STATEMENTS}) == len(STATEMENTS) == 54
    assert set(FLIPS) == {statement.key for statement in STATEMENTS}
    assert all(len(each) == 3 and all(each) for each in UNDECIDED)


@pytest.mark.parametrize(("key", "holds"), PINNED)
def test_every_claim_follows_the_figures(key, holds):
    # By itself: some of these boards are of a paper that other statements cannot be asked of.
    (statement,) = (each for each in STATEMENTS if each.key == key)
    assert statement.claim(haven_paper.Paper(FLIPS[key]())).holds is not holds


def test_the_contradictions_named_in_issue_6():
    failed = {claim.key: claim for claim in claims(leaderboard(NAME)) if not claim.holds}
    saliency = failed["best_saliency"].evidence
    assert "Saliency w/o Doc GPT-5.2 0.210, Qwen3-VL 0.187," in saliency
    assert failed["drop"].evidence == "Table 3: 0.053 to 0.064, which is +20.8 %"
    assert "Qwen2.5-VL G-Eval 3.372 to 3.478 does not" in failed["qwen_text"].evidence
    assert "F1: text-proxy LLM 0.804, GPT-5.2 0.510," in failed["best_grounding"].evidence


def test_evidence_that_is_computed():
    by_key = {claim.key: claim.evidence for claim in claims(leaderboard(NAME))}
    assert "GPT-5.2 0.280 to 0.461, which is +64.6 %, for +108 %" in by_key["quoted_gains"]
    assert "GLM-4.6V 0.147 to 0.306, which is +108.2 %, for +64.7 %" in by_key["quoted_gains"]
    # 2 * 0.15 * 0.15 / 0.30 and 2 * 0.15 / 1.15.
    assert "Random frames get 0.150" in by_key["above_random"]
    assert (
        "all frames, were they allowed, would get 0.261, more than text-proxy LLM, Qwen3-VL, "
        "Qwen2.5-VL" in by_key["above_random"]
    )
    assert "P -25.3 %, R +74.9 %" in by_key["videollama3_stable"]
    assert by_key["shots"] == "Table 1: 16.2 are printed, the mean is 16.24"
    assert "kappa -0.58 to 0.26, 8 of 11 below 0" in by_key["moderate"]
    assert "BERTScore 3, ROUGE 3, G-Eval 1, F1 3, CLIPScore 3" in by_key["degrade"]
    assert "Saliency 2 of 6 models (InternVideo2.5, Qwen3-VL)" in by_key["chain"]
    assert "0.2025 for Qwen3-VL and 0.2000 for GPT-5.2" in by_key["best_saliency"]


@pytest.mark.parametrize(
    ("values", "last", "far"),
    [
        ({"a": "0.9", "b": "0.8", "c": "0.1"}, "c", True),
        ({"a": "0.9", "b": "0.5", "c": "0.1"}, "c", False),  # gaps are equal
        ({"a": "0.9", "b": "0.8", "c": "0.1"}, "b", False),
    ],
)
def test_far_last_is_by_the_gaps_of_neighbours(values, last, far):
    decimals = {name: Decimal(value) for name, value in values.items()}
    assert haven_paper.far_last(decimals, last) is far


def test_figures_are_found_by_model_and_column_alone():
    paper = haven_paper.Paper(leaderboard(NAME))
    assert (str(paper(QWEN3, "v2vt_f1")), str(paper(QWEN3, "v2vt_r"))) == ("0.235", "0.481")
    assert list(paper.column("v2t_bs")) == [INTERN, QWEN3, QWEN25, LLAMA]
    assert list(paper.column("temporal", "commercial")) == [GPT]
    assert next(iter(paper.with_proxy("saliency"))) == PROXY
    for model, column in ((GPT, "v2t_bs"), ("GPT-4", "temporal"), (GPT, "f1"), (GPT, "v2v_p")):
        with pytest.raises(KeyError):
            paper(model, column)


def everything(board):
    """All that is said of a leaderboard, as text."""
    said = [(claim.key, claim.holds, claim.evidence) for claim in claims(board)]
    return said, [(each.kind, each.findings) for each in contradictions(board)]


# Table 2's ± and correlations and Table 4's CLIPScore are compared with the paper's page alone.
CELLS = [
    (number, row.group, row.name, column)
    for number in (1, 2, 3, 4)
    for row in table(number).rows
    for column, figure in row.figures.items()
    if figure is not None and column not in ("score_sd", "rho", "clipscore")
]


@pytest.mark.parametrize("column", sorted({cell[3] for cell in CELLS}))
def test_every_figure_is_compared_with_something(column):
    before = everything(leaderboard(NAME))
    for number, group, name, _ in (cell for cell in CELLS if cell[3] == column):
        old = table(number).row(group, name).printed(column)
        tried = [old + step for step in (Decimal("0.17"), Decimal("-0.17"), 13, -13)]
        said = []
        for new in tried:
            try:
                said.append(everything(figures((number, name, {column: str(new)}), group=group)))
            except (ArithmeticError, ValueError):  # a figure that cannot be
                continue
        assert any(after != before for after in said), (number, group, name, column)
