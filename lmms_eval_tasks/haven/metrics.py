"""HAVEN's numbers, computed from items.

Every metric of a reply has these forms (docs/metrics.md):

- NAME: mean over videos; a reply that cannot be read counts as 0, and a reply of which some can be
  read counts as this part;
- NAME_valid: the same mean without the replies that cannot be read;
- NAME_sources: the mean of the sources' means; NAME_SOURCE: the mean of one source;
- NAME_random, NAME_identity and NAME_all, for some metrics: the score that a reply without any
  understanding would get for the same items.

A correlation is undefined if the ground truth is the same for all shots. Such an item counts in no
mean, and `undefined` is the number of such items. Ratings exist as `_valid` alone
(utils/metrics/rating_means.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Literal, TypeVar

from lmms_eval_tasks.benchmark import Metric, Units, rating_metrics, refusals, split
from lmms_eval_tasks.haven import judge
from lmms_eval_tasks.haven.items import HavenItem
from lmms_eval_tasks.haven.judge import SummaryFrames
from lmms_eval_tasks.haven.options import ORDERS, SOURCES, SUMMARIES, TASKS
from lmms_eval_tasks.judges import geval
from lmms_eval_tasks.utils.metrics import aggregate, rating_means, text_metrics
from lmms_eval_tasks.utils.metrics.rating_means import DimensionRating

Items = Sequence[HavenItem]
Values = Callable[[Items], list[float | None]]
Statistic = Callable[[Items], float | None]
T = TypeVar("T")

ROUGE = ("rouge", *text_metrics.ROUGE_KINDS)
KEYFRAMES = ("f1", "precision", "recall")
# Suffix: compared with the frames that `is_gt` marks, not with all frames of the key shots.
IS_GT = "_is_gt"
ORDER = ("spearman", "kendall")
ALIGNMENT = ("f1", "iou", "hit1")
GEVAL = tuple(geval.MODES)

_OF_KEYFRAMES: dict[str, tuple[str, ...]] = dict.fromkeys(
    (*KEYFRAMES, *(f"{name}{IS_GT}" for name in KEYFRAMES)), ("random", "all")
)
_OF_ORDER: dict[str, tuple[str, ...]] = dict.fromkeys(ORDER, ("random", "identity"))
# Kind of task -> metric -> the metric's baselines.
MEASURED: dict[str, dict[str, tuple[str, ...]]] = {
    "v2t": dict.fromkeys(ROUGE, ()),
    "v2v": _OF_KEYFRAMES,
    "v2vt": {**dict.fromkeys(ROUGE, ()), **_OF_KEYFRAMES},
    "temporal": _OF_ORDER,
    "grounding": dict.fromkeys(ALIGNMENT, ("random", "all")),
    "saliency": _OF_ORDER,
}
# Columns of lmms-eval's table: the metrics of the paper's Tables 3 and 4 that need no texts.
SHOWN = ("rouge", *KEYFRAMES, *ORDER)


# --- statistics of items ------------------------------------------------------------------------


def _source(item: HavenItem) -> str:
    return item["source"]


def _part_status(item: HavenItem, part: str) -> str:
    """Return the status of one part of a reply; the whole reply's status if it has no such part."""
    return item["parts"].get(part, item["status"])


def mean_of_sources(
    statistic: Callable[[Sequence[T]], float | None], source: Callable[[T], str], items: Sequence[T]
) -> float | None:
    """Return the mean over the sources that have a value, each with the same weight.

    None if the statistic of all items together is None, such as CLIPScore if the pictures of one
    source are missing.
    """
    if statistic(items) is None:
        return None
    return aggregate.mean_of_groups(statistic, source, items)


# --- a task's metrics ---------------------------------------------------------------------------


def _family(
    name: str,
    values: Values,
    part: str,
    host_fields: tuple[str, ...] | None = None,
    units: Callable[[Items], Units] | None = None,
) -> list[Metric[HavenItem]]:
    """Return a metric in all its forms.

    `part` is the part of the reply that has to be readable for `_valid`.
    """

    def plain(items: Items) -> float | None:
        return aggregate.mean(values(items))

    def over_valid(statistic: Callable[[Items], T]) -> Callable[[Items], T]:
        def valid(item: HavenItem) -> bool:
            return aggregate.is_valid({"status": _part_status(item, part)})

        return lambda items: statistic([*filter(valid, items)])

    mean = Metric(name, plain, host_fields=host_fields, per_unit=units)
    return [
        mean,
        Metric(f"{name}_valid", over_valid(plain), per_unit=units and over_valid(units)),
        Metric(f"{name}_sources", functools.partial(mean_of_sources, plain, _source)),
        *split(mean, "source", SOURCES),
    ]


def _measured(name: str, baselines: Sequence[str]) -> list[Metric[HavenItem]]:
    """Return a metric of single items in all its forms, with its baselines."""

    def values(items: Items) -> list[float | None]:
        # 0 for a reply whose scoring failed, which has no scores.
        return [item.get("scores", {}).get(name, 0.0) for item in items]

    def units(items: Items) -> Units:
        pairs = zip(items, values(items), strict=True)
        return {i["id"]: (i["video"], value) for i, value in pairs if value is not None}

    def baseline(baseline_name: str) -> Statistic:
        return lambda items: aggregate.mean(
            item["baselines"].get(f"{name}_{baseline_name}") for item in items
        )

    part = "frames" if name.removesuffix(IS_GT) in KEYFRAMES else "reply"
    shown = (f"scores.{name}",) if name in SHOWN else None
    return [
        *_family(name, values, "summary" if name in ROUGE else part, shown, units),
        *(Metric(f"{name}_{one}", baseline(one), higher_is_better=None) for one in baselines),
    ]


def _rated(metric: str) -> list[Metric[HavenItem]]:
    """Return the metrics of G-Eval's ratings of one mode.

    The metrics are None if no rating has this mode.
    """

    def with_source(items: Items) -> list[tuple[str, DimensionRating]]:
        broken: geval.TextRating = {"score": None, "status": "error", "mode": None}
        column = geval.column(metric, [item["geval"] or broken for item in items])
        return list(zip(map(_source, items), column, strict=False))

    def rated(items: Items) -> list[DimensionRating]:
        return [one for _, one in with_source(items)]

    def of_pairs(pairs: Sequence[tuple[str, DimensionRating]]) -> float | None:
        return rating_means.mean_valid([one for _, one in pairs])

    def of_sources(items: Items) -> float | None:
        return mean_of_sources(of_pairs, itemgetter(0), with_source(items))

    mean, *others = rating_metrics(metric, rated)
    mean = replace(mean, host_fields=("geval", "source", "status"))
    sources = Metric(f"{mean.name}_sources", of_sources)
    return [mean, *others, sources, *split(mean, "source", SOURCES)]


def of_kind(kind: str) -> list[Metric[HavenItem]]:
    """Return the metrics of a kind of task."""

    def count(field: Literal["violations", "undefined"]) -> Statistic:
        return lambda items: sum(bool(item[field]) for item in items)

    def failed(part: str) -> Statistic:
        return lambda items: sum(_part_status(item, part) != "ok" for item in items)

    def authors(name: str) -> Statistic:
        # The mean over the replies in which the authors' code reads an order.
        return lambda items: aggregate.mean(item.get("authors", {}).get(name) for item in items)

    all_metrics: list[Metric[HavenItem]] = [
        Metric("videos", len, higher_is_better=None),
        Metric("violations", count("violations"), higher_is_better=False),
    ]
    for name, baselines in MEASURED[kind].items():
        all_metrics += _measured(name, baselines)
    if kind in SUMMARIES:
        all_metrics += _family("bertscore", judge.bertscore, "summary")
    if kind == "v2vt":
        # Both parts have to be readable, so the whole reply's status counts.
        all_metrics += _family("clipscore", judge.clipscore, "")
        all_metrics += [
            Metric(f"{p}_failed", failed(p), higher_is_better=False) for p in ("summary", "frames")
        ]
    if kind in SUMMARIES:
        rated = [_rated(name) for name in GEVAL]
        all_metrics += [metric for metrics in rated for metric in metrics]
        all_metrics += refusals("refusals", {mean.name: mean.compute for mean, *_ in rated})
    if kind in ORDERS:
        all_metrics.append(Metric("undefined", count("undefined"), higher_is_better=None))
        all_metrics += [Metric(f"{name}_authors", authors(name)) for name in ORDER]
    return all_metrics


# --- metrics over several tasks of a video ------------------------------------------------------


JOINED = ("v2t", "v2v", "v2vt")  # kinds of task that `joint_clipscores` needs


def joint_clipscores(sides: Mapping[str, Items]) -> dict[str, float | None]:
    """Return the CLIPScores of Table 4's last column: of joint replies, and of separate replies.

    The joint score is that of v2vt's texts and frames. The separate score combines v2t's texts with
    v2v's frames. Both are means over the videos for which all three tasks have the same record,
    because the numbers of another record mean other frames.

    Args:
        sides: all items by task.

    Returns:
        The two scores (0..2.5), the gain (joint minus separate) and the number of videos; empty if
        one of the three tasks is missing.
    """
    known = {TASKS[task].kind: {one["id"]: one for one in items} for task, items in sides.items()}
    if not known.keys() >= {*JOINED}:
        return {}
    v2t, v2v, v2vt = (known[kind] for kind in JOINED)
    joint: list[SummaryFrames] = []
    separate: list[SummaryFrames] = []
    for video in sorted(v2t.keys() & v2v.keys() & v2vt.keys()):
        text, frames, both = v2t[video], v2v[video], v2vt[video]
        asked = [
            SummaryFrames(video, both["record"], one["sentences"], other["frames"])
            for one, other in ((both, both), (text, frames))
            if one["parts"].get("summary") == other["parts"].get("frames") == "ok"
            and one["record"] == other["record"] == both["record"]
            and one["sentences"]
            and other["frames"]
        ]
        if len(asked) == 2:
            joint.append(asked[0])
            separate.append(asked[1])
    scores = zip(judge.clip_values(joint), judge.clip_values(separate), strict=True)
    pairs = [(one, other) for one, other in scores if one is not None and other is not None]
    return {
        "joined_clip_joint": aggregate.mean(one for one, _ in pairs),
        "joined_clip_separate": aggregate.mean(other for _, other in pairs),
        "joined_clip_gain": aggregate.mean(one - other for one, other in pairs),
        "joined_clip_videos": len(pairs),
    }
