"""One video of HAVEN as the tasks need it, from its JSON and its HDF5 (paper, 3.1).

Frames are numbered as the tasks number them: sampled frame 1 is the first pick. Shots likewise.

Shots are the ranges of `change_points`; without HDF5 they are the frames that each clip lists. A
shot without a sampled frame is dropped with its clip, and those after it count one less, in the
alignments too. A sentence may so lose all its shots: it stays in the document or the summary, with
no shot, and grounding does not ask for it.

With HDF5, its `picks` are where the frames lie, and a clip's `frames` have to lie inside its shot,
but need not be all of them. A user may allow some frames of difference (`slack`).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lmms_eval_tasks.haven.records.hdf5_file import Arrays
from lmms_eval_tasks.haven.records.json_file import Block, JsonVideo


@dataclass(frozen=True)
class Frame:
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


@dataclass(frozen=True)
class Shot:
    """A shot (the release says clip) and the sampled frames inside it.

    frames: numbers of sampled frames, ascending from 1; at least one.
    description: what happens in it; "" where the release has none.
    key: whether it is a key shot, whose frames are the true keyframes (not used for ranking).
    """

    frames: tuple[int, ...]
    description: str
    key: bool


@dataclass(frozen=True)
class Sentence:
    """A sentence of the document or of the summary, and the numbers of its shots, from 1."""

    text: str
    shots: tuple[int, ...]


@dataclass(frozen=True)
class Record:
    """One video.

    Attributes:
        source: a slug of labels.SOURCES.
        video: its key in the release, as `video_7`.
        name: the original video's name, "" if the release does not tell it.
        frames: sampled frames in order.
        shots: in order; shots without a sampled frame are dropped and do not count.
        document, summary: sentences in order.
        tagged: the summary as one text with tags of its shots, "" if the release has none.
        n_frames: number of frames of the original video (HDF5); None without HDF5.
        gaps: task without `haven_` -> what it needs and the record lacks: such items are left out
            of that task and counted.
        path: where the video file is, or would be.
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
        found = []
        for shot in self.shots:
            scores = [self.frames[number - 1].importance for number in shot.frames]
            known = [score for score in scores if score is not None]
            if len(known) < len(scores):
                return None
            # Exact sums: the same scores in another order are the same importance.
            found.append(math.fsum(known) / len(known))
        return found or None


_FRAME_TEXTS = ("v2t_text", "v2v_text", "v2vt_text")
_SHOT_TEXTS = ("temporal_text", "grounding_text", "saliency_text")
_SALIENCY = ("saliency", "saliency_doc", "saliency_text")
_GROUNDING = ("grounding", "grounding_text")
_OF_SUMMARY = ("v2t", "v2vt", "v2t_text", "v2vt_text", *_GROUNDING)
_OF_KEYFRAMES = ("v2v", "v2vt", "v2v_text", "v2vt_text")
_OF_SHOTS = ("temporal", "temporal_doc", "temporal_text", *_GROUNDING, *_SALIENCY)
_OF_DOCUMENT = ("temporal_doc", "saliency_doc")


@dataclass(frozen=True)
class Origin:
    """Where a video's parts are from, for messages: names of the two files.

    without: why there is no HDF5 for the video; only read where there is none.
    """

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
) -> Record | str:
    """One video's record, or in one line where JSON and HDF5 first disagree.

    Args:
        arrays: its HDF5; None without.
        slack: by how many frames JSON and HDF5 may differ: in where things are in the video, and in
            how many are sampled, of which then what both have is taken.
    """
    if arrays is not None and (why := _disagree(given, arrays, origin, slack)):
        return why
    picks = [frame.frame_id for frame in given.frames]
    picks = list(arrays.picks[: len(picks)]) if arrays else picks  # what both have
    frames = [_numbers(given, picks, arrays, place) for place in range(len(given.clips))]
    kept = [place for place, numbers in enumerate(frames) if numbers]
    if not kept:
        return f"{origin.json}, clips: no shot has a sampled frame"
    renumbered = {place: number for number, place in enumerate(kept, 1)}
    scores, unscored = _importance(arrays, origin)
    record = Record(
        source=source,
        video=video,
        name=(given.video_name or "").strip() or (arrays.video_name if arrays else ""),
        frames=tuple(
            Frame(
                picks[place],
                frame.description,
                frame.is_gt,
                None if scores is None else scores[place],
            )
            for place, frame in enumerate(given.frames[: len(picks)])
        ),
        shots=tuple(
            Shot(tuple(frames[place]), given.clips[place].summary, given.clips[place].gt)
            for place in kept
        ),
        document=_sentences(given.aligned_full_document, renumbered),
        summary=_sentences(given.aligned_text_summary, renumbered),
        n_frames=arrays.n_frames if arrays else None,
        gaps={},
        tagged=given.aligned_text_summary.raw_text or "",
    )
    record.gaps.update(_gaps(record, origin, unscored))
    return record


def _disagree(given: JsonVideo, arrays: Arrays, origin: Origin, slack: int) -> str:
    """Where the two first differ, or ""."""

    def told(ours: str, here: object, theirs: str, there: object) -> str:
        return f"{origin.json}, {ours}: {here}, but {origin.hdf5}, {theirs}: {there}"

    for n, (frame, pick) in enumerate(zip(given.frames, arrays.picks, strict=False), 1):
        if abs(frame.frame_id - pick) > slack:
            at = f"frames, entry {n}, frame_id"
            return told(at, frame.frame_id, f"picks, entry {n}", pick)
    if abs(len(given.frames) - len(arrays.picks)) > slack:
        return told("frames", len(given.frames), "picks", len(arrays.picks))
    for n, (frame, flag) in enumerate(zip(given.frames, arrays.gtframe or (), strict=False), 1):
        if frame.is_gt != flag:
            at = f"frames, entry {n}, is_gt"
            return told(at, int(frame.is_gt), f"gtframe, entry {n}", int(flag))
    if len(given.clips) != len(arrays.change_points):
        return told("clips", len(given.clips), "change_points", len(arrays.change_points))
    for n, (clip, shot) in enumerate(zip(given.clips, arrays.change_points, strict=True), 1):
        for number, frame_id in enumerate(clip.frames, 1):
            if not shot[0] - slack <= frame_id <= shot[1] + slack:
                at, span = f"clips, entry {n}, frames, entry {number}", f"{shot[0]} to {shot[1]}"
                return told(at, frame_id, f"change_points, entry {n}", span)
    return ""


def _numbers(
    given: JsonVideo, picks: Sequence[int], arrays: Arrays | None, place: int
) -> list[int]:
    """Numbers from 1 of the sampled frames of a clip."""
    if arrays is None:
        return [1 + bisect_left(picks, frame) for frame in given.clips[place].frames]
    first, last = arrays.change_points[place]
    return list(range(1 + bisect_left(picks, first), 1 + bisect_right(picks, last)))


def _importance(arrays: Arrays | None, origin: Origin) -> tuple[tuple[float, ...] | None, str]:
    """`gtscore`, or why it cannot be used."""
    if arrays is None:
        return None, origin.without
    if arrays.gtscore is None:
        return None, f"{origin.hdf5}, gtscore: the dataset is missing"
    for number, score in enumerate(arrays.gtscore, 1):
        if not math.isfinite(score):
            return None, f"{origin.hdf5}, gtscore, entry {number}: {score}, no finite number"
    return arrays.gtscore, ""


def _sentences(block: Block, renumbered: dict[int, int]) -> tuple[Sentence, ...]:
    return tuple(
        Sentence(text, tuple(renumbered[shot] for shot in shots if shot in renumbered))
        for text, shots in zip(block.sentences, block.shots(), strict=True)
    )


def _gaps(record: Record, origin: Origin, unscored: str) -> dict[str, str]:
    """What single tasks need and the record lacks -> why, by the task's name without `haven_`.

    Of several reasons for one task the first below is told. Importances that are all equal are no
    gap: the correlation is undefined, and scoring says so.
    """
    name = origin.json
    found: dict[str, str] = {}

    def lacks(why: str, tasks: Sequence[str]) -> None:
        for task in tasks:
            found.setdefault(task, why)

    if len(record.shots) == 1:
        lacks(f"{name}, clips: only one shot has sampled frames", _OF_SHOTS)
    if unscored:
        lacks(unscored, _SALIENCY)
    if not record.summary:
        lacks(f"{name}, aligned_text_summary: there is none", _OF_SUMMARY)
    elif not any(sentence.shots for sentence in record.summary):
        lacks(f"{name}, aligned_text_summary, alignments: no sentence has a shot", _GROUNDING)
    if not record.key_shots:
        lacks(f"{name}, clips: none is a key shot (gt)", _OF_KEYFRAMES)
    if not record.document:
        lacks(f"{name}, aligned_full_document: there is none", _OF_DOCUMENT)
    if not any(frame.description for frame in record.frames):
        lacks(f"{name}, frames: none has a description", _FRAME_TEXTS)
    if not any(shot.description for shot in record.shots):
        lacks(f"{name}, clips: none has a summary", _SHOT_TEXTS)
    return found
