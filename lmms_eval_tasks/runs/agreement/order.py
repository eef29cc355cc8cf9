"""The order of models by our mean scores and by the published ones, on the same questions. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from lmms_eval_tasks.utils.metrics import stats
from lmms_eval_tasks.utils.metrics.agreement import Both, Pair
from lmms_eval_tasks.utils.metrics.stats import Interval


@dataclass(frozen=True)
class Order:
    """Models by their mean score on the questions for which all of them have one."""

    complete: int  # questions for which all models of the release have a published score
    judged: int  # of these, those with our score for every model that is compared
    means: Mapping[str, tuple[float, float]]  # by model: ours, published; none if `judged` is 0
    same: int  # pairs of models in the same order by both
    tied: int  # pairs that have equal means in one of the two or both
    pairs: int  # all of them
    tau: float | None  # Kendall's tau-b of the means; None: undefined
    interval: Interval | None  # of tau, by bootstrap over clusters

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        means = {
            model: {"ours": ours, "published": other} for model, (ours, other) in self.means.items()
        }
        interval = None if self.interval is None else self.interval.as_dict()
        return {**vars(self), "means": means, "interval": interval}


def order(
    pairs: Sequence[Pair], raters: Sequence[str], chosen: Sequence[str], *, resamples: int = 1000
) -> Order:
    """The order of the models by our means and by the published ones, on the same questions.

    Args:
        pairs: of all models' answers to all questions.
        raters: the models that must have a published score for a question to count.
        chosen: those of them that are compared.
        resamples: of tau's interval.
    """
    found: dict[str, dict[str, Pair]] = {}
    for pair in pairs:
        if pair.published is not None and pair.rater in raters:
            found.setdefault(pair.question, {})[pair.rater] = pair
    complete = [given for given in found.values() if len(given) == len(raters)]
    items: list[Both] = []
    clusters = []
    for given in complete:
        both = [scores for model in chosen if (scores := given[model].both)]
        if chosen and len(both) == len(chosen):
            items.append(both)
            clusters.append(given[chosen[0]].cluster)
    means = _means(items)
    places = list(combinations(means, 2))
    signs = [(_sign(one[0] - other[0]), _sign(one[1] - other[1])) for one, other in places]
    enough = bool(items) and len(chosen) > 1
    return Order(
        complete=len(complete),
        judged=len(items),
        means=dict(zip(chosen, means, strict=True)) if items else {},
        same=sum(a * b > 0 for a, b in signs),
        tied=sum(a * b == 0 for a, b in signs),
        pairs=len(places),
        tau=_tau(means),
        interval=stats.cluster_bootstrap(
            lambda drawn: _tau(_means(drawn)), items, clusters, resamples=resamples
        )
        if enough
        else None,
    )


def _means(items: Sequence[Both]) -> list[tuple[float, float]]:
    """Each model's two means over questions."""
    if not items:
        return []
    return [
        (
            math.fsum(ours for ours, _ in column) / len(items),
            math.fsum(published for _, published in column) / len(items),
        )
        for column in zip(*items, strict=True)
    ]


def _tau(means: Both) -> float | None:
    """Kendall's tau-b of two lists of means; None with fewer than two, or where all are tied."""
    across, untied = 0, [0, 0]
    for one, other in combinations(means, 2):
        a, b = _sign(one[0] - other[0]), _sign(one[1] - other[1])
        across += a * b
        untied[0] += a != 0
        untied[1] += b != 0
    return across / math.sqrt(untied[0] * untied[1]) if all(untied) else None


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
