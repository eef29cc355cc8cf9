"""One video of HAVEN as the tasks need it, from its JSON and its HDF5 (paper, 3.1).

Frames are numbered as the tasks number them: sampled frame 1 is the first pick. Shots likewise.

Shots are the ranges of `change_points`; without HDF5 they are the frames that each clip lists. A
shot without a sampled frame is dropped with its clip, and those after it count one less, in the
alignments too. A sentence may so lose all its shots: it stays, with no shot.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.options import KINDS
from lmms_eval_tasks.haven.records.schema import Arrays, Block, JsonVideo


class Frame(NamedTuple):
    """A sampled frame.

    pick: its index among the frames of the original video, counted from 0.
    description: what it shows; "" where the release has none.
    keyframe: whether `is_gt` calls it a keyframe.
    importance: `gtscore` of HDF5; None without HDF5.
    """

    pick: int
    description: str
    keyframe: bool
    importance: float | None


class Shot(NamedTuple):
    """A shot (the release says clip) and the sampled frames inside it.

    frames: numbers of sampled frames, ascending from 1; at least one.
    description: what happens in it; "" where the release has none.
    key: whether it is a key shot, whose frames are the true keyframes (not used for ranking).
    """

    frames: tuple[int, ...]
    description: str
    key: bool


class Sentence(NamedTuple):
    """A sentence of the document or of the summary, and the numbers of its shots, from 1."""

    text: str
    shots: tuple[int, ...]


@dataclass(frozen=True)
class Record:
    """One video.

    Attributes:
        source: a slug of options.SOURCES.
        video: its key in the release, as `video_7`.
        name: the original video's name, "" if the release does not tell it.
        frames, shots, document, summary: in order.
        n_frames: number of frames of the original video (HDF5); None without HDF5.
        gaps: task without `haven_` -> what it needs and the record lacks: such items are left out
            of that task and counted.
        path: where the video file is, or would be.
        tagged: the summary as one text with tags of its shots, "" if the release has none.
    """

    source: str
    video: str
    name: str
    frames: tuple[Frame, ...]
    shots: tuple[Shot, ...]
    document: tuple[Sentence, ...]
    summary: tuple[Sentence, ...]
    n_frames: int | None
    gaps: dict[str, str]
    path: Path | None = None
    tagged: str = ""

    @property
    def id(self) -> str:
        """`tvsum/video_7`: unique over all sources."""
        return f"{self.source}/{self.video}"

    @property
    def picks(self) -> list[int]:
        """Indices of the sampled frames among the original video's, from 0."""
        return [frame.pick for frame in self.frames]

    @property
    def keyframes(self) -> list[int]:
        """Numbers of the frames that `is_gt` calls keyframes, from 1."""
        return [number for number, frame in enumerate(self.frames, 1) if frame.keyframe]

    @property
    def key_shots(self) -> list[int]:
        """Numbers of the key shots, from 1."""
        return [number for number, shot in enumerate(self.shots, 1) if shot.key]

    @property
    def importance(self) -> list[float] | None:
        """Each shot's importance: the mean of `gtscore` over its sampled frames; None without."""
        scores = [frame.importance for frame in self.frames]
        if None in scores:
            return None
        own = [[scores[number - 1] or 0.0 for number in shot.frames] for shot in self.shots]
        # Exact sums: the same scores in another order are the same importance.
        return [math.fsum(one) / len(one) for one in own]


# --- both together --------------------------------------------------------------------------------


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
    if arrays is not None:
        if why := _disagree(given, arrays, slack):
            raise DataError(f"{origin.json} and {origin.hdf5}, {why}")
        picks = list(arrays.picks[: len(picks)])
    if arrays is None:
        numbers = [[1 + bisect_left(picks, one) for one in clip.frames] for clip in given.clips]
    else:
        edges = arrays.change_points
        numbers = [
            [*range(1 + bisect_left(picks, a), 1 + bisect_right(picks, b))] for a, b in edges
        ]
    kept = [place for place, own in enumerate(numbers) if own]
    if not kept:
        raise DataError(f"{origin.json}, clips: no shot has a sampled frame")
    renumbered = {place: number for number, place in enumerate(kept, 1)}
    scores, unscored = (None, origin.without) if arrays is None else _importance(arrays, origin)

    def sentences(block: Block) -> tuple[Sentence, ...]:
        return tuple(
            Sentence(text, tuple(renumbered[shot] for shot in shots if shot in renumbered))
            for text, shots in block.told()
        )

    record = Record(
        source=source,
        video=video,
        name=(given.video_name or "").strip() or (arrays.video_name if arrays else ""),
        frames=tuple(
            Frame(pick, frame.description, frame.is_gt, scores[place] if scores else None)
            for place, (pick, frame) in enumerate(zip(picks, given.frames, strict=False))
        ),
        shots=tuple(
            Shot(tuple(numbers[place]), given.clips[place].summary, bool(given.clips[place].gt))
            for place in kept
        ),
        document=sentences(given.aligned_full_document),
        summary=sentences(given.aligned_text_summary),
        n_frames=arrays.n_frames if arrays else None,
        gaps={},
        tagged=given.aligned_text_summary.raw_text or "",
    )
    record.gaps.update(_gaps(record, origin.json, unscored))
    return record


def _disagree(given: JsonVideo, arrays: Arrays, slack: int) -> str:
    """Where the two first differ, or ""."""
    for n, (frame, pick) in enumerate(zip(given.frames, arrays.picks, strict=False), 1):
        if abs(frame.frame_id - pick) > slack:
            return f"entry {n}: frame_id {frame.frame_id}, but picks {pick}"
    if abs(len(given.frames) - len(arrays.picks)) > slack:
        return f"{len(given.frames)} frames, but {len(arrays.picks)} picks"
    for n, (frame, flag) in enumerate(zip(given.frames, arrays.gtframe or (), strict=False), 1):
        if frame.is_gt != flag:
            return f"entry {n}: is_gt {int(frame.is_gt)}, but gtframe {int(flag)}"
    if len(given.clips) != len(arrays.change_points):
        return f"{len(given.clips)} clips, but {len(arrays.change_points)} change_points"
    for n, (clip, shot) in enumerate(zip(given.clips, arrays.change_points, strict=True), 1):
        for one in clip.frames:
            if not shot[0] - slack <= one <= shot[1] + slack:
                return f"clip {n}: frame {one}, but change_points {shot[0]} to {shot[1]}"
    return ""


def _importance(arrays: Arrays, origin: Origin) -> tuple[tuple[float, ...] | None, str]:
    """`gtscore`, or why it cannot be used."""
    if arrays.gtscore is None:
        return None, f"{origin.hdf5}, gtscore: the dataset is missing"
    for number, score in enumerate(arrays.gtscore, 1):
        if not math.isfinite(score):
            return None, f"{origin.hdf5}, gtscore, entry {number}: {score}, no finite number"
    return arrays.gtscore, ""


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
    elif not any(sentence.shots for sentence in record.summary):
        lacks(f"{name}, aligned_text_summary, alignments: no sentence has a shot", _GROUNDING)
    if not record.key_shots:
        of_keyframes = ("v2v", "v2vt", "v2v_text", "v2vt_text")
        lacks(f"{name}, clips: none is a key shot (gt)", of_keyframes)
    if not record.document:
        lacks(f"{name}, aligned_full_document: there is none", ("temporal_doc", "saliency_doc"))
    if not any(frame.description for frame in record.frames):
        lacks(f"{name}, frames: none has a description", _PROXIES[:3])
    if not any(shot.description for shot in record.shots):
        lacks(f"{name}, clips: none has a summary", _PROXIES[3:])
    return found
