"""What reached the model, in words: for a run's first screen, and for what its numbers rest on.

Items tell it of each request (`arrived`, counted in host/arrived.py); nothing is told where nobody
could count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lmms_eval_tasks.benchmark import Items

_WHERE = {
    "sent": "in what was sent",
    "processor": "at the model's processor",
    "reader": "as its class read them",
    "engine": "in what its engine was given",
}


def line(asked: Mapping[str, Items]) -> str:
    """What reached the model, by task; "" where nothing was counted."""
    told: dict[str, list[str]] = {}
    places: dict[str, None] = {}
    for name, items in asked.items():
        if seen := _seen(items):
            part = f" ({len(seen)} of {len(items)} requests counted)" * (len(seen) < len(items))
            told.setdefault(f"{_words(seen)}{part}", []).append(name)
            places |= dict.fromkeys(one["at"] for one in seen)
    if not told:
        return ""
    lines = [f"{', '.join(names)}: {words}" for words, names in told.items()]
    where = " and ".join(_WHERE.get(one, one) for one in places)
    return f"reached the model, counted {where}: {'; '.join(lines)}"


def short(name: str, items: Items) -> str:
    """That the model saw fewer frames than the protocol's; "" if it saw all, or nobody knows."""
    seen = [one for one in _seen(items) if one.get("of") and one["frames"] is not None]
    missed = [one for one in seen if _frames(one) < one["of"]]
    if not missed:
        return ""
    of = _range(one["of"] for one in missed)
    return (
        f"{name}: the model saw {_range(map(_frames, missed))} of {of} frames"
        f"{'' if len(missed) == len(items) else f' ({len(missed)} of {len(items)} requests)'}"
    )


def _seen(items: Items) -> list[Mapping[str, Any]]:
    return [item["arrived"] for item in items if item.get("arrived")]


def _frames(one: Mapping[str, Any]) -> int:
    """The different frames of a video; those that went as pictures are its frames too."""
    frames = one["frames"] or (one["pictures"] if one.get("of") else 0)
    return min(frames, one["distinct"] or frames)


def _words(seen: list[Mapping[str, Any]]) -> str:
    told = []
    if any(one["frames"] is None for one in seen):
        told.append("the file itself")
    counted = [one for one in seen if one["frames"] is not None]
    if any(map(_frames, counted)):
        of = sorted({one["of"] for one in counted if one.get("of")})
        wanted = f" of {_range(of)}" if of else ""
        told.append(f"{_range(map(_frames, counted))}{wanted} frames")
    pictures = [0 if one.get("of") and not one["frames"] else one["pictures"] for one in seen]
    if any(pictures):
        told.append(f"{_range(pictures)} picture{'s' * (max(pictures) > 1)}")
    if any(one["seconds"] is None for one in seen):
        told.append("sound")
    elif any(one["seconds"] for one in seen):
        told.append(f"{_range(round(one['seconds'], 1) for one in seen)} s of sound")
    return " and ".join(told) or "nothing but text"


def _range(numbers: Iterable[float]) -> str:
    found = sorted(set(numbers))
    return f"{found[0]:g}" if len(found) == 1 else f"{found[0]:g} to {found[-1]:g}"
