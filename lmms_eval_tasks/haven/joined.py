"""What HAVEN's tasks say together about a video: joined by video, for a group and for `rescore`.

- CLIPScore of replies that belong together (v2vt) beside that of separate ones (v2t's text with
  v2v's frames), over the videos that have both: Table 4's last column and its difference.
- Consistency, which nobody reports: do the keyframes that a model selected (v2v) lie in the shots
  that it ranks as salient, and in the clips that its sentences ground to (consistency.py)?

Each task hands over what it knows of its videos as a Carrier (utils/aggregate.py); the group's
`aggregate_metric_list` names `join`. Text proxies are joined with text proxies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.haven import consistency, text_values
from lmms_eval_tasks.haven.labels import Task
from lmms_eval_tasks.haven.text_values import Asked
from lmms_eval_tasks.utils import aggregate
from lmms_eval_tasks.utils.aggregate import Carrier, Item, never_raises

PREFIX = "joined_"
Known = Mapping[str, Mapping[str, Any]]  # video -> what a task knows of it (`payload`)

_CLIP = ("clip_joint", "clip_separate", "clip_gain", "clip_videos")
_SALIENCY = ("saliency", "saliency_chance", "saliency_videos")
_GROUNDING = ("grounding", "grounding_chance", "grounding_videos")
# Joined number -> the kinds of tasks that it needs.
NEEDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_CLIP, ("v2t", "v2v", "v2vt")),
    **dict.fromkeys(_SALIENCY, ("v2v", "saliency")),
    **dict.fromkeys(_GROUNDING, ("v2v", "grounding")),
}


def metrics(task: Task) -> dict[str, Callable[[Sequence[Item]], Carrier]]:
    """The carriers of a task by metric name; none of a task with the document."""
    if task.document:
        return {}
    return {
        f"{PREFIX}{reduce}": functools.partial(carrier, task.kind, reduce)
        for reduce, kinds in NEEDS.items()
        if task.kind in kinds
    }


def carrier(kind: str, reduce: str, items: Sequence[Item]) -> Carrier:
    """What one task knows of its videos, for one joined number."""
    return Carrier(kind, {item["id"]: item["payload"] for item in items}, reduce)


def pictured(full: Item) -> dict[str, Any]:
    """What CLIPScore needs of an item: the texts, and which frames of which record."""
    names = ("sentences", "frames", "record", "n_frames", "budget")
    return {name: full[name] for name in names}


def payload(kind: str, full: Item) -> dict[str, Any]:
    """What an item knows of its video: the `record`, and no more where its reply gave nothing.

    v2t, v2vt: `sentences`; v2v, v2vt: `frames` (numbers) and `shots`; saliency: `ranked` shot
    numbers, most salient first; grounding: `clips`, the shot numbers of any sentence.
    """
    known: dict[str, Any] = {"record": full["record"]}
    if kind in ("v2t", "v2vt") and full["parts"].get("summary") == "ok":
        known["sentences"] = full["sentences"]
    if kind in ("v2v", "v2vt") and full["parts"].get("frames") == "ok":
        known |= {"frames": full["frames"], "shots": full["shots"]}
    if kind == "saliency" and full["status"] == "ok":
        known["ranked"] = full["ranked"]
    if kind == "grounding" and full["status"] == "ok":
        there = range(1, len(full["shots"]) + 1)
        known["clips"] = sorted(
            {clip for clips in full["clips"] for clip in clips if clip in there}
        )
    return known


@never_raises
def join(
    carriers: Sequence[Any], _sizes: Any = None, _weight_by_size: Any = None
) -> float | int | None:
    """A joined number for the host's group; None if one of its tasks is absent.

    Args:
        carriers: the tasks' values under one metric name, in any order.
    """
    sides = {c.side: c for c in carriers if isinstance(c, Carrier)}
    reduce = next(iter(sides.values())).reduce if sides else ""
    if not sides or set(NEEDS[reduce]) - sides.keys():
        return None
    return joined(reduce, {kind: side.scores for kind, side in sides.items()})


def joined(reduce: str, known: Mapping[str, Known]) -> float | int | None:
    """One joined number, over the videos of which all the tasks that it needs know enough.

    Args:
        reduce: a member of NEEDS.
        known: what the tasks know of their videos, by kind.
    """
    if reduce in _CLIP:
        return _clip(reduce, known["v2t"], known["v2v"], known["v2vt"])
    other = "saliency" if reduce in _SALIENCY else "grounding"
    return _consistent(reduce.removeprefix(other), other, known["v2v"], known[other])


def _clip(reduce: str, v2t: Known, v2v: Known, v2vt: Known) -> float | int | None:
    videos = [
        video
        for video in _common(v2t, v2v, v2vt)
        if v2t[video].get("sentences")
        and v2v[video].get("frames")
        and v2vt[video].get("sentences")
        and v2vt[video].get("frames")
    ]
    joint = text_values.clip_values(
        [
            Asked(name, v2vt[name]["record"], v2vt[name]["sentences"], v2vt[name]["frames"])
            for name in videos
        ]
    )
    separate = text_values.clip_values(
        [
            Asked(name, v2v[name]["record"], v2t[name]["sentences"], v2v[name]["frames"])
            for name in videos
        ]
    )
    pairs = [
        (one, other)
        for one, other in zip(joint, separate, strict=True)
        if one is not None and other is not None
    ]
    if reduce == "clip_videos":
        return len(pairs)
    numbers = {
        "clip_joint": [one for one, _ in pairs],
        "clip_separate": [other for _, other in pairs],
        "clip_gain": [one - other for one, other in pairs],
    }
    return aggregate.mean(numbers[reduce])


def _common(first: Known, *others: Known) -> list[str]:
    """Videos that all tasks know, by the same record: numbers of another one mean other frames."""
    return [
        video
        for video in sorted(first)
        if all(
            video in other and other[video].get("record") == first[video].get("record")
            for other in others
        )
    ]


def _consistent(form: str, other: str, v2v: Known, against: Known) -> float | int | None:
    found = []
    for video in _common(v2v, against):
        frames, shots = v2v[video].get("frames"), v2v[video].get("shots")
        numbers = against[video].get("ranked" if other == "saliency" else "clips")
        if not frames or not shots or not numbers:
            continue
        if other == "saliency":
            one = consistency.with_saliency(frames, shots, numbers)
        else:
            one = consistency.with_grounding(frames, shots, numbers)
        if one.share is not None and one.chance is not None:
            found.append((one.share, one.chance))
    if form == "_videos":
        return len(found)
    return aggregate.mean(chance if form == "_chance" else share for share, chance in found)
