"""What a study is made of and counts; means and failures by hand."""

from __future__ import annotations

import random

from lmms_eval_tasks.cvrr_es.study.ratings import AnswerKey, RatingRow
from lmms_eval_tasks.cvrr_es.study.study import Rater, summaries, summary
from lmms_eval_tasks.cvrr_es.study.study import study as study_of
from lmms_eval_tasks.errors import DataError
from tests.checks import refused
from tests.cvrr_es.scored import PART, TIME
from tests.cvrr_es.study.study_rows import of, row, rows, study


def test_items_are_of_judges_and_reference_in_whatever_order_they_come() -> None:
    made = study({"J": {"A": [5, 4]}, "K": {"B": ["absent", 3]}}, {"A": [5, "absent", 2]})
    places = ((0, "A"), (1, "A"), (1, "B"), (2, "A"))
    assert made.items == [AnswerKey(f"{PART}/{n:03d}", name) for n, name in places]
    sides = [(pair.rating, pair.reference, pair.was_asked) for pair in of(made)]
    assert sides == [(5, 5, True), (4, None, True), (None, None, False), (None, 2, False)]
    ours = [*rows([1, 2, None]), *rows([4], judge="K"), *rows([2, 3], dimension=TIME)]
    ours.append(row(1, 4, round="collective"))
    reference = rows([1, 1, 1], judge="debate", round="reference")
    made = study_of(ours, reference)
    assert Rater("J", "collective") in made.raters
    random.Random(1).shuffle(ours)
    assert study_of(ours, reference[::-1]) == made


def test_what_is_refused() -> None:
    other = row(1, 3, dimension=TIME, question=f"{PART}/001", candidate="B")
    cases: list[tuple[list[RatingRow], list[RatingRow], str]] = [
        ([row(1, 3)], [row(2, 3)], "no item in common, for example .*/001 by A and .*/002 by A"),
        ([row(1, 3), other], [], "in the dimension partial_actions .* and in time_order"),
        ([row(1, 3)], [row(1, 3, video="x.mp4")], "v0.mp4' in one .*/x.mp4'"),
    ]
    for ours, reference, message in cases:
        refused(DataError, message, study_of, ours, reference)


def test_summaries_by_hand() -> None:
    made = study({"J": {"A": [4, 4, 1, 4.5, None, "absent"]}}, {"A": [1] * 6})
    assert summary(of(made)) == {
        "mean": 13.5 / 4,
        "rated": 4,
        "distribution": {"1": 1, "2": 0, "3": 0, "4": 2, "5": 0},
        "not_whole": 1,
        "failed": 1,
        "missing": 1,
        "coverage": 4 / 6,
    }
    assert summary([])["mean"] is summary([])["coverage"] is None
    ours = [*rows([1, 2]), *rows([5, 5], candidate="B")]
    found = summaries(of(study_of([*ours, *rows([3], dimension=TIME, candidate="B")], [])))
    assert found["overall"]["mean"] == 16 / 5
    assert {name: one["mean"] for name, one in found["by_candidate"].items()} == {
        "A": 1.5,
        "B": 13 / 3,
    }
    assert found["cells"][PART]["B"]["mean"] == 5
