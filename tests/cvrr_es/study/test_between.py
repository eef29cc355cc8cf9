"""Judges against each other."""

from __future__ import annotations

import pytest

from lmms_eval_tasks.cvrr_es.study import comparisons
from tests.cvrr_es.study.study_rows import drawn, of, study


def test_pairwise_by_hand():
    made = study(
        {"J": {"A": [1, 2, 3, 4]}, "K": {"A": [2, 3, 4, 5]}, "L": {"A": [4, None, 2, 1]}},
        {"A": [3]},
    )
    ratings = {judge: of(made, judge) for judge in "JKL"}
    found = comparisons.pairwise(made, ratings)
    assert list(found) == [("J", "K"), ("J", "L"), ("K", "L")]
    assert found["J", "K"].value == 5 / 7
    # J 1, 3, 4 and L 4, 2, 1: 1 - 3 * 19 / (3 * 47 - 2 * 8 * 7)
    assert found["J", "L"].value == pytest.approx(1 - 57 / 29)
    assert (found["J", "L"].agreement.n, found["J", "L"].agreement.missing) == (3, 1)
    assert found["J", "K"].no_interval == "no interval was asked for"


def test_pairwise_with_the_reference_and_intervals():
    made = drawn(2)
    ratings = {"J": of(made), "reference": made.reference}
    (found,) = comparisons.pairwise(made, ratings, resamples=1000).values()
    assert found.interval.low < found.value < found.interval.high


def test_pairwise_without_a_reference():
    """An empty reference is no reason for judges not to be compared."""
    made = study({"J": {"A": [1, 2, 3, 4]}, "K": {"A": [2, 3, 4, 5]}}, {})
    (found,) = comparisons.pairwise(made, {name: of(made, name) for name in "JK"}).values()
    assert found.value == 5 / 7


def test_a_judge_without_ratings_is_not_a_missing_reference():
    made = study({"J": {"A": [1, 2]}, "K": {"A": ["absent", "absent", 3]}}, {"A": [1, 2, 3]})
    made = made.keep(lambda item: item.question != "partial_actions/002")
    (found,) = comparisons.pairwise(made, {name: of(made, name) for name in "JK"}).values()
    assert found.agreement.reason == "no item was rated on the scale by both"


def test_alpha_by_hand():
    """Items (1, 1), (5, 5), (1, 2): 1 - 5 * 2 / 234 by squared differences."""
    made = study({"J": {"A": [1, 5, 1, 3, 4.5]}, "K": {"A": [1, 5, 2, None, 4]}}, {"A": [1]})
    found = comparisons.alpha(made, [of(made, "J"), of(made, "K")])
    assert found.value == pytest.approx(224 / 234, abs=1e-15)
    assert (found.n, found.missing, found.off_scale) == (3, 1, 1)


def test_alpha_needs_two_judges():
    made = study({"J": {"A": [1, 5]}}, {"A": [1]})
    found = comparisons.alpha(made, [of(made)])
    assert (found.value, found.reason) == (None, "alpha needs two judges")
    assert found.missing == 2
