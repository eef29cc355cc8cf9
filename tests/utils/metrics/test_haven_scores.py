"""Scores of HAVEN's selections, orders and alignments: by hand, by enumeration, and at chance."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import astuple
from statistics import fmean
from typing import Any

import pytest

from lmms_eval_tasks.haven import options
from lmms_eval_tasks.utils.media.segmentation import knapsack
from lmms_eval_tasks.utils.metrics import alignments, rankings, video_summaries
from lmms_eval_tasks.utils.metrics.alignments import SetScores
from lmms_eval_tasks.utils.metrics.rankings import Correlation
from lmms_eval_tasks.utils.metrics.video_summaries import Scores, precision_recall_f1, read_frames
from tests.checks import refused, table


def close(value: Any) -> Any:
    return pytest.approx(value, abs=1e-12)


# --- keyframes --------------------------------------------------------------------------------


def test_known_scores_of_keyframes() -> None:
    scores = precision_recall_f1
    assert scores({1, 2, 3, 4}, {3, 4, 5}) == Scores(0.5, 2 / 3, 4 / 7)
    assert scores({3}, {3}) == Scores(1, 1, 1)
    assert scores({1}, {3}) == scores(set(), {3}) == Scores(0, 0, 0)
    # A frame that does not exist is wrong.
    assert scores(read_frames("[3, 99]", 20, 2).selected, {3}) == Scores(0.5, 1, 2 / 3)


def test_uniform_and_first_frames() -> None:
    assert video_summaries.uniform(10, 1) == [6]
    assert video_summaries.uniform(100, 4) == [13, 38, 63, 88]
    for n_frames, k in itertools.product(range(1, 30), repeat=2):
        if k <= n_frames:
            found = video_summaries.uniform(n_frames, k)
            assert found == sorted(set(found))
            assert (len(found), set(found) - set(range(1, n_frames + 1))) == (k, set())
            gaps = [b - a for a, b in itertools.pairwise(found)] or [0]
            assert max(gaps) - min(gaps) <= 1
    assert video_summaries.first(10, 3) == [1, 2, 3]


@table("n_frames, n_true, k", [(6, 2, 3), (7, 3, 1), (5, 5, 2), (6, 1, 6)])
def test_closed_forms_over_all_selections(n_frames: int, n_true: int, k: int) -> None:
    true = set(range(1, n_true + 1))
    found = [
        astuple(precision_recall_f1(chosen, true))
        for chosen in itertools.combinations(range(1, n_frames + 1), k)
    ]
    columns = list(zip(*found, strict=True))
    assert tuple(map(fmean, columns)) == close(astuple(video_summaries.chance(n_frames, n_true, k)))
    assert tuple(map(max, columns)) == close(astuple(video_summaries.best(n_true, k)))


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
    values = [rng.randint(0, 10**6) for _ in range(200)]  # of a long video: fast
    weights = [rng.randint(5, 15) for _ in range(200)]
    found = knapsack(values, weights, options.capacity(sum(weights)))
    assert 0 < sum(weights[at] for at in found) <= options.capacity(sum(weights))
    assert [options.capacity(n) for n in (1, 6, 7, 13, 14, 20, 100)] == [0, 0, 1, 1, 2, 3, 15]
    assert options.capacity(10**18 + 20) == 15 * 10**16 + 3


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
    assert rankings.predicted_ranks([3, 1, 2], 3) == [2, 3, 1]
    assert rankings.predicted_ranks([3, 1], 5) == [2, 4, 1, 4, 4]  # places 3, 4, 5 shared
    assert rankings.predicted_ranks([], 3) == [2, 2, 2]
    assert rankings.importance_ranks([0.1, 0.9, 0.5]) == [3, 1, 2]
    assert rankings.importance_ranks([0.5, 0.9, 0.5, 0.1]) == [2.5, 1, 2.5, 4]
    mean = sum([0.1, 0.2, 0.3]) / 3  # rounding unties nothing
    assert mean != 0.2
    assert rankings.importance_ranks([mean, 0.2, 0.3]) == [2.5, 2.5, 1]
    assert rankings.importance_ranks([0.20001, 0.2]) == [1, 2]
    assert rankings.importance_ranks([2e-30, 1e-30, 0.0]) == [1, 2, 3]
    for wrong in (math.nan, math.inf):
        refused(ValueError, "not finite", rankings.importance_ranks, [0.1, wrong])


def test_known_correlations() -> None:
    # d^2 = 1 + 1 + 0 + 0: rho = 1 - 6 * 2 / (4 * 15); one of six pairs is turned round.
    found = rankings.correlations([2, 1, 3, 4], [1, 2, 3, 4])
    assert numbers(found) == (close(0.8), close(4 / 6)) == numbers(rankings.identity([2, 1, 3, 4]))
    # tau-b with one tied pair of six: 5 / sqrt(6 * 5).
    tied = rankings.correlations([1, 2, 3, 4], [1, 2, 3.5, 3.5])
    assert numbers(tied)[1] == close(5 / math.sqrt(30))
    assert numbers(rankings.correlations([2, 1], [1, 2])) == (close(-1), close(-1))
    few = "fewer than two units to order"
    assert rankings.correlations([1], [1]) == Correlation(None, None, few)
    assert rankings.correlations([1, 2], [1.5, 1.5]).reason == "all true ranks are equal"
    assert rankings.correlations([1.5, 1.5], [1, 2]).reason == "all predicted ranks are equal"
    for of in (rankings.best_reachable, rankings.identity, rankings.chance):
        assert of([2, 2, 2]) == Correlation(None, None, "all true ranks are equal")


@table("truth", [[1.0, 2.0], [1.5, 1.5, 3.0], [2.0, 3.0, 1.0], [4.0, 1.0, 2.5, 2.5, 5.0]])
def test_closed_forms_over_all_orders(truth: list[float]) -> None:
    n = len(truth)
    found = [
        numbers(rankings.correlations(rankings.predicted_ranks(order, n), truth))
        for order in itertools.permutations(range(1, n + 1))
    ]
    best = numbers(rankings.best_reachable(truth))
    for side, column in enumerate(zip(*found, strict=True)):
        assert fmean(column) == close(0) == close(numbers(rankings.chance(truth))[side])
        assert max(column) == close(best[side])
    assert min(best) < 1 - 1e-9 or len(set(truth)) == n  # ties cannot be said in a strict order


# --- alignments -------------------------------------------------------------------------------


def test_known_scores_of_alignments() -> None:
    assert alignments.set_scores({1, 2, 3}, {3, 4}) == SetScores(0.4, 0.25, 1)
    assert alignments.set_scores({1}, {2}) == SetScores(0, 0, 0)
    assert alignments.set_scores(set(), {2}) == SetScores(0, 0, 0)
    assert alignments.set_scores({2, 3}, {2, 3}) == alignments.SetScores(1, 1, 1)
    # A clip that does not exist is wrong.
    assert alignments.set_scores({2, 99}, {2}) == SetScores(2 / 3, 0.5, 1)
    found = alignments.score([{1, 2, 3}, set(), {5}], [{3, 4}, {1}, {5}])
    assert astuple(found) == close((1.4 / 3, 1.25 / 3, 2 / 3))
    assert alignments.clips_predicted([{1, 2, 3}, set(), {5}]) == 4 / 3
    found = alignments.baseline(alignments.all_clips, [{1}, {2, 3}], 4)  # the mean over sentences
    assert astuple(found) == close(((2 / 5 + 4 / 6) / 2, (1 / 4 + 2 / 4) / 2, 1))


@table("baseline, one", [(alignments.all_clips, False), (alignments.one_at_random, True)])
def test_closed_forms_over_all_sets(baseline, one: bool) -> None:
    for n in range(1, 8):
        for g in range(1, n + 1):
            true = set(range(1, g + 1))
            found = [
                astuple(alignments.set_scores(clips, true))
                for clips in itertools.combinations(range(1, n + 1), 1 if one else n)
            ]
            assert tuple(map(fmean, zip(*found, strict=True))) == close(astuple(baseline(n, g)))
