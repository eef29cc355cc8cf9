"""MovieRecapsQA's numbers, from items: the same functions serve the host's tables and `rescore`.

Every task has the same metrics:
- factuality, relevance and coherence, 0 to 5 (4.2): mean, variance and failures, by modality and
  category (Table 5), and how the judge's scores keep to the bounds of their own labels (bounds.py);
- the baselines of Table 4: text metrics against the dataset's answer, and the judged ones where the
  user asked for them.

The paper's "+-" is a variance (Table 4's caption), so `_var` is one: the population's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from lmms_eval_tasks.movierecapsqa import baseline_scores as baselines
from lmms_eval_tasks.movierecapsqa.labels import DIMENSIONS, SPLITS
from lmms_eval_tasks.utils import aggregate, rating_means
from lmms_eval_tasks.utils.aggregate import Item, metric_list

Aggregation = Callable[[Sequence[Item]], Any]


def inconsistent(dimension: str, items: Sequence[Item]) -> int:
    """Number of scores outside the bounds that their own labels set."""
    return sum(rating_means.rating(dimension, item).get("consistent") is False for item in items)


def bound(dimension: str, side: str, items: Sequence[Item]) -> float | None:
    """Mean of the lowest (`low`) or highest (`high`) score that each answer's labels allow.

    Over the same answers as `mean_valid`, the candidate's failures at 0.
    """
    if rating_means.is_unjudged(dimension, items):
        return None
    counted = [item for item in items if rating_means.value(dimension, item) is not None]
    found = (rating_means.rating(dimension, item).get(side) for item in counted)
    return aggregate.mean(float(value or 0) for value in found)


def claims_mean(items: Sequence[Item]) -> float | None:
    """Mean number of claims of the answers that have some, also where a dimension failed."""
    return aggregate.mean(float(item["n_claims"]) for item in items if item["n_claims"])


def no_claims(items: Sequence[Item]) -> int:
    """Number of answers in which the judge found no claim at all."""
    return sum(item["status"] == "no_claims" for item in items)


def _rated(dimension: str) -> dict[str, Aggregation]:
    mean = functools.partial(rating_means.mean_valid, dimension)
    return {
        f"{dimension}_valid": mean,
        f"{dimension}_var": functools.partial(rating_means.variance_valid, dimension),
        f"{dimension}_failed": functools.partial(rating_means.count_failed, dimension),
        f"{dimension}_coverage": functools.partial(rating_means.coverage, dimension),
        f"{dimension}_inconsistent": functools.partial(inconsistent, dimension),
        f"{dimension}_low": functools.partial(bound, dimension, "low"),
        f"{dimension}_high": functools.partial(bound, dimension, "high"),
        **{
            f"{dimension}_valid_{split}_{slug}": mean
            for split, slugs in SPLITS.items()
            for slug in slugs
        },
    }


# Metrics of some items only: name -> the split and the label that such an item has.
_LABELS = {
    f"{dimension}_valid_{split}_{slug}": (split, slug)
    for dimension in DIMENSIONS
    for split, slugs in SPLITS.items()
    for slug in slugs
}


def of_item(name: str, item: Item) -> bool:
    """Whether metric `name` takes `item`: all do but those of another label."""
    if name not in _LABELS:
        return True
    split, slug = _LABELS[name]
    return bool(item[split] == slug)


SCORES: dict[str, Aggregation] = {
    **{name: f for dimension in DIMENSIONS for name, f in _rated(dimension).items()},
    "claims_mean": claims_mean,
    "no_claims": no_claims,
    **baselines.METRICS,
}
FIRST = next(iter(SCORES))  # has the whole item


def _higher_is_better(name: str) -> bool | None:
    if name.endswith(("_var", "_low", "_high")) or name == "claims_mean":
        return None
    return not (name.endswith(("_failed", "_inconsistent")) or name == "no_claims")


# Named by the YAMLs (`!function` takes constants too).
METRICS = metric_list(SCORES, _higher_is_better)
