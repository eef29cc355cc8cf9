"""One video of HAVEN as the tasks need it, from its JSON and its HDF5 (paper, 3.1).

Shots are the ranges of `change_points`; without HDF5 they are the frames that each clip lists. A
shot without a sampled frame is dropped with its clip, and those after it count one less, in the
alignments too. A sentence may so lose all its shots: it stays, with no shot.

With HDF5, its `picks` have to be the JSON's frames, and a clip's `frames` have to lie inside its
shot, but need not be all of them.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

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
    path: Path = Path()

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


def join(
    source: str, video: str, given: JsonVideo, arrays: Arrays | None, without: str = ""
) -> Record:
    """One video's record.

    Args:
        arrays: its HDF5; None without.
        without: why there is none.

    Raises:
        DataError: where JSON and HDF5 first disagree.
    """
    text, hdf5 = f"{source}_data.json", f"{source}.h5"
    picks, scores = [frame.frame_id for frame in given.frames], list[float]()
    if arrays is None:
        shots = [[1 + bisect_left(picks, one) for one in clip.frames] for clip in given.clips]
    else:
        if why := next(_disagreements(given, picks, arrays), ""):
            raise DataError(f"{text} and {hdf5}, {why}")
        shots = [
            list(range(1 + bisect_left(picks, first), 1 + bisect_right(picks, last)))
            for first, last in arrays.change_points
        ]
        without = ""
        if arrays.gtscore is None:
            without = f"{hdf5}, gtscore: the dataset is missing"
        elif odd := [n for n, one in enumerate(arrays.gtscore, 1) if not math.isfinite(one)]:
            told = f"entry {odd[0]}: {arrays.gtscore[odd[0] - 1]}, no finite number"
            without = f"{hdf5}, gtscore, {told}"
        else:
            scores = list(arrays.gtscore)
    kept = [place for place, own in enumerate(shots) if own]
    if not kept:
        raise DataError(f"{text}, clips: no shot has a sampled frame")
    renumbered = {place: number for number, place in enumerate(kept, 1)}

    def aligned(block: Block) -> list[Numbers]:
        return [[renumbered[n] for n in own if n in renumbered] for _, own in block.told]

    document, summary = given.aligned_full_document, given.aligned_text_summary
    record = Record(
        source=source,
        video=video,
        name=(given.video_name or "").strip() or (arrays.video_name if arrays else ""),
        picks=picks,
        descriptions=[frame.description for frame in given.frames],
        keyframes=[number for number, frame in enumerate(given.frames, 1) if frame.is_gt],
        shots=[shots[place] for place in kept],
        shot_texts=[given.clips[place].summary for place in kept],
        key_shots=[renumbered[place] for place in kept if given.clips[place].gt],
        document=[text for text, _ in document.told],
        document_shots=aligned(document),
        summary=[text for text, _ in summary.told],
        summary_shots=aligned(summary),
        scores=scores,
        n_frames=arrays.n_frames if arrays else None,
        tagged=summary.raw_text or "",
    )
    lacks = [(why, tasks) for is_so, why, tasks in _gaps(record, text, without) if is_so]
    # Of several reasons for one task the first is told.
    record.gaps.update({task: why for why, tasks in reversed(lacks) for task in tasks})
    return record


def _disagreements(given: JsonVideo, picks: Numbers, arrays: Arrays) -> Iterator[str]:
    """Where JSON and HDF5 differ, the first one first."""
    marked, n = [frame.is_gt for frame in given.frames], len(picks)
    if picks != list(arrays.picks):
        yield f"picks: not the frame_id of the {n} frames"
    if arrays.gtframe is not None and marked != list(arrays.gtframe):
        yield f"gtframe: not the is_gt of the {n} frames"
    if arrays.gtscore is not None and len(arrays.gtscore) != n:
        yield f"{n} frames, but {len(arrays.gtscore)} gtscore"
    if picks[-1] >= arrays.n_frames:
        yield f"frame {picks[-1]} is beyond the end; n_frames is {arrays.n_frames}"
    if len(given.clips) != len(arrays.change_points):
        yield f"{len(given.clips)} clips, but {len(arrays.change_points)} change_points"
    end = -1
    for clip, (first, last) in zip(given.clips, arrays.change_points, strict=False):
        if not end < first <= last:
            yield f"change_points: {first} to {last} after {end}"
        if outside := [one for one in clip.frames if not first <= one <= last]:
            yield f"clips: frame {outside[0]}, but change_points {first} to {last}"
        end = last


_SALIENCY = ("saliency", "saliency_doc", "saliency_text")
_GROUNDING = ("grounding", "grounding_text")
_OF_SHOTS = ("temporal", "temporal_doc", "temporal_text", *_GROUNDING, *_SALIENCY)
_OF_SUMMARY = ("v2t", "v2vt", "v2t_text", "v2vt_text", *_GROUNDING)
_OF_KEYFRAMES = ("v2v", "v2vt", "v2v_text", "v2vt_text")
_WITH_DOCUMENT = ("temporal_doc", "saliency_doc")
_PROXIES = tuple(f"{kind}_text" for kind in KINDS)  # the first three show frames, the others shots


def _gaps(record: Record, name: str, without: str) -> list[tuple[bool, str, Collection[str]]]:
    """What single tasks need, named without `haven_`: whether the record lacks it, and its words.

    Importances that are all equal are no gap: the correlation is undefined, and scoring says so.
    """
    summary = f"{name}, aligned_text_summary"
    unaligned = not any(record.summary_shots)
    return [
        (len(record.shots) == 1, f"{name}, clips: only one shot has sampled frames", _OF_SHOTS),
        (bool(without), without, _SALIENCY),
        (not record.summary, f"{summary}: there is none", _OF_SUMMARY),
        (unaligned, f"{summary}, alignments: no sentence has a shot", _GROUNDING),
        (not record.key_shots, f"{name}, clips: none is a key shot (gt)", _OF_KEYFRAMES),
        (not record.document, f"{name}, aligned_full_document: there is none", _WITH_DOCUMENT),
        (not any(record.descriptions), f"{name}, frames: none has a description", _PROXIES[:3]),
        (not any(record.shot_texts), f"{name}, clips: none has a summary", _PROXIES[3:]),
    ]
