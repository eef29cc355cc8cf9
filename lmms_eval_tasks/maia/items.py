"""Types of MAIA's docs and items: pairs of statements, and open questions on the same videos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from typing_extensions import NotRequired, ReadOnly, TypedDict

from lmms_eval_tasks.benchmark import Scored
from lmms_eval_tasks.utils.metrics.aggregate import GradedItem


class _Kept(TypedDict):
    id: ReadOnly[str]  # VIDEO/CATEGORY of a question; its pairs add /0 to /7
    video: ReadOnly[str]
    category: ReadOnly[str]  # slug (categories.py)
    setting: ReadOnly[str]  # 32frames, 1frame, black or text
    data: ReadOnly[str]  # the release's hash


class KeptPair(_Kept):
    """The fields of a pair in the log; the pair's id begins with the question's id."""

    options: ReadOnly[Sequence[str]]  # the statements A and B
    answer: ReadOnly[str]  # letter of the true statement


class KeptOevqa(_Kept):
    """The fields of an open question in the log."""

    question: ReadOnly[str]
    references: ReadOnly[Sequence[str]]  # eight reference answers


class AskedQuestion(TypedDict):
    """The fields that are the same in all docs of a question: the question, and its video."""

    question_id: ReadOnly[str]
    category: ReadOnly[str]
    question: ReadOnly[str]
    video: ReadOnly[str]
    video_path: ReadOnly[str]
    setting: ReadOnly[str]
    n_frames: ReadOnly[int]  # 0 without a video
    data: ReadOnly[str]


class PairDoc(AskedQuestion):
    """A doc of a true and a false statement; the eight pairs of one question are a pool."""

    id: ReadOnly[str]
    index: ReadOnly[int]  # 0 to 7, the place in the pool
    options: ReadOnly[Sequence[str]]
    answer: ReadOnly[str]


class OevqaDoc(AskedQuestion):
    """A doc of an open question."""

    id: ReadOnly[str]
    references: ReadOnly[Sequence[str]]
    lure: ReadOnly[str]  # a false statement, which fake models give as a wrong answer


class PairScore(Scored):
    """The letter that a reply to a pair chooses, and whether it is right."""

    letter: ReadOnly[str | None]  # the letter in the reply
    right: ReadOnly[int | None]  # 1 or 0; None if scoring failed
    read_by: NotRequired[ReadOnly[str | None]]  # the rule that found the letter
    right_authors: NotRequired[ReadOnly[int]]  # 1 or 0, for the letter that the authors' rule reads
    lm_scores: NotRequired[
        ReadOnly[Mapping[str, Sequence[float]]]
    ]  # scores by language models, which write no reply


class OevqaScore(Scored):
    """The verdict on an answer, and its similarities to the references; none if scoring failed."""

    candidate: ReadOnly[str]  # the answer without reasoning; "" if there is none
    right: ReadOnly[float | None]  # 1 or 0, for a panel 0..1; None without a verdict
    rouge_1: NotRequired[ReadOnly[float]]  # similarity to the most similar reference, 0..1 each
    rouge_l: NotRequired[ReadOnly[float]]
    meteor: NotRequired[ReadOnly[float]]


class PairItem(KeptPair, PairScore):
    """A reply to a pair, with its score."""


class OevqaItem(KeptOevqa, OevqaScore):
    """An answer to an open question, with its score."""


class Categorised(GradedItem):
    """The fields that items of pairs and of answers share."""

    category: ReadOnly[str]


Similarity = Literal["rouge_1", "rouge_l", "meteor"]
