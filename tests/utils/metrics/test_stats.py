"""Clustered intervals: known examples, the direct formula, order, coverage, what is refused."""

import json
import math
import random
import statistics
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from lmms_eval_tasks.utils.metrics import aggregate, stats
from tests.checks import refused, table

CASES = json.loads((Path(__file__).parents[2] / "cases" / "stats.json").read_text())


def sample(seed, clusters=12):
    """Values with a cluster effect, in clusters of 1 to 7 items."""
    rng = random.Random(seed)
    values, names = [], []
    for index in range(clusters):
        centre, size = rng.gauss(0, 1), rng.randint(1, 7)
        values += [centre + rng.gauss(0, 0.5) for _ in range(size)]
        names += [f"video{index}"] * size
    return values, names


@table("case", CASES["clustered_mean"])
def test_known_examples(case):
    got = stats.clustered_mean(case["values"], case["clusters"])
    assert (got.estimate, got.se) == pytest.approx((case["estimate"], case["se"]), abs=1e-12)
    assert (got.low, got.high) == pytest.approx((case["low"], case["high"]), abs=2e-5)
    assert (got.n, got.clusters) == (len(case["values"]), len(set(case["clusters"])))
    assert (got.undefined, got.method) == (0, "clustered t, 95 %")


def test_an_interval_of_a_share_stays_within_0_and_1():
    values, clusters = [1, 1, 1, 0, 0, 0], [*"aaabbc"]
    plain = stats.clustered_mean(values, clusters)
    assert plain.low < 0 < 1 < plain.high
    rows = [{"right": x, "status": "ok", "video": c} for x, c in zip(values, clusters, strict=True)]
    got = aggregate.accuracy_interval(rows)
    assert (got.low, got.high, got.se) == (0.0, 1.0, plain.se)


def test_what_is_refused_and_what_has_no_interval():
    call = stats.cluster_bootstrap
    for *given, message in (([], [], "no items"), ([1.0], ["a", "b"], "1 items but 2 clusters")):
        refused(ValueError, message, stats.clustered_mean, *given)
        refused(ValueError, message, call, fmean, *given)
    refused(ValueError, "resamples=0", call, fmean, [1], ["a"], resamples=0)
    for wrong in (math.nan, math.inf):
        refused(ValueError, "not finite", stats.clustered_mean, [1.0, wrong], ["a", "b"])
    for got in (
        stats.clustered_mean([0.0, 1.0], ["a", "a"]),
        call(fmean, [0.0, 1.0], ["a", "a"], resamples=10),
    ):
        assert (got.estimate, got.se, got.n, got.clusters) == (0.5, None, 2, 1)
        assert got.as_dict()["low"] is got.as_dict()["high"] is None
    two = stats.clustered_mean([1, 0.5, 0], [*"aab"])
    assert two.se > 0
    assert two.as_dict()["low"] is None
    assert two.method == "none: 2 clusters of at least 3"


def test_bootstrap_draws_whole_clusters_and_percentiles_are_linear():
    items = [(f"v{index // 3}", index) for index in range(12)]
    names, seen = [name for name, _ in items], []

    def record(drawn):
        seen.append(list(drawn))
        return fmean(index for _, index in drawn)

    got = stats.cluster_bootstrap(record, items, names, resamples=123)
    first, *drawn = seen
    assert sorted(first) == sorted(items)  # the estimate, on the items themselves
    for one in drawn:  # each item as often as the others of its cluster
        assert len(one) == 12
        for name in set(names):
            assert len({one.count(item) for item in items if item[0] == name}) == 1
    assert any(len({name for name, _ in one}) < 4 for one in drawn)
    replicates = [fmean(index for _, index in one) for one in drawn]
    low, high = np.quantile(replicates, [0.025, 0.975])
    found = (got.low, got.high, got.se)
    assert found == pytest.approx((low, high, statistics.stdev(replicates)), rel=1e-12)


def test_intervals_are_the_same_in_any_order_even_of_a_statistic_that_is_not():
    values, clusters = sample(6, clusters=30)

    def order_matters(drawn):
        return sum((position + 1) * value for position, value in enumerate(drawn))

    for make in (
        stats.clustered_mean,
        lambda *rows: stats.cluster_bootstrap(order_matters, *rows, resamples=40),
    ):
        rows, found = list(zip(values, clusters, strict=True)), set()
        for seed in range(10):
            random.Random(seed).shuffle(rows)
            found.add(str(vars(make(*map(list, zip(*rows, strict=True))))))
        assert len(found) == 1


def test_undefined_resamples_are_counted_and_left_out():
    for nothing in (None, math.nan, math.inf):
        # Undefined unless both clusters are drawn: about half of the resamples.
        def spread(drawn, nothing=nothing):
            return 1.0 if len(set(drawn)) == 2 else nothing

        got = stats.cluster_bootstrap(spread, [0, 1], ["a", "b"], resamples=400)
        assert (got.estimate, got.low, got.high, got.se) == (1.0, 1.0, 1.0, 0.0)
        assert 150 < got.undefined < 250
    got = stats.cluster_bootstrap(lambda _: None, [0, 1], ["a", "b"], resamples=10)
    assert all(math.isnan(value) for value in (got.estimate, got.low, got.high))
    assert (got.se, got.undefined) == (None, 10)
    with pytest.raises(ZeroDivisionError):  # an error in the statistic is not swallowed
        stats.cluster_bootstrap(lambda _: 1 / 0, [1, 2], ["a", "b"])
