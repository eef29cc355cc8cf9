"""Types of MAVERIX's docs and items: questions with eight options, and asked openly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import NotRequired, ReadOnly, TypedDict

from lmms_eval_tasks.benchmark import Scored
from lmms_eval_tasks.utils.metrics.rating_means import DimensionRating


class _Question(TypedDict):
    id: ReadOnly[str]  # ID; ID/original, ID/paraphrase; ID/r0 to ID/r7
    question_id: ReadOnly[str]  # ID
    video: ReadOnly[str]
    mode: ReadOnly[str]  # slug of what reaches the model (labels.MODES)
    length: ReadOnly[str]  # localized: a segment; long: the whole video
    start: ReadOnly[float | None]  # of the segment, in seconds; None and None is the whole video
    end: ReadOnly[float | None]
    data: ReadOnly[str]  # digest of the release
    difficulty: ReadOnly[str]  # slugs (labels.SPLITS); "" where it is not labelled
    agentic: ReadOnly[str]
    audio: ReadOnly[str]
    topic: ReadOnly[str]
    ability: ReadOnly[str]
    duration: ReadOnly[str]


class ChoiceQuestion(_Question):
    """A question with its options, or one rotation of it, as docs and the log have it."""

    options: ReadOnly[Sequence[str]]  # eight, A to H
    rotation: NotRequired[ReadOnly[int]]  # 0 to 7, by how many places they are moved up
    answer: ReadOnly[str]  # letter of the right one


class OpenQuestion(_Question):
    """One wording of a question that is asked openly, as docs and the log have it."""

    borrowed: NotRequired[ReadOnly[bool]]  # the wording is another question's; not in older runs
    question: ReadOnly[str]
    version: ReadOnly[str]  # original or paraphrase
    reference: ReadOnly[str]


class ShownFiles(TypedDict):
    """The files that are shown with a question."""

    video_path: ReadOnly[str]
    subtitle_path: ReadOnly[str]  # "" without


class ShownWindow(ShownFiles):
    """The files with the segment in them; None and None is all of them."""

    start: ReadOnly[float | None]
    end: ReadOnly[float | None]


class AskedItem(_Question, ShownFiles):
    """The fields that all docs of an item have."""

    question: ReadOnly[str]


class ChoiceDoc(ChoiceQuestion, ShownFiles):
    """A question with eight options."""

    question: ReadOnly[str]


class OpenDoc(OpenQuestion, ShownFiles):
    """A question that is asked openly."""

    references: ReadOnly[Sequence[str]]  # the reference, for scripted models
    lure: ReadOnly[str]  # a wrong option, for scripted models


class MaverixHanded(TypedDict):
    """Sound and media that reached the model."""

    hears: ReadOnly[Mapping[str, str]]  # state of sound (metrics.SOUND) in each mode that has any
    sound: ReadOnly[str]  # that of the item's own mode; "" without sound
    # Whether subtitles were shown, and the segment in seconds with its `n_frames`, 0 without
    # picture; None where a file is gone, or nothing is known.
    media: ReadOnly[Mapping[str, object] | None]


class KeptChoice(ChoiceQuestion, MaverixHanded):
    """A question with options in the log."""


class KeptOpen(OpenQuestion, MaverixHanded):
    """An open question in the log."""


class ChoiceScore(Scored):
    """Letters and verdict of a choice; None if its scoring broke."""

    letter: ReadOnly[str | None]  # that was read
    read_by: ReadOnly[str | None]  # the rule
    letter_authors: ReadOnly[str | None]  # that the authors' code reads; "" if none
    right: ReadOnly[int | None]  # 1 or 0
    words: ReadOnly[int]  # of the reply without reasoning


class OpenScore(Scored):
    """Ratings of an open answer."""

    candidate: ReadOnly[str]  # without reasoning; "" if it is no answer
    dimensions: ReadOnly[
        Mapping[str, DimensionRating]
    ]  # 0 to 5 each (labels.DIMENSIONS, CONSISTENCY)
    words: ReadOnly[int]  # of the reply without reasoning


class ChoiceItem(KeptChoice, ChoiceScore):
    """A reply to a question with options."""


class OpenItem(KeptOpen, OpenScore):
    """An answer to an open question."""


class AnyItem(TypedDict):
    """The fields that items of all kinds have, for counts."""

    status: ReadOnly[str]
    mode: ReadOnly[str]
    words: ReadOnly[int]
    hears: ReadOnly[Mapping[str, str]]
    sound: ReadOnly[str]
