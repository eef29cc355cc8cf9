"""Clustered intervals: known examples, the direct formula, order, coverage, what is refused."""

import json
import math
import random
import statistics
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

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
    assert got.as_dict()["df"] == got.clusters - 1


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


@table(
    "values, ends",
    [
        # t(3)^2 = 10.13 and as many items as videos, 4: 10.13 / 14.13.
        ([0] * 8, (0, 0.7169)),
        ([1] * 8, (1 - 0.7169, 1)),
        # The halves of a video cancel: 1/2 +- sqrt(2.5317 * (1/4 + 0.6329)) / 3.5317.
        ([0, 1] * 4, (0.0766, 0.9234)),
    ],
)
def test_a_share_that_is_the_same_on_every_video_has_wilsons_of_as_many_items_as_videos(
    values, ends
):
    for got in (
        stats.clustered_mean(values, [*"aabbccdd"], share=True),
        stats.jackknife(fmean, values, [*"aabbccdd"], share=True),
    ):
        assert got.ends == pytest.approx(ends, abs=1e-4)
        assert (got.se, got.df) == (0, 3)


@table(
    "values",
    [
        [1.0] * 6,
        [0.0, 1.0] * 3,  # the halves of a video cancel
        [0.1, 0.7] * 3,  # and leave the rounding of a sum
        [1e9 + 0.1, 1e9 + 0.7] * 3,
    ],
)
def test_without_a_standard_error_there_is_no_interval(values):
    for got in (
        stats.clustered_mean(values, [*"aabbcc"]),
        stats.jackknife(fmean, values, [*"aabbcc"]),
    ):
        assert (got.ends, got.se, got.df) == (None, 0, None)
        assert got.method == "none: every video gives the same value"
        assert stats.p_value(got) is None


def test_what_is_refused_and_what_has_no_interval():
    call = stats.jackknife
    for *rows, message in (([], [], "no items"), ([1.0], ["a", "b"], "1 items but 2 clusters")):
        refused(ValueError, message, stats.clustered_mean, *rows)
        refused(ValueError, message, call, fmean, *rows)
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
    assert two.method == "none: 2 videos of at least 3"


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
    def differ(*rows):
        found, p = stats.mean_difference(*rows)
        return replace(found, method=f"{found.method} {p}")

    def without(*rows):
        return stats.jackknife(statistics.median, *rows)

    for make, count in ((stats.clustered_mean, 30), (without, 30), (differ, 30), (differ, 11)):
        values, clusters = sample(6, clusters=count)
        rows, found = list(zip(values, clusters, strict=True)), set()
        for seed in range(10):
            random.Random(seed).shuffle(rows)
            found.add(str(vars(make(*map(list, zip(*rows, strict=True))))))
        assert len(found) == 1


@table("clusters, df", [(20, 19), (50, 49), (51, 49), (100, 49)])
def test_an_interval_and_its_p_value_have_the_same_degrees_of_freedom(clusters, df):
    """Above 50 clusters a jackknife leaves out 50 groups."""
    rng = random.Random(clusters)
    values = [rng.gauss(0.2, 1) for _ in range(clusters)]
    got = stats.jackknife(fmean, values, [f"v{n}" for n in range(clusters)])
    t = scipy.stats.t(df)
    assert got.df == df
    assert got.high - got.estimate == pytest.approx(t.ppf(0.975) * got.se)
    assert stats.p_value(got) == pytest.approx(2 * t.sf(abs(got.estimate / got.se)))


def test_from_20_videos_on_a_difference_is_tested_by_students_t():
    rng = random.Random(0)
    rises = [rng.gauss(0.2, 1) for _ in range(20)]
    names = [f"v{n}" for n in range(20)]
    found, p = stats.mean_difference(rises, names)
    assert found == stats.clustered_mean(rises, names)
    assert p == stats.p_value(found) == pytest.approx(scipy.stats.ttest_1samp(rises, 0).pvalue)
    # Below, what is no mean has an interval and no p-value.
    fewer = stats.jackknife(statistics.median, rises[1:], names[1:])
    assert fewer.ends is not None
    assert stats.p_value(fewer) is None


DIFFERENCES = [
    # sums by video, items a video, p, interval or why there is none
    ([1, 1, 1], 1, 0.25, "none: 3 of 3 videos differ; at least 6 have to"),
    ([1, 1], 1, None, "none: 2 videos of at least 3"),
    ([0] * 30, 1, 1.0, "none: 0 of 30 videos differ; at least 6 have to"),
    ([1] * 5 + [0] * 95, 1, 2 / 2**5, "none: 5 of 100 videos differ; at least 6 have to"),
    ([2] * 8, 2, 2 / 2**8, "none: every video gives the same value"),
    ([2] * 30, 2, 2 / 2**30, "none: every video gives the same value"),
    # k = floor(64 / 40) = 1: the ends are the smallest and the largest mean of a video.
    ([1, 2, 3, 4, 5, 6], 2, 2 / 2**6, (0.5, 3.0)),
    # Only the other sign of the smallest rejects the sum as far.
    ([-1, 2, 3, 4, 5, 6], 2, 4 / 2**6, (-0.5, 3.0)),
    ([-1, 1, -1, 1, -1, 1], 1, 1.0, (-1.0, 1.0)),
]


@table("sums, size, p, ends", DIFFERENCES)
def test_a_difference_over_few_videos_is_tested_by_its_signs(sums, size, p, ends):
    names = [f"v{n}" for n in range(len(sums)) for _ in range(size)]
    rises = [one / size for one in sums for _ in range(size)]
    found, got = stats.mean_difference(rises, names)
    assert got == (None if p is None else pytest.approx(p, abs=0))
    assert (found.ends or found.method) == ends
    assert found.df is None
    turned, same = stats.mean_difference([-one for one in rises], names)
    assert same == got
    assert turned.ends == (None if found.ends is None else (-ends[1], -ends[0]))


def test_the_exact_p_value_is_scipys():
    rng = random.Random(3)
    for count in (6, 9, 11):
        rises = [rng.choice((-2, -1, 0, 0.1, 0.2, 1, 2, 3)) for _ in range(count)]
        known = scipy.stats.permutation_test(
            (rises,), math.fsum, permutation_type="samples", n_resamples=math.inf
        )
        _, p = stats.mean_difference(rises, [f"v{n}" for n in range(count)])
        assert p == pytest.approx(known.pvalue)


VALUE = st.sampled_from([0.0] * 4 + [-1.0, 1.0, 0.1, -0.2, 0.3])
VIDEO = st.lists(VALUE, min_size=1, max_size=5)


@given(st.one_of(st.lists(VIDEO, min_size=3, max_size=12), st.lists(VIDEO, min_size=20)))
def test_p_is_at_most_a_20th_exactly_where_0_is_outside_the_interval(videos):
    names = [f"v{n}" for n, own in enumerate(videos) for _ in own]
    found, p = stats.mean_difference([one for own in videos for one in own], names)
    if found.ends is not None:
        assert (p <= 0.05) is not (found.low <= 0 <= found.high)
        assert found.low <= found.estimate + 1e-12
        assert found.estimate - 1e-12 <= found.high
    elif "differ" in found.method:
        assert p > 0.05


def test_power_is_the_text_books():
    # sd 1: (1.96 + 0.84)^2 / 0.5^2 = 31.4 pairs for a difference of 0.5 with a power of 80 %.
    assert stats.clusters_needed(1 / math.sqrt(100), 100, 0.5) == 32


@table("videos, told", [(0, ""), (1, "Only 1 video. "), (19, "Only 19 videos. "), (20, "")])
def test_few_videos_are_named(videos, told):
    assert stats.few(videos).startswith(told)
    assert bool(stats.few(videos)) is bool(told)
