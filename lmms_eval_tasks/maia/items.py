"""Types of MAIA's docs and items: pairs of statements, and open questions on the same videos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from typing_extensions import NotRequired, ReadOnly, TypedDict

from lmms_eval_tasks.benchmark import Scored
from lmms_eval_tasks.utils.metrics.aggregate import GradedItem


class _Kept(TypedDict):
    id: ReadOnly[str]  # VIDEO/CATEGORY of a question, and /0 to /7 of its pairs
    video: ReadOnly[str]
    category: ReadOnly[str]  # slug (categories.py)
    setting: ReadOnly[str]  # 32frames, 1frame, black or text
    data: ReadOnly[str]  # digest of the release


class KeptPair(_Kept):
    """A pair in the log; its id has that of its question."""

    options: ReadOnly[Sequence[str]]  # the statements A and B
    answer: ReadOnly[str]  # letter of the true one


class KeptOevqa(_Kept):
    """A question in the log."""

    question: ReadOnly[str]
    references: ReadOnly[Sequence[str]]  # eight


class AskedQuestion(TypedDict):
    """A question, with what is shown; all its docs have these fields."""

    question_id: ReadOnly[str]
    category: ReadOnly[str]
    question: ReadOnly[str]
    video: ReadOnly[str]
    video_path: ReadOnly[str]
    setting: ReadOnly[str]
    n_frames: ReadOnly[int]  # 0 without a video
    data: ReadOnly[str]


class PairDoc(AskedQuestion):
    """A true statement and a false one; eight pairs of one question are a pool."""

    id: ReadOnly[str]
    index: ReadOnly[int]  # 0 to 7, in its pool
    options: ReadOnly[Sequence[str]]
    answer: ReadOnly[str]


class OevqaDoc(AskedQuestion):
    """An open question."""

    id: ReadOnly[str]
    references: ReadOnly[Sequence[str]]
    lure: ReadOnly[str]  # a false statement, for scripted models


class PairScore(Scored):
    """Letter and verdict of a reply to a pair."""

    letter: ReadOnly[str | None]  # that was read
    right: ReadOnly[int | None]  # 1 or 0; None if its scoring broke
    read_by: NotRequired[ReadOnly[str | None]]  # the rule
    right_authors: NotRequired[ReadOnly[int]]  # 1 or 0, by the letter that the authors' rule reads
    lm_scores: NotRequired[
        ReadOnly[Mapping[str, Sequence[float]]]
    ]  # of language models, which write nothing


class OevqaScore(Scored):
    """Verdict and similarities of an answer; without similarities if its scoring broke."""

    candidate: ReadOnly[str]  # without reasoning; "" if it is no answer
    right: ReadOnly[float | None]  # 1 or 0, between them for a panel; None without a verdict
    rouge_1: NotRequired[ReadOnly[float]]  # similarity to the nearest reference, 0..1 each
    rouge_l: NotRequired[ReadOnly[float]]
    meteor: NotRequired[ReadOnly[float]]


class PairItem(KeptPair, PairScore):
    """A reply to a pair."""


class OevqaItem(KeptOevqa, OevqaScore):
    """An answer to a question."""


class Categorised(GradedItem):
    """The fields that pairs and answers have in common."""

    category: ReadOnly[str]


Similarity = Literal["rouge_1", "rouge_l", "meteor"]
