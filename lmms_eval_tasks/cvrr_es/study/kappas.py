"""How far a rater agrees with the reference: Cohen's kappa with quadratic weights (vlm_judge, 3.2).

The paper writes kappa = 1 - sum(w O) / sum(w E), which needs weights of *disagreement*, and defines
w = 1 - ((a - b) / (k - 1))^2, which is a weight of *agreement*: taken together they would give a
perfect judge a negative number. Here d = ((a - b) / (k - 1))^2 takes the place of w; k = 5, and the
labels are always the whole scale. The authors' code names no labels, so that its distances count
the levels that occur: that number stands beside as `kappa_authors`. Table 5's are times 100.

Intervals are the bootstrap over videos of `utils.stats`, draw by draw (a test compares them). That
one hands every resample's items to a Python function. A report has thousands of kappas, and a kappa
needs five sums only: so a resample is how often each video was drawn, and all are one product of
matrices.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from lmms_eval_tasks.cvrr_es.labels import RATINGS, SCALE
from lmms_eval_tasks.cvrr_es.study.ratings import Item
from lmms_eval_tasks.cvrr_es.study.study import Cell, Part, Ratings, Study, nested
from lmms_eval_tasks.utils.metrics import stats
from lmms_eval_tasks.utils.metrics.agreement import kappa
from lmms_eval_tasks.utils.metrics.stats import LEVEL, Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

RESAMPLES = 1000  # metrics.md: 1000 or more in anything that is reported
# Percentile intervals are too narrow, and low, the more so the fewer the videos; below so many the
# report warns, a limit of ours. In one made-up setting (20 answers a video, a kappa of 0.89, 200
# draws each) 95 % intervals held it in 68 % with 4 videos, 87 % with 10, 89 to 93 % with 20 to 50.
FEW = 20


def interval_or_reason(
    estimate: float | None,
    sums: Mapping[str, Sequence[float]],
    statistic: Callable[[Matrix], Matrix],
    n: int,
    *,
    unknown: int,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Part:
    """Percentile `interval`, drawing whole videos with replacement; or why there is `no_interval`.

    Args:
        estimate: the statistic of all items; None where it is undefined.
        sums: video -> the sums of its items, equally many for each. Whole numbers are exact below
            2^53.
        statistic: gets the sums of all resamples, shape (resamples, sums), and returns one value
            for each, shape (resamples,), nan where it is undefined.
        n: items.
        unknown: items whose video is not known. One is enough for no interval: as a cluster of its
            own it would make the interval too short.
        resamples: at least 1000; 0 for no interval.
        seed: of this call alone.
    """
    import numpy as np

    reason = "" if resamples else "no interval was asked for"
    if reason := _why_not(estimate, len(sums), unknown, n) or reason:
        return {"interval": None, "no_interval": reason}
    matrix = np.array([sums[video] for video in sorted(sums)], dtype=np.float64)
    values = statistic(_times_drawn(len(sums), resamples, seed) @ matrix)
    defined: list[float] = np.sort(values[np.isfinite(values)]).tolist()
    if not defined:
        return {"interval": None, "no_interval": f"undefined in all {resamples} resamples"}
    found = Interval(
        estimate=float(estimate or 0),
        low=stats.quantile(defined, (1 - LEVEL) / 2),
        high=stats.quantile(defined, (1 + LEVEL) / 2),
        se=stats.deviation(defined),
        method=f"cluster bootstrap, {100 * LEVEL:g} %, B={resamples}, seed={seed}",
        n=n,
        clusters=len(sums),
        undefined=resamples - len(defined),
    )
    return {"interval": found.as_dict(), "no_interval": ""}


def clustered_or_reason(values: Sequence[float], videos: Sequence[str]) -> Part:
    """As `interval_or_reason`, of a plain mean, by `stats.clustered_mean`.

    Args:
        values: one for each item.
        videos: of the same items; "" where it is not known.
    """
    estimate = fmean(values) if values else None
    reason = _why_not(estimate, len(set(videos)), videos.count(""), len(videos))
    found = None if reason else stats.clustered_mean(values, videos).as_dict()
    return {"interval": found, "no_interval": reason}


def _why_not(estimate: float | None, videos: int, unknown: int, n: int) -> str:
    if estimate is None:
        return "there is no value"
    if unknown:
        return f"the video of {unknown} of {n} items is not known"
    return "all items are on one video" if videos == 1 else ""


@functools.lru_cache(maxsize=16)  # 2 MB each for all 217 videos
def _times_drawn(count: int, resamples: int, seed: int) -> Matrix:
    """How often each cluster is in each resample, shape (resamples, count)."""
    import numpy as np

    draw = random.Random(seed).random  # the one stream that every Python version promises
    drawn = np.array([int(draw() * count) for _ in range(resamples * count)])
    rows = np.repeat(np.arange(resamples), count)
    times = np.bincount(rows * count + drawn, minlength=resamples * count)
    return times.reshape(resamples, count).astype(np.float64)


# --- kappas ------------------------------------------------------------------------------------

# Bands of 5.2, each up to and including its limit. The paper leaves gaps (.20 and .21 are in
# different bands, .205 in none): here a value belongs to the upper band as soon as it is above the
# limit, before any rounding. The paper's "close to 0" is no limit: 0 and below is none.
BANDS: tuple[tuple[float, str], ...] = (
    (0.0, "none"),
    (0.2, "slight"),
    (0.4, "fair"),
    (0.6, "moderate"),
    (0.8, "substantial"),
    (1.0, "almost perfect"),
)


def average(kappas: Iterable[float | None]) -> float | None:
    """Mean of those that are defined, each counted alike, as in Table 5; None if none is."""
    defined = [kappa for kappa in kappas if kappa is not None]
    return fmean(defined) if defined else None


def _shown(value: float | None, interval: Part) -> Part:
    """A kappa, -1 to 1, as the paper prints it too (x100), with its band."""
    if value is None:
        return {"kappa": None, "percent": None, "band": None, **interval}
    band = next(name for limit, name in BANDS if value <= limit)
    return {"kappa": value, "percent": 100 * value, "band": band, **interval}


# Of the pairs of one video, or of more: number, sum of a, sum of b, sum of (a - b)^2, of a^2 + b^2.
Sums = tuple[int, int, int, int, int]
NONE: Sums = (0, 0, 0, 0, 0)


def reliability(
    study: Study, ratings: Ratings, *, resamples: int = RESAMPLES, seed: int = 0
) -> Part:
    """All kappas of one rater (or panel) against the study's reference.

    Args:
        study: whose items count.
        ratings: of these items; what they lack is `missing`.
        resamples: of each interval, at least 1000; 0 for none.
        seed: of each interval.

    Returns:
        `cells` by dimension and candidate; `by_dimension` is the mean over candidates, as the
        averages of Table 5, and `mean` that of these. `pooled_by_dimension` and `pooled` are of all
        the items at once: they also count that a judge ranks the candidates rightly, which no kappa
        of one candidate can. `by_candidate` is its mean over the dimensions where it has a kappa.
    """
    options = {"resamples": resamples, "seed": seed}
    reference = study.reference
    found, sums = {}, {}
    by_dimension: dict[str, list[Cell]] = {}
    by_candidate: dict[str, list[float | None]] = {}
    pooled = {}
    for cell, items in study.cells.items():
        found[cell] = between(study, ratings, reference, items, **options)
        sums[cell] = sums_by_video(study, whole_pairs(ratings, reference, items))
        by_dimension.setdefault(cell.dimension, []).append(cell)
        by_candidate.setdefault(cell.candidate, []).append(found[cell]["kappa"])
    for dimension, own in by_dimension.items():
        items = tuple(item for cell in own for item in study.cells[cell])
        pooled[dimension] = between(study, ratings, reference, items, **options)
    return {
        "mean": _mean(list(by_dimension.values()), found, sums, **options),
        "pooled": between(study, ratings, reference, study.items, **options),
        "by_dimension": {
            dimension: _mean([own], found, sums, **options)
            for dimension, own in by_dimension.items()
        },
        "pooled_by_dimension": pooled,
        "by_candidate": {name: average(own) for name, own in by_candidate.items()},
        "cells": nested(found),
    }


def between(
    study: Study,
    one: Ratings,
    other: Ratings,
    items: Sequence[Item],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Part:
    """Kappa of two raters over some items.

    Args:
        study: which knows the items' videos, and what its reference is.
        one, other: may lack items.
        items: all that should be rated.
        resamples, seed: as in `reliability`.

    Returns:
        `kappa` or its `reason`, and `kappa_authors` (over the levels that occur), on `n` items;
        `missing` ones lack one of the two ratings, `not_whole` ones have a rating such as 4.5.
        `note` says that a side is constant, which makes a kappa of 0 say nothing.
    """
    found = kappa(
        [one.get(item) for item in items], [other.get(item) for item in items], SCALE, "quadratic"
    )
    no_reference = other is study.reference and not other
    pairs = whole_pairs(one, other, items)
    sides = first, second = [a for _, a, _ in pairs], [b for _, _, b in pairs]
    levels = sorted({*first, *second}) or SCALE
    notes = [
        f"{name} is always {own[0]}"
        for name, own in zip(("the rating", "the other side"), sides, strict=True)
        if len(own) > 1 and len(set(own)) == 1
    ]
    sums = sums_by_video(study, pairs)
    interval = interval_or_reason(
        found.value,
        sums,
        lambda drawn: kappas_of(drawn)[:, 0],
        found.n,
        unknown=sums.get("", NONE)[0],
        resamples=resamples,
        seed=seed,
    )
    return {
        **_shown(found.value, interval),
        "reason": "there is no reference yet" if no_reference else found.reason,
        "n": found.n,
        "missing": found.missing,
        "not_whole": found.off_scale,
        "coverage": found.coverage,
        "kappa_authors": kappa(first, second, levels, "quadratic").value,
        "note": " and ".join(notes),
    }


def _mean(
    groups: Sequence[Sequence[Cell]],
    found: Mapping[Cell, Part],
    sums: Mapping[Cell, Mapping[str, Sums]],
    *,
    resamples: int,
    seed: int,
) -> Part:
    """Mean over groups of the mean over their cells, each counted alike however many items it has.

    Cells without a kappa are left out; every resample's mean is over those defined in it.
    """
    cells = [cell for group in groups for cell in group]
    value, authors = (
        average(average(found[cell][key] for cell in group) for group in groups)
        for key in ("kappa", "kappa_authors")
    )
    reasons = sorted({found[cell]["reason"] for cell in cells} - {""})
    interval = interval_or_reason(
        value,
        side_by_side([sums[cell] for cell in cells]),
        lambda drawn: mean_of_means(kappas_of(drawn), [len(group) for group in groups]),
        sum(found[cell]["n"] for cell in cells),
        unknown=sum(sums[cell].get("", NONE)[0] for cell in cells),
        resamples=resamples,
        seed=seed,
    )
    return {
        **_shown(value, interval),
        "reason": ("; ".join(reasons) or "there are no items") if value is None else "",
        "kappa_authors": authors,
        "defined": sum(found[cell]["kappa"] is not None for cell in cells),
        "cells": len(cells),
    }


def whole_pairs(one: Ratings, other: Ratings, items: Iterable[Item]) -> list[tuple[Item, int, int]]:
    """Items that count, with both ratings."""
    return [
        (item, int(a), int(b))
        for item in items
        if (a := one.get(item)) is not None and (b := other.get(item)) is not None
        if a in RATINGS and b in RATINGS
    ]


def sums_by_video(study: Study, pairs: Iterable[tuple[Item, int, int]]) -> dict[str, Sums]:
    """What a kappa needs of every video's pairs, "" being those whose video is not known."""
    found: dict[str, Sums] = {}
    for item, a, b in pairs:
        video = study.video(item)
        n, total_a, total_b, apart, squares = found.get(video, NONE)
        squares += a * a + b * b
        found[video] = (n + 1, total_a + a, total_b + b, apart + (a - b) ** 2, squares)
    return found


def side_by_side(sums: Sequence[Mapping[str, Sums]]) -> dict[str, list[int]]:
    """Video -> the sums of every cell, one after another."""
    videos = sorted({video for own in sums for video in own})
    return {video: [n for own in sums for n in own.get(video, NONE)] for video in videos}


def kappas_of(drawn: Matrix) -> Matrix:
    """Kappas from sums, exact: shape (resamples, 5 x cells) to (resamples, cells).

    The observed disagreement is sum((a - b)^2); the expected one, over all n^2 pairs, is
    n sum(a^2 + b^2) - 2 sum(a) sum(b). All are whole numbers below 2^53.
    """
    import numpy as np

    n, a, b, apart, squares = np.moveaxis(drawn.reshape(len(drawn), -1, 5), 2, 0)
    expected = n * squares - 2 * a * b
    undefined = expected == 0  # nobody rated, or both gave one and the same label
    made = (expected - n * apart) / np.where(undefined, 1, expected)
    return np.where(undefined, np.nan, made)


def mean_of_means(values: Matrix, sizes: Sequence[int]) -> Matrix:
    """Mean over groups of columns of the mean of each row's defined values: (r, c) to (r,)."""
    import numpy as np

    ends = np.cumsum(sizes)[:-1]
    means = [_defined_mean(own) for own in np.split(values, ends, axis=1)]
    return _defined_mean(np.stack(means, axis=1))


def _defined_mean(values: Matrix) -> Matrix:
    """Mean of each row's defined values, nan where there are none: (r, c) to (r,)."""
    import numpy as np

    defined = np.isfinite(values)
    number = defined.sum(axis=1)
    total = np.where(defined, values, 0.0).sum(axis=1)
    return np.where(number == 0, np.nan, total / np.maximum(number, 1))
