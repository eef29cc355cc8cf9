"""One video of HAVEN as the tasks need it, from its JSON and its HDF5 (paper, 3.1).

Shots are the ranges of `change_points`; without HDF5 they are the frames that each clip lists. A
shot without a sampled frame is dropped with its clip, and those after it count one less, in the
alignments too. A sentence may so lose all its shots: it stays, with no shot.

With HDF5, its `picks` are where the frames lie, and a clip's `frames` have to lie inside its shot,
but need not be all of them. A user may allow some frames of difference (`slack`).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.options import KINDS
from lmms_eval_tasks.haven.records.schema import Arrays, Block, JsonVideo

Numbers = list[int]


@dataclass(frozen=True)
class Record:
    """One video. Frames, shots and sentences are numbered from 1; `picks` alone count from 0.

    Attributes:
        source: a slug of options.SOURCES.
        video: its key in the release, as `video_7`.
        name: the original video's name, "" if the release does not tell it.
        picks: indices of the sampled frames among the original video's, ascending.
        descriptions: of each sampled frame, "" where the release has none.
        keyframes: the frames that `is_gt` calls keyframes.
        shots: each shot's sampled frames, at least one.
        shot_texts: what happens in each shot, "" where the release has none.
        key_shots: shots whose frames are the true keyframes (not used for ranking).
        document, summary: sentences; document_shots, summary_shots: the shots of each.
        scores: `gtscore` of each sampled frame; empty without.
        n_frames: of the original video (HDF5); None without HDF5.
        gaps: task without `haven_` -> what it needs and the record lacks: such items are left out
            of that task and counted.
        tagged: the summary as one text with tags of its shots, "" if the release has none.
        path: where the video file is, or would be.
    """

    source: str
    video: str
    name: str
    picks: Numbers
    descriptions: list[str]
    keyframes: Numbers
    shots: list[Numbers]
    shot_texts: list[str]
    key_shots: Numbers
    document: list[str]
    document_shots: list[Numbers]
    summary: list[str]
    summary_shots: list[Numbers]
    scores: list[float] = field(default_factory=list)
    n_frames: int | None = None
    gaps: dict[str, str] = field(default_factory=dict)
    tagged: str = ""
    path: Path | None = None

    @property
    def id(self) -> str:
        """`tvsum/video_7`: unique over all sources."""
        return f"{self.source}/{self.video}"

    @property
    def importance(self) -> list[float]:
        """Each shot's: the mean of `gtscore` over its sampled frames; empty without."""
        own = [[self.scores[n - 1] for n in shot] for shot in self.shots if self.scores]
        # Exact sums: the same scores in another order are the same importance.
        return [math.fsum(one) / len(one) for one in own]


class Origin(NamedTuple):
    """Where a video's parts are from, for messages: the two files, and why there is no HDF5."""

    json: str
    hdf5: str
    without: str = ""


def join(
    source: str,
    video: str,
    given: JsonVideo,
    arrays: Arrays | None,
    origin: Origin,
    *,
    slack: int = 0,
) -> Record:
    """One video's record.

    Args:
        arrays: its HDF5; None without.
        slack: by how many frames JSON and HDF5 may differ: in where things are in the video, and in
            how many are sampled, of which then what both have is taken.

    Raises:
        DataError: where JSON and HDF5 first disagree.
    """
    picks = [frame.frame_id for frame in given.frames]
    if arrays is None:
        shots = [[1 + bisect_left(picks, one) for one in clip.frames] for clip in given.clips]
        scores, unscored = list[float](), origin.without
    else:
        if why := _disagree(given, arrays, slack):
            raise DataError(f"{origin.json} and {origin.hdf5}, {why}")
        picks = list(arrays.picks[: len(picks)])
        shots = [
            list(range(1 + bisect_left(picks, first), 1 + bisect_right(picks, last)))
            for first, last in arrays.change_points
        ]
        scores, unscored = _importance(arrays, origin)
    kept = [place for place, own in enumerate(shots) if own]
    if not kept:
        raise DataError(f"{origin.json}, clips: no shot has a sampled frame")
    renumbered = {place: number for number, place in enumerate(kept, 1)}
    frames = given.frames[: len(picks)]

    def aligned(block: Block) -> list[Numbers]:
        return [[renumbered[n] for n in own if n in renumbered] for _, own in block.told()]

    document, summary = given.aligned_full_document, given.aligned_text_summary
    record = Record(
        source=source,
        video=video,
        name=(given.video_name or "").strip() or (arrays.video_name if arrays else ""),
        picks=picks,
        descriptions=[frame.description for frame in frames],
        keyframes=[number for number, frame in enumerate(frames, 1) if frame.is_gt],
        shots=[shots[place] for place in kept],
        shot_texts=[given.clips[place].summary for place in kept],
        key_shots=[renumbered[place] for place in kept if given.clips[place].gt],
        document=[text for text, _ in document.told()],
        document_shots=aligned(document),
        summary=[text for text, _ in summary.told()],
        summary_shots=aligned(summary),
        scores=scores[: len(picks)],
        n_frames=arrays.n_frames if arrays else None,
        tagged=summary.raw_text or "",
    )
    record.gaps.update(_gaps(record, origin.json, unscored))
    return record


def _disagree(given: JsonVideo, arrays: Arrays, slack: int) -> str:
    """Where the two first differ, or ""."""
    for n, (frame, pick) in enumerate(zip(given.frames, arrays.picks, strict=False), 1):
        if abs(frame.frame_id - pick) > slack:
            return f"entry {n}: frame_id {frame.frame_id}, but picks {pick}"
    for what, other, most in (("frames", "picks", slack), ("clips", "change_points", 0)):
        n, there = len(getattr(given, what)), len(getattr(arrays, other))
        if abs(n - there) > most:
            return f"{n} {what}, but {there} {other}"
    for n, (frame, flag) in enumerate(zip(given.frames, arrays.gtframe or (), strict=False), 1):
        if frame.is_gt != flag:
            return f"entry {n}: is_gt {int(frame.is_gt)}, but gtframe {int(flag)}"
    for n, (clip, shot) in enumerate(zip(given.clips, arrays.change_points, strict=True), 1):
        for one in clip.frames:
            if not shot[0] - slack <= one <= shot[1] + slack:
                return f"clip {n}: frame {one}, but change_points {shot[0]} to {shot[1]}"
    return ""


def _importance(arrays: Arrays, origin: Origin) -> tuple[list[float], str]:
    """`gtscore`, or why it cannot be used."""
    if arrays.gtscore is None:
        return [], f"{origin.hdf5}, gtscore: the dataset is missing"
    for number, score in enumerate(arrays.gtscore, 1):
        if not math.isfinite(score):
            return [], f"{origin.hdf5}, gtscore, entry {number}: {score}, no finite number"
    return list(arrays.gtscore), ""


_SALIENCY = ("saliency", "saliency_doc", "saliency_text")
_GROUNDING = ("grounding", "grounding_text")
_OF_SHOTS = ("temporal", "temporal_doc", "temporal_text", *_GROUNDING, *_SALIENCY)
_PROXIES = tuple(f"{kind}_text" for kind in KINDS)  # the first three show frames, the others shots


def _gaps(record: Record, name: str, unscored: str) -> dict[str, str]:
    """What single tasks need and the record lacks -> why, by the task's name without `haven_`.

    Of several reasons for one task the first below is told. Importances that are all equal are no
    gap: the correlation is undefined, and scoring says so.
    """
    found: dict[str, str] = {}

    def lacks(why: str, tasks: Sequence[str]) -> None:
        for task in tasks:
            found.setdefault(task, why)

    if len(record.shots) == 1:
        lacks(f"{name}, clips: only one shot has sampled frames", _OF_SHOTS)
    if unscored:
        lacks(unscored, _SALIENCY)
    if not record.summary:
        of_summary = ("v2t", "v2vt", "v2t_text", "v2vt_text", *_GROUNDING)
        lacks(f"{name}, aligned_text_summary: there is none", of_summary)
    elif not any(record.summary_shots):
        lacks(f"{name}, aligned_text_summary, alignments: no sentence has a shot", _GROUNDING)
    if not record.key_shots:
        of_keyframes = ("v2v", "v2vt", "v2v_text", "v2vt_text")
        lacks(f"{name}, clips: none is a key shot (gt)", of_keyframes)
    if not record.document:
        lacks(f"{name}, aligned_full_document: there is none", ("temporal_doc", "saliency_doc"))
    if not any(record.descriptions):
        lacks(f"{name}, frames: none has a description", _PROXIES[:3])
    if not any(record.shot_texts):
        lacks(f"{name}, clips: none has a summary", _PROXIES[3:])
    return found
