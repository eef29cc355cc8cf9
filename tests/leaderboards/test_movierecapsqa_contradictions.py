"""Contradictions within and between MovieRecapsQA's tables."""

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from lmms_eval_tasks.leaderboards import leaderboard
from lmms_eval_tasks.leaderboards import movierecapsqa_checks as checks
from lmms_eval_tasks.leaderboards import movierecapsqa_counts as counts
from lmms_eval_tasks.leaderboards.movierecapsqa_contradictions import contradictions
from lmms_eval_tasks.leaderboards.movierecapsqa_paper import CATEGORIES, MODALITIES, Paper
from tests.leaderboards.movierecapsqa_boards import NAME, changed, figures, names, table

CASES_FILE = Path(__file__).resolve().parents[1] / "cases" / "movierecapsqa_contradictions.json"
PINNED = json.loads(CASES_FILE.read_text(encoding="utf-8"))["contradictions"]
AVERAGE, BEST = "Avg. Human*", "Best Human*"
OPEN, PROPRIETARY = "Open-Source Models", "Proprietary Models"


def findings(board, kind):
    return [f for each in contradictions(board) if each.kind == kind for f in each.findings]


def test_all_contradictions_are_the_pinned_ones():
    found = contradictions(leaderboard(NAME))
    assert {
        each.kind: [[f.setting, f.model, f.column, f.figures] for f in each.findings]
        for each in found
    } == PINNED
    assert all(each.follow for each in found)


CASES = [
    # kind, board, columns or models still found
    ("facts", changed(2, "size", counts.FACTS, value="13300"), [counts.SEGMENT_FACTS]),
    ("facts", changed(2, "size", counts.FACTS, value="13351"),
     [counts.FACTS, counts.SEGMENT_FACTS]),
    ("facts", changed(2, "facts", counts.SEGMENT_FACTS, value="25"), [counts.FACTS]),
    ("facts_per_question", changed(2, "size", counts.FACTS, value="16463"), []),
    ("facts_per_question", changed(2, "size", counts.FACTS, value="24693"), [counts.FACTS]),
    ("questions", changed(2, "facts", counts.SEGMENT_QUESTIONS, value="137"), []),
    ("questions", changed(2, "facts", counts.SEGMENT_QUESTIONS, value="15"), []),
    ("questions", changed(2, "size", counts.QUESTIONS, value="10320"), []),
    ("windows", changed(2, "seconds", counts.WINDOW, value="710"), []),
    ("windows", changed(2, "seconds", counts.WINDOW, value="730"), [counts.WINDOW]),
    ("best", changed(4, "human", BEST, bertscore="0.88"), [BEST]),
    ("best", changed(4, "human", BEST, factuality="4.00"), [BEST] * 3),
    ("one_person", changed(4, "human", AVERAGE, helmet_fluency_var="0.04"), []),
    ("one_person", changed(4, "human", AVERAGE, helmet_fluency_var="0.05"), [AVERAGE]),
    ("bertscore", changed(4, "human", AVERAGE, bertscore="0.75"), [BEST]),
    ("bertscore", changed(4, "human", BEST, rouge_l="0.23"), [AVERAGE]),
    ("spelling", names(open_models=["LLaVA-NeXT-Video", "Mini-CPM-o", "Qwen2.5VL"]),
     ["Gemini-2.5-Flash", "Vision-centric"]),
    ("name", names(benchmark_names=["MOVIERECAPSQA", "MovieRecapsQA"]), []),
    ("halves", changed(5, "relevance_open", "(only frames)", multimodal="0.13"),
     ["(only dialogue)", "(only frames)", OPEN, PROPRIETARY, PROPRIETARY]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "board", "models"), CASES)
def test_checks_follow_the_figures(kind, board, models):
    assert sorted(f.model for f in findings(board, kind)) == sorted(models)


def test_groups_that_average_over_their_models_are_not_found():
    # One model's figures in every modality, so that they are its own mean.
    qwen = changed(5, "factuality_open", OPEN, dialogue="3.47", vision="3.47", multimodal="3.47")
    (factuality, _), rest = (
        [f for f in findings(qwen, "groups") if f.model == OPEN],
        [f for f in findings(qwen, "groups") if f.model != OPEN],
    )
    assert len(rest) == 2
    assert "0 subsets" in factuality.text
    both = figures(
        (5, "factuality_open", OPEN, dict.fromkeys(MODALITIES, "3.47")),
        (5, "relevance_open", OPEN, dict.fromkeys(MODALITIES, "3.83")),
    )
    assert "(1 subsets of" in findings(both, "groups")[0].text
    means = figures(
        (5, "factuality_open", OPEN, dict.fromkeys(MODALITIES, "3.21")),
        (5, "relevance_open", OPEN, dict.fromkeys(MODALITIES, "3.60")),
    )
    assert {f.model for f in findings(means, "groups")} == {PROPRIETARY}


def test_weighted_means_are_over_table_3():
    paper = Paper(leaderboard(NAME))
    row = paper.split("factuality", "open")
    by_hand = (3.21 * 2932 + 3.05 * 1774 + 3.11 * 3525) / 8231
    assert float(checks.weighted(paper, row, MODALITIES)) == pytest.approx(by_hand)
    by_hand = (3.19 * 3149 + 3.13 * 3294 + 2.83 * 655 + 3.15 * 456 + 3.02 * 677) / 8231
    assert float(checks.weighted(paper, row, CATEGORIES)) == pytest.approx(by_hand)


@pytest.mark.parametrize(
    ("parts", "goals", "total", "least"),
    [
        ((("1.00", "2.00"), ("3.00", "4.00")), ("2.00", "3.00"), 2, 0),
        ((("1.00", "2.00"), ("3.00", "4.00")), ("2.00", "3.10"), 2, Fraction(1, 10)),
        ((("1.00", "2.00"), ("3.00", "4.00")), ("2.00", "3.00"), 1, 1),
        ((("1.00", "0.00"), ("0.00", "1.00"), ("0.00", "0.00")), ("0.25", "0.50"), 4, 0),
        ((("1.00", "0.00"), ("0.00", "1.00"), ("0.00", "0.00")), ("0.75", "0.75"), 4,
         Fraction(1, 4)),
    ],
)  # fmt: skip
def test_the_nearest_split(parts, goals, total, least):
    decimals = tuple((Decimal(one), Decimal(other)) for one, other in parts)
    assert checks.nearest(decimals, (Decimal(goals[0]), Decimal(goals[1])), total) == least


@pytest.mark.parametrize(
    ("board", "columns"),
    [
        # With x of CRD and the rest of NPA Factuality needs 3.86 + 0.21 x >= 3.99, x >= 0.62, and
        # Relevance is 3.98 + 0.07 x > 4.02; the other two categories gain more of it.
        (changed(4, "human", AVERAGE, factuality="4.00"), ["crd..th"]),
        (changed(5, "relevance_human", "Human*", npa="3.90"), ["dialogue..multimodal"]),
        # 40, 30 and 48 questions: Factuality 4.009, Relevance 4.084.
        (changed(4, "human", AVERAGE, factuality="4.01", relevance="4.08"), []),
    ],
)
def test_people_against_5_follows_the_figures(board, columns):
    assert [f.column for f in findings(board, "people")] == columns


def test_ranges_hold_what_figures_stand_for():
    assert counts.about(Decimal("660")) == counts.Range(Decimal("659.5"), Decimal("660.5"))
    product = counts.Range(Decimal(2), Decimal(3)) * counts.Range(Decimal(5), Decimal(7))
    assert product == counts.Range(Decimal(10), Decimal(21))
    ratio = counts.Range(Decimal(2), Decimal(3)) / counts.Range(Decimal(5), Decimal(10))
    assert ratio == counts.Range(Decimal("0.2"), Decimal("0.6"))
    assert counts.Range(Decimal(1), Decimal(2)).apart(counts.Range(Decimal(3), Decimal(4)))
    assert not counts.Range(Decimal(1), Decimal(3)).apart(counts.Range(Decimal(3), Decimal(4)))
    # 0.99 stands for 0.985 to 0.995, 1.00 for nothing above 1.
    assert counts.yes_or_no(Decimal("0.99")).low == Decimal("0.004975")
    assert counts.yes_or_no(Decimal("0.99")).high == Decimal("0.014775")
    assert counts.yes_or_no(Decimal("1.00")).low == 0


def test_fluency_is_yes_or_no_in_every_row():
    for row in table(4).rows:
        variance = counts.about(row.printed("helmet_fluency_var"))
        assert not counts.yes_or_no(row.printed("helmet_fluency")).apart(variance)
