"""Scores of HAVEN's selections, orders and alignments: by hand, by enumeration, and at chance."""

from __future__ import annotations

import itertools
import math
import random
from statistics import fmean
from typing import Any

import pytest

from lmms_eval_tasks.haven import options
from lmms_eval_tasks.utils.media.segmentation import knapsack
from lmms_eval_tasks.utils.metrics import selections
from lmms_eval_tasks.utils.metrics.selections import Correlation, SetScores, set_scores
from lmms_eval_tasks.utils.replies.summaries import read_frames
from tests.checks import refused, table


def close(value: Any) -> Any:
    return pytest.approx(value, abs=1e-12)


# --- keyframes --------------------------------------------------------------------------------


def test_known_scores_of_sets() -> None:
    assert set_scores({1, 2, 3, 4}, {3, 4, 5}) == SetScores(0.5, 2 / 3, 4 / 7, 2 / 5, 1)
    assert set_scores({1, 2, 3}, {3, 4}) == SetScores(1 / 3, 0.5, 0.4, 0.25, 1)
    assert set_scores({3}, {3}) == SetScores(1, 1, 1, 1, 1)
    assert set_scores({1}, {3}) == set_scores(set(), {3}) == SetScores(0, 0, 0, 0, 0)
    assert set_scores(set(), set()) == SetScores(0, 0, 0, 1, 0)  # as in the benchmark's own code
    # A frame that does not exist is wrong.
    selected = read_frames("[3, 99]", 20, 2).selected
    assert set_scores(selected, {3}) == SetScores(0.5, 1, 2 / 3, 0.5, 1)


@table("n_frames, n_true, k", [(6, 2, 3), (7, 3, 1), (5, 5, 2), (6, 1, 6)])
def test_closed_forms_over_all_selections(n_frames: int, n_true: int, k: int) -> None:
    true = set(range(1, n_true + 1))
    chosen = itertools.combinations(range(1, n_frames + 1), k)
    columns = list(zip(*(set_scores(one, true)[:3] for one in chosen), strict=True))
    expected = selections.random_frames(n_frames, n_true, k)
    assert tuple(map(fmean, columns)) == close(tuple(expected[:3]))


def brute(values: list[int], weights: list[int], capacity: int) -> list[int]:
    """Knapsack by its definition: most value, least weight, first list of places."""

    def total(of: list[int], places: Any) -> int:
        return sum(of[at] for at in places)

    sets = (
        places
        for size in range(len(values) + 1)
        for places in itertools.combinations(range(len(values)), size)
        if total(weights, places) <= capacity
    )
    return list(min(sets, key=lambda one: (-total(values, one), total(weights, one), one)))


def test_knapsack_against_all_sets() -> None:
    rng = random.Random(0)
    for _ in range(80):
        n = rng.randint(0, 10)
        highest = rng.choice([1, 3, 10**6])  # low values make ties
        values = [rng.randint(0, highest) for _ in range(n)]
        weights = [rng.randint(1, rng.choice([2, 9])) for _ in range(n)]
        capacity = rng.randint(0, 25)
        assert knapsack(values, weights, capacity) == brute(values, weights, capacity)
    assert [options.capacity(n) for n in (1, 6, 7, 13, 14, 20, 100)] == [0, 0, 1, 1, 2, 3, 15]


@table("values, weights, capacity, found")
def test_knapsack_by_hand(values, weights, capacity, found) -> None:
    assert knapsack(values, weights, capacity) == found


# --- orders -----------------------------------------------------------------------------------


def numbers(found: Correlation) -> tuple[float, float]:
    assert found.spearman is not None
    assert found.kendall is not None
    return found.spearman, found.kendall


def test_ranks() -> None:
    """The most important is first; what is left out of a reply shares the last places."""
    assert selections.predicted_ranks([3, 1, 2], 3) == [2, 3, 1]
    assert selections.predicted_ranks([3, 1], 5) == [2, 4, 1, 4, 4]  # places 3, 4, 5 shared
    assert selections.predicted_ranks([], 3) == [2, 2, 2]
    assert selections.importance_ranks([0.1, 0.9, 0.5]) == [3, 1, 2]
    assert selections.importance_ranks([0.5, 0.9, 0.5, 0.1]) == [2.5, 1, 2.5, 4]
    mean = sum([0.1, 0.2, 0.3]) / 3  # rounding unties nothing
    assert mean != 0.2
    assert selections.importance_ranks([mean, 0.2, 0.3]) == [2.5, 2.5, 1]
    assert selections.importance_ranks([0.20001, 0.2]) == [1, 2]
    assert selections.importance_ranks([2e-30, 1e-30, 0.0]) == [1, 2, 3]
    for wrong in (math.nan, math.inf):
        refused(ValueError, "not finite", selections.importance_ranks, [0.1, wrong])


def test_known_correlations() -> None:
    # d^2 = 1 + 1 + 0 + 0: rho = 1 - 6 * 2 / (4 * 15); one of six pairs is turned round.
    found = selections.correlations([2, 1, 3, 4], [1, 2, 3, 4])
    assert (
        numbers(found) == (close(0.8), close(4 / 6)) == numbers(selections.identity([2, 1, 3, 4]))
    )
    # tau-b with one tied pair of six: 5 / sqrt(6 * 5).
    tied = selections.correlations([1, 2, 3, 4], [1, 2, 3.5, 3.5])
    assert numbers(tied)[1] == close(5 / math.sqrt(30))
    assert numbers(selections.correlations([2, 1], [1, 2])) == (close(-1), close(-1))
    few = "fewer than two units to order"
    assert selections.correlations([1], [1]) == Correlation(None, None, few)
    assert selections.correlations([1, 2], [1.5, 1.5]).reason == "all true ranks are equal"
    assert selections.correlations([1.5, 1.5], [1, 2]).reason == "all predicted ranks are equal"
    for of in (selections.identity, selections.chance):
        assert of([2, 2, 2]) == Correlation(None, None, "all true ranks are equal")


@table("truth", [[1.0, 2.0], [1.5, 1.5, 3.0], [2.0, 3.0, 1.0], [4.0, 1.0, 2.5, 2.5, 5.0]])
def test_closed_forms_over_all_orders(truth: list[float]) -> None:
    n = len(truth)
    found = [
        numbers(selections.correlations(selections.predicted_ranks(order, n), truth))
        for order in itertools.permutations(range(1, n + 1))
    ]
    for side, column in enumerate(zip(*found, strict=True)):
        assert fmean(column) == close(0) == close(numbers(selections.chance(truth))[side])


# --- alignments -------------------------------------------------------------------------------


def test_known_scores_of_alignments() -> None:
    found = selections.aligned([{1, 2, 3}, set(), {5}], [{3, 4}, {1}, {5}])
    assert (found.f1, found.iou, found.hit1) == close((1.4 / 3, 1.25 / 3, 2 / 3))


def test_closed_form_over_all_clips() -> None:
    for n in range(1, 8):
        for g in range(1, n + 1):
            true = set(range(1, g + 1))
            columns = zip(*(set_scores({one}, true) for one in range(1, n + 1)), strict=True)
            expected = tuple(map(fmean, columns))
            assert tuple(selections.random_clips([true], n)) == close(expected)
