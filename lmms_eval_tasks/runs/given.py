"""What a model is given, in the forms of the host: text and visuals, or messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval_tasks.benchmark import SAME, Part

PLACEHOLDER = "<image>"  # of a picture between texts, for simple models


def text_of(parts: Sequence[Part], kwargs: Mapping[str, Any] | None = None) -> str:
    """For simple models: the texts, with a placeholder where a picture stands between them.

    Args:
        parts: of a doc.
        kwargs: the host's `lmms_eval_specific_kwargs`: `pre_prompt`, `post_prompt`, `placeholder`,
            which may hold `{n}`, the number of the picture, from 1.
    """
    given = kwargs or {}
    texts = [part for part in parts if part.kind == "text"]
    mark = given.get("placeholder", PLACEHOLDER) if len(texts) > 1 else ""
    made, shown = [], 0
    for part in parts:
        if part.kind == "text":
            made.append(part.given if part.simple is SAME else part.simple)
        else:
            shown += 1
            made.append(mark.replace("{n}", str(shown)))
    return f"{given.get('pre_prompt', '')}{''.join(made)}{given.get('post_prompt', '')}"


def visuals_of(parts: Sequence[Part]) -> list[Any]:
    """For simple models: pictures, files and sound, in order."""
    found: list[Any] = []
    for part in parts:
        if part.kind == "text":
            continue
        given = part.given if part.simple is SAME else part.simple
        several = part.kind == "images" or part.simple is not SAME
        found += _made(given) if several else [_made(given)]
    return found


def messages_of(
    parts: Sequence[Part], kwargs: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """For chat models: one user turn with the parts in order (host.md, Requests)."""
    given = kwargs or {}
    texts = [place for place, part in enumerate(parts) if part.kind == "text"]
    content = []
    for place, part in enumerate(parts):
        if part.kind == "text":
            pre = given.get("pre_prompt", "") if place == texts[0] else ""
            post = given.get("post_prompt", "") if place == texts[-1] else ""
            content.append({"type": "text", "text": f"{pre}{part.given}{post}"})
        elif part.kind == "images":
            content += [{"type": "image", "url": image} for image in _made(part.given)]
        else:
            content.append({"type": part.kind, "url": _made(part.given)})
    return [{"role": "user", "content": content}]


def _made(given: Any) -> Any:
    return given() if callable(given) else given
