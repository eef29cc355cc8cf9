"""The JSON of one video as released: frames, clips, document and summary (3.1).

Read are the fields below; others, among them `status` (a flag of the annotators' filter, whose
values the release does not explain), are let be.

A description may be absent, null, blank or taken by the filter. A document or a summary that is
absent or has no sentence with a text is a gap of the tasks that need it (record.py). A
sentence without a text among others is an error: to drop it would shorten the reference unseen.
What cannot be is refused with the place of the first error; entries count from 1.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from lmms_eval_tasks.utils.validation import quoted, told

# In place of a description that a model's content filter refused.
_FILTERED = "[CONTENT_FILTERED]"
# Sentences are made as "[Shots 3-5] ...": left in, such a tag would tell the order.
_TAG = re.compile(r"^\s*\[Shots?\s*[\d\s,;&and\u2013-]*\]\s*", re.IGNORECASE)


def _flag(value: Any) -> Any:
    """True and false, also as 1 and 0; pydantic alone would take "yes" as well."""
    if isinstance(value, (bool, int, float)) and value in (0, 1):
        return bool(value)
    raise ValueError(f"expected true or false, or 1 or 0, found {quoted(value)}")


def _described(value: Any) -> Any:
    """A description, "" where there is none."""
    if value is None or (isinstance(value, str) and value.strip() == _FILTERED):
        return ""
    return value


def _untagged(value: Any) -> Any:
    return _TAG.sub("", value) if isinstance(value, str) else value


def _key(value: Any) -> Any:
    return False if value is None else _flag(value)


Flag = Annotated[bool, BeforeValidator(_flag)]
KeyShot = Annotated[bool, BeforeValidator(_key)]
Index = Annotated[int, Field(ge=0, strict=True)]
Description = Annotated[str, StringConstraints(strip_whitespace=True), BeforeValidator(_described)]
Text = Annotated[  # "" where there is none
    str,
    StringConstraints(strip_whitespace=True),
    BeforeValidator(_described),  # after _untagged: pydantic goes from the last to the first
    BeforeValidator(_untagged),
]


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True)


class JsonFrame(_Entry):
    """A sampled frame; `frame_id` is its index among the original video's frames, from 0."""

    frame_id: Index
    description: Description = ""
    is_gt: Flag


class JsonClip(_Entry):
    """A shot. `frames` are frame_ids.

    `clip_id` as a number is the clip's place, from 0 or, in all clips, from 1; another text is a
    name. Either way alignments name shots by their place from 0. `gt`, whether it is a key shot,
    ranks nothing.
    """

    clip_id: int | str | None = None
    summary: Description = ""
    gt: KeyShot = False
    frames: tuple[Index, ...]


class Alignment(_Entry):
    """The shots of a sentence; both count from 0."""

    sentence_id: Index
    shot_ids: tuple[Index, ...]


class Block(_Entry):
    """The document or the summary; one that is not there is empty."""

    sentences: tuple[Text, ...]
    alignments: tuple[Alignment, ...]
    raw_text: str | None = None  # the sentences with tags of their shots

    def shots(self) -> list[tuple[int, ...]]:
        """Of each sentence the shots from 0, ascending; a sentence without alignment has none."""
        by_sentence = {one.sentence_id: one.shot_ids for one in self.alignments}
        return [tuple(sorted(set(by_sentence.get(i, ())))) for i in range(len(self.sentences))]


EMPTY = Block(sentences=(), alignments=())


def _block(value: Any) -> Any:
    """What holds no sentence with a text is the empty block, whatever is aligned to it."""
    if value is None or value == {}:
        return EMPTY
    if not isinstance(value, dict) or "sentences" not in value:
        return value
    sentences = [] if value["sentences"] is None else value["sentences"]
    if not isinstance(sentences, list) or (not sentences and value.get("alignments")):
        return value
    texts = [_described(_untagged(one)) for one in sentences]
    return value if any(not isinstance(one, str) or one.strip() for one in texts) else EMPTY


Told = Annotated[Block, BeforeValidator(_block)]


class JsonVideo(_Entry):
    """One video."""

    frames: tuple[JsonFrame, ...]
    clips: tuple[JsonClip, ...]
    aligned_full_document: Told = EMPTY
    aligned_text_summary: Told = EMPTY
    video_name: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> JsonVideo:
        for why in (
            _wrong_frames(self.frames),
            _wrong_clips(self.clips, [frame.frame_id for frame in self.frames]),
            _wrong_block("aligned_full_document", self.aligned_full_document, len(self.clips)),
            _wrong_block("aligned_text_summary", self.aligned_text_summary, len(self.clips)),
        ):
            if why:
                raise ValueError(why)
        return self


def read(value: Any) -> JsonVideo | str:
    """One video's JSON, or in one line where its first error is and what it is."""
    if not isinstance(value, dict):
        return f"expected an object, found {quoted(value)}"
    try:
        return JsonVideo.model_validate(value)
    except ValidationError as error:
        return told(error)


def _wrong_frames(frames: tuple[JsonFrame, ...]) -> str:
    if not frames:
        return "frames: there are none"
    last = -1
    for number, frame in enumerate(frames, 1):
        if frame.frame_id <= last:
            how = "is there already" if frame.frame_id == last else f"comes after {last}"
            return f"frames, entry {number}, frame_id: {frame.frame_id} {how}; expected ascending"
        last = frame.frame_id
    return ""


def _wrong_clips(clips: tuple[JsonClip, ...], frame_ids: list[int]) -> str:
    if not clips:
        return "clips: there are none, so the video has no shot"
    if why := _wrong_ids(clips):
        return why
    last = -1
    for place, clip in enumerate(clips):
        where = f"clips, entry {place + 1}"
        for number, frame in enumerate(clip.frames, 1):
            at = bisect_left(frame_ids, frame)
            if at == len(frame_ids) or frame_ids[at] != frame:
                return f"{where}, frames, entry {number}: {frame} is no frame_id of `frames`"
            if frame <= last:
                return f"{where}, frames, entry {number}: {frame} comes after {last}"
            last = frame
    return ""


def _wrong_ids(clips: tuple[JsonClip, ...]) -> str:
    """Clips out of order would shift all alignments. The first number says where they start."""
    start = None
    for place, clip in enumerate(clips):
        named = clip.clip_id
        if isinstance(named, str):
            named = int(named) if named.isdecimal() else None
        if named is None:
            continue
        expected = (place, place + 1) if start is None else (place + start,)
        if named not in expected:
            wanted = " or ".join(map(str, expected))
            return (
                f"clips, entry {place + 1}, clip_id: expected {wanted} (clips in order, from 0 or "
                f"from 1), found {named}"
            )
        start = named - place
    return ""


def _wrong_block(name: str, block: Block, n_shots: int) -> str:
    for number, text in enumerate(block.sentences, 1):
        if not text:
            return f"{name}, sentences, entry {number}: expected a text, found an empty one"
    seen = set()
    for number, one in enumerate(block.alignments, 1):
        where = f"{name}, alignments, entry {number}"
        if one.sentence_id >= len(block.sentences):
            return (
                f"{where}, sentence_id: {one.sentence_id} is no sentence; there are "
                f"{len(block.sentences)}, counted from 0"
            )
        if one.sentence_id in seen:
            return f"{where}, sentence_id: {one.sentence_id} is aligned twice"
        seen.add(one.sentence_id)
        for shot in one.shot_ids:
            if shot >= n_shots:
                return f"{where}, shot_ids: {shot} is no shot; there are {n_shots}, counted from 0"
    return ""
