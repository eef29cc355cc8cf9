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
from collections.abc import Callable, Collection, Mapping, Sequence
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
CLIP_BASELINES: dict[str, Callable[[int, int], Sequence[int]]] = {
    "all": lambda n_frames, _: range(1, n_frames + 1),
    "uniform": selections.uniform,
    "first": selections.first,
}


# --- statistics of items ------------------------------------------------------------------------


def part_of(metric: str) -> str:
    """The part of a reply that a metric of MEASURED is about: `summary`, `frames` or `reply`."""
    if metric in ROUGE:
        return "summary"
    return "frames" if metric.removesuffix(IS_GT) in KEYFRAMES else "reply"


def part_status(item: Item, part: str) -> str:
    """The status of one part of a reply; its whole status where it has no such part."""
    return str(item["parts"].get(part, item["status"]))


def valid(part: str, items: Items) -> Items:
    """The items without those whose part of the reply could not be read."""
    return [one for one in items if aggregate.is_valid({"status": part_status(one, part)})]


def own_values(metric: str, items: Items) -> list[float | None]:
    """Each item's own value; 0 of a reply whose scoring broke, which has no scores."""
    return [item.get("scores", {}).get(metric, 0.0) for item in items]


def baseline_values(name: str, items: Items) -> list[float | None]:
    """Each item's own value of a baseline; none of a reply whose scoring broke."""
    return [item["baselines"].get(name) for item in items]


def mean(values: Values, items: Items) -> float | None:
    """Mean over videos of what is defined."""
    return aggregate.mean(value for value in values(items) if value is not None)


def mean_of_sources(statistic: Statistic, items: Items) -> float | None:
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


def _interval(values: Values, items: Items) -> stats.Interval | None:
    """95 % bootstrap interval over videos; one whose metric is undefined is in no resample."""
    pairs = zip(values(items), items, strict=True)
    defined = [(value, item["video"]) for value, item in pairs if value is not None]
    if not defined:
        return None
    own, videos = zip(*defined, strict=True)
    return stats.cluster_bootstrap(aggregate.mean, own, videos)


def _ratings(metric: str, items: Items) -> list[dict[str, Any]]:
    """Items as utils/metrics/rating_means.py wants them, of G-Eval's mode of this metric.

    Empty where no rating has that mode: then there is no such number, and nothing failed.
    """
    broken = {"score": None, "status": "error"}
    column = geval.column(metric, [{"mode": None, **(item["geval"] or broken)} for item in items])
    return [
        {"status": one["status"], "source": item["source"], "dimensions": {metric: one}}
        for item, one in zip(items, column, strict=False)
    ]


def violations(items: Items) -> int:
    """Number of replies that break the prompt's rules in some way (the details have the kinds)."""
    return sum(bool(item["violations"]) for item in items)


def undefined(items: Items) -> int:
    """Number of items whose correlation is undefined, whatever is replied."""
    return sum(bool(item["undefined"]) for item in items)


def clips_predicted(items: Items) -> float | None:
    """Mean number of clips named for a sentence, per video first."""
    return aggregate.mean(
        selections.clips_predicted(item["clips"]) for item in items if item["clips"]
    )


def authors_mean(metric: str, items: Items) -> float | None:
    """Mean over the replies in which the authors' code reads an order; the others are left out."""
    found = (item.get("authors", {}).get(metric) for item in items)
    return aggregate.mean(value for value in found if value is not None)


def _failed_parts(part: str, items: Items) -> int:
    return sum(part_status(item, part) != "ok" for item in items)


def details(items: Items) -> dict[str, Any]:
    """Number of replies by kind of violation, undefined items, and statuses of a reply's parts."""
    kinds: Counter[str] = Counter()
    for item in items:
        kinds.update({name: 1 for name, n in item["violations"].items() if n})
    found: dict[str, Any] = {
        "violations": dict(sorted(kinds.items())),
        "undefined": {item["id"]: item["undefined"] for item in items if item["undefined"]},
    }
    parts = {part for item in items for part in item["parts"]}
    if len(parts) > 1:
        found["parts"] = {
            part: aggregate.by_status([{"status": part_status(item, part)} for item in items])
            for part in sorted(parts)
        }
    return found


# --- a task's metrics ---------------------------------------------------------------------------


def _family(
    name: str, values: Values, part: str, baselines: Mapping[str, Values], *, measured: bool
) -> list[Metric]:
    """A metric in all its forms; `measured`: of single items, with intervals."""
    plain = functools.partial(mean, values)

    def over_valid(statistic: Statistic) -> Statistic:
        return lambda items: statistic(valid(part, items))

    spread = functools.partial(_interval, values) if measured else None
    return [
        Metric(
            name,
            plain,
            shown=(f"scores.{name}",) if measured and name in SHOWN else None,
            interval=spread,
        ),
        Metric(f"{name}_valid", over_valid(plain), interval=spread and over_valid(spread)),
        Metric(f"{name}_sources", functools.partial(mean_of_sources, plain)),
        *(Metric(f"{name}_{source}", plain, value_is("source", source)) for source in SOURCES),
        *(
            Metric(f"{name}_{baseline}", functools.partial(mean, own), better=None)
            for baseline, own in baselines.items()
        ),
    ]


def _rating(metric: str) -> Statistic:
    return lambda items: rating_means.mean_valid(metric, _ratings(metric, items))


def _rated(metric: str) -> list[Metric]:
    def over(statistic: Callable[[str, Sequence[Item]], Any]) -> Statistic:
        return lambda items: statistic(metric, _ratings(metric, items))

    def of_sources(items: Items) -> float | None:
        mean_valid = functools.partial(rating_means.mean_valid, metric)
        return mean_of_sources(mean_valid, _ratings(metric, items))

    plain = _rating(metric)
    return [
        Metric(f"{metric}_valid", plain, shown=("geval", "source", "status")),
        Metric(f"{metric}_var", over(rating_means.variance_valid), better=None),
        Metric(f"{metric}_failed", over(rating_means.count_failed), better=False),
        Metric(f"{metric}_coverage", over(rating_means.coverage)),
        Metric(f"{metric}_valid_sources", of_sources),
        *(
            Metric(f"{metric}_valid_{source}", plain, value_is("source", source))
            for source in SOURCES
        ),
    ]


def of_kind(kind: str) -> list[Metric]:
    """The metrics of a kind of task."""
    found = [
        Metric("videos", len, better=None),
        Metric("violations", violations, better=False),
    ]
    for name, baselines in MEASURED[kind].items():
        beside = {one: functools.partial(baseline_values, f"{name}_{one}") for one in baselines}
        values = functools.partial(own_values, name)
        found += _family(name, values, part_of(name), beside, measured=True)
    if kind in SUMMARIES:
        found += _family("bertscore", judge.bertscore, "summary", {}, measured=False)
    if kind == "v2vt":
        beside = {
            name: functools.partial(judge.clip_baseline, frames)
            for name, frames in CLIP_BASELINES.items()
        }
        # Both parts are needed: the status of the whole reply.
        found += _family("clipscore", judge.clipscore, "", beside, measured=False)
        pairs = functools.partial(judge.clipscore, pairs=True)
        found += _family("clipscore_pairs", pairs, "", {}, measured=False)
        for part in ("summary", "frames"):
            failed = functools.partial(_failed_parts, part)
            found.append(Metric(f"{part}_failed", failed, better=False))
    if kind in SUMMARIES:
        found += [metric for name in GEVAL for metric in _rated(name)]
        found += refusals("refusals", {f"{name}_valid": _rating(name) for name in GEVAL})
    if kind in ORDERS:
        found.append(Metric("undefined", undefined, better=None))
        for name in ORDER:
            found.append(Metric(f"{name}_authors", functools.partial(authors_mean, name)))
    if kind == "grounding":
        found.append(Metric("clips_predicted", clips_predicted, better=None))
    return found


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
    videos = [
        video
        for video in _common(v2t, v2v, v2vt)
        if _summary(v2t[video])
        and _frames(v2v[video])
        and _summary(v2vt[video])
        and _frames(v2vt[video])
    ]

    def scores(texts_of: Known, frames_of: Known) -> list[float | None]:
        return judge.clip_values(
            [
                Asked(
                    video,
                    frames_of[video]["record"],
                    texts_of[video]["sentences"],
                    frames_of[video]["frames"],
                )
                for video in videos
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


def _summary(item: Item) -> Sequence[str]:
    return item["sentences"] if item["parts"].get("summary") == "ok" else []


def _frames(item: Item) -> Sequence[int]:
    return item["frames"] if item["parts"].get("frames") == "ok" else []


def _consistency(kind: str, v2v: Known, other: Known) -> dict[str, Any]:
    found = []
    for video in _common(v2v, other):
        mine, theirs = v2v[video], other[video]
        if theirs["status"] != "ok":
            continue
        if kind == "saliency":
            both = with_saliency(_frames(mine), mine["shots"], theirs["ranked"])
        else:
            there = range(1, len(theirs["shots"]) + 1)
            clips = {clip for clips in theirs["clips"] for clip in clips if clip in there}
            both = with_grounding(_frames(mine), mine["shots"], clips)
        if both is not None:
            found.append(both)
    return {
        f"joined_{kind}": aggregate.mean(share for share, _ in found),
        f"joined_{kind}_chance": aggregate.mean(chance for _, chance in found),
        f"joined_{kind}_videos": len(found),
    }


def with_saliency(
    frames: Collection[int], shots: Sequence[Collection[int]], ranked: Sequence[int]
) -> tuple[float, float] | None:
    """Share of the keyframes in the upper half of the shots that the model ranks, and by chance.

    Frames of shots that were not ranked, because only some were drawn, count on neither side; of an
    odd number of shots the middle one belongs to the upper half.

    Args:
        frames: numbers of the selected frames; repeated ones count once.
        shots: of each shot, the numbers of its frames.
        ranked: numbers of all shots that were shown, from 1, most salient first.

    Returns:
        None with fewer than two ranked shots, or if no selected frame lies in any of them.
    """
    if len(ranked) < 2:
        return None
    upper = ranked[: (len(ranked) + 1) // 2]
    return _overlap(frames, _inside(shots, upper), _inside(shots, ranked))


def with_grounding(
    frames: Collection[int], shots: Sequence[Collection[int]], grounded: Collection[int]
) -> tuple[float, float] | None:
    """The same for the clips that any of the model's sentences is grounded to; None without one."""
    every = _inside(shots, range(1, len(shots) + 1))
    return _overlap(frames, _inside(shots, grounded), every) if grounded else None


def _overlap(
    frames: Collection[int], inside: set[int], shown: set[int]
) -> tuple[float, float] | None:
    counted = set(frames) & shown
    if not counted:
        return None
    return len(counted & inside) / len(counted), len(inside) / len(shown)


def _inside(shots: Sequence[Collection[int]], numbers: Collection[int]) -> set[int]:
    return {frame for number in numbers for frame in shots[number - 1]}
