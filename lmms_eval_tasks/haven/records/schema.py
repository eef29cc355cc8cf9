"""What is read of a released video, checked: its JSON, and its HDF5 group (paper, 3.1).

A description may be absent, null, blank or taken by the annotators' filter; a document or a summary
without any text is a gap of the tasks that need it (record.py). What is not read, such as `status`,
is let be. What cannot be is refused with the place of the first error; entries count from 1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils.validation import told

# --- the JSON of one video ------------------------------------------------------------------------

# In place of a description that a model's content filter refused.
_FILTERED = "[CONTENT_FILTERED]"
# Sentences are made as "[Shots 3-5] ...": left in, such a tag would tell the order.
_TAG = re.compile(r"^\s*\[Shots?\s*[\d\s,;&and\u2013-]*\]\s*", re.IGNORECASE)


def _plain(value: Any) -> Any:
    """A text, "" where there is none."""
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
    def told(self) -> list[tuple[str, list[int]]]:
        """Each sentence and its shots from 0, ascending; without alignment it has none."""
        if not any(self.sentences):
            return []
        shots = {one.sentence_id: sorted(set(one.shot_ids)) for one in self.alignments}
        return [(text, shots.get(place, [])) for place, text in enumerate(self.sentences)]

    def check(self, n_shots: int) -> None:
        """Whether each sentence is a text and aligned once at most, with shots that there are."""
        if self.told and "" in self.sentences:  # to drop it would shorten the reference unseen
            place = self.sentences.index("") + 1
            raise ValueError(f"sentences, entry {place}: expected a text, found an empty one")
        ids = [one.sentence_id for one in self.alignments]
        if self.told and (max(ids, default=-1) >= len(self.sentences) or len({*ids}) < len(ids)):
            raise ValueError(f"alignments: sentence_id twice, or of no sentence: {ids}")
        if (last := max((n for _, own in self.told for n in own), default=-1)) >= n_shots:
            told_of = f"{last} is no shot; there are {n_shots}, counted from 0"
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
        # Clips out of order would shift all alignments.
        for what, own in (("frames, frame_id", known), ("frames of all clips", inside)):
            for place, (before, number) in enumerate(pairwise(own), 2):
                if number <= before:
                    told_of = f"{number} comes after {before}; expected ascending"
                    raise ValueError(f"{what}, entry {place}: {told_of}")
        if stray := sorted({*inside} - {*known}):
            raise ValueError(f"clips, frames: {stray[0]} is no frame_id of `frames`")
        for name in ("aligned_full_document", "aligned_text_summary"):
            try:
                getattr(self, name).check(len(self.clips))
            except ValueError as error:
                raise ValueError(f"{name}, {error}") from None
        return self


def read_json(value: Any, where: str) -> JsonVideo:
    """One video's JSON.

    Raises:
        DataError: `where`, the place of its first error, and what it is.
    """
    try:
        return JsonVideo.model_validate(value)
    except ValidationError as error:
        raise DataError(f"{where}, {told(error)}") from None


# --- its arrays -----------------------------------------------------------------------------------


def _name(value: Any) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return text.strip() if isinstance(text, str) else ""


Whole = Annotated[int, Field(ge=0)]  # of any numeric type
_SINGLE = BeforeValidator(lambda v: v[0] if isinstance(v, list) and len(v) == 1 else v)


class Arrays(_Entry):
    """What is read of a video's HDF5 group; what it has to agree with is in the JSON (record.py).

    Attributes:
        picks: (F,) indices of the sampled frames among the original video's, from 0.
        change_points: (S, 2) first and last original frame of each shot, ascending.
        n_frames: number of frames of the original video.
        gtscore: (F,) importance of the sampled frames, possibly NaN or infinite; None without.
        gtframe: (F,) whether a sampled frame is a true keyframe; None without.
        video_name: the original video's, "" without.
    """

    picks: tuple[Whole, ...]
    change_points: tuple[tuple[Whole, Whole], ...]
    n_frames: Annotated[Whole, _SINGLE]
    gtscore: tuple[float, ...] | None = None
    gtframe: tuple[bool, ...] | None = None
    video_name: Annotated[str, BeforeValidator(_name)] = ""


def read_arrays(file: Path, videos: Sequence[str]) -> dict[str, Arrays | str]:
    """The arrays of those videos that are there, or in one line what is wrong with them.

    Raises:
        DataError: the file is no HDF5 file or is cut off.
    """
    import h5py

    def one(group: Any) -> Arrays | str:
        try:
            held = {name: group[name][()] for name in Arrays.model_fields if name in group}
            plain = {n: v.tolist() if hasattr(v, "tolist") else v for n, v in held.items()}
            return Arrays.model_validate(plain)
        except ValidationError as error:
            return told(error)
        except (OSError, AttributeError, TypeError, ValueError) as error:
            return f"cannot be read: {error}"  # a damaged block, or no group of datasets

    try:
        with h5py.File(file, "r") as store:
            return {video: one(store[video]) for video in videos if video in store}
    except OSError as error:
        raise DataError(f"{file}: not a readable HDF5 file: {error}") from None
