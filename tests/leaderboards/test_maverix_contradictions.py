"""Contradictions within and between MAVERIX's tables."""

import json
import re
from decimal import Decimal
from pathlib import Path

import pytest

from lmms_eval_tasks.leaderboards import checking, leaderboard
from lmms_eval_tasks.leaderboards import maverix_checks as checks
from lmms_eval_tasks.leaderboards import maverix_counts as counts
from lmms_eval_tasks.leaderboards.maverix_claims import claims
from lmms_eval_tasks.leaderboards.maverix_contradictions import contradictions
from tests.leaderboards.maverix_boards import changed, of, table

CASES_FILE = Path(__file__).resolve().parents[1] / "cases" / "maverix_contradictions.json"
PINNED = json.loads(CASES_FILE.read_text(encoding="utf-8"))["contradictions"]


def findings(board, kind):
    return [f for each in contradictions(board) if each.kind == kind for f in each.findings]


def test_all_contradictions_are_the_pinned_ones():
    assert {
        each.kind: [[f.setting, f.model, f.column, f.figures] for f in each.findings]
        for each in contradictions(leaderboard("maverix"))
    } == PINNED
    assert all(each.follow for each in contradictions(leaderboard("maverix")))


def test_the_contradictions_named_in_issue_4():
    board = leaderboard("maverix")
    by_key = {claim.key: claim for claim in claims(board) if not claim.holds}
    shifted = [(f.column, *f.figures.values()) for f in findings(board, "taxonomy")]
    assert shifted == [("social", 47.1, 55.6), ("sports", 54.3, 47.1), ("gaming", 61.9, 49.5)]
    assert {f.model for f in findings(board, "taxonomy")} == {"Gemini 2.5-FL"}
    (same,) = findings(board, "identical")
    assert (same.tables, same.model) == ((8,), "Qwen-2.5-Omni")
    assert "those of Qwen-2.5-VL" in same.text
    assert [(f.model, *f.figures.values()) for f in findings(board, "formula")] == [
        ("Ola-7B", 49.5, 49.4),
        ("VITA 1.5", 43.5, 43.4),
    ]
    human = [f.figures for f in findings(board, "correctness") if f.model == "Human"]
    assert human[-1] == {"table6": 3.4, "table8": 2.65}
    assert "2.79" in by_key["open_human"].says
    assert "57.9" in by_key["abstract"].evidence
    assert "56.7" in by_key["abstract"].evidence
    assert {"options", "factors", "quoted_gains", "durations"} <= set(by_key)
    assert len(findings(board, "abilities")) == 3


def test_table_4_is_against_a_in_all_cells():
    gains = checks.difficulty_gains(table(4))
    assert len(gains) == 21
    assert all(gain.printed == gain.over_a for gain in gains)
    both = [(g.model, g.level) for g in gains if g.printed == g.over_v]
    assert both == [("Gemini 2.5-FL", "hard")]
    assert checks.gains_not_over_a(table(4)) == []


def test_table_6_is_against_the_better_single_mode_in_all_rows():
    # The table's note says so.
    for row in table(6).rows:
        best = max(row.printed("score_a"), row.printed("score_v"))
        assert row.printed("score_delta") == row.printed("score_av") - best


def test_models_that_agree_in_tables_6_and_8_are_those_named():
    found = {f.model for f in checks.correctness_against_8(table(6), table(8))}
    agree = [row.name for row in table(6).rows if row.name not in found]
    says = next(c.says for c in contradictions(leaderboard("maverix")) if c.kind == "correctness")
    named = re.split(r", | and ", says[says.index("only ") + 5 : says.index(" agree")])
    assert named == agree


@pytest.mark.parametrize("dimension", ["agentic", "audio", "topic", "ability"])
def test_the_counts_deduced_from_table_10_give_its_overall_figures(dimension):
    ten = table(10)
    deduced = counts.implied_counts(ten, dimension)
    assert sum(deduced.values()) == counts.CHOICE_QUESTIONS
    for column in checks.TABLE_10:
        right = [
            counts.numerators(ten.row(dimension, split).printed(column), n, 100)
            for split, n in deduced.items()
        ]
        assert all(len(k) == 1 for k in right)
        overall = counts.numerators(ten.row("all", "Overall").printed(column), 852, 100)
        assert sum(k[0] for k in right) in overall


def test_ola_adds_up_with_table_10_and_not_with_table_4():
    levels = counts.difficulty_counts(table(10))
    assert levels == (333, 368, 151)
    cells = [
        table(10).row("difficulty", one.capitalize()).printed("ola_7b") for one in checks.LEVELS
    ]
    overall = counts.numerators(Decimal("53.1"), 852, 100)
    right = [counts.numerators(c, n, 100)[0] for c, n in zip(cells, levels, strict=True)]
    assert sum(right) in overall
    other = counts.numerators(table(4).row("", "Ola-7B").printed("easy_av"), levels[0], 100)[0]
    assert sum([other, *right[1:]]) not in overall
    with pytest.raises(ValueError, match="0 triples"):
        counts.difficulty_counts(of(changed(10, "Hard", group="difficulty", ola_7b="99.9"), 10))


def test_table_7s_overall_averages_are_plain_means():
    # README: why they differ from Table 3.
    for mode in ("v", "a", "av"):
        rows = [row for row in table(7).rows if row.group == mode and row.name != "Overall"]
        average = sum(row.printed("average") for row in rows) / 6
        overall = table(7).row(mode, "Overall").printed("average")
        assert len(rows) == 6
        assert abs(average - overall) <= checking.half(overall) + Decimal("0.005")


CASES = [
    # table, group, row, new figures, kind, models still found
    (3, "", "Ola-7B", {"best_uni": "49.4", "delta_multi": "3.7"}, "formula", ["VITA 1.5"]),
    (3, "", "Human", {"best_multi": "92.7"}, "formula", ["Human", "Ola-7B", "VITA 1.5"]),
    (3, "", "GPT-4o", {"delta_multi": "8.8"}, "formula", ["Ola-7B", "VITA 1.5"]),
    (3, "", "GPT-4o", {"delta_multi": "8.9"}, "formula", ["Ola-7B", "VITA 1.5", "GPT-4o"]),
    (3, "", "GPT-4o-mini", {"v": "35.6"}, "share", ["NOVA-Lite"]),
    (3, "", "NOVA-Lite", {"vs": "50.9"}, "overall", []),
    (3, "", "Gemini 2.5-FL", {"av": "54.6"}, "overall", ["Gemini 2.5-FL", "NOVA-Lite"]),
    (4, "", "Ola-7B", {"easy_av": "57.4"}, "difficulty", []),
    (4, "", "EgoGPT", {"hard_av": "36.5"}, "no_gain", []),
    (5, "", "Ola", {"music": "38.6"}, "taxonomy", ["Gemini 2.5-FL"] * 3 + ["Ola"]),
    (5, "", "Gemini 2.5-FL", {"social": "55.6"}, "taxonomy", ["Gemini 2.5-FL"] * 2),
    (8, "", "Qwen-2.5-Omni", {"correctness_av": "1.7478"}, "identical", []),
    (9, "", "EgoGPT-7B", {"context_v": "1.6421"}, "identical", ["Qwen-2.5-Omni"]),
    (7, "av", "Sentiment", {"average": "96.70"}, "average", []),
    (7, "av", "Sentiment", {"average": "96.71"}, "average", ["Sentiment"]),
    (7, "a", "Gaming", {"average": "33.10"}, "average", ["Gaming", "Sentiment"]),
    (7, "av", "Sports", {"average": "82.34"}, "people", ["Overall"] * 3 + ["Social", "Gaming"]),
    (2, "counts", "Situational Understanding", {"in_overall": "60"}, "counts", ["all abilities"]),
    (
        2,
        "counts",
        "Situational Understanding",
        {"in_overall": "144"},
        "counts",
        ["Situational Understanding"],
    ),
]


@pytest.mark.parametrize(("number", "group", "name", "values", "kind", "models"), CASES)
def test_checks_follow_the_figures(number, group, name, values, kind, models):
    board = changed(number, name, group=group, **values)
    assert sorted(f.model for f in findings(board, kind)) == sorted(models)


def test_levels_that_are_off_by_under_a_fifth_are_off_by_one_answer():
    found = [
        f.figures for f in findings(leaderboard("maverix"), "levels") if "follows" in f.figures
    ]
    answers = [
        counts.numerators(Decimal(str(each["overall"])), 852, 100)[0]
        - round(each["follows"] * 852 / 100)
        for each in found
    ]
    assert sorted(answers) == [1] * 6 + [16]
    assert all(
        (n == 1) == (f["overall"] - f["follows"] < 0.2) for n, f in zip(answers, found, strict=True)
    )


def test_more_checks_follow_the_figures():
    right = changed(3, "Gemini 2.0-FL", a="41.9")
    assert [f.column for f in findings(right, "levels") if f.model == "Gemini 2.0-FL"] == [
        "v",
        "av",
    ]
    for value, found in (("2.7", 0), ("2.6", 0), ("2.8", 1)):
        board = changed(6, "Human", score_av=value)
        human = [f for f in findings(board, "correctness") if f.model == "Human"]
        assert sum(f.column == "score_av" for f in human) == found
    assert len(checks.gains_not_over_a(of(changed(4, "Human", easy_delta="47.1"), 4))) == 0
    assert len(checks.gains_not_over_a(of(changed(4, "Human", easy_delta="47.2"), 4))) == 1


def test_printed_figures_stand_for_their_last_place():
    assert checking.half(Decimal("1.6420")) == Decimal("0.00005")
    assert checking.half(Decimal(80)) == Decimal("0.5")
    assert checking.apart(Decimal("51.0"), Decimal("50.9"))
    assert not checking.apart(Decimal("80"), Decimal("80.49"))
    assert list(counts.numerators(Decimal("50.9"), 852, 100)) == [434]
    assert not counts.numerators(Decimal("51.0"), 852, 100)
    with pytest.raises(ValueError, match="no count up to 852"):
        counts.implied_counts(of(changed(10, "Music", group="audio", ola_7b="99.95"), 10), "audio")
