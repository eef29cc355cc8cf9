"""The bootstrap over videos of `utils.stats`, much faster for statistics that only need sums.

`stats.cluster_bootstrap` hands every resample's items to a Python function. A report has thousands
of kappas, and a kappa needs five sums only: a resample is then how often each video was drawn, and
all resamples are one product of matrices. Draws, percentiles and deviation are those of
`cluster_bootstrap`, bit for bit (a test compares them).
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from lmms_eval_tasks.utils import stats
from lmms_eval_tasks.utils.stats import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

RESAMPLES = 1000  # metrics.md: 1000 or more in anything that is reported
LEVEL = 0.95
NO_VALUE = "there is no value"  # and so no interval
# Percentile intervals are too narrow, and low, the more so the fewer the videos; below so many the
# report warns, a limit of ours. In one made-up setting (20 answers a video, a kappa of 0.89, 200
# draws each) 95 % intervals held it in 68 % with 4 videos, 87 % with 10, 89 to 93 % with 20 to 50.
FEW = 20


def interval(
    estimate: float,
    sums: Mapping[str, Sequence[float]],
    statistic: Callable[[Matrix], Matrix],
    n: int,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Percentile interval, drawing whole videos with replacement.

    Args:
        estimate: the statistic of all items.
        sums: video -> the sums of its items, equally many for each. Whole numbers are exact below
            2^53.
        statistic: gets the sums of all resamples, shape (resamples, sums), and returns one value
            for each, shape (resamples,), nan where it is undefined.
        n: items.
        resamples: how many; at least 1000.
        seed: of this call alone.

    Returns:
        As of `stats.cluster_bootstrap`; with one video `low` and `high` are nan.

    Raises:
        ValueError: no videos, or too few resamples to report.
    """
    import numpy as np

    if not sums:
        raise ValueError("no videos to draw")
    if resamples < RESAMPLES:
        raise ValueError(f"resamples={resamples}: at least {RESAMPLES} are needed")
    method = f"cluster bootstrap, {100 * LEVEL:g} %, B={resamples}, seed={seed}"
    count = len(sums)
    if count == 1:
        return Interval(estimate, math.nan, math.nan, None, method, n, count)
    matrix = np.array([sums[video] for video in sorted(sums)], dtype=np.float64)
    values = statistic(_times_drawn(count, resamples, seed) @ matrix)
    defined: list[float] = np.sort(values[np.isfinite(values)]).tolist()
    return Interval(
        estimate=estimate,
        low=stats.quantile(defined, (1 - LEVEL) / 2),
        high=stats.quantile(defined, (1 + LEVEL) / 2),
        se=stats.deviation(defined),
        method=method,
        n=n,
        clusters=count,
        undefined=resamples - len(defined),
    )


def interval_or_reason(
    estimate: float | None,
    sums: Mapping[str, Sequence[float]],
    statistic: Callable[[Matrix], Matrix],
    n: int,
    *,
    unknown: int,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[Interval | None, str]:
    """The interval, or None and why there is none; never an interval that pretends.

    Args:
        estimate: None where the statistic is undefined.
        sums, statistic, n, seed: as in `interval`.
        unknown: items whose video is not known. One is enough for no interval: as a cluster of its
            own it would make the interval too short.
        resamples: 0 for no interval.
    """
    if estimate is None:
        return None, NO_VALUE
    if not resamples:
        return None, "no interval was asked for"
    if reason := _why_not(len(sums), unknown, n, "items"):
        return None, reason
    found = interval(estimate, sums, statistic, n, resamples=resamples, seed=seed)
    if math.isnan(found.low):
        return None, f"undefined in all {resamples} resamples"
    return found, ""


def clustered_or_reason(
    values: Sequence[float], videos: Sequence[str], what: str = "items"
) -> tuple[Interval | None, str]:
    """As `interval_or_reason`, of a plain mean, by `stats.clustered_mean`.

    Args:
        values: one for each item.
        videos: of the same items; "" where it is not known.
        what: the items are.
    """
    if not values:
        return None, NO_VALUE
    if reason := _why_not(len(set(videos)), videos.count(""), len(videos), what):
        return None, reason
    return stats.clustered_mean(values, videos), ""


def _why_not(videos: int, unknown: int, n: int, what: str) -> str:
    if unknown:
        return f"the video of {unknown} of {n} {what} is not known"
    return f"all {what} are on one video" if videos == 1 else ""


@functools.lru_cache(maxsize=16)  # 2 MB each for all 217 videos
def _times_drawn(count: int, resamples: int, seed: int) -> Matrix:
    """How often each cluster is in each resample, shape (resamples, count)."""
    import numpy as np

    draw = random.Random(seed).random  # the one stream that every Python version promises
    drawn = np.array([int(draw() * count) for _ in range(resamples * count)])
    rows = np.repeat(np.arange(resamples), count)
    times = np.bincount(rows * count + drawn, minlength=resamples * count)
    found = times.reshape(resamples, count).astype(np.float64)
    found.setflags(write=False)  # it is shared by all later calls
    return found
