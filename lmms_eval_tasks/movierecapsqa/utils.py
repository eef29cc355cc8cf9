"""MovieRecapsQA as the host sees it: what a model is given for a doc, and what its reply is worth.

Facts and reference are in the doc for the judge alone: nothing here hands them to a model.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.console import say
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges.candidate import usable
from lmms_eval_tasks.movierecapsqa import judge as judging
from lmms_eval_tasks.movierecapsqa import scoring
from lmms_eval_tasks.movierecapsqa.inputs import task_prompts
from lmms_eval_tasks.movierecapsqa.labels import CONDITIONS
from lmms_eval_tasks.utils import clips, prompts
from lmms_eval_tasks.utils.clips import Doc

# --- what the model is given ------------------------------------------------------------------

# Slug of a condition -> part of the prompt file.
_PARTS = {"": "both", "frames": "only_frames", "dialogue": "only_dialogue"}


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """The segment's dialogue or that there is none, instruction, question (paper, 5.2)."""
    kwargs = lmms_eval_specific_kwargs or {}
    parts = task_prompts().text
    values = {"question": doc["question"]}
    if CONDITIONS[doc["condition"]].dialogue:
        lines = doc["dialogue"]
        values["dialogue"] = (
            prompts.fill(parts["dialogue"], {"lines": lines}) if lines else parts["no_dialogue"]
        )
    text = prompts.fill(parts[_PARTS[doc["condition"]]], values)
    return f"{kwargs.get('pre_prompt', '')}{text}{kwargs.get('post_prompt', '')}"


def doc_to_visual(doc: Doc) -> list[Any]:
    """For simple models: the muted clip's path, or frames as images, or nothing (5.2)."""
    return list(clips.visuals(doc)) if CONDITIONS[doc["condition"]].picture else []


def doc_to_messages(
    doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """For chat models: the muted clip, or its frames in order, then the text."""
    content = clips.content(doc) if CONDITIONS[doc["condition"]].picture else []
    content.append({"type": "text", "text": doc_to_text(doc, lmms_eval_specific_kwargs)})
    return [{"role": "user", "content": content}]


def identity(doc: Doc) -> dict[str, Any]:
    """What the sample log keeps of a doc: all that `rescore` needs, in plain types."""
    return {**_of_doc(doc), "media": _media_log(doc)}


def _of_doc(doc: Doc) -> dict[str, Any]:
    return {**{name: doc[name] for name in _IDENTITY}, "facts": list(doc["facts"])}


_IDENTITY = (
    "id",
    "segment",
    "video",
    "source",
    "condition",
    "question",
    "reference",
    "dialogue",
    "modality",
    "category",
    "data",
)


def _media_log(doc: Doc) -> dict[str, Any] | None:
    """What was handed over; None where a file is gone by now: the answer still counts.

    `clips.log`, or the kind none; and whether it came with dialogue.
    """
    condition = CONDITIONS[doc["condition"]]
    told = {"dialogue": condition.dialogue and bool(doc["dialogue"])}
    if not condition.picture:
        return {"kind": "none", **told}
    try:
        return {**clips.log(doc), **told}
    except (TasksError, OSError):
        return None


# --- what the reply is worth ------------------------------------------------------------------


def process_results(doc: Doc, results: list[str]) -> dict[str, Any]:
    """One open answer, judged; an exception becomes an item with status `error`: nothing is lost.

    Facts and dialogue reach the judge from here, and the sample log for `rescore`.
    """
    reply = results[0] if results and isinstance(results[0], str) else ""
    item = {**_of_doc(doc), "media": None}
    try:
        item["media"] = _media_log(doc)
        which = settings.judged_baselines()
        return scoring.reply_metrics(item, reply, judge=usable(judging.config), which=which)
    except Exception:
        say(f"scoring {doc['id']} failed; kept as status error")
        traceback.print_exc()
        return scoring.failed_metrics(item, reply)
