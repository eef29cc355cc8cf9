"""The benchmark's own numbers: accuracy and mean score of a dimension, and their means over eleven.

- acc: share of answers that the judge calls correct; `_valid` without what the judge could not
  decide, which is how the published figures are computed; `acc_skip_empty` without empty answers
  too, which the published scripts do not judge at all; `empty` counts them.
- score: the judge's 0 to 5, as `_valid` with its count and coverage (utils/rating_means.py), and
  `score_skip_empty`.
- mean_...: the mean over the dimensions, in the group (Carrier, utils/aggregate.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.utils import aggregate, rating_means
from lmms_eval_tasks.utils.aggregate import Carrier, Item, metric_list, never_raises

Aggregation = Callable[[Sequence[Item]], Any]

FIRST = "acc"  # has the whole item
PREFIX = "mean_"  # of the group's metrics
SIDE = "dimension"


def acc_skip_empty(items: Sequence[Item]) -> float | None:
    """Accuracy as the published scripts count it: empty answers are not judged and do not count."""
    return aggregate.accuracy_valid(_not_empty(items))


def score_skip_empty(items: Sequence[Item]) -> float | None:
    """Mean score, 0 to 5, of the answers that are not empty; an empty one is worth 0 elsewhere."""
    return rating_means.mean_valid("score", _not_empty(items))


def _not_empty(items: Sequence[Item]) -> list[Item]:
    return [item for item in items if item["status"] != "empty"]


def empty(items: Sequence[Item]) -> int:
    """Number of empty answers."""
    return sum(item["status"] == "empty" for item in items)


_DIMENSION: dict[str, Aggregation] = {
    "acc": aggregate.accuracy,
    "acc_valid": aggregate.accuracy_valid,
    "acc_failed": aggregate.count_failed,
    "acc_skip_empty": acc_skip_empty,
    "empty": empty,
    "score_valid": functools.partial(rating_means.mean_valid, "score"),
    "score_failed": functools.partial(rating_means.count_failed, "score"),
    "score_coverage": functools.partial(rating_means.coverage, "score"),
    "score_skip_empty": score_skip_empty,
}
MEANS = ("acc", "acc_valid", "acc_skip_empty", "score_valid", "score_skip_empty")


def carried(name: str, items: Sequence[Item]) -> Carrier:
    """A dimension's number for the group."""
    dimensions = sorted({item["dimension"] for item in items})
    value = _DIMENSION[name](items)
    return Carrier(SIDE, {"+".join(dimensions): {"value": value}}, name)


@never_raises
def join(carriers: Sequence[Any], _sizes: Any = None, _weight_by_size: Any = None) -> float | None:
    """Mean over the dimensions, each weighing the same; None if one of them has no number.

    Args:
        carriers: the dimensions' values under one metric name.
    """
    # What broke (never_raises) is None here: without it the mean would be over fewer dimensions.
    if not all(isinstance(one, Carrier) for one in carriers):
        return None
    values = [entry["value"] for one in carriers for entry in one.scores.values()]
    known = [value for value in values if value is not None]
    return aggregate.mean(known) if len(known) == len(values) else None


SCORES: dict[str, Aggregation] = {
    **_DIMENSION,
    **{f"{PREFIX}{name}": functools.partial(carried, name) for name in MEANS},
}


def spread(full: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The item under each of its metrics: whole under the first, elsewhere what they need."""
    light = {
        name: full[name] for name in ("id", "video", "dimension", "status", "right", "dimensions")
    }
    return {**dict.fromkeys(SCORES, light), FIRST: dict(full)}


def _higher_is_better(name: str) -> bool:
    return not (name.endswith("_failed") or name == "empty")


# Named by the YAMLs (`!function` takes constants too).
METRICS = metric_list(SCORES, _higher_is_better)
