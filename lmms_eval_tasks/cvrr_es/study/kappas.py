"""How far raters agree: Cohen's kappa with quadratic weights (vlm_judge, 3.2), alpha, leniency.

The paper writes kappa = 1 - sum(w O) / sum(w E), which needs weights of *disagreement*, and defines
w = 1 - ((a - b) / (k - 1))^2, which is a weight of *agreement*: taken together they would give a
perfect judge a negative number. Here d = ((a - b) / (k - 1))^2 takes the place of w; k = 5, and the
labels are always the whole scale. The authors' code names no labels, so that its distances count
the levels that occur: that number stands beside as `kappa_authors`. Table 5's are times 100.
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
Kappas = Sequence[float | None]


def _mean(kappas: Kappas, sizes: Iterable[int]) -> float | None:
    """Mean over groups of so many kappas each of the groups' means."""
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
    """Of what follows from the kappas of some groups of pairs, by leaving out each video in turn.

    Kappas of some videos need five sums of every video only: of 1, a, b, (a - b)^2 and a^2 + b^2.
    Of one group they are whole numbers below 2^53, so that its kappa is as if computed from pairs.
    Without an `interval`, `no_interval` says why.
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

    def statistic(drawn: Sequence[int]) -> float | None:
        n, a, b, apart, squares = sums[drawn].sum(axis=0).T
        expected = n * squares - 2 * a * b  # 0: nobody rated, or both gave one and the same label
        made = ((expected - n * apart) / np.where(expected, expected, np.nan)).tolist()
        return of_kappas([None if math.isnan(value) else value for value in made])

    found = stats.jackknife(statistic, range(len(videos)), videos, coefficient=True)
    items = len({pair.item for _, pair in kept})
    return _there(replace(found, estimate=float(estimate or 0), n=items))


def _there(found: stats.Interval) -> ReportPart:
    """The interval, or the reason why there is none."""
    if found.ends is None:
        return {"interval": None, "no_interval": found.method.removeprefix("none: ")}
    return {"interval": found.as_dict(), "no_interval": ""}


def _shown(value: float | None, interval: ReportPart) -> ReportPart:
    """A kappa, -1 to 1, as the paper prints it too (x100), with its band."""
    if value is None:
        return {"kappa": None, "percent": None, "band": None, **interval}
    band = next(name for limit, name in BANDS if value <= limit)
    return {"kappa": value, "percent": 100 * value, "band": band, **interval}


def between(pairs: RatingPairs, *, intervals: bool = True) -> ReportPart:
    """Kappa of a rater with the reference over some items, or the `reason` why there is none.

    It is on `n` items; `missing` ones lack one of the two ratings, `not_whole` ones have a rating
    such as 4.5. `kappa_authors` is over the levels that occur.
    """
    ratings, references = [pair.rating for pair in pairs], [pair.reference for pair in pairs]
    found = kappa(ratings, references, SCALE, "quadratic")
    both = [(pair.rating, pair.reference) for pair in pairs if pair.whole]
    levels = sorted({level for own in both for level in own if level}) or SCALE
    authors = kappa([one for one, _ in both], [one for _, one in both], levels, "quadratic")
    no_reference = not any(references)
    return {
        **_shown(found.value, _interval(found.value, [pairs]) if intervals else {}),
        "reason": "no reference yet" if no_reference and pairs else found.reason,
        "n": found.n,
        "missing": found.missing,
        "not_whole": found.off_scale,
        "coverage": found.coverage,
        "kappa_authors": authors.value,
    }


def reliability(pairs: RatingPairs, *, intervals: bool = True) -> ReportPart:
    """All kappas of one rater (or panel) with the reference.

    `cells` are by dimension and candidate; `by_dimension` is the mean over candidates, as the
    averages of Table 5, and `mean` that of these. `pooled_by_dimension` and `pooled` are of all the
    items at once: they also count that a judge ranks the candidates rightly, which no kappa of one
    candidate can. `by_candidate` is its mean over the dimensions where it has a kappa.
    """
    parts = cells(pairs)
    found = {
        dimension: {name: between(one, intervals=intervals) for name, one in own.items()}
        for dimension, own in parts.items()
    }

    def mean(*dimensions: str) -> ReportPart:
        """Mean over dimensions of the mean over their cells, each counted alike; whatever its size.

        Cells without a kappa are left out, also of the mean without a video.
        """
        sizes = [len(found[one]) for one in dimensions]
        every = [cell for one in dimensions for cell in found[one].values()]
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
            name: aggregate.mean(own[name]["kappa"] for own in found.values() if name in own)
            for name in sorted({pair.item.candidate for pair in pairs})
        },
        "cells": found,
    }


def difference(one: RatingPairs, other: RatingPairs) -> ReportPart:
    """Mean kappa of `one` minus that of `other` (over candidates, then dimensions).

    Kappas of different answers cannot be compared (docs/metrics.md): over the items that both, and
    the reference, gave a whole rating. Cells where either has no kappa are left out. In each
    resample both have the same videos. Both are pairs of the same items, of which `n` count.
    """
    both = [own for own in zip(one, other, strict=True) if all(pair.whole for pair in own)]
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
    """Mean rating minus mean reference (5.1), over the `n` items that have both.

    Above 0 is lenient. Ratings that are not whole count as they are. The interval is that of a
    paired difference (`stats.mean_difference`).
    """
    both = [pair for pair in pairs if pair.rating is not None and pair.reference is not None]
    values = [(pair.rating or 0) - (pair.reference or 0) for pair in both]
    value = fmean(values) if values else None
    if reason := _why_not(value, both):
        return {"value": value, "n": len(both), "interval": None, "no_interval": reason}
    found, _ = stats.mean_difference(values, [pair.video for pair in both])
    return {"value": value, "n": len(both), **_there(found)}
