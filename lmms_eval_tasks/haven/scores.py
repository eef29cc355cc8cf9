"""HAVEN's numbers, from items: the same functions serve the host's tables and `rescore`.

Every metric of a reply has these forms (metrics.md):
- NAME: mean over videos; a reply that could not be read counts as 0, or as what of it could;
- NAME_valid: without the replies that could not be read;
- NAME_sources: the mean of the sources' means, and NAME_SOURCE, each source's own;
- NAME_random, NAME_identity, NAME_uniform, NAME_first, NAME_all and NAME_best, where they make
  sense: what the same items give for a reply that understands nothing, and the most they can give.

A correlation with a ground truth that is the same for all shots is undefined: such an item is in no
mean, and `undefined` counts it. Ratings exist as `_valid` alone (utils/rating_means.py). What is
joined over tasks by video (CLIPScore of separate replies, consistency) is in joined.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lmms_eval_tasks.haven import joined, text_values
from lmms_eval_tasks.haven.labels import SOURCES, TASKS, Task
from lmms_eval_tasks.judges import geval_ratings
from lmms_eval_tasks.utils import aggregate, keyframes, rating_means
from lmms_eval_tasks.utils.aggregate import Item, metric_list

Aggregation = Callable[[Sequence[Item]], Any]
Values = Callable[[Sequence[Item]], list[float | None]]

ROUGE = ("rouge", "rouge1", "rouge2", "rougeL")
KEYFRAMES = ("f1", "precision", "recall")
ORDER = ("spearman", "kendall")
ALIGNMENT = ("f1", "iou", "hit1")
GEVAL = tuple(geval_ratings.MODES)

# Kind -> metric -> the baselines that stand beside it.
MEASURED: dict[str, dict[str, tuple[str, ...]]] = {
    "v2t": dict.fromkeys(ROUGE, ()),
    "v2v": dict.fromkeys(KEYFRAMES, ("random", "uniform", "first", "all", "best")),
    "v2vt": {
        **dict.fromkeys(ROUGE, ()),
        **dict.fromkeys(KEYFRAMES, ("random", "uniform", "first", "all", "best")),
    },
    "temporal": dict.fromkeys(ORDER, ("random", "identity", "best")),
    "grounding": dict.fromkeys(ALIGNMENT, ("random", "all", "best")),
    "saliency": dict.fromkeys(ORDER, ("random", "identity", "best")),
}
# Kind -> what is computed over all texts at once, in the aggregation.
OF_TEXTS: dict[str, dict[str, Values]] = {
    "v2t": {"bertscore": text_values.bertscore},
    "v2vt": {"bertscore": text_values.bertscore, "clipscore": text_values.clipscore},
}
# Frames in place of the selected ones, of F and K. The mean over all is what K at random expect.
CLIP_BASELINES: dict[str, Callable[[int, int], Sequence[int]]] = {
    "random": lambda n_frames, _: range(1, n_frames + 1),
    "uniform": keyframes.uniform,
    "first": keyframes.first,
}
NOT_RUN = "not_run"  # status of the one doc of a task that has no item (items.not_run)


def part_of(metric: str) -> str:
    """The part of a reply that a metric of MEASURED is about: `summary`, `frames` or `reply`."""
    if metric in ROUGE:
        return "summary"
    return "frames" if metric in KEYFRAMES else "reply"


def part_status(item: Item, part: str) -> str:
    """The status of one part of a reply; its whole status where it has no such part."""
    return str(item["parts"].get(part, item["status"]))


def own_values(items: Sequence[Item]) -> list[float | None]:
    """Each item's own value of a metric."""
    return [item["value"] for item in items]


def mean(values: Values, items: Sequence[Item]) -> float | None:
    """Mean over videos of what is defined."""
    return aggregate.mean(value for value in values(items) if value is not None)


def mean_valid(values: Values, items: Sequence[Item]) -> float | None:
    """The same without replies that could not be read."""
    return mean(values, [item for item in items if aggregate.is_valid(item)])


def mean_of_sources(statistic: Aggregation, items: Sequence[Item]) -> float | None:
    """Mean over the sources that have a value, each weighing the same.

    None where there is none over all of them: CLIPScore without the pictures of one source.
    """
    if statistic(items) is None:
        return None
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(item["source"], []).append(item)
    values = (statistic(group) for group in groups.values())
    return aggregate.mean(value for value in values if value is not None)


def undefined(items: Sequence[Item]) -> int:
    """Number of items whose correlation is undefined, whatever is replied."""
    return sum(bool(item["undefined"]) for item in items)


def violations(items: Sequence[Item]) -> int:
    """Number of replies that break the prompt's rules in some way (the sidecar has the kinds)."""
    return sum(bool(item["violations"]) for item in items)


def count_failed(items: Sequence[Item]) -> int:
    """Number of replies that failed in some part (`status` of the whole item)."""
    return sum(item["status"] not in ("ok", NOT_RUN) for item in items)


def clips_predicted(items: Sequence[Item]) -> float | None:
    """Mean number of clips named for a sentence, per video first."""
    return aggregate.mean(item["value"] for item in items if item["value"] is not None)


def _family(name: str, values: Values) -> dict[str, Aggregation]:
    plain = functools.partial(mean, values)
    return {
        name: plain,
        f"{name}_valid": functools.partial(mean_valid, values),
        f"{name}_sources": functools.partial(mean_of_sources, plain),
        **{f"{name}_{source}": plain for source in SOURCES},
    }


def _ratings(metric: str, items: Sequence[Item]) -> list[dict[str, Any]]:
    """Items as utils/rating_means.py wants them, of G-Eval's mode of this metric.

    Empty where no rating has that mode: then there is no such number, and nothing failed.
    """
    broken = {"score": None, "status": "error", "mode": None}
    given = [{**(item["geval"] or broken), "source": item["source"]} for item in items]
    return [
        {"status": one["status"], "source": item["source"], "dimensions": {metric: one}}
        for item, one in zip(items, geval_ratings.column(metric, given), strict=False)
    ]


def _rated(metric: str) -> dict[str, Aggregation]:
    def over(statistic: Callable[[str, Sequence[Item]], Any], items: Sequence[Item]) -> Any:
        return statistic(metric, _ratings(metric, items))

    def of_sources(items: Sequence[Item]) -> float | None:
        rated = _ratings(metric, items)
        return mean_of_sources(functools.partial(rating_means.mean_valid, metric), rated)

    valid = functools.partial(over, rating_means.mean_valid)
    return {
        f"{metric}_valid": valid,
        f"{metric}_var": functools.partial(over, rating_means.variance_valid),
        f"{metric}_failed": functools.partial(over, rating_means.count_failed),
        f"{metric}_coverage": functools.partial(over, rating_means.coverage),
        f"{metric}_valid_sources": of_sources,
        **{f"{metric}_valid_{source}": valid for source in SOURCES},
    }


def _of_kind(task: Task) -> dict[str, Aggregation]:
    """The metrics of a task, in the order of the host's table; the first has the whole item."""
    kind = task.kind
    found: dict[str, Aggregation] = {FIRST: count_failed, "videos": len, "violations": violations}
    for name, baselines in MEASURED[kind].items():
        found |= _family(name, own_values)
        plain = functools.partial(mean, own_values)
        found |= {f"{name}_{baseline}": plain for baseline in baselines}
    for name, values in OF_TEXTS.get(kind, {}).items():
        found |= _family(name, values)
    if kind == "v2vt":
        for name, frames in CLIP_BASELINES.items():
            values = functools.partial(text_values.clip_baseline, frames)
            found[f"clipscore_{name}"] = functools.partial(mean, values)
    if kind in OF_TEXTS:
        for name in GEVAL:
            found |= _rated(name)
    if kind in ("temporal", "saliency"):
        found["undefined"] = undefined
    if kind == "grounding":
        found["clips_predicted"] = clips_predicted
    if kind == "v2vt":
        found |= {"summary_failed": count_failed, "frames_failed": count_failed}
    return {**found, **joined.metrics(task)}


FIRST = "failed"  # has the whole item
COUNTS = (FIRST, "videos", "summary_failed", "frames_failed", "violations", "undefined")

SCORES: dict[str, dict[str, Aggregation]] = {name: _of_kind(task) for name, task in TASKS.items()}


_FORMS = ("_valid", "_sources", "_failed", "_coverage", "_var")


def plain_name(metric: str) -> str:
    """A metric's name without source and form: `geval_samples` of `geval_samples_valid_tvsum`."""
    name = split_name(metric)[0]
    for _ in range(2):
        for form in _FORMS:
            if name.endswith(form) and name not in COUNTS:
                name = name.removesuffix(form)
    return name


def split_name(metric: str) -> tuple[str, str]:
    """A metric's name without its source, and the source ("" if it has none)."""
    name, _, source = metric.rpartition("_")
    return (name, source) if source in SOURCES else (metric, "")


def of_item(metric: str, item: Item) -> bool:
    """Whether a metric takes an item: all do but those of another source."""
    return split_name(metric)[1] in ("", item["source"])


def _higher_is_better(name: str) -> bool | None:
    if name.endswith(("_var", "_random", "_identity", "_uniform", "_first", "_all", "_best")):
        return None
    if name in ("clips_predicted", "undefined", "videos") or name.startswith(joined.PREFIX):
        return None
    return not (name.endswith("failed") or name == "violations")


def __getattr__(name: str) -> Any:
    """`METRICS_V2T` and so on: the `metric_list` of haven_v2t, for the YAMLs."""
    task = f"haven_{name.removeprefix('METRICS_').lower()}"
    if name.startswith("METRICS_") and task in SCORES:
        return metric_list(SCORES[task], _higher_is_better)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def names(metrics: Iterable[str]) -> list[str]:
    """Metrics without those of single sources."""
    return [name for name in metrics if not split_name(name)[1]]
