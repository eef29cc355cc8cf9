"""Raters beside each other and beside the reference: whose kappa is higher, who rates higher.

Kappas of different answers cannot be compared (metrics.md): in a difference an item counts if both
raters and the reference gave it a whole rating. Both are drawn together in every resample, since
they rated the same answers on the same videos.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from lmms_eval_tasks.cvrr_es.labels import RATINGS, SCALE
from lmms_eval_tasks.cvrr_es.study import kappas
from lmms_eval_tasks.cvrr_es.study.ratings import Item
from lmms_eval_tasks.cvrr_es.study.study import Part, Ratings, Study, split
from lmms_eval_tasks.utils.metrics.agreement import Coefficient, krippendorff_alpha

if TYPE_CHECKING:
    from lmms_eval_tasks.cvrr_es.study.kappas import Matrix


def shared(study: Study, *raters: Ratings) -> Study:
    """The study of the items to which all of these, and the reference, gave a whole rating."""
    everyone = (*raters, study.reference)
    return study.keep(lambda item: all(own.get(item) in RATINGS for own in everyone))


def difference(
    study: Study, one: Ratings, other: Ratings, *, resamples: int = kappas.RESAMPLES, seed: int = 0
) -> Part:
    """Mean kappa of `one` minus that of `other` (over candidates, then dimensions).

    Over the items that both rated; cells where either has no kappa are left out. The interval is
    paired, by bootstrap over videos.

    Args:
        study: with the reference; its items count.
        one, other: any raters or panels.
        resamples, seed: of the bootstrap over videos; 0 resamples for no interval.

    Returns:
        The `value`, None with its `reason`, the `n` items that count, and the interval.
    """
    import numpy as np

    both = shared(study, one, other)
    cells, n = list(both.cells.items()), len(both.items)
    sizes = [*Counter(cell.dimension for cell, _ in cells).values()]
    sums = kappas.side_by_side(
        [
            kappas.sums_by_video(study, kappas.whole_pairs(ratings, study.reference, items))
            for ratings in (one, other)
            for _, items in cells
        ]
    )

    def statistic(drawn: Matrix) -> Matrix:
        first, second = np.split(drawn, 2, axis=1)
        apart = kappas.kappas_of(first) - kappas.kappas_of(second)  # nan where either has none
        return kappas.mean_of_means(apart, sizes)

    value, reason = None, ""
    if n:
        total = np.array(list(sums.values()), dtype=np.float64).sum(axis=0, keepdims=True)
        found = float(statistic(total)[0])
        value = None if np.isnan(found) else found
        reason = "" if value is not None else "no cell has a kappa of both"
    elif study.reference:
        reason = "no item both rated"
    else:
        reason = "no item has a reference rating: there is none yet"
    interval = kappas.interval_or_reason(
        value,
        sums,
        statistic,
        n,
        unknown=sum(sums.get("", ())[: 5 * len(cells) : 5]),
        resamples=resamples,
        seed=seed,
    )
    return {"value": value, "reason": reason, "n": n, **interval}


# --- agreement with each other, whatever the reference says ---------------------------------------

# Squared differences, as in the quadratic kappa: of two judges with equal means and spreads both
# are nearly the same number, so the two can be read side by side. Ordinal alpha could not.
ALPHA = "interval"


def pairwise(study: Study, ratings: Mapping[str, Ratings]) -> dict[tuple[str, str], Part]:
    """Quadratic weighted kappa of every two judges, pooled over the items that both rated."""
    return {
        (one, other): kappas.between(study, ratings[one], ratings[other], study.items, resamples=0)
        for one, other in itertools.combinations(ratings, 2)
    }


def alpha(study: Study, ratings: Sequence[Ratings]) -> Coefficient:
    """Krippendorff's alpha (interval) of all judges at once, over items that two or more rated.

    Of an item that counts, ratings that are not whole are as if they were missing. With fewer than
    two judges there is none, and the reason says so.
    """
    if len(ratings) < 2:
        return Coefficient(None, "alpha needs two judges", 0, len(study.items))
    rows = [[own.get(item) for own in ratings] for item in study.items]
    return krippendorff_alpha(rows, SCALE)


# --- how much higher a judge rates than the reference: 5.1 and section 6 --------------------------


def leniencies(study: Study, ratings: Ratings) -> Part:
    """Leniency of one rater overall and in every part."""
    return split(study, lambda items: leniency(study, ratings, items))


def leniency(study: Study, ratings: Ratings, items: Sequence[Item]) -> Part:
    """Mean rating minus mean reference, over the items that both rated, each counted alike.

    Above 0 is lenient. Ratings that are not whole count as they are. The interval is Student's t
    with standard errors clustered by video (`stats.clustered_mean`).
    """
    found = [
        (rating - compared, study.video(item))
        for item in items
        if (rating := ratings.get(item)) is not None
        and (compared := study.reference.get(item)) is not None
    ]
    values = [difference for difference, _ in found]
    reason = "" if found else "no item was rated by the judge and the reference"
    return {
        "value": fmean(values) if values else None,
        "reason": reason if study.reference else "there is no reference yet",
        "n": len(found),
        **kappas.clustered_or_reason(values, [video for _, video in found]),
    }
