"""How sure a number is: clustered intervals of means, bootstrap over clusters.

The clusters of every benchmark here are its videos: questions on one video share its difficulty, so
treating them as independent makes intervals too short (metrics.md, "Uncertainty"). Every function
gives the same bits for the same items in any order; sums use `math.fsum`, which rounds once.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
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

    Raises:
        ValueError: no values, unequal lengths, a value that is not finite.
    """
    if not all(map(math.isfinite, values)):
        raise ValueError("a value is not finite; leave undefined items out and count them")
    groups = _grouped(values, clusters)
    n, count, estimate = len(values), len(groups), fmean(values)
    low = high = math.nan
    se, method = None, f"none: {count} cluster{'s' * (count > 1)} of at least {FEWEST}"
    if count > 1:
        squares = math.fsum(math.fsum(v - estimate for v in own) ** 2 for own in groups.values())
        se = math.sqrt(count / (count - 1) * squares) / n
    if se is not None and count >= FEWEST:
        from scipy.special import stdtrit  # quantile of Student's t; scipy.stats is slow to import

        half = float(stdtrit(count - 1, (1 + LEVEL) / 2)) * se
        low, high = estimate - half, estimate + half
        low, high = (max(low, 0.0), min(high, 1.0)) if share else (low, high)
        method = f"clustered t, {100 * LEVEL:g} %"
    return Interval(estimate, low, high, se, method, n, count)


def cluster_bootstrap(
    statistic: Callable[[Sequence[T]], float | None],
    items: Sequence[T],
    clusters: Sequence[str],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Percentile interval of any statistic, drawing whole clusters with replacement.

    (scipy.stats.bootstrap draws items.) A cluster drawn twice puts its items into the resample
    twice, under the same ids: a statistic that groups items by id would merge the copies, so make
    the items the groups themselves (pools, not pairs). Clusters are sorted by name, items of a
    cluster by their repr, before anything is drawn, so that the items' order does not matter.

    Args:
        statistic: gets the items of all drawn clusters; None, nan or infinity mean undefined.
        items: one per row; dicts, numbers, pairs, whatever `statistic` reads.
        clusters: each item's cluster, in the same order.
        resamples: 1000 or more in anything that is reported.
        seed: of this call alone; Python's own random numbers are left as they are.

    Returns:
        The interval between the percentiles of the defined resamples, `se` their standard
        deviation (None below two), `undefined` the count of the others. If the statistic is
        undefined on the items themselves, `estimate`, `low` and `high` are nan. With one cluster
        nothing can be drawn: `low`, `high` are nan and `se` is None.

    Raises:
        ValueError: no items, unequal lengths, fewer than one resample.
    """
    groups = _grouped(items, clusters)
    if resamples < 1:
        raise ValueError(f"resamples={resamples}: at least 1 is needed")
    ordered = [sorted(groups[name], key=repr) for name in sorted(groups)]
    count = len(ordered)

    def of(chosen: Sequence[Sequence[T]]) -> float:
        value = statistic([item for group in chosen for item in group])
        return math.nan if value is None or not math.isfinite(value) else value

    estimate = of(ordered)
    # Only random() is promised to give the same stream in every Python version.
    draw = random.Random(seed).random
    drawn = [
        of([ordered[int(draw() * count)] for _ in range(count)])
        for _ in range(resamples if count > 1 else 0)
    ]
    found = sorted(value for value in drawn if not math.isnan(value))
    defined = [] if math.isnan(estimate) else found
    return Interval(
        estimate=estimate,
        low=quantile(defined, (1 - LEVEL) / 2),
        high=quantile(defined, (1 + LEVEL) / 2),
        se=deviation(found),
        method=f"cluster bootstrap, {100 * LEVEL:g} %, B={resamples}, seed={seed}",
        n=len(items),
        clusters=count,
        undefined=len(drawn) - len(found),
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """Linear between ascending values, numpy's default; nan without values. `share` is 0 to 1."""
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
    centre = fmean(values)
    return math.sqrt(math.fsum((v - centre) ** 2 for v in values) / (len(values) - 1))


def _grouped(items: Sequence[T], clusters: Sequence[str]) -> dict[str, list[T]]:
    if len(items) == 0:
        raise ValueError("no items")
    if len(items) != len(clusters):
        raise ValueError(f"{len(items)} items but {len(clusters)} clusters")
    groups: dict[str, list[T]] = {}
    for cluster, item in zip(clusters, items, strict=True):
        groups.setdefault(cluster, []).append(item)
    return groups
