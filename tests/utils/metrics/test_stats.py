"""Clustered intervals: known examples, the direct formula, order, coverage, what is refused."""

import json
import math
import random
import statistics
from pathlib import Path
from statistics import fmean

import pytest
import scipy.stats

from lmms_eval_tasks.utils.metrics import stats
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


def test_an_interval_of_a_share_is_wilsons_with_the_clustered_error():
    """By hand: p = 3/4 of 8 videos of one item is Wilson's with t(7) in the place of z."""
    values, names = [1, 1, 1, 0, 1, 1, 1, 0], [*"abcdefgh"]
    got = stats.clustered_mean(values, names, share=True)
    size, t = 0.1875 / got.se**2, 2.364624
    middle, half = 0.75 + t * t / 2 / size, t * (0.1875 / size + t * t / 4 / size**2) ** 0.5
    ends = [(middle + sign * half) / (1 + t * t / size) for sign in (-1, 1)]
    assert [got.low, got.high] == pytest.approx(ends, abs=1e-6)
    assert 0 < got.low < got.high < 1
    assert stats.clustered_mean(values, names).high > 1
    # All alike: the error is 0, and there is still an interval, of as many items as videos.
    for value in (0, 1):
        got = stats.clustered_mean([value] * 8, [*"aabbccdd"], share=True)
        # t(3)^2 = 10.13 and n = 4: 10.13 / 14.13.
        ends = (1 - 0.7169, 1) if value else (0, 0.7169)
        assert (got.low, got.high) == pytest.approx(ends, abs=1e-4)


def test_what_is_refused_and_what_has_no_interval():
    call = stats.jackknife
    for *given, message in (([], [], "no items"), ([1.0], ["a", "b"], "1 items but 2 clusters")):
        refused(ValueError, message, stats.clustered_mean, *given)
        refused(ValueError, message, call, fmean, *given)
    for wrong in (math.nan, math.inf):
        refused(ValueError, "not finite", stats.clustered_mean, [1.0, wrong], ["a", "b"])
    for got in (
        stats.clustered_mean([0.0, 1.0], ["a", "a"]),
        call(fmean, [0.0, 1.0], ["a", "a"]),
    ):
        assert (got.estimate, got.se, got.n, got.clusters) == (0.5, None, 2, 1)
        assert got.as_dict()["low"] is got.as_dict()["high"] is None
    two = stats.clustered_mean([1, 0.5, 0], [*"aab"])
    assert two.se > 0
    assert two.as_dict()["low"] is None
    assert two.method == "none: 2 clusters of at least 3"


def test_without_a_video_each_a_mean_has_the_interval_of_scipys_jackknife():
    """Pseudo-values of one item a video: of a mean it is the plain t interval."""
    values = [0.3, 0.9, 0.4, 0.7, 0.1]
    got = stats.jackknife(fmean, values, [*"abcde"])
    known = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (got.low, got.high) == pytest.approx((known.low, known.high), rel=1e-9)
    assert (got.se, got.n, got.clusters) == (pytest.approx(scipy.stats.sem(values)), 5, 5)
    seen = []
    stats.jackknife(lambda own: seen.append(sorted(own)) or 0.0, [1, 2, 3, 4], [*"abbc"])
    assert seen == [[1, 2, 3, 4], [2, 3, 4], [1, 4], [1, 2, 3]]


@table("count, without, undefined, has", [(20, 2, 2, True), (20, 3, 3, False), (5, 0, 0, True)])
def test_without_too_many_videos_undefined_there_is_no_interval(count, without, undefined, has):
    def spread(own):
        missing = set(range(count)) - set(own)
        return None if missing & set(range(without)) else fmean(own)

    got = stats.jackknife(spread, range(count), [f"v{one}" for one in range(count)])
    assert got.undefined == undefined
    assert (got.se is not None) is has is (not math.isnan(got.low))


def test_what_is_undefined_has_no_ends_and_errors_are_not_swallowed():
    for nothing in (None, math.nan, math.inf):
        got = stats.jackknife(lambda _, one=nothing: one, [0, 1, 2], [*"abc"])
        assert all(math.isnan(value) for value in (got.estimate, got.low, got.high))
        assert got.se is None
    with pytest.raises(ZeroDivisionError):
        stats.jackknife(lambda _: 1 / 0, [1, 2], ["a", "b"])


def test_intervals_are_the_same_in_any_order():
    values, clusters = sample(6, clusters=30)
    for make in (stats.clustered_mean, lambda *rows: stats.jackknife(statistics.median, *rows)):
        rows, found = list(zip(values, clusters, strict=True)), set()
        for seed in range(10):
            random.Random(seed).shuffle(rows)
            found.add(str(vars(make(*map(list, zip(*rows, strict=True))))))
        assert len(found) == 1


def test_p_values_are_students_and_power_is_the_text_books():
    values = [0.3, 0.9, 0.4, -0.7, 0.1]
    known = scipy.stats.ttest_1samp(values, 0).pvalue
    assert stats.p_value(stats.clustered_mean(values, [*"abcde"])) == pytest.approx(known)
    assert stats.p_value(stats.clustered_mean(values, [*"aaaab"])) is None  # two videos
    same = stats.clustered_mean([0, 0, 0], [*"abc"])
    assert (stats.p_value(same), same.low, same.high) == (1.0, 0.0, 0.0)
    # sd 1: (1.96 + 0.84)^2 / 0.5^2 = 31.4 pairs for a difference of 0.5 with a power of 80 %.
    assert stats.clusters_needed(1 / math.sqrt(100), 100, 0.5) == 32
