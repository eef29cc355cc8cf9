"""Agreement of raters: Cohen's kappa with quadratic weights (vlm_judge, 3.2), and leniency.

The paper writes kappa = 1 - sum(w O) / sum(w E), which needs weights of *disagreement*, and defines
w = 1 - ((a - b) / (k - 1))^2, which is a weight of *agreement*: together they would give a perfect
judge a negative number. Here w is d = ((a - b) / (k - 1))^2, k is 5, and the labels are always the
whole scale. The authors' code passes no labels, so that its distances count only levels that occur;
that number is `kappa_authors`. Table 5 has kappas times 100.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from statistics import fmean

from lmms_eval_tasks.cvrr_es.labels import SCALE
from lmms_eval_tasks.cvrr_es.study.study import RatingPair, RatingPairs, ReportPart, cells
from lmms_eval_tasks.utils.metrics import aggregate, stats
from lmms_eval_tasks.utils.metrics.agreement import kappa

# Bands of 5.2 with their upper limits, included. The paper leaves gaps (.20 and .21 are in
# different bands, .205 in none): here a value above a limit, before any rounding, is in the next
# band. The paper's "close to 0" is no limit: here 0 and below is "none".
BANDS: tuple[tuple[float, str], ...] = (
    (0.0, "none"),
    (0.2, "slight"),
    (0.4, "fair"),
    (0.6, "moderate"),
    (0.8, "substantial"),
    (1.0, "almost perfect"),
)
Kappas = Sequence[float | None]


def _mean(kappas: Kappas, sizes: Iterable[int]) -> float | None:
    """Return the mean of the groups' mean kappas; `sizes` are the numbers of kappas."""
    ends = accumulate(sizes, initial=0)
    return aggregate.mean(aggregate.mean(kappas[start:end]) for start, end in pairwise(ends))


def _why_not(estimate: float | None, pairs: Iterable[RatingPair]) -> str:
    if estimate is None:
        return "no value"
    return "all items are on one video" if len({pair.video for pair in pairs}) == 1 else ""


def _interval(
    estimate: float | None,
    groups: Sequence[RatingPairs],
    of_kappas: Callable[[Kappas], float | None] = lambda kappas: kappas[0],
) -> ReportPart:
    """The interval of a statistic of the kappas of groups of pairs: a jackknife over videos.

    The kappas of any set of videos follow from five sums per video and group: of 1, a, b, (a - b)^2
    and a^2 + b^2. All sums are whole numbers below 2^53, so that a group's kappa is the same as
    computed from its pairs.

    Args:
        estimate: the statistic over all pairs.
        groups: the pairs of each kappa.
        of_kappas: the statistic.

    Returns:
        `interval` and `no_interval`, the reason if there is no interval.
    """
    import numpy as np

    kept = [(number, pair) for number, own in enumerate(groups) for pair in own if pair.whole]
    if reason := _why_not(estimate, (pair for _, pair in kept)):
        return {"interval": None, "no_interval": reason}
    videos = sorted({pair.video for _, pair in kept})
    place = {video: number for number, video in enumerate(videos)}
    sums = np.zeros((len(videos), len(groups), 5))
    for number, pair in kept:
        a, b = pair.rating or 0, pair.reference or 0
        sums[place[pair.video], number] += (1, a, b, (a - b) ** 2, a * a + b * b)

    def statistic(indices: Sequence[int]) -> float | None:
        n, a, b, apart, squares = sums[indices].sum(axis=0).T
        expected = n * squares - 2 * a * b  # 0: no ratings, or the same label by both throughout
        made = ((expected - n * apart) / np.where(expected, expected, np.nan)).tolist()
        return of_kappas([None if math.isnan(value) else value for value in made])

    found = stats.jackknife(statistic, range(len(videos)), videos, coefficient=True)
    items = len({pair.item for _, pair in kept})
    return _there(replace(found, estimate=float(estimate or 0), n=items))


def _there(interval: stats.Interval) -> ReportPart:
    """Return the interval, or the reason why there is none."""
    if interval.ends is None:
        return {"interval": None, "no_interval": interval.method.removeprefix("none: ")}
    return {"interval": interval.as_dict(), "no_interval": ""}


def _shown(value: float | None, interval: ReportPart) -> ReportPart:
    """Return a kappa (-1 to 1), its value x100 as the paper prints it, and its band."""
    if value is None:
        return {"kappa": None, "percent": None, "band": None, **interval}
    band = next(name for limit, name in BANDS if value <= limit)
    return {"kappa": value, "percent": 100 * value, "band": band, **interval}


def between(pairs: RatingPairs, *, intervals: bool = True) -> ReportPart:
    """Return a rater's kappa with the reference over some items, or the `reason` why there is none.

    `n` items count; `missing` items lack one of the two ratings, `not_whole` items have a rating
    such as 4.5. `kappa_authors` has the levels that occur as its labels.
    """
    ratings, references = [pair.rating for pair in pairs], [pair.reference for pair in pairs]
    result = kappa(ratings, references, SCALE, "quadratic")
    both = [(pair.rating, pair.reference) for pair in pairs if pair.whole]
    levels = sorted({level for own in both for level in own if level}) or SCALE
    authors = kappa([one for one, _ in both], [one for _, one in both], levels, "quadratic")
    no_reference = not any(references)
    return {
        **_shown(result.value, _interval(result.value, [pairs]) if intervals else {}),
        "reason": "no reference yet" if no_reference and pairs else result.reason,
        "n": result.n,
        "missing": result.missing,
        "not_whole": result.off_scale,
        "coverage": result.coverage,
        "kappa_authors": authors.value,
    }


def reliability(pairs: RatingPairs, *, intervals: bool = True) -> ReportPart:
    """Return all kappas of a rater (or panel) with the reference.

    - `cells`: by dimension and candidate.
    - `by_dimension`: the mean over candidates, as in the averages of Table 5.
    - `mean`: the mean of `by_dimension`.
    - `pooled_by_dimension`, `pooled`: over all items at once. They also reward a judge that ranks
      the candidates rightly, which no kappa of one candidate can.
    - `by_candidate`: the mean over the dimensions where the candidate has a kappa.
    """
    parts = cells(pairs)
    table = {
        dimension: {name: between(one, intervals=intervals) for name, one in own.items()}
        for dimension, own in parts.items()
    }

    def mean(*dimensions: str) -> ReportPart:
        """Return the mean over dimensions of the mean over their cells, regardless of cell size.

        Cells without a kappa are left out, also when a video is left out for the interval.
        """
        sizes = [len(table[one]) for one in dimensions]
        every = [cell for one in dimensions for cell in table[one].values()]
        value, authors = (
            _mean([cell[key] for cell in every], sizes) for key in ("kappa", "kappa_authors")
        )
        groups = [cell for one in dimensions for cell in parts[one].values()]
        reasons = "; ".join(sorted({cell["reason"] for cell in every} - {""}))
        interval = _interval(value, groups, lambda drawn: _mean(drawn, sizes)) if intervals else {}
        return {
            **_shown(value, interval),
            "reason": (reasons or "no items") if value is None else "",
            "kappa_authors": authors,
            "defined": sum(cell["kappa"] is not None for cell in every),
            "cells": len(every),
        }

    return {
        "mean": mean(*parts),
        "pooled": between(pairs, intervals=intervals),
        "by_dimension": {dimension: mean(dimension) for dimension in parts},
        "pooled_by_dimension": {
            one: between([pair for pair in pairs if pair.dimension == one], intervals=intervals)
            for one in parts
        },
        "by_candidate": {
            name: aggregate.mean(own[name]["kappa"] for own in table.values() if name in own)
            for name in sorted({pair.item.candidate for pair in pairs})
        },
        "cells": table,
    }


def difference(minuend: RatingPairs, other: RatingPairs) -> ReportPart:
    """Return the mean kappa of `minuend` minus that of `other` (over candidates, then dimensions).

    Kappas of different answers cannot be compared (docs/metrics.md), so only items count for which
    both raters and the reference have a whole rating. Cells where either has no kappa are left out.
    The jackknife leaves out the same videos for both.

    Args:
        minuend, other: pairs of the same items, in the same order.

    Returns:
        `value`, `n` (the items that count) and the interval.
    """
    both = [own for own in zip(minuend, other, strict=True) if all(pair.whole for pair in own)]
    first, second = (cells([own[side] for own in both]) for side in (0, 1))
    sizes = [len(own) for own in first.values()]
    groups = [pairs for side in (first, second) for own in side.values() for pairs in own.values()]

    def apart(kappas: Kappas) -> float | None:
        half = len(kappas) // 2
        sides = zip(kappas[:half], kappas[half:], strict=True)
        return _mean([a - b if a is not None and b is not None else None for a, b in sides], sizes)

    value = apart([between(own, intervals=False)["kappa"] for own in groups])
    return {"value": value, "n": len(both), **_interval(value, groups, apart)}


def leniency(pairs: RatingPairs) -> ReportPart:
    """Return the mean rating minus the mean reference rating (5.1), over the `n` items with both.

    Above 0 is lenient. Ratings that are not whole count unchanged. The interval is that of a paired
    difference (`stats.mean_difference`).
    """
    both = [pair for pair in pairs if pair.rating is not None and pair.reference is not None]
    values = [(pair.rating or 0) - (pair.reference or 0) for pair in both]
    value = fmean(values) if values else None
    if reason := _why_not(value, both):
        return {"value": value, "n": len(both), "interval": None, "no_interval": reason}
    found, _ = stats.mean_difference(values, [pair.video for pair in both])
    return {"value": value, "n": len(both), **_there(found)}
