"""Values of BERTScore and CLIPScore per item, for the means of scores.py and joined.py.

They are computed over many texts at once, and then known: a task's mean over all items is asked for
first, and its means over valid replies and over single sources find every value computed.
"""

from __future__ import annotations

from collections.abc import Sequence

from lmms_eval_tasks import provenance
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.haven import clip_pictures, text_scores
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


def clipscore(items: Sequence[Item]) -> list[float | None]:
    """CLIPScore between each item's summary and its frames; 0 where one of them is missing."""
    whole = [item for item in items if item["sentences"] and item["frames"]]
    values = clip_values([(item["id"], item["sentences"], item["frames"]) for item in whole])
    known = {item["id"]: value for item, value in zip(whole, values, strict=True)}
    # Where nothing is computed, 0 for those that failed would be no mean of anything.
    computed = any(v is not None for v in values) if whole else not text_scores.clip_problem()
    return [known.get(item["id"], 0.0 if computed else None) for item in items]


def clip_values(
    asked: Sequence[tuple[str, Sequence[str], Sequence[int]]],
) -> list[float | None]:
    """CLIPScore of summaries and frames; None where there is no model, or no picture any more.

    Args:
        asked: id of a video, a summary's sentences, numbers of its sampled frames.
    """
    if problem := text_scores.clip_problem():
        note("clipscore", f"CLIPScore not computed: {problem}")
        return [None] * len(asked)
    values: list[float | None] = []
    lost: list[str] = []
    for video, sentences, frames in asked:
        try:
            values.append(text_scores.clipscore(sentences, clip_pictures.of(video, frames)))
        except TasksError as error:  # a picture that cannot be opened any more
            lost.append(str(error))
            values.append(None)
    note("clipscore", text_scores.clip_note())
    if lost:  # a note of its own: a mean over other items must not take its place
        note("clipscore_lost", f"pictures that cannot be opened any more, as: {min(lost)}")
    return values


def note(metric: str, told: str) -> None:
    """Keep what a metric was computed with, for the results."""
    provenance.note(NOTES, {**provenance.notes().get(NOTES, {}), metric: told})
