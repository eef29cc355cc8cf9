"""The fast bootstrap is utils.stats' own, and says why there is no interval."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from lmms_eval_tasks.cvrr_es.study import kappas
from lmms_eval_tasks.utils import stats


def mean_of(drawn: np.ndarray) -> np.ndarray:
    return drawn[:, 1] / drawn[:, 0]


def undefined_often(drawn: np.ndarray) -> np.ndarray:
    """A mean that does not exist when it is below 3."""
    means = mean_of(drawn)
    return np.where(means < 3, np.nan, means)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("statistic", [mean_of, undefined_often])
def test_the_same_bits_as_cluster_bootstrap(seed, statistic):
    rng = random.Random(seed)
    items = [(f"v{rng.randint(0, 9)}", rng.randint(1, 5)) for _ in range(60)]
    sums: dict[str, list[int]] = {}
    for video, value in items:
        number, total = sums.get(video, [0, 0])
        sums[video] = [number + 1, total + value]

    def slow(drawn):
        return float(statistic(np.array([[float(len(drawn)), float(sum(drawn))]]))[0])

    theirs = stats.cluster_bootstrap(
        slow, [value for _, value in items], [video for video, _ in items], seed=seed
    )
    estimate = slow([value for _, value in items])
    ours = kappas.interval(estimate, sums, statistic, len(items), seed=seed)
    if not math.isnan(estimate):
        assert ours == theirs
    assert ours.undefined == theirs.undefined
    assert (ours.undefined > 0) == (statistic is undefined_often)


def test_draws_are_not_shared_between_seeds_or_counts():
    sums = {"a": [1.0, 1.0], "b": [1.0, 5.0], "c": [1.0, 2.0]}
    first = kappas.interval(8 / 3, sums, mean_of, 3, seed=1)
    assert first == kappas.interval(8 / 3, sums, mean_of, 3, seed=1)
    assert first != kappas.interval(8 / 3, sums, mean_of, 3, seed=2)
    two = {name: sums[name] for name in "ab"}
    assert kappas.interval(3.0, two, mean_of, 2, seed=1).clusters == 2


def test_the_order_of_videos_does_not_matter():
    sums = {"a": [1.0, 1.0], "b": [3.0, 5.0], "c": [1.0, 2.0]}
    turned = dict(reversed(list(sums.items())))
    assert kappas.interval(1.6, sums, mean_of, 5) == kappas.interval(1.6, turned, mean_of, 5)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"estimate": None}, "there is no value"),
        ({"resamples": 0}, "no interval was asked for"),
        ({"unknown": 2}, "the video of 2 of 5 items is not known"),
        ({"sums": {"a": [5, 9]}}, "all items are on one video"),
        ({"statistic": lambda drawn: np.full(len(drawn), np.nan)}, "undefined in all 1000"),
    ],
)
def test_reasons(changes, reason):
    values = {
        "estimate": 2.0,
        "sums": {"a": [3, 4], "b": [2, 5]},
        "statistic": mean_of,
        "n": 5,
        "unknown": 0,
        **changes,
    }
    found, why = kappas.interval_or_reason(**values)
    assert found is None
    assert reason in why


def test_what_cannot_be_drawn():
    with pytest.raises(ValueError, match="no videos"):
        kappas.interval(1.0, {}, mean_of, 0)
    with pytest.raises(ValueError, match="at least 1000"):
        kappas.interval(1.0, {"a": [1, 1], "b": [1, 1]}, mean_of, 2, resamples=999)
    alone = kappas.interval(1.0, {"a": [1, 1]}, mean_of, 1)
    assert math.isnan(alone.low)
    assert alone.se is None
