"""HAVEN as the host sees it: what a model is given for a doc, and what its reply is worth.

True keyframes, importance and alignments are in the doc for scoring alone: nothing here hands them
to a model.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.console import say
from lmms_eval_tasks.haven import inputs, items, scoring
from lmms_eval_tasks.haven import judge as judging
from lmms_eval_tasks.judges.candidate import usable

if TYPE_CHECKING:
    from PIL.Image import Image

Doc = Mapping[str, Any]

# For the doc of a task that has no item (items.not_run): the host asks something of every task.
NOTHING_ASKED = "Nothing is asked here. Reply with the word: skipped."

# --- what the model is given ------------------------------------------------------------------


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """For simple models: the request's text, with a placeholder where each picture stands (C)."""
    if doc["not_run"]:
        return NOTHING_ASKED
    kwargs = lmms_eval_specific_kwargs or {}
    text = inputs.text(doc, kwargs.get("placeholder", "<image>"))
    return f"{kwargs.get('pre_prompt', '')}{text}{kwargs.get('post_prompt', '')}"


def doc_to_visual(doc: Doc) -> list[Image]:
    """For simple models: the pictures in the order of their placeholders; none of a text proxy."""
    return [] if doc["not_run"] else list(inputs.visuals(doc))


def doc_to_messages(
    doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """For chat models: texts and pictures as they follow each other (C)."""
    if doc["not_run"]:
        return [{"role": "user", "content": [{"type": "text", "text": NOTHING_ASKED}]}]
    kwargs = lmms_eval_specific_kwargs or {}
    content = list(inputs.content(doc))
    for key, place in (("pre_prompt", 0), ("post_prompt", len(content) + 1)):
        if kwargs.get(key):
            content.insert(place, {"type": "text", "text": kwargs[key]})
    return [{"role": "user", "content": content}]


# --- what the reply is worth ------------------------------------------------------------------

# What the sample log keeps of a doc: all that `rescore` needs, in plain types.
_IDENTITY = (
    *("id", "source", "kind", "text", "with_document", "data", "record"),
    *("keyframes", "shots", "importance", "document", "summary", "summary_shots"),
    *("budget", "n_sentences", "units"),
)


def identity(doc: Doc) -> dict[str, Any]:
    """What the sample log keeps of a doc; `video` is the cluster of intervals."""
    return {
        **{name: doc[name] for name in _IDENTITY},
        "asked": doc["sentences"],  # an item's `sentences` are the reply's
        "video": doc["id"],
        "n_frames": len(doc["picks"]),
        "media": {"images": items.n_images(doc), "unit_frames": doc["unit_frames"]},
    }


def process_results(doc: Doc, results: list[str]) -> dict[str, Any]:
    """One reply; an exception becomes an item with status `error`: nothing is lost."""
    reply = results[0] if results and isinstance(results[0], str) else ""
    item = identity(doc)
    if doc["not_run"]:
        return scoring.not_run_metrics(item, doc["not_run"])
    try:
        return scoring.reply_metrics(item, reply, judge=usable(judging.config))
    except Exception:
        say(f"scoring {doc['id']} failed; kept as status error")
        traceback.print_exc()
        return scoring.failed_metrics(item, reply)
