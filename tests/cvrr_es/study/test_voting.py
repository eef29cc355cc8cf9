"""One rating out of several, by hand."""

from __future__ import annotations

import pytest

from lmms_eval_tasks.cvrr_es.study import panels


@pytest.mark.parametrize(
    ("ratings", "majority", "median", "mean"),
    [
        ([4], 4, 4, 4),
        ([2, 2, 5], 2, 2, 3),
        ([1, 5], 1, 3, 3),  # tied: the lower of two
        ([1, 3, 5], 3, 3, 3),  # the middle one of three
        ([1, 2, 4, 5], 2, 3, 3),  # of two middle ones the lower
        ([2, 3], 2, 2, 2),  # halves go down
        ([1, 1, 2, 2, 5], 1, 2, 2),
        ([4, 5, 5, 4, 3], 4, 4, 4),
        ([1, 1, 4, 4], 1, 2, 2),
    ],
)
def test_votes(ratings: list[int], majority: int, median: int, mean: int) -> None:
    for order in (ratings, ratings[::-1]):
        assert panels.majority(order) == majority
        assert panels.median(order) == median
        assert panels.weighted_mean(order, [0.1] * len(order)) == mean


def test_weights() -> None:
    assert panels.weighted_mean([1, 5], [0.9, 0.1]) == 1  # 1.4
    assert panels.weighted_mean([1, 5], [0.1, 0.9]) == 5  # 4.6
    assert panels.weighted_mean([1, 5], [0.0, 0.3]) == 5
    # A half whose weights are no exact binary numbers: 2.5 in both.
    assert panels.weighted_mean([2, 3], [0.7, 0.7]) == 2
    assert panels.weighted_mean([1, 2, 3, 4], [0.1, 0.1, 0.1, 0.1]) == 2
    for weights in ([0.0, 0.0], [-0.1, 0.5]):
        with pytest.raises(ValueError, match="positive sum"):
            panels.weighted_mean([1, 5], weights)


@pytest.mark.parametrize(
    ("value", "rating"),
    [(0.2, 1), (1.5, 1), (1.51, 2), (2.5 + 1e-12, 2), (3.49, 3), (4.6, 5), (7.0, 5), (-1.0, 1)],
)
def test_to_scale(value: float, rating: int) -> None:
    assert panels.to_scale(value) == rating
