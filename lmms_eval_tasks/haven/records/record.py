"""One video of HAVEN: the checked fields of its JSON and its HDF5, and the record of both (3.1).

A description may be absent, null, blank or removed by the annotators' filter. If the document or
the summary has no text, the tasks that need it have a gap. Fields that are not read, such as
`status`, may hold anything. An impossible value is an error whose message names the first place;
entries count from 1.

Shots are the ranges of `change_points`; without HDF5, shots are the frames that each clip lists. A
shot without a sampled frame is dropped with its clip. The shots after it count one less, also in
the alignments. A sentence that loses all its shots this way stays, without a shot. With HDF5,
`picks` have to be the JSON's frames. The `frames` of a clip have to lie inside its shot, but may be
only some of the shot's frames.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.options import KINDS
from lmms_eval_tasks.utils import extras, json_files
from lmms_eval_tasks.utils.validation import FileName, validation_problems

# --- the JSON of one video ------------------------------------------------------------------------

# The release's text for a description that a model's content filter refused.
_FILTERED = "[CONTENT_FILTERED]"
# Sentences are written as "[Shots 3-5] ...". Such a tag would reveal the order.
_TAG = re.compile(r"^\s*\[Shots?\s*[\d\s,;&and\u2013-]*\]\s*", re.IGNORECASE)


def _plain(value: Any) -> Any:
    """Return a text without tags of shots; "" if there is none."""
    if isinstance(value, str):
        value = _TAG.sub("", value).strip()
    return "" if value in (None, _FILTERED) else value


Text = Annotated[str, BeforeValidator(_plain)]
Index = Annotated[int, Field(ge=0, strict=True)]
_LISTED = BeforeValidator(lambda value: () if value is None else value)


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True)


class JsonFrame(_Entry):
    """A sampled frame; `frame_id` is its index among the original video's frames, from 0."""

    frame_id: Index
    description: Text = ""
    is_gt: bool


class JsonClip(_Entry):
    """A shot; `frames` are frame_ids, and `gt` says whether it is a key shot."""

    summary: Text = ""
    gt: bool | None = None
    frames: tuple[Index, ...]


class Alignment(_Entry):
    """The shots of a sentence; both count from 0."""

    sentence_id: Index
    shot_ids: tuple[Index, ...]


class Block(_Entry):
    """The document or the summary; without any text it is none, whatever is aligned to it."""

    sentences: Annotated[tuple[Text, ...], _LISTED]
    alignments: Annotated[tuple[Alignment, ...], _LISTED]
    raw_text: str | None = None  # the sentences with tags of their shots

    @property
    def sentence_shots(self) -> list[tuple[str, list[int]]]:
        """Each sentence with its shots, ascending from 0.

        A sentence without an alignment has no shot.
        """
        if not any(self.sentences):
            return []
        shots = {one.sentence_id: sorted(set(one.shot_ids)) for one in self.alignments}
        return [(text, shots.get(place, [])) for place, text in enumerate(self.sentences)]

    def check(self, n_shots: int) -> None:
        """Raise a ValueError for an empty sentence, two alignments of one, or an unknown shot."""
        if (
            self.sentence_shots and "" in self.sentences
        ):  # dropping it would shorten the reference unnoticed
            place = self.sentences.index("") + 1
            raise ValueError(f"sentences, entry {place}: expected a text, found an empty one")
        ids = [one.sentence_id for one in self.alignments]
        if self.sentence_shots and (
            max(ids, default=-1) >= len(self.sentences) or len({*ids}) < len(ids)
        ):
            raise ValueError(
                f"alignments: a sentence_id occurs twice, or belongs to no sentence: {ids}"
            )
        if (last := max((n for _, own in self.sentence_shots for n in own), default=-1)) >= n_shots:
            told_of = f"{last} is not a shot; there are {n_shots}, counted from 0"
            raise ValueError(f"alignments, shot_ids: {told_of}")


NO_BLOCK = Block(sentences=(), alignments=())
Told = Annotated[Block, BeforeValidator(lambda value: value or NO_BLOCK)]


class JsonVideo(_Entry):
    """One video; alignments name a clip by its place from 0."""

    frames: Annotated[tuple[JsonFrame, ...], Field(min_length=1)]
    clips: Annotated[tuple[JsonClip, ...], Field(min_length=1)]
    aligned_full_document: Told = NO_BLOCK
    aligned_text_summary: Told = NO_BLOCK
    video_name: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> JsonVideo:
        known = [frame.frame_id for frame in self.frames]
        inside = [frame for clip in self.clips for frame in clip.frames]
        # Clips in another order would shift all alignments.
        for what, own in (("frames, frame_id", known), ("frames of all clips", inside)):
            for place, (before, number) in enumerate(pairwise(own), 2):
                if number <= before:
                    told_of = f"{number} comes after {before}; expected ascending"
                    raise ValueError(f"{what}, entry {place}: {told_of}")
        if stray := sorted({*inside} - {*known}):
            raise ValueError(f"clips, frames: {stray[0]} is not a frame_id of `frames`")
        for name in ("aligned_full_document", "aligned_text_summary"):
            try:
                getattr(self, name).check(len(self.clips))
            except ValueError as error:
                raise ValueError(f"{name}, {error}") from None
        return self


# --- the arrays of one video --------------------------------------------------------------------


def _name(value: Any) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return text.strip() if isinstance(text, str) else ""


Whole = Annotated[int, Field(ge=0)]  # a whole number of any numeric type
_SINGLE = BeforeValidator(lambda v: v[0] if isinstance(v, list) and len(v) == 1 else v)


class Arrays(_Entry):
    """What is read of a video's HDF5 group; it has to agree with the JSON (`_disagreements`)."""

    picks: tuple[Whole, ...]  # (F,) indices of the sampled frames in the original video, from 0
    change_points: tuple[tuple[Whole, Whole], ...]  # (S, 2) first and last frame, ascending
    n_frames: Annotated[Whole, _SINGLE]  # number of frames of the original video
    gtscore: tuple[float, ...] | None = None  # (F,) importance, possibly NaN or infinite
    gtframe: tuple[bool, ...] | None = None  # (F,) True for a true keyframe
    video_name: Annotated[str, BeforeValidator(_name)] = ""  # name of the original video


_DAMAGED = (OSError, RuntimeError, KeyError)  # errors of h5py for a damaged file


def read_arrays(file: Path, videos: Sequence[str]) -> dict[str, Arrays | str]:
    """Return the arrays of those videos that the file holds, or a line that says what is wrong.

    Raises:
        DataError: the file is no HDF5 file or is cut off.
        TasksError: h5py is not installed.
    """
    extras.require("haven", f"{file}, with importance scores,")
    import h5py

    def read_group(group: Any) -> Arrays | str:
        try:
            there = [name for name in Arrays.model_fields if name in group]
            if sum(group[name].nbytes for name in there) > json_files.LARGEST:
                return f"arrays of more than {json_files.LARGEST:,} bytes"
            held = {name: group[name][()] for name in there}
            plain = {n: v.tolist() if hasattr(v, "tolist") else v for n, v in held.items()}
            return Arrays.model_validate(plain)
        except ValidationError as error:
            return validation_problems(error)
        except (*_DAMAGED, AttributeError, TypeError, ValueError) as error:
            return f"cannot be read: {error}"  # a damaged block, or a group without datasets

    json_files.check_input(file, math.inf)
    try:
        with h5py.File(file, "r") as store:
            # A name only, no path inside the file.
            named = [one for one in videos if one and _file_name(one) == one]
            return {video: read_group(store[video]) for video in named if video in store}
    except _DAMAGED as error:
        raise DataError(f"{file}: not a readable HDF5 file: {error}") from None


# --- the record ----------------------------------------------------------------------------------

Numbers = list[int]
_FILE_NAME: TypeAdapter[str] = TypeAdapter(FileName)


@dataclass(frozen=True)
class Record:
    """One video. Frames, shots and sentences are numbered from 1; only `picks` count from 0."""

    source: str  # a slug of options.SOURCES
    video: str  # the video's key in the release, such as `video_7`
    name: str  # name of the original video; "" if the release does not say it
    picks: Numbers  # indices of the sampled frames in the original video, ascending
    descriptions: list[str]  # description of each sampled frame, "" without one
    keyframes: Numbers  # the frames that `is_gt` marks
    shots: list[Numbers]  # each shot's sampled frames, at least one
    shot_texts: list[str]  # description of each shot, "" without one
    key_shots: Numbers  # shots whose frames are the true keyframes (not used for ranking)
    document: list[str]  # sentences of the document
    document_shots: list[Numbers]  # shots of each sentence of the document
    summary: list[str]
    summary_shots: list[Numbers]
    scores: list[float] = field(default_factory=list)  # `gtscore` of each frame; empty without HDF5
    n_frames: int | None = None  # number of frames of the original video; None without HDF5
    # Task name without `haven_` -> the field that this task needs and the record lacks. The task
    # leaves the video out and counts it.
    gaps: dict[str, str] = field(default_factory=dict)
    tagged: str = ""  # the summary as one text with tags of its shots; "" if there is none
    path: Path = Path()  # path of the video file, which may be missing

    @property
    def id(self) -> str:
        """The id over all sources, such as `tvsum/video_7`."""
        return f"{self.source}/{self.video}"

    @property
    def importance(self) -> list[float]:
        """Each shot's mean of `gtscore` over its sampled frames; empty without scores."""
        own = [[self.scores[n - 1] for n in shot] for shot in self.shots if self.scores]
        # Exact sums, so that the same scores in another order give the same importance.
        return [math.fsum(one) / len(one) for one in own]


def make_record(
    source: str, video: str, value: Any, arrays: Arrays | None, without: str, *, text: str
) -> Record:
    """Return the record of one video.

    Args:
        source: slug of the source.
        video: the video's key, which has to be a valid file name.
        value: the video's JSON.
        arrays: the video's HDF5 arrays; None without HDF5.
        without: the reason why there are no arrays.
        text: names of the files that the JSON comes from, for messages.

    Raises:
        DataError: the JSON or the HDF5 has an error, or the two disagree; the message names the
            first place.
    """
    hdf5 = f"{source}.h5"
    try:
        _FILE_NAME.validate_python(video)
        given = JsonVideo.model_validate(value)
    except ValidationError as error:
        raise DataError(f"{text}, {validation_problems(error)}") from None
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
            found = arrays.gtscore[odd[0] - 1]
            without = f"{hdf5}, gtscore, entry {odd[0]}: {found}, not a finite number"
        else:
            scores = list(arrays.gtscore)
    kept = [place for place, own in enumerate(shots) if own]
    if not kept:
        raise DataError(f"{text}, clips: no shot has a sampled frame")
    renumbered = {place: number for number, place in enumerate(kept, 1)}

    def aligned(block: Block) -> list[Numbers]:
        return [[renumbered[n] for n in own if n in renumbered] for _, own in block.sentence_shots]

    document, summary = given.aligned_full_document, given.aligned_text_summary
    record = Record(
        source=source,
        video=video,
        name=_file_name((given.video_name or "").strip() or (arrays.video_name if arrays else "")),
        picks=picks,
        descriptions=[frame.description for frame in given.frames],
        keyframes=[number for number, frame in enumerate(given.frames, 1) if frame.is_gt],
        shots=[shots[place] for place in kept],
        shot_texts=[given.clips[place].summary for place in kept],
        key_shots=[renumbered[place] for place in kept if given.clips[place].gt],
        document=[text for text, _ in document.sentence_shots],
        document_shots=aligned(document),
        summary=[text for text, _ in summary.sentence_shots],
        summary_shots=aligned(summary),
        scores=scores,
        n_frames=arrays.n_frames if arrays else None,
        tagged=summary.raw_text or "",
    )
    lacks = [(why, tasks) for is_so, why, tasks in _gaps(record, text, without) if is_so]
    # If a task has several gaps, the first one is reported.
    record.gaps.update({task: why for why, tasks in reversed(lacks) for task in tasks})
    return record


def _file_name(path: str) -> str:
    """Return a video's name without its folder; "" if it is no valid file name."""
    try:
        return _FILE_NAME.validate_python(PurePath(path).name)
    except ValidationError:
        return ""


def _disagreements(video: JsonVideo, picks: Numbers, arrays: Arrays) -> Iterator[str]:
    """Yield the places where JSON and HDF5 differ."""
    marked, n = [frame.is_gt for frame in video.frames], len(picks)
    if picks != list(arrays.picks):
        yield f"picks: differ from the frame_id of the {n} frames"
    if arrays.gtframe is not None and marked != list(arrays.gtframe):
        yield f"gtframe: differs from is_gt of the {n} frames"
    if arrays.gtscore is not None and len(arrays.gtscore) != n:
        yield f"{n} frames, but {len(arrays.gtscore)} gtscore"
    if picks[-1] >= arrays.n_frames:
        yield f"frame {picks[-1]} is beyond the end; n_frames is {arrays.n_frames}"
    if len(video.clips) != len(arrays.change_points):
        yield f"{len(video.clips)} clips, but {len(arrays.change_points)} change_points"
    end = -1
    for clip, (first, last) in zip(video.clips, arrays.change_points, strict=False):
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
# The first three kinds show frames, the others show shots.
_PROXIES = tuple(f"{kind}_text" for kind in KINDS)


def _gaps(record: Record, name: str, without: str) -> list[tuple[bool, str, Collection[str]]]:
    """Return the gaps of a record: True if it has the gap, a description, and the tasks concerned.

    Task names lack `haven_`. Importances that are all equal are no gap: the correlation is
    undefined then, and scoring reports that.
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
