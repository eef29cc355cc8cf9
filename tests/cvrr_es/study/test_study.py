"""What a study is made of, what it counts, and what it refuses."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from lmms_eval_tasks.cvrr_es.study.ratings import Item, RatingRow
from lmms_eval_tasks.cvrr_es.study.study import Cell, Counts, Place, Rater, Study
from lmms_eval_tasks.errors import DataError
from tests.cvrr_es.study.study_rows import PARTIAL, TIME, drawn, of, row, rows, study


def test_rows_in_any_order_make_the_same_study():
    given = [*rows([1, 2, None]), *rows([4], judge="K"), *rows([2, 3], dimension=TIME)]
    reference = rows([1, 1, 1], judge="debate", round="reference")
    made = Study.of(given, reference)
    for seed in range(5):
        random.Random(seed).shuffle(given)
        random.Random(seed).shuffle(reference)
        again = Study.of(given, reference)
        assert again == made
        assert list(again.cells) == list(made.cells)
        assert list(again.raters) == list(made.raters)


def test_items_are_of_judges_and_reference():
    made = study({"J": {"A": [5, 4]}, "K": {"B": ["absent", 3]}}, {"A": [5, "absent", 2]})
    assert made.items == (
        Item("partial_actions/000", "A"),
        Item("partial_actions/001", "A"),
        Item("partial_actions/001", "B"),
        Item("partial_actions/002", "A"),
    )
    assert made.candidates == ("A", "B")
    assert made.dimensions == (PARTIAL,)
    assert list(made.cells) == [Cell(PARTIAL, "A"), Cell(PARTIAL, "B")]
    assert made.questions["partial_actions/002"] == Place(PARTIAL, "v1.mp4")
    assert made.video(made.items[0]) == "v0.mp4"
    assert made.dimension(made.items[0]) == PARTIAL
    assert made.referees == {Rater("debate", "reference")}


def test_cells_are_in_the_order_of_the_tables():
    made = drawn(1, dimensions=11)
    assert made.dimensions == tuple(DIMENSIONS)
    assert [cell.candidate for cell in made.cells][:5] == ["c0", "c1", "c0", "c1", "c2"]
    assert sum(len(items) for items in made.cells.values()) == len(made.items)


def test_one_judge_in_two_rounds_is_two_raters():
    made = Study.of([row(1, 2), row(1, 4, round="collective")], [row(1, 5, judge="d")])
    item = Item("partial_actions/001", "A")
    assert made.raters[Rater("J", "first")] == {item: 2}
    assert made.raters[Rater("J", "collective")] == {item: 4}


def test_counts():
    given = [
        row(0, 4),
        row(1, None),
        row(2, 4.5),
        row(3, None, status="empty_answer", empty=True),
        row(4, 1, empty=True),
    ]
    made = Study.of(given, rows([1, 1, 1, 1, 1, 1, None], judge="debate", round="reference"))
    assert made.counts(of(made)) == Counts(
        items=7, rated=3, failed=2, missing=2, not_whole=1, empty=2, empty_rated=1, empty_failed=1
    )
    assert made.counts(made.reference) == Counts(7, 6, 1, 0, 0, 2, 2, 0)
    without = made.without_empty
    assert without.counts(of(without)) == Counts(5, 2, 1, 2, 1, 0, 0, 0)


def test_without_empty_drops_the_items_everywhere():
    """One row that says so is enough; the other judge's and the reference's rows go too."""
    made = Study.of(
        [row(1, 1, empty=True), row(2, 5), row(1, 2, judge="K")],
        [row(1, 1, judge="d"), row(2, 5, judge="d")],
    )
    left = made.without_empty
    item = Item("partial_actions/002", "A")
    assert left.items == (item,)
    assert set(left.questions) == {"partial_actions/002"}
    assert left.raters == {Rater("J", "first"): {item: 5}, Rater("K", "first"): {}}
    assert left.reference == {item: 5}
    assert len(made.items) == 2


def test_empty_answers_are_known_from_the_reference_too():
    made = Study.of([row(1, 1), row(2, 5)], [row(1, 1, judge="d", empty=True)])
    assert made.empty == {Item("partial_actions/001", "A")}


def test_an_empty_answer_that_a_judge_was_never_asked_about_is_no_failure():
    made = Study.of([row(1, 1), row(2, None, judge="K", empty=True)], [])
    counts = made.counts(of(made))
    assert (counts.empty, counts.empty_rated, counts.empty_failed, counts.missing) == (1, 0, 0, 1)


def test_whole_ratings_become_int_whatever_number_they_were():
    made = Study.of([row(1, 4.0), row(2, np.float64(3.0)), row(3, np.int64(2))], [])
    values = list(of(made).values())
    assert values == [4, 3, 2]
    assert {type(value) for value in values} == {int}


def test_a_row_without_its_video_learns_it_from_another():
    made = Study.of([row(1, 4, video="")], [row(1, 4, judge="d", video="x.mp4")])
    assert made.questions["partial_actions/001"].video == "x.mp4"
    other = Study.of([row(1, 4, video="x.mp4")], [row(1, 4, judge="d", video="")])
    assert other.questions["partial_actions/001"].video == "x.mp4"


def test_a_reference_may_still_be_to_come():
    made = Study.of(rows([1, 2]), [])
    assert made.reference == {}
    assert len(made.items) == 2


def test_a_reference_that_failed_everywhere_is_there_all_the_same():
    made = Study.of(rows([1, 2]), rows([None, None], judge="d"))
    assert made.counts(made.reference).failed == 2


@pytest.mark.parametrize(
    ("given", "reference", "message"),
    [
        ([], [], "there are no ratings"),
        ([row(1, 3), row(1, 3)], [], r"J \(first\) on partial_actions/001 by A: .*two rows"),
        ([row(1, 3), row(1, None)], [], "two rows"),
        ([row(1, 3)], [row(1, 3), row(1, 4)], "the reference, J .* two rows"),
        ([row(1, 3)], [row(1, 3, judge="d"), row(1, 3, judge="e")], "reference, e .* two rows"),
        ([row(1, 0)], [], "rating 0 is off the scale 1 to 5"),
        ([row(1, 6)], [], "rating 6 is off the scale"),
        ([row(1, 0.99)], [], "off the scale"),
        ([row(1, 5.01)], [], "off the scale"),
        ([row(1, float("nan"))], [], "off the scale"),
        ([row(1, float("inf"))], [], "off the scale"),
        ([row(1, 3)], [row(1, 9, judge="d")], "the reference, d .* off the scale"),
        ([row(1, "4")], [], "rating '4' is no number"),
        ([row(1, True)], [], "rating True is no number"),
        ([row(1, 3, status="refused")], [], "rating 3 and the status 'refused'"),
        ([row(1, 3, dimension="dancing")], [], "dimension 'dancing' is unknown"),
        ([row(1, 3, round="last")], [], "round 'last' is none of first, collective"),
        ([row(1, 3, judge="")], [], "has no judge"),
        ([row(1, 3, candidate="")], [], "has no candidate"),
        ([row(1, 3, question="")], [], "has no question"),
        ([row(1, 3)], [row(2, 3)], "no item in common, such as .*/001 by A and .*/002 by A"),
        ([row(1, 3)], [row(1, 3, candidate="B")], "no item in common"),
        (
            [row(1, 3), row(1, 3, dimension=TIME, question="partial_actions/001", candidate="B")],
            [],
            "partial_actions in one row and in time_order",
        ),
        (
            [row(1, 3), row(1, 3, candidate="B", video="other.mp4")],
            [],
            "video 'v0.mp4' in one row and on 'other.mp4'",
        ),
        ([row(1, 3)], [row(1, 3, judge="d", video="other.mp4")], "in one row and on"),
    ],
)
def test_what_is_refused(given: list[RatingRow], reference: list[RatingRow], message: str):
    with pytest.raises(DataError, match=message) as caught:
        Study.of(given, reference)
    assert "\n" not in str(caught.value)


def test_a_failure_may_have_any_status():
    made = Study.of([row(1, None, status="api_error"), row(2, None, status="ok")], [])
    assert made.counts(of(made)).failed == 2


def test_a_study_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        drawn(1).items = ()  # type: ignore[misc]
