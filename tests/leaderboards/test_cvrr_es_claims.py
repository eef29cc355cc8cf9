"""Every statement of the judge study's text that figures decide, and a change that turns it."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from lmms_eval_tasks.cvrr_es.reliability import kappa_values
from lmms_eval_tasks.leaderboards import leaderboard
from lmms_eval_tasks.leaderboards.cvrr_es_agreement_claims import band
from lmms_eval_tasks.leaderboards.cvrr_es_claims import STATEMENTS, claims
from lmms_eval_tasks.leaderboards.cvrr_es_contradictions import contradictions
from lmms_eval_tasks.leaderboards.cvrr_es_panel_claims import above_single
from lmms_eval_tasks.leaderboards.cvrr_es_paper import Paper
from tests.leaderboards.cvrr_es_boards import (
    NAME,
    SLUGS,
    beside,
    figures,
    figures_beside,
    listing,
    names,
    renamed,
    states,
    table,
    with_figures,
)
from tests.leaderboards.maverix_boards import of, with_rows

CASES_FILE = Path(__file__).resolve().parents[1] / "cases" / "cvrr_es_contradictions.json"
PINNED = json.loads(CASES_FILE.read_text(encoding="utf-8"))["claims"]
COLLECTIVE, MIXTURE = "Collective thought", "Mixture Judge"
LLAVA, LLAMA, MINI, INTERN = "Video-LLaVA", "LLaMA-VID", "GPT-4o mini", "InternVL2"
CHATGPT, OWL, GPT, DEBATE = "Video-ChatGPT", "mPLUG-Owl-Video", "GPT-4o", "Agent-Debate"
CANDIDATES = (LLAMA, MINI, CHATGPT, OWL, LLAVA)
E, NE, TIME, VISUAL = "Non-exist (E)", "Non-exist (NE)", "Time Order", "Visual Context"
SOCIAL, FINE, CONT = "Social Context", "Fine Action", "Cont. & Obj."
PAPER = Paper(leaderboard(NAME))


def every(value):
    """A row with one figure in every dimension."""
    return dict.fromkeys(SLUGS, value)


def without_judge(judge):
    """Table 5 without a judge."""
    return with_rows(leaderboard(NAME), 5, lambda rows: [row for row in rows if row.group != judge])


def debate_lowest():
    """The debate's ratings as low as can be."""
    return figures(*((4, name, DEBATE, every("1.00")) for name in CANDIDATES))


def lower_everywhere():
    """Every judge's ratings of the two dimensions as low as can be."""
    low = {E: "1.00", NE: "1.00"}
    rows = {(row.group, row.name) for row in table(4).rows}
    return figures(*((4, candidate, judge, low) for candidate, judge in sorted(rows)))


def agreeing(value, *judges):
    """The same agreement of some judges about everybody everywhere."""
    return with_rows(
        leaderboard(NAME),
        5,
        lambda rows: [with_figures(r, every(value)) if r.group in judges else r for r in rows],
    )


def collective_as(values):
    rows = {row.name: row for row in table(7).rows}
    return figures(*((7, MIXTURE, name, values) for name in rows))


def no_better(averages=()):
    """Table 7 as low as Table 6, but for some averages."""
    pairs = zip(table(6).rows, table(7).rows, strict=True)
    return figures(
        *(
            (7, MIXTURE, row.name, {k: str(v) for k, v in six.figures.items()})
            for six, row in pairs
        ),
        (7, MIXTURE, "Average", dict(averages)),
    )


# Each statement, and a change that turns it round.
FLIPS = {
    "dimensions": lambda: states(dimensions="10"),
    "questions": lambda: figures_beside("release", "questions", {TIME: "153"}),
    "candidates": lambda: listing("Candidates", f"{LLAVA}, {LLAMA}, {MINI}, {CHATGPT}"),
    "raters": lambda: listing("Judges (LLM)", "Agents-Debate (GPT-4o, GPT-3.5), GPT-3.5"),
    "judges": lambda: without_judge(INTERN),
    "final_judge": lambda: figures((5, MINI, "Average", {TIME: "34.40"})),
    "scale": lambda: figures((4, LLAMA, "GPT-3.5", {E: "0.99"})),
    "named_judge": lambda: names(disagreeing_judges=[LLAVA]),
    "members": lambda: names(initial_judges=[LLAMA, INTERN, LLAVA, MINI]),
    "selected_among": lambda: names(initial_judges=[LLAMA, INTERN, LLAVA, MINI]),
    "selected_best": lambda: names(selected_for_fine_action=[LLAMA, MINI]),
    "close": lambda: figures((4, MINI, LLAVA, every("3.90"))),
    # 49 of 55 are less than nine of ten.
    "typically": lambda: figures((4, OWL, LLAMA, {TIME: "3.70"})),
    "lower": lambda: figures((4, MINI, "GPT-3.5", {TIME: "4.20"})),
    "lowest": debate_lowest,
    "debate_range": lambda: figures((4, LLAMA, DEBATE, {E: "1.46", NE: "1.50"})),
    "debate_range_again": lambda: figures((4, LLAMA, DEBATE, {FINE: "1.95"})),
    "gpt4o_range": lambda: figures((4, LLAMA, GPT, {TIME: "2.47"})),
    "harder": lambda: figures(
        *((4, name, judge, {E: "5.00"}) for name in CANDIDATES for judge in (GPT, MINI, "GPT-3.5"))
    ),
    "every_judge": lower_everywhere,
    "similar": lambda: figures(*((4, name, GPT, every("3.50")) for name in CANDIDATES)),
    "strict": lambda: figures(*((4, name, GPT, every("3.50")) for name in CANDIDATES)),
    "always": debate_lowest,
    "example": lambda: figures_beside("figure6", "gpt4o-mini", {"by_gpt3_5": "1"}),
    "stronger": lambda: figures((4, CHATGPT, DEBATE, {TIME: "2.40"})),
    "bands": lambda: states(moderate_from="0.40"),
    "video_llava_range": lambda: figures((5, LLAVA, "Average", {TIME: "2.82"})),
    "llama_vid_range": lambda: states(llama_vid_low="-4.04"),
    "higher": lambda: agreeing("20.00", MINI),
    "substantial": lambda: agreeing("60.01", INTERN, MINI, GPT),
    "fifty": lambda: figures((5, GPT, "Average", {FINE: "50.00"})),
    "only": lambda: figures(*((5, MINI, name, {VISUAL: "40.01"}) for name in CANDIDATES)),
    "trend": lambda: figures_beside("release", LLAVA, {TIME: "31.05"}),
    "unreliable": lambda: figures((5, LLAVA, MINI, {TIME: "20.01"})),
    "weak_to_strong": lambda: figures((5, LLAVA, MINI, every("-1.50"))),
    "collective_range": lambda: figures((6, COLLECTIVE, "Average", {NE: "2.71"})),
    "collective_highest": lambda: figures((6, COLLECTIVE, "Average", {FINE: "33.98"})),
    "collective_moderate": lambda: figures((6, COLLECTIVE, "Average", {SOCIAL: "60.01"})),
    # Row "GPT-4o" is compared with GPT-4o mini's: 42.58 alone.
    "collective_below": lambda: figures((6, COLLECTIVE, GPT, {CONT: "42.59"})),
    "mixture_range": lambda: states(mixture_high="56.24"),
    "comparable": no_better,
    "mixture_overall": lambda: collective_as(every("40.75")),
    "sole": no_better,
}


def test_all_claims_are_the_pinned_ones():
    checked = claims(leaderboard(NAME))
    assert [[claim.key, claim.holds] for claim in checked] == PINNED
    assert all(claim.follow for claim in checked if not claim.holds)
    assert len({statement.key for statement in STATEMENTS}) == len(STATEMENTS) == 43
    assert set(FLIPS) == {statement.key for statement in STATEMENTS}


@pytest.mark.parametrize(("key", "holds"), PINNED)
def test_every_claim_follows_the_figures(key, holds):
    # By itself: some of these boards are of a paper that other statements cannot be asked of.
    (statement,) = (each for each in STATEMENTS if each.key == key)
    assert statement.claim(Paper(FLIPS[key]())).holds is not holds


@pytest.mark.parametrize(
    ("key", "board", "holds"),
    [
        ("close", lambda: figures((4, OWL, LLAVA, {TIME: "3.80"}), (4, MINI, LLAVA, every("4.00"))),
         False),  # two of eleven
        ("close", lambda: figures((4, MINI, LLAVA, {**every("3.90"), TIME: "4.11"})), True),
        ("bands", lambda: states(almost_perfect_to="0.99"), False),
        ("substantial", lambda: agreeing("60.00", INTERN, MINI, GPT), False),
        ("substantial", lambda: agreeing("80.01", INTERN, MINI, GPT), True),
        ("scale", lambda: figures((4, LLAMA, LLAVA, {E: "5.00", NE: "1.00"})), True),
        ("scale", lambda: figures((4, LLAMA, LLAVA, {E: "5.01"})), False),
        ("raters", lambda: renamed(4, OWL, LLAVA, LLAMA), False),
        ("final_judge", lambda: listing("Final Judge", MINI), False),
        ("members", lambda: names(initial_judges=[LLAMA, INTERN, LLAVA]), False),
        ("fifty", lambda: states(gpt4o_social="60.39"), False),
        ("fifty", lambda: states(gpt4o_exceeds="55"), False),
        ("similar", lambda: names(similar_judges=[MINI, DEBATE]), False),
        ("collective_below", lambda: figures((6, COLLECTIVE, GPT, {CONT: "42.58"})), True),
        ("collective_below", lambda: figures((6, COLLECTIVE, "Average", {CONT: "33.12"})), False),
        ("sole", lambda: figures((7, MIXTURE, "Average", {CONT: "33.11"})), False),
        ("comparable", lambda: figures((6, COLLECTIVE, "Average", every("90.00"))), False),
        ("sole", lambda: no_better({CONT: "33.11"}), True),
        ("sole", lambda: no_better({CONT: "33.12"}), False),
        ("always", lambda: figures((4, OWL, LLAVA, {VISUAL: "4.00"})), False),
        ("trend", lambda: listing("Final Judge", GPT), True),
    ],
)  # fmt: skip
def test_claims_at_their_borders(key, board, holds):
    (statement,) = (each for each in STATEMENTS if each.key == key)
    assert statement.claim(Paper(board())).holds is holds


def test_the_contradictions_named_in_issue_7():
    failed = {claim.key: claim for claim in claims(leaderboard(NAME)) if not claim.holds}
    assert failed["members"].evidence.startswith(
        "Table 1 has no judge Video-ChatGPT, and InternVL2 besides"
    )
    assert failed["debate_range"].evidence == "Table 4: 1.11 (Non-exist (E)) to 1.94 (Cont. & Obj.)"
    assert failed["gpt4o_range"].evidence == "Table 4: 1.77 (Social Context) to 2.70 (Time Order)"


def test_evidence_that_is_computed():
    by_key = {claim.key: claim.evidence for claim in claims(leaderboard(NAME))}
    assert by_key["close"].startswith("Table 4: 45 of 55 are; not GPT-4o mini (Cont. & Obj. 3.86,")
    assert by_key["close"].endswith("; mPLUG-Owl-Video (Visual Context 2.07)")
    assert by_key["typically"].startswith("Table 4: 50 of 55 are;")
    assert by_key["lowest"].startswith("Table 4: of the debate's 55 means 8 are above another")
    assert "and 5 equal one, LLaMA-VID (Non-exist (NE) GPT-3.5 1.17)" in by_key["lowest"]
    assert by_key["always"].startswith("Table 4: 272 of 275 are;")
    assert by_key["example"] == "Figure 6: 23 ratings are above, 0 below it"
    assert "GPT-4o 40.74 (moderate), at most 60.38 in Social Context" in by_key["substantial"]
    assert "the same order in 7 of 11 dimensions" in by_key["trend"]
    assert "Cont. & Obj. +11.52" in by_key["comparable"]
    assert "GPT-4o 40.74, Mixture Judge 29.44, Collective thought 23.31" in by_key["comparable"]
    assert by_key["weak_to_strong"].startswith(
        "Table 5, Video-LLaVA's means over dimensions: GPT-4o mini 3.05"
    )


def test_where_the_panels_are_above_gpt_4o_alone():
    assert above_single(PAPER, COLLECTIVE) == ([], [])
    dimensions, cells = above_single(PAPER, MIXTURE)
    assert dimensions == ["Cont. & Obj. 33.13 and 33.11"]
    assert len(cells) == 7
    assert cells[0] == "GPT-4o mini Social Context 45.14 and 42.07"


def test_bands_are_those_of_the_report():
    values = [Decimal(hundredth) / 100 for hundredth in range(-300, 10001)]
    ours = [band(PAPER, value) for value in values]
    assert ours == [kappa_values.band(float(value / 100)) for value in values]


# --- every figure ------------------------------------------------------------------------------


def said(board):
    """All that is said of a leaderboard, part by part: claims first, which are quicker."""
    yield [(claim.holds, claim.evidence) for claim in claims(board)]
    yield [(each.kind, each.findings) for each in contradictions(board)]


BEFORE = list(said(leaderboard(NAME)))
TRIED = (13, Decimal("0.17"), -13, Decimal("-0.17"))


def is_compared(change, old):
    """Whether some other figure in its place makes us say something else."""
    for step in TRIED:
        try:
            if any(now != then for now, then in zip(said(change(old + step)), BEFORE, strict=True)):
                return True
        except (ArithmeticError, StopIteration):  # a figure that cannot be
            continue
    return False


@pytest.mark.parametrize("number", [4, 5, 6, 7])
def test_every_figure_is_compared_with_something(number):
    board = leaderboard(NAME)
    for i, row in enumerate(of(board, number).rows):
        for column, figure in row.figures.items():

            def change(new, i=i, row=row, column=column):
                changed = row.model_copy(update={"figures": row.figures | {column: new}})
                return with_rows(board, number, lambda rows: [*rows[:i], changed, *rows[i + 1 :]])

            assert is_compared(change, figure), (number, row.group, row.name, column)


@pytest.mark.parametrize("which", ["figure6", "figure7", "release"])
def test_every_figure_beside_the_tables_is_compared_with_something(which):
    for row in beside(which).rows:
        for column, figure in row.figures.items():
            if figure is not None:
                assert is_compared(
                    lambda new, name=row.name, column=column: figures_beside(
                        which, name, {column: str(new)}
                    ),
                    figure,
                ), (which, row.name, column)
