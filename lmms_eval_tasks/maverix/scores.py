"""MAVERIX's numbers, from items: the same functions serve the host's tables and `rescore`.

Three kinds of task, each with its metrics by name:
- choice: `acc` in three forms (Table 3), by label (`acc_<split>_<slug>`, Tables 4, 5, 10), and the
  joined `best_uni`, `best_multi`, `delta_multi` (table3.py);
- circular: all eight rotations of a question (rotations.py);
- open: four rated dimensions and paraphrase robustness (robustness.py).
All have the length of replies in words (Table 6 counts tokens and names no tokenizer), the number
of withheld items, and how many items' sound did not arrive or may not have.

Items whose answer is withheld are not scored: the others alone count, and where all are withheld
there is no number.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.maverix import robustness, rotations, table3
from lmms_eval_tasks.maverix.labels import DIMENSIONS, LETTERS, SPLITS
from lmms_eval_tasks.maverix.table3 import JOINED, join
from lmms_eval_tasks.maverix.uncertainty import details
from lmms_eval_tasks.utils import aggregate, rating_means
from lmms_eval_tasks.utils.aggregate import Item, metric_list

__all__ = ["JOINED", "details", "join"]  # made in other modules, asked for here

Aggregation = Callable[[Sequence[Item]], Any]

NO_REPLY = frozenset({"model_error", "error"})  # nothing that the model wrote


def known(items: Sequence[Item]) -> list[Item]:
    """The items whose answer is in the data."""
    return [item for item in items if not item["withheld"]]


def _of_known(statistic: Aggregation) -> Aggregation:
    """`statistic` of the known items; None where every item is withheld."""

    def scored(items: Sequence[Item]) -> Any:
        some = known(items)
        return None if items and not some else statistic(some)

    return scored


# --- numbers of every kind --------------------------------------------------------------------


def _lengths(items: Sequence[Item]) -> list[int]:
    return [item["words"] for item in items if item["status"] not in NO_REPLY]


def words_mean(items: Sequence[Item]) -> float | None:
    """Mean length of the replies in words; an empty reply has 0, a failed request has none."""
    return aggregate.mean(_lengths(items))


def words_max(items: Sequence[Item]) -> int | None:
    """Length of the longest reply in words."""
    return max(_lengths(items), default=None)


def words_sd(items: Sequence[Item]) -> float | None:
    """Standard deviation (n - 1) of the lengths; None of fewer than two replies."""
    lengths = _lengths(items)
    return statistics.stdev(lengths) if len(lengths) > 1 else None


def n_withheld(items: Sequence[Item]) -> int:
    """Number of items that are not scored since the data have no answer."""
    return sum(bool(item["withheld"]) for item in items)


def n_sound_missing(items: Sequence[Item]) -> int:
    """Number of items whose sound did not reach the model."""
    return sum(item["sound"] in table3.WITHOUT for item in items)


def n_sound_unknown(items: Sequence[Item]) -> int:
    """Number of items of which nobody knows whether their sound reached the model."""
    return sum(item["sound"] == "unknown" for item in items)


def n_without(mode: str, items: Sequence[Item]) -> int:
    """Number of items of other modes whose model gets no sound in `mode`."""
    return sum(item["hears"][mode] in table3.WITHOUT for item in items)


# --- every metric of a kind, by name ----------------------------------------------------------

# Metrics of some items only: name -> field and value that such an item has.
_LABELS = {
    **{f"acc_{s}_{slug}": (s, slug) for s, slugs in SPLITS.items() for slug in slugs},
    **{f"acc_at_{letter.lower()}": ("answer", letter) for letter in LETTERS},
    **{f"{d}_valid_{slug}": ("agentic", slug) for d in DIMENSIONS for slug in SPLITS["agentic"]},
}
_SOUND: dict[str, Aggregation] = {
    "n_sound_missing": n_sound_missing,
    "n_sound_unknown": n_sound_unknown,
}
# The same of modes that this item is not of: S stands in for A where the model has no sound,
# whether A was run or not.
_OTHER_SOUND = {f"n_sound_missing_{mode}": mode for mode in table3.WITH_SOUND}
_COMMON: dict[str, Aggregation] = {
    "words_mean": words_mean,
    "words_max": words_max,
    "words_sd": words_sd,
    "n_withheld": n_withheld,
    **_SOUND,
    **{name: functools.partial(n_without, mode) for name, mode in _OTHER_SOUND.items()},
}


def of_item(name: str, item: Item) -> bool:
    """Whether metric `name` takes `item`: all do but those of another label, letter or mode."""
    if name in _SOUND:
        return bool(item["sound"])
    if name in _OTHER_SOUND:
        return item["mode"] != _OTHER_SOUND[name] and bool(item.get("hears"))
    if name not in _LABELS:
        return True
    field, value = _LABELS[name]
    return bool(item.get(field) == value)


_ACCURACIES: dict[str, Aggregation] = {
    "acc": aggregate.accuracy,
    "acc_valid": aggregate.accuracy_valid,
    "acc_failed": aggregate.count_failed,
}


def _scored(metrics: Mapping[str, Aggregation]) -> dict[str, Aggregation]:
    return {name: _of_known(statistic) for name, statistic in metrics.items()}


def _rated(dimension: str) -> dict[str, Aggregation]:
    mean = functools.partial(rating_means.mean_valid, dimension)
    return {
        f"{dimension}_valid": mean,
        f"{dimension}_failed": functools.partial(rating_means.count_failed, dimension),
        f"{dimension}_coverage": functools.partial(rating_means.coverage, dimension),
        **{f"{dimension}_valid_{slug}": mean for slug in SPLITS["agentic"]},
    }


CHOICE: dict[str, Aggregation] = {
    **_scored(_ACCURACIES),
    **_scored(
        {f"acc_{s}_{slug}": aggregate.accuracy for s, slugs in SPLITS.items() for slug in slugs}
    ),
    **_COMMON,
    **{name: functools.partial(table3.carrier, name) for name in JOINED},
}
CIRCULAR: dict[str, Aggregation] = {
    **_scored(_ACCURACIES),
    **_scored(
        {
            "circ_acc": rotations.circ_acc,
            "circ_acc_valid": rotations.circ_acc_valid,
            "circ_acc_failed": rotations.circ_acc_failed,
            "position_bias": rotations.position_bias,
            **{f"acc_at_{letter.lower()}": aggregate.accuracy for letter in LETTERS},
            **{f"chose_{x.lower()}": functools.partial(rotations.chose, x) for x in LETTERS},
        }
    ),
    **_COMMON,
}
OPEN: dict[str, Aggregation] = {
    **_scored({name: f for d in DIMENSIONS for name, f in _rated(d).items()}),
    **_scored(
        {
            "robust_both": robustness.robust_both,
            "robust_diff": robustness.robust_diff,
            "robust_n": robustness.robust_n,
            "robust_failed": robustness.robust_failed,
        }
    ),
    **_COMMON,
}
METRICS = {"choice": CHOICE, "circular": CIRCULAR, "open": OPEN}
FIRST = {kind: next(iter(metrics)) for kind, metrics in METRICS.items()}  # has the whole item


def metrics_of(item: Item) -> dict[str, Aggregation]:
    """The metrics of an item's kind, which its identity shows."""
    if "version" in item:
        return OPEN
    return CIRCULAR if "rotation" in item else CHOICE


def is_mean(name: str) -> bool:
    """Whether metric `name` is the plain mean of `right` over its items."""
    return name == "acc" or (name in _LABELS and name.startswith("acc_"))


def _higher_is_better(name: str) -> bool | None:
    if name.startswith(("n_sound", "n_withheld", "words_", "chose_")) or name == "robust_n":
        return None
    return not (name.endswith("_failed") or name in ("position_bias", "robust_diff"))


# Named by the YAMLs (`!function` takes constants too).
CHOICE_METRICS = metric_list(CHOICE, _higher_is_better)
CIRCULAR_METRICS = metric_list(CIRCULAR, _higher_is_better)
OPEN_METRICS = metric_list(OPEN, _higher_is_better)
