"""Types of MovieRecapsQA's docs and items. A doc is an open question about a segment of a recap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from typing_extensions import NotRequired, ReadOnly, TypedDict

from lmms_eval_tasks.benchmark import Scored
from lmms_eval_tasks.utils.metrics.rating_means import DimensionRating


class KeptRecap(TypedDict):
    """A question with the fields that the log keeps; only the judge sees facts and reference."""

    id: ReadOnly[str]  # SEGMENT/NUMBER
    segment: ReadOnly[str]
    video: ReadOnly[str]
    # Slug of the visual source (data.SOURCES); `condition` is a slug of data.CONDITIONS.
    source: ReadOnly[str]
    condition: ReadOnly[str]
    question: ReadOnly[str]
    reference: ReadOnly[str]  # the dataset's answer; "" if there is none
    dialogue: ReadOnly[str]  # the segment's dialogue; "" if there is none
    modality: ReadOnly[str]  # slug; `modality` and `category` are labels of release.SPLITS
    category: ReadOnly[str]
    data: ReadOnly[str]  # the release's hash
    facts: ReadOnly[Sequence[str]]  # facts of the segment
    judged_baselines: ReadOnly[Sequence[str]]  # a selection of settings.JUDGED_BASELINES
    # Facts of the question alone; missing in older runs.
    aligned: NotRequired[ReadOnly[Sequence[str]]]
    shown: NotRequired[ReadOnly[Mapping[str, str]]]  # the judge's context (data.JudgeOptions)


class RecapDoc(KeptRecap):
    """A question with the video that is shown: a window of the file, or the whole file."""

    movie: ReadOnly[str]
    references: ReadOnly[Sequence[str]]  # reference answers, for scripted models
    lure: ReadOnly[str]  # answer to another segment's question, for scripted models
    video_path: ReadOnly[str]  # "" with dialogue alone, or if videos were not checked
    start: ReadOnly[float | None]  # seconds; None for `start` and `end` means the whole file
    end: ReadOnly[float | None]
    n_frames: ReadOnly[int]  # number of images; 0: the clip is sent as a file


class LabelledRating(DimensionRating):
    """A dimension's score, 0 to 5, and the label of each claim."""

    labels: ReadOnly[Sequence[str]]


class ClaimScore(Scored):
    """An answer's claims and their labels, from the judge without a reference (judge.py)."""

    candidate: ReadOnly[str]  # the answer without reasoning; "" if there is none
    claims: ReadOnly[Sequence[str]]
    n_claims: ReadOnly[int]
    dimensions: ReadOnly[Mapping[str, LabelledRating]]  # by dimension; empty if scoring failed


class RecapScore(ClaimScore):
    """The ratings of an answer, and the answer's similarity to the reference."""

    baselines: ReadOnly[Mapping[str, DimensionRating]]  # judged baselines (baselines.py), by name
    rouge_l: ReadOnly[float | None]  # 0..1; None without a reference


class RecapItem(KeptRecap, RecapScore):
    """An answer to a question, with its scores."""
