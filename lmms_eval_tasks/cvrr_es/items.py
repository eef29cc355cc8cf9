"""Types of CVRR-ES's docs and items: questions, and answers of candidates that a judge rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import NotRequired, ReadOnly, TypedDict

from lmms_eval_tasks.benchmark import Scored


class CvrrShown(TypedDict):
    """The window of a video that is shown, muted (media/clips.py)."""

    video_path: ReadOnly[str]
    start: ReadOnly[float | None]  # in seconds; None and None is the whole file
    end: ReadOnly[float | None]
    n_frames: ReadOnly[int]  # images; 0 is the video as a file


# --- questions ------------------------------------------------------------------------------------


class CvrrFields(TypedDict):
    """A question, as docs and the log have it."""

    id: ReadOnly[str]  # DIMENSION/NNN
    dimension: ReadOnly[str]
    video: ReadOnly[str]  # DIMENSION/NAME
    reference: ReadOnly[str]
    question: ReadOnly[str]
    data: ReadOnly[str]  # digest of the release


class CvrrDoc(CvrrFields, CvrrShown):
    """A question of a dimension."""

    references: ReadOnly[Sequence[str]]  # the reference, for scripted models
    lure: ReadOnly[str]  # another question's, for scripted models


class KeptCvrr(CvrrFields):
    """A question in the log, with the model that answered."""

    candidate: ReadOnly[str]


class CvrrScore(Scored):
    """Verdict and points of an answer."""

    answer: ReadOnly[str]  # without reasoning; "" if it is no answer
    right: ReadOnly[float | None]  # 1 or 0, between them for a panel; None without a verdict
    points: ReadOnly[float | None]  # 0 to 5; None where the verdict's own cannot be told


class CvrrItem(KeptCvrr, CvrrScore):
    """An answer to a question."""


# --- answers that are rated -----------------------------------------------------------------------


class RatedAnswer(TypedDict):
    """A candidate's answer, as docs and the log have it."""

    id: ReadOnly[str]  # QUESTION/CANDIDATE
    dimension: ReadOnly[str]
    video: ReadOnly[str]  # DIMENSION/NAME
    candidate: ReadOnly[str]  # who answered; never shown
    answer: ReadOnly[str]  # as it stands, even if it is empty
    empty: ReadOnly[bool]  # it holds no letter, digit or symbol
    fell_back: ReadOnly[bool]  # the mixture's rule left no judge to show
    round: ReadOnly[str]  # one of labels.ROUNDS
    reference_rating: ReadOnly[float | None]  # 1 to 5; None if there is none yet
    others: ReadOnly[Sequence[Mapping[str, Any]]]  # ratings that are shown: RatingRow.as_dict
    data: ReadOnly[str]  # digest of the release


class RatingDoc(RatedAnswer, CvrrShown):
    """An answer that the model under test rates; nothing in it says what is right."""

    question_id: ReadOnly[str]
    question: ReadOnly[str]


class KeptRating(RatedAnswer):
    """A rated answer in the log, with the model that rated."""

    question: ReadOnly[str]  # its id
    asked: ReadOnly[str]  # its text
    judge: ReadOnly[str]


class RatingScore(Scored):
    """Rating and reason, read from a judge's reply."""

    rating: ReadOnly[int | None]  # 1 to 5
    reason: ReadOnly[str]  # "" if nothing


class RatingItem(KeptRating, RatingScore):
    """A judge's rating of an answer."""


class Compared(TypedDict):
    """The fields of a rating that kappa and leniency read; lmms-eval's table has no others."""

    id: ReadOnly[str]
    video: NotRequired[ReadOnly[str]]
    rating: ReadOnly[int | None]
    reference_rating: ReadOnly[float | None]
