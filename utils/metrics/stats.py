"""Intervals clustered by video, tests of differences, and the number of videos that a test needs.

The clusters of a benchmark are its videos. Questions on one video share its difficulty, so treating
them as independent makes intervals too short (docs/statistics.md). Every function returns exactly
the same numbers for the same items in any order; sums use `math.fsum`, which rounds once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, fmean
from typing import TypeVar

T = TypeVar("T")

LEVEL = 0.95  # nominal coverage of every interval
# Fewest clusters of an interval. With two, Student's t has one degree of freedom, and the interval
# is too wide to say anything.
FEWEST = 3
GROUPS = 50  # largest number of groups of clusters in `jackknife`
# From this number of clusters on, a difference is tested by Student's t. Intervals of 20 and more
# clusters contain the truth 91 to 97 times in 100, intervals of fewer clusters 86 to 100 times
# (benchmarks/coverage.py).
FEW = 20
FLIPS = 6  # fewest clusters with a difference for an interval; with 5, p is at least 2/2^5 = 0.06
ZERO = 1e-12  # a value up to this share of its scale counts as a 0 with a rounding error
SAME = "none: every video gives the same value"


def few(videos: int) -> str:
    """Return a note that intervals from so few videos are approximate; "" for enough videos."""
    if not 0 < videos < FEW:
        return ""
    return (
        f"Only {videos} video{'s' * (videos != 1)}. With fewer than {FEW}, a 95 % interval is "
        "rough (in simulations, 86 to 100 of 100 such intervals held the true value); with fewer "
        f"than {FEWEST}, there is none. A difference between two runs has an interval only if it "
        f"is not 0 on at least {FLIPS} videos"
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
    df: int | None = None  # degrees of freedom of Student's t; None if the method uses no t

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both ends, or None if the data allow no interval."""
        return None if math.isnan(self.low) else (self.low, self.high)

    def as_dict(self) -> dict[str, float | str | None]:
        """Return the fields for JSON; nan becomes None."""
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
    it is Wilson's (`_interval`). If all clusters have the same size, se is the common clustered
    standard error; if every item is a cluster, it is the ordinary standard error. With clusters of
    1 to 60 items, the interval contains the truth more often than one with the common clustered
    standard error (benchmarks/coverage.py).

    Args:
        values: one finite number for each item; drop undefined items first, and count them
            elsewhere.
        clusters: each item's cluster, in the same order.
        share: True if the mean is a share, so that the interval lies in 0..1.

    Raises:
        ValueError: there are no values, lengths differ, or a value is not finite.
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
    n: int | None = None,
) -> Interval:
    """Return the interval of any statistic, computed again without each cluster in turn.

    With v_c the statistic without cluster c, v the mean of all v_c and C clusters: variance =
    (C-1)/C * sum((v_c - v)^2), and the ends are computed as in `clustered_mean`. More than GROUPS
    clusters are divided into GROUPS groups, and each group is left out in turn (the delete-a-group
    jackknife), so that a slow statistic is computed at most GROUPS + 1 times. C is then the number
    of groups. Intervals of kappa contain the truth 93 to 100 times in 100 (benchmarks/coverage.py).
    A bootstrap, which needs a seed, contained it 83 times in 100 with 5 clusters.

    Args:
        statistic: function of items in any order; None, nan and infinity mean undefined.
        items: the statistic's items, of any type.
        clusters: each item's cluster, in the same order.
        share: True if the statistic is a share, so that the interval lies in 0..1.
        coefficient: True if the statistic lies in -1..1 (a kappa); its interval is cut there.
        n: number of items, if each of `items` stands for several.

    Returns:
        The interval. `undefined` is the number of groups without which the statistic is undefined.
        There are no ends if that is more than a tenth of the groups, or if the statistic of all
        items is undefined.

    Raises:
        ValueError: there are no items, or lengths differ.
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
    n = len(items) if n is None else n
    made = _interval(estimate, variance, n, len(names), count - 1, share=share)
    if coefficient and made.ends:
        made = replace(made, low=max(-1.0, made.low), high=min(1.0, made.high))
    return replace(made, undefined=undefined)


def _interval(
    estimate: float, variance: float | None, n: int, clusters: int, df: int, *, share: bool
) -> Interval:
    """Return the interval of an estimate from its variance; without ends if the variance is None.

    The interval is Student's t, except for a share, since the t interval of a share of 0 would be 0
    to 0. The interval of a share is Wilson's with the same t. Its number of items n is the one that
    would give the standard error: n = p(1-p)/se^2. If the standard error is 0, n is the number of
    clusters, as if a cluster were one item.
    """
    se = None if variance is None else math.sqrt(variance)
    if se is not None and se <= ZERO * max(1.0, abs(estimate)):
        se = 0.0
    base = Interval(estimate, math.nan, math.nan, se, "", n, clusters)
    if clusters < FEWEST:
        reason = f"{clusters} video{'s' * (clusters != 1)} of at least {FEWEST}"
        return replace(base, method=f"none: {reason}")
    if se is None:
        return replace(base, method="none: it has no value, or none without some of the videos")
    if not se and not share:
        return replace(base, method=SAME)
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
    return replace(base, low=low, high=high, method=f"clustered {name}, {100 * LEVEL:g} %", df=df)


def mean_difference(
    rises: Sequence[float], clusters: Sequence[str]
) -> tuple[Interval, float | None]:
    """Return a mean of paired differences with its interval, and the p-value of no difference.

    With FEW clusters or more, interval and p-value are those of Student's t. With fewer clusters,
    they are those of the exact sign-flip test: if there is no difference, a cluster's sum of
    differences has either sign with the same probability. So p is the share of the 2^C choices of
    signs for which the total sum is at least as far from 0 as it is. The interval contains every
    difference that this test does not reject at 1 - LEVEL. Its ends are the k-th smallest and the
    k-th largest of the means over the 2^C - 1 subsets of clusters (Hartigan's typical values), with
    k = floor(2^C (1 - LEVEL) / 2). If fewer than FLIPS clusters have a difference, the test cannot
    reject anything: there is no interval, and p is that of the sign-flip test for any number of
    clusters.

    Args:
        rises: one finite number for each item that both runs share.
        clusters: each item's cluster, in the same order.

    Returns:
        The interval, and p, which is None for fewer than FEWEST clusters.

    Raises:
        ValueError: there are no items, lengths differ, or a value is not finite.
    """
    mean = clustered_mean(rises, clusters)
    if mean.clusters < FEWEST:
        return mean, None
    own = sorted((math.fsum(group), len(group)) for group in _grouped(rises, clusters).values())
    differ = [one for one in own if abs(one[0]) > ZERO * max(1.0, abs(own[0][0]), abs(own[-1][0]))]
    several = len(differ) >= FLIPS
    if several and mean.clusters >= FEW:
        # If all clusters have the same sum, only two choices of signs give a sum as far from 0.
        return mean, p_value(mean) if mean.se else 2.0 ** (1 - mean.clusters)
    import numpy as np

    sums, sizes = np.zeros(1), np.zeros(1)  # sums and sizes of every subset; the first is empty
    for total, size in own if several else differ:
        sums, sizes = np.append(sums, sums + total), np.append(sizes, sizes + size)
    sums[np.abs(sums) <= ZERO * max(1.0, float(np.abs(sums).max()))] = 0
    # Flipping the signs of a subset gives a sum as far from 0 if the subset's sum is at most 0 (or,
    # for a negative total, at least 0).
    p = min(1.0, 2 * min(np.count_nonzero(sums <= 0), np.count_nonzero(sums >= 0)) / len(sums))
    low = high = math.nan
    if not several:
        method = f"none: {len(differ)} of {mean.clusters} videos differ; at least {FLIPS} have to"
    elif not mean.se:
        method = SAME
    else:
        means, k = np.sort(sums[1:] / sizes[1:]), int(len(sums) * (1 - LEVEL) / 2)
        low, high = float(means[k - 1]), float(means[-k])
        method = f"exact sign flips, {100 * LEVEL:g} %"
    return replace(mean, low=low, high=high, method=method, df=None), p


def p_value(difference: Interval) -> float | None:
    """Return the two-sided p-value of no difference, from the t of an interval.

    None if the interval has no t, or has fewer than FEW clusters.
    """
    if difference.df is None or not difference.se or difference.clusters < FEW:
        return None
    from scipy.special import stdtr

    return 2 * float(stdtr(difference.df, -abs(difference.estimate / difference.se)))


POWER = 0.8  # probability that a test at the level 1 - LEVEL finds an existing difference


def clusters_needed(se: float, clusters: int, difference: float) -> int:
    """Return the number of clusters with which a test finds a difference with probability POWER.

    The normal approximation is clusters * (se * (z_.975 + z_.80) / difference)^2.

    Args:
        se: the standard error of a difference, measured with `clusters` clusters.
        clusters: number of these clusters, at least 1.
        difference: the difference to find, above 0.
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
