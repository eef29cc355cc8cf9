"""The baselines of Table 4 as numbers of a run: mean and variance of each.

Text metrics need the texts of all items at once (text_scores.py); the judged ones are ratings like
the others, where the user asked for them (baselines.py). G-Eval's two ways of rating are different
measurements, so each has a metric of its own, over the answers that were rated in that way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.judges import geval_ratings
from lmms_eval_tasks.movierecapsqa import text_scores
from lmms_eval_tasks.movierecapsqa.baselines import GEVAL, HELMET_METRICS, NO_REFERENCE
from lmms_eval_tasks.utils import aggregate, provenance, rating_means
from lmms_eval_tasks.utils.aggregate import Item

Aggregation = Callable[[Sequence[Item]], Any]
Statistic = Callable[[Sequence[float]], float | None]

# Metrics whose items carry the texts, and source and condition, by which their model is noted.
TEXT_METRICS = ("bertscore", "bertscore_var", "bartscore", "bartscore_var")
NOTES = "movierecapsqa"  # in provenance.py: metric -> task -> note


def _answered(items: Sequence[Item]) -> list[Item]:
    """Items with a reply of the model's: a request that failed is not its answer."""
    return [item for item in items if item["status"] not in ("model_error", "error")]


def _rouge_l(statistic: Statistic, items: Sequence[Item]) -> float | None:
    return statistic([item["rouge_l"] for item in _answered(items) if item["rouge_l"] is not None])


def _bertscore(statistic: Statistic, items: Sequence[Item]) -> float | None:
    return _text("bertscore", statistic, items)


def _bartscore(statistic: Statistic, items: Sequence[Item]) -> float | None:
    return _text("bartscore", statistic, items)


def _text(name: str, statistic: Statistic, items: Sequence[Item]) -> float | None:
    """A statistic of a text metric over the items with a reference; None where it has no model."""
    ordered = sorted(_answered(items), key=lambda item: item["id"])
    texts = [item["candidate"] for item in ordered], [item["reference"] for item in ordered]
    if name == "bertscore":
        scores = text_scores.bertscore(*texts, model=settings.bertscore_model())
    else:
        scores = text_scores.bartscore(*texts, model=settings.bartscore_model())
    _note(name, items, scores.note)
    return statistic([value for value in scores.values if value is not None])


def _note(name: str, items: Sequence[Item], note: str) -> None:
    """Keep what a metric was computed with; every task of a run has a note of its own."""
    for source, condition in {(item["source"], item["condition"]) for item in items}:
        task = "_".join(filter(None, ("movierecapsqa", source, condition)))
        known = provenance.notes().get(NOTES, {})
        provenance.note(NOTES, {**known, name: {**known.get(name, {}), task: note}})


def notes_of(tasks: Sequence[str]) -> dict[str, dict[str, str]]:
    """What the text metrics of some tasks were computed with: metric -> task -> note."""
    known: dict[str, dict[str, str]] = provenance.notes().get(NOTES, {})
    found = {
        name: {task: notes[task] for task in tasks if task in notes}
        for name, notes in known.items()
    }
    return {name: notes for name, notes in found.items() if notes}


# --- the judged ones ----------------------------------------------------------------------------


def _rated(metric: str, items: Sequence[Item]) -> list[dict[str, Any]]:
    """Items as utils/rating_means.py wants them, of those that have this baseline and a reference.

    Empty where it was not asked for: then there is no number, and nothing failed. Where it was, an
    item whose scoring broke lacks it, and counts as failed.
    """
    key = GEVAL if metric in geval_ratings.MODES else metric
    given = [(item.get("baselines") or {}).get(key) for item in items]
    if all(one is None for one in given):
        return []
    broken = {"score": None, "status": "error", "mode": None}
    found = [
        broken if one is None else one
        for item, one in zip(items, given, strict=True)
        if one is not None or item["status"] == "error"
    ]
    found = [one for one in found if one["status"] != NO_REFERENCE]
    if key == GEVAL:
        found = geval_ratings.column(metric, found)
    return [{"status": one["status"], "dimensions": {metric: one}} for one in found]


def _judged(metric: str) -> dict[str, Aggregation]:
    def over(statistic: Callable[[str, Sequence[Item]], Any], items: Sequence[Item]) -> Any:
        return statistic(metric, _rated(metric, items))

    forms: dict[str, Callable[[str, Sequence[Item]], Any]] = {
        "": rating_means.mean_valid,
        "_var": rating_means.variance_valid,
        "_failed": rating_means.count_failed,
        "_coverage": rating_means.coverage,
    }
    return {
        f"{metric}{form}": functools.partial(over, statistic) for form, statistic in forms.items()
    }


JUDGED = (*geval_ratings.MODES, *HELMET_METRICS)
RATED = {metric: f for name in JUDGED for metric, f in _judged(name).items()}
METRICS: dict[str, Aggregation] = {
    "rouge_l": functools.partial(_rouge_l, aggregate.mean),
    "rouge_l_var": functools.partial(_rouge_l, rating_means.variance),
    "bertscore": functools.partial(_bertscore, aggregate.mean),
    "bertscore_var": functools.partial(_bertscore, rating_means.variance),
    "bartscore": functools.partial(_bartscore, aggregate.mean),
    "bartscore_var": functools.partial(_bartscore, rating_means.variance),
    **RATED,
}
