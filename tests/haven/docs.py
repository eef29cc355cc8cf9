"""Docs of HAVEN's tasks, made by hand: what the host hands over, with nothing read from a file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from lmms_eval_tasks.haven import data
from lmms_eval_tasks.haven.options import MOST, TASKS, HavenOptions
from lmms_eval_tasks.host import task_functions


def doc(
    task_name: str,
    frames: int = 12,
    shots: int = 4,
    sentences: int = 3,
    *,
    units: Sequence[int] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """A doc of one video, the same for all tasks but for what each of them shows.

    Frames are spread evenly over the shots, of which the ends are shown. A document sentence for
    each shot, and `sentences` of the summary, sentence i of shot i. Shots and sentences that a task
    shuffles are shown in the order 2, 4, ..., 1, 3, ..., or as in `units`. `changes` are put in
    place of the doc's fields.
    """
    task = TASKS[task_name]
    edges = [place * frames // shots for place in range(shots + 1)]
    spans = [list(range(first + 1, last + 1)) for first, last in pairwise(edges)]
    row = {
        "id": "tvsum/video_7",
        "source": "tvsum",
        "video": "video_7",
        "video_path": "",
        "picks": [15 * place for place in range(frames)],
        "descriptions": [f"A view of thing {_word(n)}." for n in range(1, frames + 1)],
        "keyframes": list(range(1, frames + 1, 6)),
        "key_shots": list(range(1, shots + 1, 6)),
        "shots": spans,
        "shot_texts": [f"Somebody handles thing {_word(n)}." for n in range(1, shots + 1)],
        "importance": [0.25 * (n % 4) for n in range(shots)],
        "document": [f"In the story, thing {_word(n)} appears." for n in range(1, shots + 1)],
        "document_shots": [[n] for n in range(1, shots + 1)],
        "summary": [f"In short: thing {_word(n)}." for n in range(1, sentences + 1)],
        "summary_shots": [[n] for n in range(1, sentences + 1)],
        "data": "0123456789ab",
        "record": "fedcba987654",
        "tagged": "",
    }
    made = data.make_doc(row, task, HavenOptions(frames_per_shot=2))
    made["n_sentences"] = 4 if made["n_sentences"] else 0
    if units is None and task.kind in MOST:
        units = _shuffled(shots) if task.kind == "temporal" else range(1, shots + 1)
    if units is not None:
        made["units"] = list(units)
    if made["unit_frames"]:
        made["unit_frames"] = [data.shown_frames(spans[unit - 1], 2) for unit in made["units"]]
        made["n_images"] = sum(map(len, made["unit_frames"]))
    if task.kind == "grounding":
        made["sentences"] = _shuffled(sentences)
    if unknown := set(changes) - set(made):
        raise ValueError(f"no such field of a doc: {', '.join(unknown)}")
    return {**made, "task": task_name, **changes}


def chat(given: dict[str, Any]) -> list[Any]:
    """What a chat model is given: texts and pictures in their order."""
    (message,) = task_functions.doc_to_messages(given)
    assert (set(message), message["role"]) == ({"role", "content"}, "user")
    return [item["text"] if item["type"] == "text" else item["url"] for item in message["content"]]


def text(given: dict[str, Any], placeholder: str = "<image>") -> str:
    """A simple model's text."""
    return task_functions.doc_to_text(given, {"placeholder": placeholder})


def simple(given: dict[str, Any]) -> list[Any]:
    """All pictures, then the text with placeholders."""
    return [*task_functions.doc_to_visual(given), text(given)]


def _shuffled(n: int) -> list[int]:
    numbers = list(range(1, n + 1))
    return numbers[1::2] + numbers[::2]


def _word(number: int) -> str:
    """A name that holds no digit: `ba`, `ca`, ..., `za`, `bb`, ..."""
    return chr(ord("b") + (number - 1) % 25) + chr(ord("a") + (number - 1) // 25)
