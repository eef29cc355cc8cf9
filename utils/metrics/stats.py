"""How sure a number is: clustered intervals of means, bootstrap over clusters.

The clusters of every benchmark here are its videos: questions on one video share its difficulty, so
treating them as independent makes intervals too short (metrics.md, "Uncertainty"). Every function
gives the same bits for the same items in any order; sums use `math.fsum`, which rounds once.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

LEVEL = 0.95  # of every interval: its coverage
FEWEST = 3  # clusters of an interval: Student's t of two, with one degree of freedom, says nothing


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
    undefined: int = 0  # resamples in which the statistic had no value

    def as_dict(self) -> dict[str, Any]:
        """For JSON: nan becomes None."""
        return {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in vars(self).items()
        }


def mean(values: Iterable[float]) -> float:
    """Arithmetic mean, the same to the last bit in any order.

    Raises:
        ValueError: no values.
    """
    items = list(values)
    if not items:
        raise ValueError("the mean of no values is undefined")
    return math.fsum(items) / len(items)


def clustered_mean(
    values: Sequence[float], clusters: Sequence[str], *, share: bool = False
) -> Interval:
    """Mean of all values (each item weighs the same) with a clustered standard error.

    With m the mean, n items and C clusters, s_c the sum of (value - m) over cluster c:
    variance = C/(C-1) * sum(s_c^2) / n^2, and the interval is m +- t * se with Student's t at C-1
    degrees of freedom. With every item a cluster of its own this is the ordinary t interval.

    Args:
        values: one finite number per item; drop undefined items first, and count them elsewhere.
        clusters: each item's cluster, in the same order.
        share: the mean is one, so that the interval ends at 0 and 1.

    Returns:
        The interval; with fewer than FEWEST clusters `low`, `high` are nan, and `method` says it.

    Raises:
        ValueError: no values, unequal lengths, a value that is not finite.
    """
    _check(values, clusters)
    if not all(math.isfinite(value) for value in values):
        raise ValueError("a value is not finite; leave undefined items out and count them")
    estimate = mean(values)
    residuals: dict[str, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        residuals.setdefault(cluster, []).append(value - estimate)
    n, count = len(values), len(residuals)
    method = f"clustered t, {100 * LEVEL:g} %"
    if count == 1:
        return Interval(estimate, math.nan, math.nan, None, _too_few(count), n, count)

    from scipy.special import stdtrit  # quantile of Student's t; scipy.stats is slow to import

    squares = math.fsum(math.fsum(items) ** 2 for items in residuals.values())
    se = math.sqrt(count / (count - 1) * squares) / n
    if count < FEWEST:
        return Interval(estimate, math.nan, math.nan, se, _too_few(count), n, count)
    half = float(stdtrit(count - 1, (1 + LEVEL) / 2)) * se
    low, high = estimate - half, estimate + half
    if share:
        low, high = max(low, 0.0), min(high, 1.0)
    return Interval(estimate, low, high, se, method, n, count)


def cluster_bootstrap(
    statistic: Callable[[Sequence[T]], float | None],
    items: Sequence[T],
    clusters: Sequence[str],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap of any statistic, drawing whole clusters with replacement.

    A cluster drawn twice puts its items into the resample twice, under the same ids. A statistic
    that groups its items by id would merge the copies: make the items the groups themselves (for
    pool accuracy pass pools, not pairs), or use `clustered_mean` where the statistic is a mean.

    Clusters are sorted by name, and items of a cluster by their repr, before anything is drawn, so
    that the result does not depend on the items' order, whatever the statistic does with it. (Items
    whose repr shows an address or hides a difference keep that promise only if the statistic itself
    ignores order.)

    Args:
        statistic: gets the items of all drawn clusters; None, nan or infinity mean undefined.
        items: one per row; dicts, numbers, pairs, whatever `statistic` reads.
        clusters: each item's cluster, in the same order.
        resamples: number of draws; metrics.md asks for 1000 or more in anything that is reported.
        seed: of this call alone; the global random state is neither read nor changed.

    Returns:
        The interval between the percentiles of the defined resamples, `se` their standard
        deviation (None below two), `undefined` the count of the others. If the statistic is
        undefined on the items themselves, `estimate`, `low` and `high` are nan. With one cluster
        nothing can be drawn: `low`, `high` are nan and `se` is None.

    Raises:
        ValueError: no items, unequal lengths, fewer than one resample.
    """
    _check(items, clusters)
    if resamples < 1:
        raise ValueError(f"resamples={resamples}: at least 1 is needed")
    groups: dict[str, list[T]] = {}
    for cluster, item in zip(clusters, items, strict=True):
        groups.setdefault(cluster, []).append(item)
    ordered = [sorted(groups[name], key=repr) for name in sorted(groups)]
    count = len(ordered)
    estimate = _defined(statistic([item for group in ordered for item in group]))
    method = f"cluster bootstrap, {100 * LEVEL:g} %, B={resamples}, seed={seed}"
    if count == 1:
        point = math.nan if estimate is None else estimate
        return Interval(point, math.nan, math.nan, None, method, len(items), count)

    # Only random() is promised to give the same stream in every Python version.
    draw = random.Random(seed).random
    replicates = []
    for _ in range(resamples):
        drawn = (ordered[int(draw() * count)] for _ in range(count))
        value = _defined(statistic([item for group in drawn for item in group]))
        if value is not None:
            replicates.append(value)
    replicates.sort()
    low = high = math.nan
    if replicates and estimate is not None:
        low = quantile(replicates, (1 - LEVEL) / 2)
        high = quantile(replicates, (1 + LEVEL) / 2)
    return Interval(
        estimate=math.nan if estimate is None else estimate,
        low=low,
        high=high,
        se=deviation(replicates),
        method=method,
        n=len(items),
        clusters=count,
        undefined=resamples - len(replicates),
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """Linear between order statistics, numpy's default; nan without values.

    Args:
        ordered: ascending.
        share: 0 to 1.
    """
    if not ordered:
        return math.nan
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def deviation(values: Sequence[float]) -> float | None:
    """Standard deviation with n - 1; None with fewer than two values."""
    if len(values) < 2:
        return None
    centre = mean(values)
    return math.sqrt(math.fsum((v - centre) ** 2 for v in values) / (len(values) - 1))


def _too_few(count: int) -> str:
    return f"none: {count} cluster{'s' * (count > 1)} of at least {FEWEST}"


def _check(items: Sequence[T], clusters: Sequence[str]) -> None:
    if len(items) == 0:
        raise ValueError("no items")
    if len(items) != len(clusters):
        raise ValueError(f"{len(items)} items but {len(clusters)} clusters")


def _defined(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
