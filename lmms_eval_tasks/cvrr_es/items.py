"""Types of CVRR-ES's docs and items: questions, and candidates' answers that a judge rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import NotRequired, ReadOnly, TypedDict

from lmms_eval_tasks.benchmark import Scored


class CvrrShown(TypedDict):
    """The muted video, or a window of it, that the model gets (media/clips.py)."""

    video_path: ReadOnly[str]
    start: ReadOnly[float | None]  # seconds; None in both: the whole file
    end: ReadOnly[float | None]
    n_frames: ReadOnly[int]  # number of images; 0: the video as a file


# --- questions ------------------------------------------------------------------------------------


class CvrrFields(TypedDict):
    """The fields of a question that docs and the log share."""

    id: ReadOnly[str]  # DIMENSION/NNN
    dimension: ReadOnly[str]
    video: ReadOnly[str]  # DIMENSION/NAME
    reference: ReadOnly[str]
    question: ReadOnly[str]
    data: ReadOnly[str]  # digest of the release


class CvrrDoc(CvrrFields, CvrrShown):
    """A question of a dimension, as the model under test gets it."""

    references: ReadOnly[Sequence[str]]  # the reference, for fake models
    lure: ReadOnly[str]  # another question's reference, for fake models


class KeptCvrr(CvrrFields):
    """A question in the log, with the model that answered."""

    candidate: ReadOnly[str]


class CvrrScore(Scored):
    """The verdict on an answer and its points."""

    answer: ReadOnly[str]  # without reasoning; "" if it is no answer
    right: ReadOnly[float | None]  # 1 or 0, between them for a panel; None without a verdict
    points: ReadOnly[float | None]  # 0 to 5; None if the judge's reply has no readable score


class CvrrItem(KeptCvrr, CvrrScore):
    """An answer to a question, with its score."""


# --- answers to rate ------------------------------------------------------------------------------


class RatedAnswer(TypedDict):
    """The fields of a candidate's answer that docs and the log share."""

    id: ReadOnly[str]  # QUESTION/CANDIDATE
    dimension: ReadOnly[str]
    video: ReadOnly[str]  # DIMENSION/NAME
    candidate: ReadOnly[str]  # the model that answered; never shown
    answer: ReadOnly[str]  # unchanged, even if empty
    empty: ReadOnly[bool]  # True if it has no letter, digit or symbol
    fell_back: ReadOnly[bool]  # True if the mixture's rule chose no judge
    round: ReadOnly[str]  # one of labels.ROUNDS
    reference_rating: ReadOnly[float | None]  # 1 to 5; None without a reference rating
    others: ReadOnly[Sequence[Mapping[str, Any]]]  # the shown ratings: RatingRow.as_dict
    data: ReadOnly[str]  # digest of the release


class RatingDoc(RatedAnswer, CvrrShown):
    """An answer that the model under test rates; has no reference answer."""

    question_id: ReadOnly[str]
    question: ReadOnly[str]


class KeptRating(RatedAnswer):
    """A rated answer in the log, with the model that rated."""

    question: ReadOnly[str]  # the question's id
    asked: ReadOnly[str]  # the question's text
    judge: ReadOnly[str]


class RatingScore(Scored):
    """Rating and reason, from a judge's reply."""

    rating: ReadOnly[int | None]  # 1 to 5
    reason: ReadOnly[str]  # "" if there is none


class RatingItem(KeptRating, RatingScore):
    """A judge's rating of an answer."""


class Compared(TypedDict):
    """The fields of a rating that kappa and leniency read; lmms-eval's table has no others."""

    id: ReadOnly[str]
    video: NotRequired[ReadOnly[str]]
    rating: ReadOnly[int | None]
    reference_rating: ReadOnly[float | None]
