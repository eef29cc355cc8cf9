"""HAVEN's numbers, from items.

Every metric of a reply has these forms (metrics.md):
- NAME: mean over videos; a reply that could not be read counts as 0, or as what of it could;
- NAME_valid: without the replies that could not be read;
- NAME_sources: the mean of the sources' means, and NAME_SOURCE, each source's own;
- NAME_random, NAME_identity, NAME_uniform, NAME_first, NAME_all and NAME_best, where they make
  sense: what the same items give for a reply that understands nothing, and the most they can give.

A correlation with a ground truth that is the same for all shots is undefined: such an item is in no
mean, and `undefined` counts it. Ratings exist as `_valid` alone (utils/metrics/rating_means.py).
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.benchmark import Item, Items, Metric, refusals, value_is
from lmms_eval_tasks.haven import judge
from lmms_eval_tasks.haven.judge import Asked
from lmms_eval_tasks.haven.options import ORDERS, SOURCES, SUMMARIES, TASKS
from lmms_eval_tasks.judges import geval
from lmms_eval_tasks.utils.metrics import (
    aggregate,
    rating_means,
    selections,
    stats,
)

Values = Callable[[Items], list[float | None]]
Statistic = Callable[[Items], Any]
Interval = Callable[[Items], "stats.Interval | None"]

ROUGE = ("rouge", "rouge1", "rouge2", "rougeL")
KEYFRAMES = ("f1", "precision", "recall")
IS_GT = "_is_gt"  # against the frames that `is_gt` marks, not all frames of the key shots
ORDER = ("spearman", "kendall")
ALIGNMENT = ("f1", "iou", "hit1")
GEVAL = tuple(geval.MODES)

_OF_FRAMES = ("random", "uniform", "first", "all", "best")
_OF_KEYFRAMES: dict[str, tuple[str, ...]] = dict.fromkeys(
    (*KEYFRAMES, *(f"{name}{IS_GT}" for name in KEYFRAMES)), _OF_FRAMES
)
# Kind -> metric -> the baselines that stand beside it.
MEASURED: dict[str, dict[str, tuple[str, ...]]] = {
    "v2t": dict.fromkeys(ROUGE, ()),
    "v2v": _OF_KEYFRAMES,
    "v2vt": {**dict.fromkeys(ROUGE, ()), **_OF_KEYFRAMES},
    "temporal": dict.fromkeys(ORDER, ("random", "identity", "best")),
    "grounding": dict.fromkeys(ALIGNMENT, ("random", "all", "best")),
    "saliency": dict.fromkeys(ORDER, ("random", "identity", "best")),
}
# What stands in the host's table: that of the paper's Tables 3 and 4 which needs no texts of items.
SHOWN = ("rouge", *KEYFRAMES, *ORDER)
# Frames in place of the selected ones, of F and K.
CLIP_BASELINES: dict[str, judge.OtherFrames] = {
    "all": lambda n_frames, _: range(1, n_frames + 1),
    "uniform": selections.uniform,
    "first": selections.first,
}


# --- statistics of items ------------------------------------------------------------------------


def part_status(item: Item, part: str) -> str:
    """The status of one part of a reply; its whole status where it has no such part."""
    return str(item["parts"].get(part, item["status"]))


def _defined(values: Iterable[float | None]) -> float | None:
    """Mean of what is defined."""
    return aggregate.mean(value for value in values if value is not None)


def mean_of_sources(statistic: Statistic, items: Items) -> float | None:
    """Mean over the sources that have a value, each weighing the same.

    None where there is none over all of them: CLIPScore without the pictures of one source.
    """
    if statistic(items) is None:
        return None
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(item["source"], []).append(item)
    return _defined(map(statistic, groups.values()))


def details(items: Items) -> dict[str, Any]:
    """Number of replies by kind of violation, undefined items, and statuses of a reply's parts."""
    kinds = Counter(kind for item in items for kind, n in item["violations"].items() if n)
    found: dict[str, Any] = {
        "violations": dict(sorted(kinds.items())),
        "undefined": {item["id"]: item["undefined"] for item in items if item["undefined"]},
    }
    parts = sorted({part for item in items for part in item["parts"]})
    if len(parts) > 1:
        by_part = {part: [{"status": part_status(item, part)} for item in items] for part in parts}
        found["parts"] = {part: aggregate.by_status(own) for part, own in by_part.items()}
    return found


# --- a task's metrics ---------------------------------------------------------------------------


def _family(
    name: str,
    values: Values,
    part: str,
    shown: tuple[str, ...] | None = None,
    interval: Interval | None = None,
) -> list[Metric]:
    """A metric in all its forms; `part` is of a reply, and has to be read for `_valid`."""

    def plain(items: Items) -> float | None:
        return _defined(values(items))

    def over_valid(statistic: Callable[[Items], Any]) -> Callable[[Items], Any]:
        def of(items: Items) -> Any:
            read = ({"status": part_status(item, part)} for item in items)
            both = zip(items, map(aggregate.is_valid, read), strict=True)
            return statistic([item for item, valid in both if valid])

        return of

    return [
        Metric(name, plain, shown=shown, interval=interval),
        Metric(f"{name}_valid", over_valid(plain), interval=interval and over_valid(interval)),
        Metric(f"{name}_sources", functools.partial(mean_of_sources, plain)),
        *(Metric(f"{name}_{one}", plain, value_is("source", one)) for one in SOURCES),
    ]


def _measured(name: str, baselines: Sequence[str]) -> list[Metric]:
    """A metric of single items, with intervals (bootstrap over videos), and its baselines."""

    def values(items: Items) -> list[float | None]:
        # 0 of a reply whose scoring broke, which has no scores.
        return [item.get("scores", {}).get(name, 0.0) for item in items]

    def interval(items: Items) -> stats.Interval | None:
        pairs = zip(values(items), items, strict=True)
        defined = [(value, item["video"]) for value, item in pairs if value is not None]
        if not defined:
            return None
        own, videos = zip(*defined, strict=True)
        return stats.cluster_bootstrap(aggregate.mean, own, videos)

    def baseline(one: str) -> Statistic:
        return lambda items: _defined(item["baselines"].get(f"{name}_{one}") for item in items)

    part = "frames" if name.removesuffix(IS_GT) in KEYFRAMES else "reply"
    shown = (f"scores.{name}",) if name in SHOWN else None
    return [
        *_family(name, values, "summary" if name in ROUGE else part, shown, interval),
        *(Metric(f"{name}_{one}", baseline(one), better=None) for one in baselines),
    ]


def _rating(metric: str, statistic: Callable[[str, Items], Any]) -> Statistic:
    """A number of G-Eval's ratings of one mode (rating_means.py); none if no rating has it."""

    def of(items: Items) -> Any:
        broken = {"score": None, "status": "error"}
        given = [{"mode": None, **(item["geval"] or broken)} for item in items]
        column = zip(items, geval.column(metric, given), strict=False)
        ratings = [
            {"status": one["status"], "source": item["source"], "dimensions": {metric: one}}
            for item, one in column
        ]
        return statistic(metric, ratings)

    return of


def _rated(metric: str) -> list[Metric]:
    def of_sources(_: str, ratings: Items) -> float | None:
        return mean_of_sources(functools.partial(rating_means.mean_valid, metric), ratings)

    name, plain = f"{metric}_valid", _rating(metric, rating_means.mean_valid)
    return [
        Metric(name, plain, shown=("geval", "source", "status")),
        Metric(f"{metric}_var", _rating(metric, rating_means.variance_valid), better=None),
        Metric(f"{metric}_failed", _rating(metric, rating_means.count_failed), better=False),
        Metric(f"{metric}_coverage", _rating(metric, rating_means.coverage)),
        Metric(f"{name}_sources", _rating(metric, of_sources)),
        *(Metric(f"{name}_{source}", plain, value_is("source", source)) for source in SOURCES),
    ]


def of_kind(kind: str) -> list[Metric]:
    """The metrics of a kind of task."""

    def count(field: str) -> Statistic:
        return lambda items: sum(bool(item[field]) for item in items)

    def failed(part: str) -> Statistic:
        return lambda items: sum(part_status(item, part) != "ok" for item in items)

    def authors(name: str) -> Statistic:
        # Over the replies in which the authors' code reads an order; the others are left out.
        return lambda items: _defined(item.get("authors", {}).get(name) for item in items)

    def clip_baseline(frames: judge.OtherFrames) -> Statistic:
        return lambda items: _defined(judge.clipscore(items, frames=frames))

    found = [
        Metric("videos", len, better=None),
        Metric("violations", count("violations"), better=False),
    ]
    for name, baselines in MEASURED[kind].items():
        found += _measured(name, baselines)
    if kind in SUMMARIES:
        found += _family("bertscore", judge.bertscore, "summary")
    if kind == "v2vt":
        # Both parts are needed: the status of the whole reply.
        found += _family("clipscore", judge.clipscore, "")
        found += [
            Metric(f"clipscore_{name}", clip_baseline(frames), better=None)
            for name, frames in CLIP_BASELINES.items()
        ]
        found += _family("clipscore_pairs", functools.partial(judge.clipscore, pairs=True), "")
        found += [Metric(f"{p}_failed", failed(p), better=False) for p in ("summary", "frames")]
    if kind in SUMMARIES:
        found += [metric for name in GEVAL for metric in _rated(name)]
        headline = {f"{name}_valid": _rating(name, rating_means.mean_valid) for name in GEVAL}
        found += refusals("refusals", headline)
    if kind in ORDERS:
        found.append(Metric("undefined", count("undefined"), better=None))
        found += [Metric(f"{name}_authors", authors(name)) for name in ORDER]
    if kind == "grounding":
        found.append(Metric("clips_predicted", clips_predicted, better=None))
    return found


def clips_predicted(items: Items) -> float | None:
    """Mean number of clips named for a sentence, per video first."""
    return aggregate.mean(
        selections.clips_predicted(item["clips"]) for item in items if item["clips"]
    )


# --- what tasks say together about a video ------------------------------------------------------


def joined(sides: Mapping[str, Items]) -> dict[str, Any]:
    """What the tasks of a group say together about a video, over the videos that have enough.

    - CLIPScore of replies that belong together (v2vt) beside that of separate ones (v2t's text with
      v2v's frames): Table 4's last column and its difference.
    - Consistency, which nobody reports: which share of the keyframes that a model selected (v2v)
      lies in the shots that it ranks as salient, and in the clips that its sentences ground to?
      Beside it the share that frames drawn at random would have: a model that finds everything
      salient, or grounds every sentence to every clip, is consistent and says nothing.

    Args:
        sides: whole items by task; the numbers that need a task which is not there are left out.
    """
    known = {
        TASKS[task].kind: {item["id"]: item for item in items} for task, items in sides.items()
    }
    found: dict[str, Any] = {}
    if known.keys() >= {"v2t", "v2v", "v2vt"}:
        found |= _clip(known["v2t"], known["v2v"], known["v2vt"])
    for other in ("saliency", "grounding"):
        if known.keys() >= {"v2v", other}:
            found |= _consistency(other, known["v2v"], known[other])
    return found


Known = Mapping[str, Item]  # by video


def _common(first: Known, *others: Known) -> list[str]:
    """Videos that all tasks know, by the same record: numbers of another one mean other frames."""
    return [
        video
        for video in sorted(first)
        if all(video in o and o[video]["record"] == first[video]["record"] for o in others)
    ]


def _part(item: Item, part: str) -> Sequence[Any]:
    """What a reply says of one part: sentences of its `summary`, or its `frames`."""
    name = "sentences" if part == "summary" else part
    found: Sequence[Any] = item[name] if item["parts"].get(part) == "ok" else []
    return found


def apart(sides: Mapping[str, Items]) -> list[str]:
    """What the user should know: the videos of which a model's runs are of different data."""
    records: dict[str, set[str]] = {}
    for item in (item for items in sides.values() for item in items):
        records.setdefault(item["id"], set()).add(item["record"])
    other = sorted(video for video, own in records.items() if len(own) > 1)
    if not other:
        return []
    return [
        f"the runs are of different data in {len(other)} videos, such as {other[0]}: these are not "
        "joined"
    ]


def _clip(v2t: Known, v2v: Known, v2vt: Known) -> dict[str, Any]:
    needed = ((v2t, "summary"), (v2v, "frames"), (v2vt, "summary"), (v2vt, "frames"))
    videos = [
        video
        for video in _common(v2t, v2v, v2vt)
        if all(_part(known[video], part) for known, part in needed)
    ]

    def scores(texts_of: Known, frames_of: Known) -> list[float | None]:
        return judge.clip_values(
            [
                Asked(v, frames_of[v]["record"], texts_of[v]["sentences"], frames_of[v]["frames"])
                for v in videos
            ]
        )

    both = zip(scores(v2vt, v2vt), scores(v2t, v2v), strict=True)
    pairs = [(one, other) for one, other in both if one is not None and other is not None]
    return {
        "joined_clip_joint": aggregate.mean(one for one, _ in pairs),
        "joined_clip_separate": aggregate.mean(other for _, other in pairs),
        "joined_clip_gain": aggregate.mean(one - other for one, other in pairs),
        "joined_clip_videos": len(pairs),
    }


def _consistency(kind: str, v2v: Known, other: Known) -> dict[str, Any]:
    found = []
    for video in _common(v2v, other):
        mine, theirs = v2v[video], other[video]
        if theirs["status"] != "ok":
            continue
        frames, shots = _part(mine, "frames"), mine["shots"]
        if kind == "saliency":
            both = with_saliency(frames, shots, theirs["ranked"])
        else:
            clips = {clip for clips in theirs["clips"] for clip in clips}
            both = with_grounding(frames, shots, clips & {*range(1, len(shots) + 1)})
        if both is not None:
            found.append(both)
    return {
        f"joined_{kind}": aggregate.mean(share for share, _ in found),
        f"joined_{kind}_chance": aggregate.mean(chance for _, chance in found),
        f"joined_{kind}_videos": len(found),
    }


Shots = Sequence[Collection[int]]  # of each shot, the numbers of its frames


def with_saliency(
    frames: Collection[int], shots: Shots, ranked: Sequence[int]
) -> tuple[float, float] | None:
    """Share of the keyframes in the upper half of the shots that the model ranks, and by chance.

    Frames of shots that were not ranked, because only some were drawn, count on neither side; of an
    odd number of shots the middle one belongs to the upper half.

    Args:
        frames: numbers of the selected frames; repeated ones count once.
        ranked: numbers of all shots that were shown, from 1, most salient first.

    Returns:
        None with fewer than two ranked shots, or if no selected frame lies in any of them.
    """
    upper = ranked[: (len(ranked) + 1) // 2]
    return _overlap(frames, shots, upper, ranked) if len(ranked) > 1 else None


def with_grounding(
    frames: Collection[int], shots: Shots, grounded: Collection[int]
) -> tuple[float, float] | None:
    """The same for the clips that any of the model's sentences is grounded to; None without one."""
    every = range(1, len(shots) + 1)
    return _overlap(frames, shots, grounded, every) if grounded else None


def _overlap(
    frames: Collection[int], shots: Shots, inside: Collection[int], shown: Collection[int]
) -> tuple[float, float] | None:
    """Share of the frames that lie in some of the shots shown, and of all frames shown."""
    within, there = ({f for n in some for f in shots[n - 1]} for some in (inside, shown))
    counted = there.intersection(frames)
    return (len(counted & within) / len(counted), len(within) / len(there)) if counted else None
