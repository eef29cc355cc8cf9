"""Intervals clustered by video, tests of differences, and the clusters that a test needs.

The clusters of every benchmark here are its videos: questions on one video share its difficulty, so
treating them as independent makes intervals too short (docs/statistics.md). Every function
gives the same bits for the same items in any order; sums use `math.fsum`, which rounds once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist, fmean
from typing import TypeVar

T = TypeVar("T")

LEVEL = 0.95  # of every interval: its coverage
FEWEST = 3  # clusters of an interval: Student's t of two, with one degree of freedom, says nothing
GROUPS = 50  # of clusters in `jackknife`
# Clusters from which on a difference is tested by Student's t. Intervals of 20 and more hold the
# truth 91 to 97 times in 100, of fewer 86 to 100 times (benchmarks/coverage.py).
FEW = 20
FLIPS = 6  # clusters that differ in an interval of a difference: of 5, p is 2/2^5 at least
ZERO = 1e-12  # of a scale: what is not larger is the rounding of a 0
SAME = "none: every video gives the same value"


def few(videos: int) -> str:
    """The note on intervals of numbers that rest on so few videos; "" where they are enough."""
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

    `low` and `high` are nan where the data allow no interval, and `method` says why. `se` is None
    of one cluster, and 0.0 where every cluster gives the same value.
    """

    estimate: float
    low: float
    high: float
    se: float | None
    method: str
    n: int  # items
    clusters: int
    undefined: int = 0  # groups of clusters without which the statistic has no value
    df: int | None = None  # degrees of freedom of its t, and of its p-value; None without a t

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both, or None where the data allow no interval."""
        return None if math.isnan(self.low) else (self.low, self.high)

    def as_dict(self) -> dict[str, float | str | None]:
        """For JSON: nan becomes None."""
        return {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in vars(self).items()
        }


def clustered_mean(
    values: Sequence[float], clusters: Sequence[str], *, share: bool = False
) -> Interval:
    """Mean of all values (each item weighs the same) with a clustered standard error.

    With m the mean, m_c the mean without cluster c and C clusters: variance = (C-1)/C *
    sum((m_c - m)^2), and the interval is m +- t * se with Student's t at C-1 degrees of freedom; of
    a share it is Wilson's (`_interval`). With clusters of one size this is the common clustered
    standard error, with every item a cluster of its own the ordinary one; with clusters of 1 to 60
    items it holds the truth oftener than the common one (benchmarks/coverage.py).

    Args:
        values: one finite number per item; drop undefined items first, and count them elsewhere.
        clusters: each item's cluster, in the same order.
        share: the mean is one, so that the interval lies in 0..1.

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
    """Interval of any statistic from its values without one cluster each.

    With v_c the statistic without cluster c, v their mean and C clusters: variance =
    (C-1)/C * sum((v_c - v)^2), and the ends are those of `clustered_mean`. More than GROUPS
    clusters are left out as so many groups, each in turn (the delete-a-group jackknife), so that a
    statistic that takes long is computed so many times; the degrees of freedom are then those of
    the groups. Kappas hold the truth 93 to 100 times in 100 (benchmarks/coverage.py); percentiles
    of resamples, which need a seed, held it 83 times with 5 clusters.

    Args:
        statistic: gets items in whatever order; None, nan or infinity mean undefined.
        items: one per row; dicts, pairs, whatever `statistic` reads.
        clusters: each item's cluster, in the same order.
        share: the statistic is one, so that the interval lies in 0..1.
        coefficient: the statistic lies in -1..1 (a kappa), and its interval is cut there.

    Returns:
        The interval; without ends if the statistic is undefined on all items, or without more than
        a tenth of the groups, whose number is `undefined`.

    Raises:
        ValueError: no items, unequal lengths.
    """
    groups = _grouped(items, clusters)
    names = sorted(groups)
    count = min(len(names), GROUPS)

    def without(left: int | None) -> float:
        kept = (groups[name] for place, name in enumerate(names) if place % count != left)
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
    """The interval of an estimate from its variance, or without ends where that is None.

    Student's t; of a share Wilson's interval with that t and as many items as make the standard
    error (n of Wilson = p(1-p)/se^2): the t interval of a share of 0 would be 0 to 0. Where the
    standard error is 0 they are as many as there are clusters, as if a cluster were one item.
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
    """A mean of paired differences with its interval, and the p-value of no difference.

    From FEW clusters on both are Student's t. Below, both are those of the exact sign-flip test:
    without a difference the sum of a cluster's differences is as likely to have the other sign, so
    p is the share of the 2^C choices of signs that take the sum of all at least as far from 0. The
    interval holds every difference that this test does not reject at 1 - LEVEL. Its ends are the
    k-th smallest and the k-th largest of the means over the 2^C - 1 subsets of clusters (Hartigan's
    typical values), k = floor(2^C (1 - LEVEL) / 2). Where fewer than FLIPS clusters differ at all,
    the test can reject nothing: there is no interval, and p is exact, of however many clusters.

    Args:
        rises: one finite number per item that both were asked.
        clusters: each item's cluster, in the same order.

    Returns:
        The interval, and p; None of fewer than FEWEST clusters.

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
        # Of clusters that are all alike only equal signs take the sum as far as it is.
        return made, p_value(made) if made.se else 2.0 ** (1 - made.clusters)
    import numpy as np

    sums, sizes = np.zeros(1), np.zeros(1)  # of every subset; the first is empty
    for total, size in own if several else differ:
        sums, sizes = np.append(sums, sums + total), np.append(sizes, sizes + size)
    sums[np.abs(sums) <= ZERO * max(1.0, float(np.abs(sums).max()))] = 0
    # With the signs of a subset flipped the sum is as far from 0 where the subset's is 0 or below.
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
    """Two-sided, of no difference, by the t of its interval; None without a t, or below FEW."""
    if difference.df is None or not difference.se or difference.clusters < FEW:
        return None
    from scipy.special import stdtr

    return 2 * float(stdtr(difference.df, -abs(difference.estimate / difference.se)))


POWER = 0.8  # of finding a difference that is there, at a level of 1 - LEVEL


def clusters_needed(se: float, clusters: int, difference: float) -> int:
    """The number of clusters like these that a test needs to find a difference with POWER.

    By the normal approximation: C * (se * (z_.975 + z_.80) / difference)^2.

    Args:
        se: the standard error of such a difference with `clusters`.
        clusters: at least 1.
        difference: above 0.
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
