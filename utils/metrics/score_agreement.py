"""How far our scores of the same answers agree with published ones.

Pure. A pair without one of its two scores is left out of everything; who reports says how many.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_eval_tasks.utils.metrics import stats
from lmms_eval_tasks.utils.metrics.aggregate import mean
from lmms_eval_tasks.utils.metrics.agreement import kappa
from lmms_eval_tasks.utils.metrics.rating_means import variance
from lmms_eval_tasks.utils.metrics.stats import Interval

# Below it a percentile bootstrap over clusters is known to be too narrow: said beside the interval.
FEW_CLUSTERS = 20


@dataclass(frozen=True)
class Pair:
    """Two scores of one answer in one dimension; None: there is none."""

    rater: str  # whose answer it is: a model's name, or people
    question: str
    cluster: str  # the video
    ours: float | None
    published: float | None

    @property
    def both(self) -> tuple[float, float] | None:
        """Ours and the published one, where there are both."""
        if self.ours is None or self.published is None:
            return None
        return self.ours, self.published


@dataclass(frozen=True)
class Row:
    """Agreement over the answers that have both scores.

    A coefficient is None where it is undefined. `intervals` are by the names of the coefficients;
    a mean over models has none.
    """

    n: int  # answers with both scores
    missing: int  # answers with a published score and none of ours
    kappa: float | None  # quadratic weights, over the whole scale
    rho: float | None  # Spearman's
    absolute: float | None  # mean |ours - published|
    ours: float | None  # means
    published: float | None
    ours_var: float | None  # the population's variances
    published_var: float | None
    intervals: Mapping[str, Interval]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = {name: interval.as_dict() for name, interval in self.intervals.items()}
        return {**vars(self), "intervals": found}


Both = Sequence[tuple[float, float]]  # ours, published


def row(pairs: Sequence[Pair], scale: Sequence[int], resamples: int = 1000) -> Row:
    """Agreement over some answers, with intervals by bootstrap over clusters.

    Args:
        pairs: of one model, or of all; pairs without a published score do not matter.
        scale: all scores that there are. Means over several people's scores need not be on it: then
            there is no kappa.
        resamples: of each interval.
    """
    scored = [(scores, pair.cluster) for pair in pairs if (scores := pair.both)]
    both = [scores for scores, _ in scored]
    computed: dict[str, Callable[[Both], float | None]] = {
        "kappa": lambda drawn: weighted_kappa(drawn, scale),
        "rho": spearman,
        "absolute": absolute_difference,
    }
    clusters = [cluster for _, cluster in scored]
    intervals = (
        {
            name: stats.cluster_bootstrap(statistic, both, clusters, resamples=resamples)
            for name, statistic in computed.items()
        }
        if both
        else {}
    )
    return Row(
        n=len(both),
        missing=sum(pair.ours is None and pair.published is not None for pair in pairs),
        **{name: statistic(both) for name, statistic in computed.items()},
        ours=mean(ours for ours, _ in both),
        published=mean(published for _, published in both),
        ours_var=variance([ours for ours, _ in both]),
        published_var=variance([published for _, published in both]),
        intervals=intervals,
    )


def rows(
    pairs: Sequence[Pair],
    models: Sequence[str],
    people: str,
    groups: Mapping[str, Sequence[str]],
    *,
    scale: Sequence[int],
    resamples: int = 1000,
) -> dict[str, Row]:
    """Every model, the groups' means, all models, and people; rows of nothing are left out.

    Args:
        pairs: of one dimension.
        models: in the order of their rows.
        people: the rater that is no model. Where a question has several of their answers, the
            average and the best of each question are rows as well (paper, 5.3).
        groups: title -> models, of which some may not be there.
        scale, resamples: as in `row`.
    """

    def of(chosen: Sequence[Pair]) -> Row:
        return row(chosen, scale, resamples)

    found = {model: of([pair for pair in pairs if pair.rater == model]) for model in models}
    made = dict(found)
    for title, names in groups.items():
        if own := [found[name] for name in names if name in found]:
            made[f"{title}, mean of {len(own)}"] = mean_row(own)
    if len(models) > 1:
        made["all models"] = of([pair for pair in pairs if pair.rater in found])
    theirs = [pair for pair in pairs if pair.rater == people]
    if theirs:
        made[people] = of(theirs)
    if len({pair.question for pair in theirs}) < len(theirs):
        made[f"{people}, average of each question"] = of(by_question(theirs, statistics.fmean))
        made[f"{people}, best of each question"] = of(by_question(theirs, max))
    return made


def mean_row(rows: Sequence[Row]) -> Row:
    """Mean of each number over models, where all of them have it; `n` and `missing` are sums."""
    names = ("kappa", "rho", "absolute", "ours", "published", "ours_var", "published_var")
    values = {name: [getattr(one, name) for one in rows] for name in names}
    return Row(
        n=sum(one.n for one in rows),
        missing=sum(one.missing for one in rows),
        **{name: None if None in found else mean(found) for name, found in values.items()},
        intervals={},
    )


def weighted_kappa(both: Both, scale: Sequence[int]) -> float | None:
    """Quadratic weighted kappa over the whole scale; None if undefined or a score is off it."""
    found = kappa([one for one, _ in both], [other for _, other in both], scale, "quadratic")
    return None if found.off_scale else found.value


def spearman(both: Both) -> float | None:
    """Spearman's rho with the mean rank for ties; None where one side is constant.

    Ours because scipy.stats takes over a second to import and 0.8 ms a call where this takes 0.2,
    and the bootstraps call it 20,000 times; a test compares them. Twice the ranks are
    whole numbers, so that order cannot matter.
    """
    n = len(both)
    first, second = (_double_ranks([pair[side] for pair in both]) for side in (0, 1))
    centre = n + 1  # the mean of twice the ranks
    across = sum((x - centre) * (y - centre) for x, y in zip(first, second, strict=True))
    squares = [sum((x - centre) ** 2 for x in ranks) for ranks in (first, second)]
    return across / math.sqrt(squares[0] * squares[1]) if all(squares) else None


def _double_ranks(values: Sequence[float]) -> list[int]:
    ranks, below = {}, 0
    counts = Counter(values)
    for value in sorted(counts):
        ranks[value] = 2 * below + counts[value] + 1
        below += counts[value]
    return [ranks[value] for value in values]


def absolute_difference(both: Both) -> float | None:
    """Mean absolute difference, in points of the scale."""
    return mean(abs(ours - published) for ours, published in both)


# --- several answers to one question -----------------------------------------------------------


def by_question(pairs: Iterable[Pair], pick: Callable[[Sequence[float]], float]) -> list[Pair]:
    """One pair for each question: what `pick` makes of the scores of its answers that have both.

    The paper's average and best human (5.3) are a mean and a maximum, each within a question.
    """
    answers: dict[str, list[Pair]] = {}
    for pair in pairs:
        if pair.both:
            answers.setdefault(pair.question, []).append(pair)
    made = []
    for question, given in answers.items():
        ours, published = zip(*(pair.both or () for pair in given), strict=True)
        one = Pair(given[0].rater, question, given[0].cluster, pick(ours), pick(published))
        made.append(one)
    return made
