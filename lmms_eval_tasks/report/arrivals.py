"""Media that reached the model, in words: for a run's first screen, and for its conditions.

Items hold the counts of each request (`arrived`, from host/requests/delivery.py). Without counts
there is no line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from statistics import median

from lmms_eval_tasks.benchmark import Items
from lmms_eval_tasks.utils.json_files import Json

Arrived = Mapping[
    str, Json
]  # an item's `arrived`: DeliveredMedia.told (host/requests/delivery.py), and `of`

# Smaller differences of prompts, in tokens or as a share, may come from chat templates alone.
_FEW, _SHARE = 8, 0.02
_WHERE = {
    "sent": "in what was sent",
    "processor": "at the model's processor",
    "reader": "as its class read them",
    "engine": "in what its engine was given",
}


def line(items_by_task: Mapping[str, Items]) -> str:
    """Return the media that reached the model, by task, as a line; "" without counts."""
    tasks_by_text: dict[str, list[str]] = {}
    prompts: dict[str, list[int]] = {}
    places: dict[str, None] = {}
    for name, items in items_by_task.items():
        if media := _seen(items):
            part = f" ({len(media)} of {len(items)} requests counted)" * (len(media) < len(items))
            words = f"{_words(media)}{part}"
            tasks_by_text.setdefault(words, []).append(name)
            lengths = [row["prompt_tokens"] for row in media if row.get("prompt_tokens")]
            prompts.setdefault(words, []).extend(lengths)
            places |= dict.fromkeys(row["at"] for row in media)
    if not tasks_by_text:
        return ""
    lines = []
    for words, names in tasks_by_text.items():
        prompt_lengths = f", {_range(prompts[words])} prompt tokens" if prompts[words] else ""
        lines.append(f"{', '.join(names)}: {words}{prompt_lengths}")
    where = " and ".join(_WHERE.get(place, place) for place in places)
    return f"reached the model, counted {where}: {'; '.join(lines)}"


def short(name: str, items: Items) -> str:
    """Return a line if the model saw fewer frames than the protocol's; else ""."""
    seen = [one for one in _seen(items) if one.get("of") and one["frames"] is not None]
    missed = [one for one in seen if _frames(one) < one["of"]]
    if not missed:
        return ""
    of = _range(one["of"] for one in missed)
    return (
        f"{name}: the model saw {_range(map(_frames, missed))} of {of} frames"
        f"{'' if len(missed) == len(items) else f' ({len(missed)} of {len(items)} requests)'}"
    )


def prompt_lengths(items: Items) -> dict[str, int]:
    """Return the tokens of each item's prompt with its pictures, by id.

    Items whose prompts have unknown lengths are left out.
    """
    return {str(item.get("id")): item["arrived"]["prompt_tokens"] for item in _counted(items)}


def differing_prompts(task: str, first: Items, second: Items) -> str:
    """Return a line if two runs of one checkpoint got prompts of different lengths.

    Args:
        task: name of the task, for the line.
        first: items of the first run.
        second: items of the second run; items with ids in both runs are compared.

    Returns:
        A line with the likely reason; "" if the prompts have equal lengths, or without counts.
    """
    runs = [
        {str(item.get("id")): item["arrived"] for item in _counted(run)} for run in (first, second)
    ]
    common = [name for name in runs[0] if name in runs[1]]
    pairs = [(runs[0][name], runs[1][name]) for name in common]
    lengths = [(one["prompt_tokens"], other["prompt_tokens"]) for one, other in pairs]
    apart = [pair for pair in lengths if pair[0] != pair[1]]
    if not apart:
        return ""
    far = [pair for pair in apart if abs(pair[0] - pair[1]) >= max(_FEW, _SHARE * max(pair))]
    shown = far or apart
    a, b = (f"{median(run):,.0f}" for run in zip(*shown, strict=True))
    part = f" in {len(shown)} of {len(pairs)} requests" * (len(shown) < len(pairs))
    told = (
        f"{task}: the prompts of the two runs differ in length{part}: a median of "
        f"{a} against {b} tokens"
    )
    return f"{told}{_reason(pairs, small=not far)}"


def _reason(pairs: Sequence[tuple[Arrived, Arrived]], small: bool) -> str:
    """Return the likely reason why prompts of the same items differ in length."""

    def differ(of: Callable[[Arrived], object]) -> bool | None:
        known = [(a, b) for a, b in (map(of, pair) for pair in pairs) if a and b]
        return any(a != b for a, b in known) if known else None

    visual = differ(lambda one: one.get("visual_tokens"))
    if visual is False:
        return (
            "; the text around the pictures differs, for example because of another chat template"
        )
    if differ(lambda one: (one["frames"] or 0) + one["pictures"]):
        return "; the models saw different numbers of frames or pictures"
    if small and not visual:
        return "; such a small difference may come from another chat template"
    if differ(lambda one: one.get("sizes")) is False:
        return (
            "; the pictures have the same size: one model may have got a video as single pictures"
        )
    sure = "" if visual else "probably "
    return (
        f"; the models {sure}saw pictures of different sizes: pass the same "
        "min_pixels and max_pixels in --model_args (docs/models.md)"
    )


def _counted(items: Items) -> list[Mapping[str, Json]]:
    """Return the items whose prompts' lengths are known."""
    return [item for item in items if (item.get("arrived") or {}).get("prompt_tokens")]


def _seen(items: Items) -> list[Mapping[str, Json]]:
    return [item["arrived"] for item in items if item.get("arrived")]


def _frames(delivered: Mapping[str, Json]) -> int:
    """Return the number of different frames of a video.

    Frames that were sent as pictures count, too.
    """
    frames = delivered["frames"] or (delivered["pictures"] if delivered.get("of") else 0)
    return min(frames, delivered["distinct"] or frames)


def _words(delivered: list[Mapping[str, Json]]) -> str:
    parts = []
    if any(row["frames"] is None for row in delivered):
        parts.append("the file itself")
    counted = [row for row in delivered if row["frames"] is not None]
    if any(map(_frames, counted)):
        of = sorted({row["of"] for row in counted if row.get("of")})
        of_all = f" of {_range(of)}" if of else ""
        parts.append(f"{_range(map(_frames, counted))}{of_all} frames")
    pictures = [0 if row.get("of") and not row["frames"] else row["pictures"] for row in delivered]
    if any(pictures):
        parts.append(f"{_range(pictures)} picture{'s' * (max(pictures) > 1)}")
    if parts:
        parts[-1] += _pixels(delivered)
    if any(row["seconds"] is None for row in delivered):
        parts.append("sound")
    elif any(row["seconds"] for row in delivered):
        parts.append(f"{_range(round(row['seconds'], 1) for row in delivered)} s of sound")
    return " and ".join(parts) or "only text"


def _pixels(delivered: list[Arrived]) -> str:
    """Return the sizes of frames and pictures, and their tokens; "" if neither is known."""
    sizes = sorted({tuple(size) for one in delivered for size in one.get("sizes", ())}, key=prod)
    shown = dict.fromkeys(f"{width} x {height}" for width, height in sizes[:1] + sizes[-1:])
    tokens = {one["visual_tokens"] for one in delivered if one.get("visual_tokens")}
    size = f" of {' to '.join(shown)} pixels" if shown else ""
    return size + (f" ({_range(tokens)} visual tokens)" if tokens else "")


def _range(numbers: Iterable[float]) -> str:
    found = sorted(set(numbers))
    ends = [f"{one:,}" if isinstance(one, int) else f"{one:g}" for one in (found[0], found[-1])]
    return " to ".join(dict.fromkeys(ends))
