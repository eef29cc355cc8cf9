"""Intervals clustered by video, tests of differences, and the clusters that a test needs.

The clusters of every benchmark here are its videos. Questions on one video share its difficulty, so
treating them as independent makes intervals too short (docs/statistics.md). Every function gives
the same bits for the same items in any order; sums use `math.fsum`, which rounds once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, fmean
from typing import TypeVar

T = TypeVar("T")

LEVEL = 0.95  # nominal coverage of every interval
# Fewest clusters of an interval: Student's t of two, with one degree of freedom, says nothing.
FEWEST = 3
GROUPS = 50  # most groups of clusters in `jackknife`
# From this number of clusters on, a difference is tested by Student's t. Intervals of 20 and more
# clusters contain the truth 91 to 97 times in 100, intervals of fewer clusters 86 to 100 times
# (benchmarks/coverage.py).
FEW = 20
FLIPS = 6  # fewest clusters that differ, for an interval: of 5, p is at least 2/2^5
ZERO = 1e-12  # share of a scale; a value up to this is the rounding of a 0
SAME = "none: every video gives the same value"


def few(videos: int) -> str:
    """Return the note on intervals of numbers of few videos; "" if there are enough videos."""
    if not 0 < videos < FEW:
        return ""
    return (
        f"Only {videos} video{'s' * (videos != 1)}: 95 % intervals are "
        f"approximate below {FEW} videos (in simulations 86 to 100 of 100 hold "
        f"the truth) and not given below {FEWEST}; a difference between two "
        f"runs has one if it is not 0 on {FLIPS} videos or more"
    )


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval.

    `low` and `high` are nan if the data allow no interval; then `method` has the reason. `se` is
    None for one cluster, and 0.0 if every cluster gives the same value.
    """

    estimate: float
    low: float
    high: float
    se: float | None
    method: str
    n: int  # number of items
    clusters: int
    undefined: int = 0  # number of groups of clusters without which the statistic has no value
    df: int | None = None  # degrees of freedom of its t and its p-value; None without a t

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both ends, or None if the data allow no interval."""
        return None if math.isnan(self.low) else (self.low, self.high)

    def as_dict(self) -> dict[str, float | str | None]:
        """Return the interval in the form for JSON, in which nan becomes None."""
        return {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in vars(self).items()
        }


def clustered_mean(
    values: Sequence[float], clusters: Sequence[str], *, share: bool = False
) -> Interval:
    """Return the mean of all values, each with the same weight, with a clustered standard error.

    With m the mean, m_c the mean without cluster c and C clusters: variance = (C-1)/C * sum((m_c -
    m)^2), and the interval is m +- t * se with Student's t at C-1 degrees of freedom. For a share,
    it is Wilson's (`_interval`). With clusters of one size, this is the common clustered standard
    error; with every item a cluster, it is the ordinary one. With clusters of 1 to 60 items, it
    contains the truth more often than the common one (benchmarks/coverage.py).

    Args:
        values: one finite number for each item; drop undefined items first, and count them
            elsewhere.
        clusters: each item's cluster, in the same order.
        share: True if the mean is a share, so that the interval lies in 0..1.

    Raises:
        ValueError: no values, unequal lengths, a value that is not finite.
    """
    if not all(map(math.isfinite, values)):
        raise ValueError("a value is not finite; leave undefined items out and count them")
    groups = _grouped(values, clusters)
    n, count, estimate = len(values), len(groups), fmean(values)
    variance = None
    if count > 1:
        apart = (
            math.fsum(v - estimate for v in own) / (1 - len(own) / n) for own in groups.values()
        )
        variance = (count - 1) / count * math.fsum(one**2 for one in apart) / n**2
    return _interval(estimate, variance, n, count, count - 1, share=share)


def jackknife(
    statistic: Callable[[Sequence[T]], float | None],
    items: Sequence[T],
    clusters: Sequence[str],
    *,
    share: bool = False,
    coefficient: bool = False,
) -> Interval:
    """Return the interval of any statistic, from its values without one cluster each.

    With v_c the statistic without cluster c, v their mean and C clusters: variance = (C-1)/C *
    sum((v_c - v)^2), and the ends are those of `clustered_mean`. More than GROUPS clusters are left
    out in GROUPS groups, each in turn (the delete-a-group jackknife), so that a slow statistic is
    computed only so many times. The degrees of freedom are then those of the groups. Intervals of
    kappa contain the truth 93 to 100 times in 100 (benchmarks/coverage.py). Percentiles of
    resamples, which need a seed, contained it 83 times with 5 clusters.

    Args:
        statistic: function of items in any order; None, nan or infinity mean undefined.
        items: the statistic's items, of any type.
        clusters: each item's cluster, in the same order.
        share: True if the statistic is a share, so that the interval lies in 0..1.
        coefficient: True if the statistic lies in -1..1 (a kappa), where its interval is cut.

    Returns:
        The interval. It has no ends if the statistic is undefined on all items, or without more
        than a tenth of the groups, whose number is `undefined`.

    Raises:
        ValueError: no items, unequal lengths.
    """
    groups = _grouped(items, clusters)
    names = sorted(groups)
    count = min(len(names), GROUPS)

    def without(cluster: int | None) -> float:
        kept = (groups[name] for place, name in enumerate(names) if place % count != cluster)
        value = statistic([item for own in kept for item in own])
        return math.nan if value is None or not math.isfinite(value) else value

    estimate = without(None)
    several = count > 1 and not math.isnan(estimate)
    left = [without(group) for group in range(count)] if several else []
    found = [value for value in left if not math.isnan(value)]
    undefined = len(left) - len(found)
    variance = None
    if found and undefined <= count / 10:
        centre = math.fsum(found) / len(found)
        spread = math.fsum((value - centre) ** 2 for value in found) / len(found)
        variance = (count - 1) * spread
    made = _interval(estimate, variance, len(items), len(names), count - 1, share=share)
    if coefficient and made.ends:
        made = replace(made, low=max(-1.0, made.low), high=min(1.0, made.high))
    return replace(made, undefined=undefined)


def _interval(
    estimate: float, variance: float | None, n: int, clusters: int, df: int, *, share: bool
) -> Interval:
    """Return the interval of an estimate from its variance; without ends if the variance is None.

    It is Student's t. For a share, it is Wilson's interval with that t and with the number of items
    that gives the standard error (n of Wilson = p(1-p)/se^2), since the t interval of a share of 0
    would be 0 to 0. If the standard error is 0, this number is that of the clusters, as if a
    cluster were one item.
    """
    se = None if variance is None else math.sqrt(variance)
    if se is not None and se <= ZERO * max(1.0, abs(estimate)):
        se = 0.0
    made = Interval(estimate, math.nan, math.nan, se, "", n, clusters)
    if clusters < FEWEST:
        reason = f"{clusters} video{'s' * (clusters != 1)} of at least {FEWEST}"
        return replace(made, method=f"none: {reason}")
    if se is None:
        return replace(made, method="none: it has no value, or none without some of the videos")
    if not se and not share:
        return replace(made, method=SAME)
    from scipy.special import stdtrit  # quantile of Student's t; scipy.stats is slow to import

    t = float(stdtrit(df, (1 + LEVEL) / 2))
    if not share:
        low, high, name = estimate - t * se, estimate + t * se, "t"
    else:
        inner = max(0.0, estimate * (1 - estimate))
        weight = t * t / (min(n, inner / se**2) if se and inner else clusters)
        centre = (estimate + weight / 2) / (1 + weight)
        half = math.sqrt(weight * (inner + weight / 4)) / (1 + weight)
        low, high, name = max(0.0, centre - half), min(1.0, centre + half), "Wilson"
    return replace(made, low=low, high=high, method=f"clustered {name}, {100 * LEVEL:g} %", df=df)


def mean_difference(
    rises: Sequence[float], clusters: Sequence[str]
) -> tuple[Interval, float | None]:
    """Return a mean of paired differences with its interval, and the p-value of no difference.

    From FEW clusters on, both are Student's t. Below, both are those of the exact sign-flip test.
    Without a difference, the sum of a cluster's differences is equally likely to have the other
    sign. So p is the share of the 2^C choices of signs for which the total sum is at least as far
    from 0. The interval holds every difference that this test does not reject at 1 - LEVEL. Its
    ends are the k-th smallest and the k-th largest of the means over the 2^C - 1 subsets of
    clusters (Hartigan's typical values), k = floor(2^C (1 - LEVEL) / 2). If fewer than FLIPS
    clusters differ at all, the test can reject nothing: there is no interval, and p is exact for
    any number of clusters.

    Args:
        rises: one finite number for each item that both runs share.
        clusters: each item's cluster, in the same order.

    Returns:
        The interval, and p; p is None for fewer than FEWEST clusters.

    Raises:
        ValueError: no items, unequal lengths, a value that is not finite.
    """
    made = clustered_mean(rises, clusters)
    if made.clusters < FEWEST:
        return made, None
    own = sorted((math.fsum(group), len(group)) for group in _grouped(rises, clusters).values())
    differ = [one for one in own if abs(one[0]) > ZERO * max(1.0, abs(own[0][0]), abs(own[-1][0]))]
    several = len(differ) >= FLIPS
    if several and made.clusters >= FEW:
        # If all clusters are alike, only equal signs give a sum that is as far from 0.
        return made, p_value(made) if made.se else 2.0 ** (1 - made.clusters)
    import numpy as np

    sums, sizes = np.zeros(1), np.zeros(1)  # sums and sizes of every subset; the first is empty
    for total, size in own if several else differ:
        sums, sizes = np.append(sums, sums + total), np.append(sizes, sizes + size)
    sums[np.abs(sums) <= ZERO * max(1.0, float(np.abs(sums).max()))] = 0
    # After the signs of a subset are flipped, the sum is as far from 0 if the subset's sum is 0 or
    # below.
    p = min(1.0, 2 * min(np.count_nonzero(sums <= 0), np.count_nonzero(sums >= 0)) / len(sums))
    low = high = math.nan
    if not several:
        method = f"none: {len(differ)} of {made.clusters} videos differ; at least {FLIPS} have to"
    elif not made.se:
        method = SAME
    else:
        means, k = np.sort(sums[1:] / sizes[1:]), int(len(sums) * (1 - LEVEL) / 2)
        low, high = float(means[k - 1]), float(means[-k])
        method = f"exact sign flips, {100 * LEVEL:g} %"
    return replace(made, low=low, high=high, method=method, df=None), p


def p_value(difference: Interval) -> float | None:
    """Return the two-sided p-value of no difference, by the interval's t.

    None if the interval has no t, or fewer than FEW clusters.
    """
    if difference.df is None or not difference.se or difference.clusters < FEW:
        return None
    from scipy.special import stdtr

    return 2 * float(stdtr(difference.df, -abs(difference.estimate / difference.se)))


POWER = 0.8  # probability of finding an existing difference, at a level of 1 - LEVEL


def clusters_needed(se: float, clusters: int, difference: float) -> int:
    """Return the number of such clusters that a test needs to find a difference with POWER.

    The normal approximation is C * (se * (z_.975 + z_.80) / difference)^2.

    Args:
        se: the standard error of such a difference with `clusters`.
        clusters: number of clusters, at least 1.
        difference: the difference, above 0.
    """
    normal = NormalDist()
    reach = normal.inv_cdf((1 + LEVEL) / 2) + normal.inv_cdf(POWER)
    return max(FEWEST, math.ceil(clusters * (se * reach / difference) ** 2))


def _grouped(items: Sequence[T], clusters: Sequence[str]) -> dict[str, list[T]]:
    if len(items) == 0:
        raise ValueError("no items")
    if len(items) != len(clusters):
        raise ValueError(f"{len(items)} items but {len(clusters)} clusters")
    groups: dict[str, list[T]] = {}
    for cluster, item in zip(clusters, items, strict=True):
        groups.setdefault(cluster, []).append(item)
    return groups
