"""How far panels agree with the reference, beside every judge alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lmms_eval_tasks.cvrr_es.rating_rows import Item
from lmms_eval_tasks.cvrr_es.reliability.fitting import (
    SCALE,
    Rated,
    Ratings,
    Reference,
    judge_kappa,
    part_of,
)
from lmms_eval_tasks.cvrr_es.reliability.kappa_values import average
from lmms_eval_tasks.cvrr_es.reliability.panel_ratings import PANELS, Judges, Panel
from lmms_eval_tasks.utils import agreement

NO_REFERENCE = "no kappa: no rated item has a reference rating"
NO_FOLDS = "not computed: fitting on other videos needs the videos' names"


@dataclass(frozen=True)
class PanelResult:
    """How far a panel, or a judge alone, agrees with the reference."""

    name: str
    kappa: float | None  # mean over dimensions of the mean over candidates (Table 5)
    pooled: float | None  # over all items at once
    n: int  # items that have a rating and a reference
    uses_reference: bool
    note: str
    by_dimension: Mapping[str, float | None]  # mean over candidates


def compare(
    ratings: Ratings,
    reference: Reference,
    dimension_of: Mapping[Item, str],
    fold_of: Mapping[Item, int] | None = None,
    names: Iterable[str] = tuple(PANELS),
) -> list[PanelResult]:
    """Every panel against the reference, in the order of `names`; arguments and errors as `rate`.

    Without a reference no panel has a kappa, and its note says so; without folds none that is
    fitted to the reference.
    """
    judges = Judges(ratings, reference, dimension_of, fold_of)
    results = []
    for name in names:
        if PANELS.get(name) and fold_of is None:
            results.append(PanelResult(name, None, None, 0, True, NO_FOLDS, {}))
            continue
        panel = judges.panel(name)
        results.append(_result(name, panel, reference, dimension_of))
    return results


def singles(
    ratings: Ratings, reference: Reference, dimension_of: Mapping[Item, str]
) -> list[PanelResult]:
    """Every judge alone, by name: what a panel has to beat.

    The best of these is best in hindsight; `best_judge` is the one that could have been chosen.
    """
    return [
        _result(judge, Panel(own), reference, dimension_of)
        for judge, own in sorted(ratings.items())
    ]


def _result(
    name: str, panel: Panel, reference: Reference, dimension_of: Mapping[Item, str]
) -> PanelResult:
    by_dimension = _kappas(panel.ratings, reference, dimension_of)
    items = list(panel.ratings)
    pooled = agreement.kappa(
        [panel.ratings[item] for item in items],
        [reference.get(item) for item in items],
        SCALE,
        "quadratic",
    )
    return PanelResult(
        name,
        average(by_dimension.values()),
        pooled.value,
        pooled.n,
        panel.uses_reference,
        panel.note if pooled.n else NO_REFERENCE,
        by_dimension,
    )


def _kappas(
    ratings: Rated, reference: Reference, dimension_of: Mapping[Item, str]
) -> dict[str, float | None]:
    """By dimension: the mean over candidates."""
    dimensions: dict[str, list[Item]] = {}
    for item in ratings:
        dimensions.setdefault(part_of(item, dimension_of, None)[1], []).append(item)
    return {
        dimension: judge_kappa(ratings, reference, own)
        for dimension, own in sorted(dimensions.items())
    }
