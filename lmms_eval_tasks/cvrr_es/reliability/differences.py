"""Two raters' kappas on the same answers: is one nearer to the reference than the other?

Kappas of different answers cannot be compared (metrics.md): an item counts here if both raters and
the reference gave it a whole rating. Both are drawn together in every resample, since they rated
the same answers on the same videos.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.cvrr_es.labels import RATINGS
from lmms_eval_tasks.cvrr_es.rating_rows import Item
from lmms_eval_tasks.cvrr_es.reliability import kappas, sums_bootstrap
from lmms_eval_tasks.cvrr_es.reliability.study import Ratings, Study
from lmms_eval_tasks.utils.stats import Interval

if TYPE_CHECKING:
    from lmms_eval_tasks.cvrr_es.reliability.sums_bootstrap import Matrix


@dataclass(frozen=True)
class Difference:
    """Of two kappas (-2 to 2), or of ratings in points of the scale (-4 to 4).

    Attributes:
        value: None with its `reason`.
        n: items that count.
        interval: 95 %; None with the reason in `no_interval`.
    """

    value: float | None
    reason: str
    n: int
    interval: Interval | None
    no_interval: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "interval": self.interval.as_dict() if self.interval else None}


def shared(study: Study, *raters: Ratings) -> Study:
    """The study of the items to which all of these, and the reference, gave a whole rating."""
    everyone = (*raters, study.reference)
    return study.keep(lambda item: all(own.get(item) in RATINGS for own in everyone))


def difference(
    study: Study,
    one: Ratings,
    other: Ratings,
    *,
    resamples: int = sums_bootstrap.RESAMPLES,
    seed: int = 0,
) -> Difference:
    """Mean kappa of `one` minus that of `other` (over candidates, then dimensions).

    Over the items that both rated; cells where either has no kappa are left out. The interval is
    paired, by bootstrap over videos.

    Args:
        study: with the reference; its items count.
        one, other: any raters or panels.
        resamples, seed: of the bootstrap over videos; 0 resamples for no interval.
    """
    everyone = (one, other, study.reference)
    cells = [
        kept
        for items in study.cells.values()
        if (kept := [i for i in items if all(own.get(i) in RATINGS for own in everyone)])
    ]
    n = sum(map(len, cells))
    if not n:
        why = "both rated" if study.reference else "has a reference rating: there is none yet"
        return Difference(None, f"no item {why}", 0, None, sums_bootstrap.NO_VALUE)
    dimensions: dict[str, list[int]] = {}
    for place, items in enumerate(cells):
        dimensions.setdefault(study.dimension(items[0]), []).append(place)
    sums = _sums(study, cells, one, other)

    def statistic(drawn: Matrix) -> Matrix:
        import numpy as np

        first, second = np.split(drawn, 2, axis=1)
        apart = kappas.kappas_of(first) - kappas.kappas_of(second)  # nan where either has none
        means = [kappas.defined_mean(apart[:, own]) for own in dimensions.values()]
        return kappas.defined_mean(np.stack(means, axis=1))

    import numpy as np

    total = np.array(list(sums.values()), dtype=np.float64).sum(axis=0, keepdims=True)
    found = float(statistic(total)[0])
    value = None if np.isnan(found) else found
    interval, no_interval = sums_bootstrap.interval_or_reason(
        value,
        sums,
        statistic,
        n,
        unknown=sum(sums.get("", ())[: 5 * len(cells) : 5]),
        resamples=resamples,
        seed=seed,
    )
    reason = "" if value is not None else "no cell has a kappa of both"
    return Difference(value, reason, n, interval, no_interval)


def _sums(
    study: Study, cells: list[list[Item]], one: Ratings, other: Ratings
) -> Mapping[str, list[int]]:
    """Video -> the sums of every cell of the one rater, then of the other."""
    found: list[Mapping[str, kappas.Sums]] = [
        kappas.sums_by_video(study, kappas.whole_pairs(ratings, study.reference, items))
        for ratings in (one, other)
        for items in cells
    ]
    videos = sorted({video for own in found for video in own})
    return {video: [n for own in found for n in own.get(video, kappas.NONE)] for video in videos}
