"""Types of MovieRecapsQA's docs and items: an open question about a segment of a recap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import NotRequired, ReadOnly, TypedDict

from lmms_eval_tasks.benchmark import Scored
from lmms_eval_tasks.utils.metrics.rating_means import DimensionRating


class KeptRecap(TypedDict):
    """A question, as the log keeps it; facts and reference are for the judge alone."""

    id: ReadOnly[str]  # SEGMENT/NUMBER
    segment: ReadOnly[str]
    video: ReadOnly[str]
    source: ReadOnly[str]  # slugs (data.SOURCES, CONDITIONS)
    condition: ReadOnly[str]
    question: ReadOnly[str]
    reference: ReadOnly[str]  # "" without
    dialogue: ReadOnly[str]  # "" without
    modality: ReadOnly[str]  # slugs (schema.SPLITS)
    category: ReadOnly[str]
    data: ReadOnly[str]  # digest of the release
    facts: ReadOnly[Sequence[str]]  # of the segment
    judged_baselines: ReadOnly[Sequence[str]]  # some of settings.JUDGED_BASELINES
    aligned: NotRequired[ReadOnly[Sequence[str]]]  # the question's own facts; not in older runs
    shown: NotRequired[ReadOnly[Mapping[str, str]]]  # to the judge (data.JudgeOptions)


class RecapDoc(KeptRecap):
    """A question, with what is shown: a window of a video, or a whole one."""

    movie: ReadOnly[str]
    references: ReadOnly[Sequence[str]]  # for scripted models
    lure: ReadOnly[str]  # answers another segment's question, for scripted models
    video_path: ReadOnly[str]  # "" with dialogue alone, or where no video was looked at
    start: ReadOnly[float | None]  # in seconds; None and None is the whole file
    end: ReadOnly[float | None]
    n_frames: ReadOnly[int]  # images; 0 is the clip as a file


class LabelledRating(DimensionRating):
    """A dimension's score, 0 to 5, and the label of each claim."""

    labels: ReadOnly[Sequence[str]]


class ClaimScore(Scored):
    """Claims of an answer and their labels, by the judge without a reference (judge.py)."""

    candidate: ReadOnly[str]  # without reasoning; "" if it is no answer
    claims: ReadOnly[Sequence[str]]
    n_claims: ReadOnly[int]
    dimensions: ReadOnly[Mapping[str, LabelledRating]]  # empty if its scoring broke


class RecapScore(ClaimScore):
    """Ratings of an answer, and its similarity to the reference."""

    baselines: ReadOnly[Mapping[str, DimensionRating]]  # judged ones (baselines.py)
    rouge_l: ReadOnly[float | None]  # 0..1; None without a reference


class RecapItem(KeptRecap, RecapScore):
    """An answer to a question."""
