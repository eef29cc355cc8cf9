"""Types of MAVERIX's docs and items: questions with eight options, and open questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import NotRequired, ReadOnly, TypedDict

from lmms_eval_tasks.benchmark import Scored
from lmms_eval_tasks.utils.metrics.rating_means import DimensionRating


class _Question(TypedDict):
    id: ReadOnly[str]  # ID; ID/original, ID/paraphrase; ID/r0 to ID/r7
    question_id: ReadOnly[str]  # ID
    video: ReadOnly[str]
    mode: ReadOnly[str]  # slug of the input mode (labels.MODES)
    length: ReadOnly[str]  # localized: a segment; long: the whole video
    start: ReadOnly[float | None]  # seconds; None for `start` and `end` means the whole video
    end: ReadOnly[float | None]
    data: ReadOnly[str]  # the release's hash
    difficulty: ReadOnly[str]  # from here on slugs of labels.SPLITS; "" without a label
    agentic: ReadOnly[str]
    audio: ReadOnly[str]
    topic: ReadOnly[str]
    ability: ReadOnly[str]
    duration: ReadOnly[str]


class ChoiceQuestion(_Question):
    """A question with its options, or a rotation of it: the fields that docs and log share."""

    options: ReadOnly[Sequence[str]]  # eight, A to H
    rotation: NotRequired[ReadOnly[int]]  # 0 to 7, the places by which the options are moved up
    answer: ReadOnly[str]  # letter of the right option


class OpenQuestion(_Question):
    """One wording of an open question: the fields that docs and the log share."""

    # True if the wording is another question's; missing in older runs.
    borrowed: NotRequired[ReadOnly[bool]]
    question: ReadOnly[str]
    version: ReadOnly[str]  # original or paraphrase
    reference: ReadOnly[str]


class ShownFiles(TypedDict):
    """The files that are shown with a question."""

    video_path: ReadOnly[str]
    subtitle_path: ReadOnly[str]  # "" without subtitles


class ShownWindow(ShownFiles):
    """The files with the segment in them; both ends are None for the whole file."""

    start: ReadOnly[float | None]
    end: ReadOnly[float | None]


class AskedItem(_Question, ShownFiles):
    """The fields that all docs of an item share."""

    question: ReadOnly[str]


class ChoiceDoc(ChoiceQuestion, ShownFiles):
    """A doc of a question with eight options."""

    question: ReadOnly[str]


class OpenDoc(OpenQuestion, ShownFiles):
    """A doc of one wording of an open question."""

    references: ReadOnly[Sequence[str]]  # the reference, for scripted models
    lure: ReadOnly[str]  # a wrong option, for scripted models


class MaverixHanded(TypedDict):
    """The sound and the media that reached the model."""

    hears: ReadOnly[Mapping[str, str]]  # state of sound (metrics.SOUND) in each mode with sound
    sound: ReadOnly[str]  # state in the item's own mode; "" for a mode without sound
    # `subtitles`, True if they were shown; the segment in seconds, and `n_frames`, 0 without
    # picture. None if a file has disappeared or nothing is known.
    media: ReadOnly[Mapping[str, object] | None]


class KeptChoice(ChoiceQuestion, MaverixHanded):
    """The fields of a question with options in the log."""


class KeptOpen(OpenQuestion, MaverixHanded):
    """The fields of an open question in the log."""


class ChoiceScore(Scored):
    """The letter of a reply and its verdict; None if scoring failed."""

    letter: ReadOnly[str | None]  # the letter in the reply
    read_by: ReadOnly[str | None]  # the rule that found the letter
    letter_authors: ReadOnly[str | None]  # the letter that the authors' code reads; "" if none
    right: ReadOnly[int | None]  # 1 or 0
    words: ReadOnly[int]  # words of the reply without reasoning


class OpenScore(Scored):
    """The judge's ratings of an open answer."""

    candidate: ReadOnly[str]  # the answer without reasoning; "" if there is none
    dimensions: ReadOnly[
        Mapping[str, DimensionRating]
    ]  # 0 to 5 each (labels.DIMENSIONS, CONSISTENCY)
    words: ReadOnly[int]  # words of the reply without reasoning


class ChoiceItem(KeptChoice, ChoiceScore):
    """A reply to a question with options, with its score."""


class OpenItem(KeptOpen, OpenScore):
    """An answer to an open question, with its ratings."""


class AnyItem(TypedDict):
    """The fields that items of all kinds share, for counts."""

    status: ReadOnly[str]
    mode: ReadOnly[str]
    words: ReadOnly[int]
    hears: ReadOnly[Mapping[str, str]]
    sound: ReadOnly[str]
