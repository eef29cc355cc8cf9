"""The parts of a doc's prompt in lmms-eval's forms: text and visuals, or chat messages."""

from __future__ import annotations

import functools
import itertools
import traceback
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.benchmark import SAME, Doc, Part, Task
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.media import clip_specs, clips
from lmms_eval_tasks.models import plan
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.utils.json_files import Json, JsonObject

if TYPE_CHECKING:
    from PIL.Image import Image

PLACEHOLDER = "<image>"  # stands for a picture between texts, for simple models


def text_of(parts: Sequence[Part], kwargs: Mapping[str, Json] | None = None) -> str:
    """Return the text for simple models, with a placeholder for each picture between texts.

    Args:
        parts: the parts of a doc's prompt.
        kwargs: lmms-eval's `lmms_eval_specific_kwargs`. `placeholder` may contain `{n}`, the number
            of the picture from 1.
    """
    number, several = itertools.count(1), sum(part.kind == "text" for part in parts) > 1
    mark = (kwargs or {}).get("placeholder", PLACEHOLDER) if several else ""

    def text(part: Part) -> str:
        if part.kind != "text":
            return str(mark.replace("{n}", str(next(number))))
        return str(part.content if part.simple_content is SAME else part.simple_content)

    return "".join(map(text, parts))


def visuals_of(parts: Sequence[Part]) -> list[Any]:
    """Return the pictures, files and sounds for simple models, in order."""
    visuals: list[Any] = []
    for part in _fitting(parts):
        if part.kind == "text":
            continue
        content = part.content if part.simple_content is SAME else part.simple_content
        several = part.kind == "images" or part.simple_content is not SAME
        visuals += _made(content) if several else [_made(content)]
    return visuals


def messages_of(parts: Sequence[Part], system: str = "") -> list[JsonObject]:
    """Return the messages for chat models: one user turn with all parts (docs/design.md).

    A system turn with the text `system` comes first, unless the text is empty.
    """
    content = []
    for part in _fitting(parts):
        if part.kind == "text":
            content.append({"type": "text", "text": part.content})
        elif part.kind == "images":
            content += [{"type": "image", "url": image} for image in _made(part.content)]
        else:
            content.append({"type": part.kind, "url": _made(part.content)})
    before = [{"role": "system", "content": [{"type": "text", "text": system}]}] if system else []
    return [*before, {"role": "user", "content": content}]


def media_log(task: Task, doc: Doc) -> JsonObject:
    """Return the log of the media in the prompt; {"media": None} if it cannot be made.

    The answer counts in any case.
    """
    try:
        log: JsonObject = {**task.media_log(doc)}
        if log.get("media") and context.current().plan.videos_as_pictures:
            log["media"] = {**log["media"], "as": "images"}
        return log
    except (TasksError, OSError):  # a file has disappeared
        return {"media": None}
    except Exception:
        notify(f"the prompt of {doc['id']} cannot be logged")
        traceback.print_exc()
        return {"media": None}


def _fitting(parts: Sequence[Part]) -> Sequence[Part]:
    """Return the parts in the form that the running model's class takes (models/plan.py)."""
    if not context.current().plan.videos_as_pictures:
        return parts

    def pictures(video: Any) -> list[Image]:
        return list(_frames_of(_made(video)))

    return [
        Part("images", functools.partial(pictures, part.content)) if part.kind == "video" else part
        for part in parts
    ]


@functools.lru_cache(maxsize=2)  # the questions about a video come in a row
def _frames_of(path: str) -> list[Image]:
    wanted = settings.frames_for("", plan.FRAMES)
    return list(
        clips.images(clip_specs.make_clip_file(path, clip_specs.MediaSpec("uniform", wanted)))
    )


def _made(value: Any) -> Any:
    return value() if callable(value) else value
