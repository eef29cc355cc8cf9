"""Values of BERTScore and CLIPScore per item, for the means of scores.py and joined.py.

They are computed over many texts at once, and then known: a task's mean over all items is asked for
first, and its means over valid replies and over single sources find every value computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.haven import clip_pictures, text_scores
from lmms_eval_tasks.utils import provenance
from lmms_eval_tasks.utils.aggregate import Item

NOTES = "haven"  # in provenance.py: metric -> what it was computed with


def bertscore(items: Sequence[Item]) -> list[float | None]:
    """BERTScore F1 of each item's summary; 0 where there is none."""
    asked = sorted({(item["candidate"], item["reference"]) for item in items})
    if not asked:
        return []  # nothing is told of it either
    scores = text_scores.bertscore([one for one, _ in asked], [other for _, other in asked])
    note("bertscore", scores.note)
    known = dict(zip(asked, scores.values, strict=True))
    return [known[item["candidate"], item["reference"]] for item in items]


class Asked(NamedTuple):
    """A summary's sentences and numbers of a video's sampled frames.

    record: which record the numbers are of (items.row): another one's frames are not its.
    """

    video: str
    record: str
    sentences: Sequence[str]
    frames: Sequence[int]


def clipscore(items: Sequence[Item]) -> list[float | None]:
    """CLIPScore between each item's summary and its frames; 0 where one of them is missing.

    None for all if the pictures of any cannot be had: failed replies, which need none, would weigh
    too much in the mean of the others.
    """
    return _clip(items, lambda item: item["frames"])


def clip_baseline(
    frames: Callable[[int, int], Sequence[int]], items: Sequence[Item]
) -> list[float | None]:
    """The same with other frames in place of the selected ones: what the selection is worth.

    Args:
        frames: of F and K.
        items: as for `clipscore`.
    """
    return _clip(items, lambda item: frames(item["n_frames"], item["budget"]))


def _clip(items: Sequence[Item], frames: Callable[[Item], Sequence[int]]) -> list[float | None]:
    whole = [item for item in items if item["sentences"] and item["frames"]]
    values = clip_values(
        [Asked(item["id"], item["record"], item["sentences"], frames(item)) for item in whole]
    )
    # Where nothing is computed, 0 for those that failed would be no mean of anything.
    if None in values or text_scores.clip_problem():
        return [None] * len(items)
    known = {item["id"]: value for item, value in zip(whole, values, strict=True)}
    return [known.get(item["id"], 0.0) for item in items]


def clip_values(asked: Sequence[Asked]) -> list[float | None]:
    """CLIPScore of summaries and frames; None where there is no model, or no picture any more."""
    if problem := text_scores.clip_problem():
        note("clipscore", f"CLIPScore not computed: {problem}")
        return [None] * len(asked)
    values: list[float | None] = []
    lost: list[str] = []
    for one in asked:
        try:
            pictures = clip_pictures.of(one.video, one.record, one.frames)
            values.append(text_scores.clipscore(one.sentences, pictures))
        except TasksError as error:  # a picture that cannot be opened any more
            lost.append(str(error))
            values.append(None)
    note("clipscore", text_scores.clip_note())
    if lost:  # a note of its own: a mean over other items must not take its place
        told = f"{len(lost)} without pictures of theirs, as: {min(lost)}"
        note("clipscore_lost", f"CLIPScore not computed: {told}")
    return values


def note(metric: str, told: str) -> None:
    """Keep what a metric was computed with, for the results."""
    provenance.note(NOTES, {**provenance.notes().get(NOTES, {}), metric: told})
