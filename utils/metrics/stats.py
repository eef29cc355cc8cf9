"""How sure a number is: intervals clustered by video, and what a difference needs.

The clusters of every benchmark here are its videos: questions on one video share its difficulty, so
treating them as independent makes intervals too short (metrics.md, "Uncertainty"). Every function
gives the same bits for the same items in any order; sums use `math.fsum`, which rounds once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean
from typing import Any, TypeVar

T = TypeVar("T")

LEVEL = 0.95  # of every interval: its coverage
FEWEST = 3  # clusters of an interval: Student's t of two, with one degree of freedom, says nothing
GROUPS = 50  # of clusters in `jackknife`
# Clusters from which on intervals hold the truth 93 to 97 times in 100 (benchmarks/coverage.py).
FEW = 20


def few(videos: int) -> str:
    """What to know of intervals of numbers that rest on so many videos; "" of enough."""
    if videos >= FEW:
        return ""
    held = f"below {FEW}, 95 % intervals hold the truth 91 to 100 times in 100"
    return f"videos behind a number: {videos}; {held}; below {FEWEST} there are none"


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval.

    `low` and `high` are nan where the data allow no interval (one cluster; for the t interval fewer
    than FEWEST, which `method` says), and `se` is None of one cluster.
    """

    estimate: float
    low: float
    high: float
    se: float | None
    method: str
    n: int  # items
    clusters: int
    undefined: int = 0  # groups of clusters without which the statistic has no value

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both, or None where the data allow no interval."""
        return None if math.isnan(self.low) else (self.low, self.high)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: nan becomes None."""
        return {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in vars(self).items()
        }


def clustered_mean(
    values: Sequence[float], clusters: Sequence[str], *, share: bool = False
) -> Interval:
    """Mean of all values (each item weighs the same) with a clustered standard error.

    With m the mean, n items and C clusters, s_c the sum of (value - m) over cluster c:
    variance = C/(C-1) * sum(s_c^2) / n^2, and the interval is m +- t * se with Student's t at C-1
    degrees of freedom; of a share it is Wilson's (`_ends`). With every item a cluster of its own
    these are the ordinary intervals.

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
    se = None
    if count > 1:
        squares = math.fsum(math.fsum(v - estimate for v in own) ** 2 for own in groups.values())
        se = math.sqrt(count / (count - 1) * squares) / n
    low, high, method = _ends(estimate, se, n, count, share=share)
    return Interval(estimate, low, high, se, method, n, count)


def jackknife(
    statistic: Callable[[Sequence[T]], float | None],
    items: Sequence[T],
    clusters: Sequence[str],
    *,
    share: bool = False,
) -> Interval:
    """Interval of any statistic from its values without one cluster each.

    With v_c the statistic without cluster c, v their mean and C clusters: variance =
    (C-1)/C * sum((v_c - v)^2), and the ends are those of `clustered_mean`. More than GROUPS
    clusters are left out as so many groups, each in turn (the delete-a-group jackknife), so that a
    statistic that takes long is computed so many times. For kappas it covers as often as it says
    from 5 clusters on, where percentiles of resamples need 50 (benchmarks/coverage.py), and it has
    no seed.

    Args:
        statistic: gets items in whatever order; None, nan or infinity mean undefined.
        items: one per row; dicts, pairs, whatever `statistic` reads.
        clusters: each item's cluster, in the same order.
        share: the statistic is one, so that the interval lies in 0..1.

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
    se = None
    if found and undefined <= count / 10:
        centre = math.fsum(found) / len(found)
        spread = math.fsum((value - centre) ** 2 for value in found) / len(found)
        se = math.sqrt((count - 1) * spread)
    low, high, method = _ends(estimate, se, len(items), count, share=share)
    return Interval(estimate, low, high, se, method, len(items), len(names), undefined)


def _ends(
    estimate: float, se: float | None, n: int, clusters: int, *, share: bool
) -> tuple[float, float, str]:
    """The ends of an interval, and how they were found.

    Student's t at C-1 degrees of freedom; of a share Wilson's interval with that t and as many
    items as make the standard error (n of Wilson = p(1-p)/se^2; as many as there are clusters where
    all of them agree): the t interval of a share of 0 would be 0 to 0.
    """
    if se is None or clusters < FEWEST:
        of = f"{clusters} cluster{'s' * (clusters != 1)} of at least {FEWEST}"
        return math.nan, math.nan, f"none: {of}"
    from scipy.special import stdtrit  # quantile of Student's t; scipy.stats is slow to import

    t = float(stdtrit(clusters - 1, (1 + LEVEL) / 2))
    if not share:
        return estimate - t * se, estimate + t * se, f"clustered t, {100 * LEVEL:g} %"
    inner = estimate * (1 - estimate)
    size = min(float(n), inner / se**2) if se and inner > 0 else float(clusters)
    weight = t * t / size
    centre = (estimate + weight / 2) / (1 + weight)
    half = math.sqrt(weight * (inner + weight / 4)) / (1 + weight)
    low, high = max(0.0, centre - half), min(1.0, centre + half)
    return low, high, f"clustered Wilson, {100 * LEVEL:g} %"


def p_value(difference: Interval) -> float | None:
    """Two-sided, of no difference: Student's t at C-1 degrees of freedom; None without ends."""
    if difference.se is None or math.isnan(difference.low):
        return None
    if not difference.se:
        return 1.0 if not difference.estimate else 0.0
    from scipy.special import stdtr

    return 2 * float(stdtr(difference.clusters - 1, -abs(difference.estimate / difference.se)))


POWER = 0.8  # of finding a difference that is there, at a level of 1 - LEVEL


def clusters_needed(se: float, clusters: int, difference: float) -> int:
    """How many clusters like these a test needs to find a difference with POWER.

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
