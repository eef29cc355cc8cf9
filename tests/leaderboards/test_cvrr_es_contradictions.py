"""Contradictions within the judge study's tables, between them, and in its formula and prompts."""

import json
import random
from decimal import Decimal
from pathlib import Path

import pytest

from lmms_eval_tasks.leaderboards import cvrr_es_checks as checks
from lmms_eval_tasks.leaderboards import cvrr_es_selection_checks as selection
from lmms_eval_tasks.leaderboards import leaderboard
from lmms_eval_tasks.leaderboards.cvrr_es_contradictions import contradictions
from lmms_eval_tasks.leaderboards.cvrr_es_kappa import by_formula, perfect, reversed_scale
from lmms_eval_tasks.leaderboards.cvrr_es_paper import Paper, fits, fitting_rows
from lmms_eval_tasks.utils.agreement import kappa
from tests.leaderboards.cvrr_es_boards import (
    NAME,
    SLUGS,
    figures,
    figures_beside,
    names,
    renamed,
    states,
    table,
    without,
)

CASES_FILE = Path(__file__).resolve().parents[1] / "cases" / "cvrr_es_contradictions.json"
PINNED = json.loads(CASES_FILE.read_text(encoding="utf-8"))["contradictions"]
COLLECTIVE, MIXTURE = "Collective thought", "Mixture Judge"
LLAVA, LLAMA, MINI, INTERN = "Video-LLaVA", "LLaMA-VID", "GPT-4o mini", "InternVL2"
CHATGPT, OWL, GPT = "Video-ChatGPT", "mPLUG-Owl-Video", "GPT-4o"
E, NE, PARTIAL = "Non-exist (E)", "Non-exist (NE)", "Partial Actions"
EMOTIONAL, UNUSUAL, TIME = "Emotional Context", "Unusual Activities", "Time Order"
VISUAL = "Visual Context"
PAPER = Paper(leaderboard(NAME))


def findings(board, kind):
    return [f for each in contradictions(board) if each.kind == kind for f in each.findings]


def test_all_contradictions_are_the_pinned_ones():
    found = contradictions(leaderboard(NAME))
    assert {
        each.kind: [[f.setting, f.model, f.column, f.figures] for f in each.findings]
        for each in found
    } == PINNED
    assert all(each.follow for each in found)


def averages(judge, values, number=5):
    return figures((number, judge, "Average", values))


DEFAULT = {kind: [(row[0], row[1], row[2]) for row in rows] for kind, rows in PINNED.items()}


def less(kind, *gone):
    """What is found as stored, without some."""
    return [row for i, row in enumerate(DEFAULT[kind]) if i not in gone]


def more(kind, *rows):
    """What is found as stored, and more."""
    return [*DEFAULT[kind], *((group, name, SLUGS.get(c, c)) for group, name, c in rows)]


# kind, board, what is found
CASES = [
    ("formula", states(weight_of_equal="0", weight_of_farthest="1"), []),
    ("equal_ratings", figures((4, LLAMA, "GPT-3.5", {TIME: "2.25"})), []),
    ("equal_ratings", figures((4, LLAVA, "GPT-3.5", {"Cont. & Obj.": "2.32"})), []),
    ("outliers", figures((4, OWL, LLAVA, {VISUAL: "4.00"})), []),
    # The others are 3.99 to 4.00: one rating less is 2.99.
    ("outliers", figures((4, OWL, LLAVA, {VISUAL: "2.99"})), []),
    ("outliers", figures((4, OWL, LLAVA, {VISUAL: "2.98"})), DEFAULT["outliers"]),
    ("outliers", figures((4, OWL, LLAVA, {VISUAL: "5.01"})), DEFAULT["outliers"]),
    ("outliers", figures((4, CHATGPT, GPT, {E: "4.00"})),
     [(CHATGPT, GPT, SLUGS[E]), *DEFAULT["outliers"]]),
    ("equal_text_judges", figures((4, LLAMA, "Agent-Debate", {NE: "1.16"})),
     less("equal_text_judges", 0)),
    ("equal_text_judges", figures((4, LLAVA, "Agent-Debate", {E: "1.06"})),
     [(LLAVA, "GPT-3.5", SLUGS[E]), *DEFAULT["equal_text_judges"]]),
    ("averages", averages(LLAMA, {EMOTIONAL: "0.46", UNUSUAL: "-0.25"}), less("averages", 0, 1)),
    ("averages", averages(LLAMA, {EMOTIONAL: "0.46"}), less("averages", 0)),
    ("averages", averages(MINI, {NE: "-10.95", PARTIAL: "-0.06"}), less("averages", 2, 3)),
    ("averages", averages(MIXTURE, {EMOTIONAL: "15.62"}, 7), less("averages", 4)),
    ("averages", figures((7, MIXTURE, LLAMA, {EMOTIONAL: "16.20"})), less("averages", 4)),
    # 33.114 is printed as 33.11; rounding of rows and average is 0.01 together.
    ("averages", averages(GPT, {"Cont. & Obj.": "33.12"}), DEFAULT["averages"]),
    ("averages", averages(COLLECTIVE, {UNUSUAL: "17.54"}, 6),
     [*DEFAULT["averages"][:4], (COLLECTIVE, "Average", SLUGS[UNUSUAL]), DEFAULT["averages"][4]]),
    ("averages", averages(MIXTURE, {UNUSUAL: "17.54"}, 7),
     more("averages", (MIXTURE, "Average", UNUSUAL))),
    ("equal_agreement", figures((5, MINI, LLAMA, {TIME: "5.76"})), less("equal_agreement", 0)),
    ("equal_agreement", figures((5, INTERN, CHATGPT, {TIME: "6.58"})), less("equal_agreement", 1)),
    ("repeated_candidates", without(5, INTERN, LLAVA), []),
    ("repeated_candidates", without(5, GPT, LLAVA),
     [("", INTERN, ""), ("", GPT, "")]),
    ("repeated_candidates", renamed(5, GPT, LLAVA, LLAMA),
     [("", INTERN, ""), ("", GPT, "")]),
    ("unknown_candidates", renamed(6, COLLECTIVE, GPT, MINI), []),
    ("unknown_candidates", renamed(7, MIXTURE, MINI, GPT),
     more("unknown_candidates", (MIXTURE, GPT, ""))),
    ("unknown_candidates", renamed(5, GPT, OWL, "Owl"), [(GPT, "Owl", ""), (COLLECTIVE, GPT, "")]),
    ("equal_dimensions", figures((7, MIXTURE, OWL, {E: "19.56"})), DEFAULT["equal_dimensions"]),
    ("equal_dimensions", figures((7, MIXTURE, OWL, {TIME: "22.51"})),
     [*DEFAULT["equal_dimensions"][:3], ("", MIXTURE, SLUGS[TIME]),
      *DEFAULT["equal_dimensions"][3:]]),
    ("odd_cells", figures((7, MIXTURE, LLAMA, {EMOTIONAL: "16.20"})), []),
    ("odd_cells", figures((7, MIXTURE, OWL, {E: "19.56"})),
     [(MIXTURE, OWL, SLUGS[E]), *DEFAULT["odd_cells"]]),
    # Below the best judge of Time Order, 9.33, there is room for a threshold.
    ("thresholds", averages(MINI, {EMOTIONAL: "9.32"}), []),
    ("thresholds", averages(MINI, {EMOTIONAL: "9.33"}), DEFAULT["thresholds"]),
    ("thresholds", averages(INTERN, {TIME: "12.12"}), []),
    ("thresholds", averages(INTERN, {TIME: "12.11"}), DEFAULT["thresholds"]),
    ("example_ratings", figures_beside("figure6", "video_chatgpt", {"by_llama_vid": "4"}), []),
    ("example_ratings", figures_beside("figure7", "llama_vid", {"figure_9": "2"}),
     [("", "llama_vid", ""), *DEFAULT["example_ratings"]]),
    ("keys", names(reply_keys=["Judgement"] * 4 + ["Judgment"] + ["Judgement"] * 2), []),
    ("keys", names(reply_keys=["Judgement"] * 7), [("", "Figure 11", "")]),
    ("notations", names(notations=["[1]"] * 7), []),
    ("shown_judges", states(judges_shown_7="4"), []),
    ("shown_judges", names(initial_judges=[LLAMA, LLAVA, MINI]), []),
    ("repeated_replies", figures_beside("figure7", "llama_vid", {"figure_8": "2"}),
     less("repeated_replies", 1)),
    ("repeated_replies", states(same_replies_7_10="0"), less("repeated_replies", 0)),
    ("release_means", figures_beside("release", "TimeChat", {"average": "32.91"}),
     [("", "TimeChat", "average")]),
    ("release_means", figures_beside("release", "GPT4o", {TIME: "71.25"}),
     [("", "GPT4o", "average")]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "board", "rows"), CASES)
def test_checks_follow_the_figures(kind, board, rows):
    assert [(f.setting, f.model, f.column) for f in findings(board, kind)] == rows


def test_every_check_has_a_case():
    assert {kind for kind, *_ in CASES} == {*PINNED, "release_means"}


def test_errata_named_in_issue_7():
    """What each of them says, by its figures."""
    by_kind = {each.kind: each for each in contradictions(leaderboard(NAME))}
    texts = {kind: [f.text for f in each.findings] for kind, each in by_kind.items()}
    assert texts["averages"][0] == (
        "Emotional Context 0.23, the rows give 0.46 (0.23 is Video-LLaVA's)"
    )
    assert texts["averages"][1] == (
        "Unusual Activities 0.37, the rows give -0.25 (0.37 is Video-LLaVA's)"
    )
    assert texts["averages"][2] == "Non-exist (NE) -1.09, the rows give -10.95"
    assert texts["averages"][4].endswith("the rows give 15.62 (16.31 is Collective thought's)")
    assert texts["equal_agreement"][0] == "all 11 figures are those of LLaMA-VID, GPT-4o mini"
    assert texts["repeated_candidates"] == [
        "6 rows, Video-LLaVA twice, 5 of them distinct; the averages are those of the 5 distinct "
        "ones"
    ]
    assert texts["equal_ratings"] == ["all 11 figures are those of GPT-3.5, Video-LLaVA"]
    assert texts["outliers"] == [
        "2.07 where all others are 3.99 to 4.00; 2.07 is Agent-Debate's figure too; Table 5 has a "
        "kappa of 0.00 there"
    ]
    assert texts["unknown_candidates"] == ["GPT-4o mini has no row there"]
    assert texts["odd_cells"] == [
        "Emotional Context 12.75, where Table 6 has 16.20 and 12.75 in Time Order; the average "
        "16.31 is that with 16.20"
    ]
    assert "asked for as 'Judgement', and as 'rating'" in texts["keys"][0]
    assert texts["thresholds"][0].endswith(
        "InternVL2's of 7.50 to 9.33. Without that dimension 7.27 to 9.33 would"
    )


def test_averages_by_hand():
    followed = PAPER.followed(LLAMA)
    assert float(followed[SLUGS[EMOTIONAL]]) == pytest.approx(
        (-0.12 - 0.03 + 3.88 - 0.65 - 0.76) / 5
    )
    once = (6.57 + 22.68 + 8.75 + 6.15 + 9.31) / 5
    assert float(PAPER.followed(INTERN)["continuity_and_object_instance_count"]) == pytest.approx(
        once
    )
    twice = (2 * 11.72 + 28.59 + 10.58 + 9.87) / 5
    assert float(PAPER.followed(MINI)["continuity_and_object_instance_count"]) == pytest.approx(
        twice
    )
    assert [len(fitting_rows(PAPER, judge)) for judge in PAPER.judges()] == [5, 5, 5, 5, 5]
    assert len(PAPER.rows(INTERN)) == 6


@pytest.mark.parametrize(
    ("figure", "values", "fitting"),
    [
        ("0.23", ["0.01", "-0.14", "1.53", "-0.17", "-0.06"], True),  # 0.234
        ("0.24", ["0.01", "-0.14", "1.53", "-0.17", "-0.06"], True),  # rows may be 0.005 off
        ("0.25", ["0.01", "-0.14", "1.53", "-0.17", "-0.06"], False),
        ("0.2", ["0.01", "-0.14", "1.53", "-0.17", "-0.06"], True),
    ],
)
def test_a_mean_fits_within_rounding(figure, values, fitting):
    assert fits(Decimal(figure), [Decimal(value) for value in values]) is fitting


def test_no_printed_mean_is_off_the_scale():
    assert checks.impossible(PAPER) == []
    low = Paper(figures((4, LLAMA, GPT, {E: "0.99"})))
    assert checks.impossible(low) == [(LLAMA, GPT, SLUGS[E])]


def test_dimensions_with_the_collectives_figures():
    found = selection.repeated(PAPER)
    assert found == [SLUGS[title] for title in (E, NE, PARTIAL, EMOTIONAL, UNUSUAL)]
    alone = selection.threshold(PAPER, (INTERN,))
    assert (str(alone.most), str(alone.least), alone.possible) == ("7.50", "9.33", True)
    both = selection.threshold(PAPER, (INTERN, MINI))
    assert (both.most_in, both.least_in) == (SLUGS[EMOTIONAL], SLUGS[TIME])
    assert not both.possible
    # Tables that are the same everywhere leave nothing to tell apart.
    pairs = zip(table(6).rows, table(7).rows, strict=True)
    same = figures(
        *((7, MIXTURE, row.name, {k: str(v) for k, v in six.figures.items()}) for six, row in pairs)
    )
    assert selection.threshold(Paper(same), (INTERN,)) is None
    assert findings(same, "thresholds") == []


# --- the formula -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_weights_of_disagreement_make_the_formula_kappa(seed):
    """And those of agreement turn its sign round: -kappa De / (1 - De)."""
    draw = random.Random(seed)
    pairs = [(draw.randint(1, 5), draw.randint(1, 5)) for _ in range(draw.randint(2, 40))]
    one, other = zip(*pairs, strict=True)
    right = kappa(one, other, [1, 2, 3, 4, 5], "quadratic").value
    ours = by_formula(pairs, 5, Decimal(0), Decimal(1))
    assert float(ours) == pytest.approx(right)
    expected = sum((a - b) ** 2 / 16 for a in one for b in other) / len(pairs) ** 2
    printed = by_formula(pairs, 5, Decimal(1), Decimal(0))
    assert float(printed) == pytest.approx(-right * expected / (1 - expected))


def test_judges_who_always_agree():
    assert by_formula(perfect(5), 5, Decimal(0), Decimal(1)) == 1
    assert by_formula(reversed_scale(5), 5, Decimal(0), Decimal(1)) == -1
