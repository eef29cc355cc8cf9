"""Scores of a summary by models: a judge's rating (G-Eval), BERTScore, and CLIPScore with frames.

The paper (4.1, Tables 3 and 4) mentions "a simplified G-Eval-style" judge. It prints ratings of
2.25 to 3.54, BERTScores of 0.847 to 0.874 and CLIPScores of 0.741 to 0.899. It names neither the
judge nor the judge's criteria and prompt, and neither the encoder, the encoder's layer nor the CLIP
model. All of these are our choices. They are named with each result, and are unverified.

A rating is the mean over the probabilities of the score's token if the judge gives
log-probabilities, else the mean over samples (judges/geval.py). These are two different
measurements, so there are two metrics, geval_logprobs and geval_samples. Ratings stay on the scale
of 1 to 5 of Table 4.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from lmms_eval_tasks import prompts, settings
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.haven import data, inputs, options
from lmms_eval_tasks.haven.items import HavenItem, KeptHaven
from lmms_eval_tasks.haven.records.release import HavenRelease
from lmms_eval_tasks.haven.settings import CLIPSCORE
from lmms_eval_tasks.judges import Criterion, JudgeConfig, geval
from lmms_eval_tasks.judges.geval import TOP_LOGPROBS, GEvalRating
from lmms_eval_tasks.judges.verdict import NONE
from lmms_eval_tasks.report import provenance
from lmms_eval_tasks.utils.metrics import clipscore as implementation
from lmms_eval_tasks.utils.metrics import local_models, text_metrics
from lmms_eval_tasks.utils.metrics.model_scores import bert_score

if TYPE_CHECKING:
    from PIL.Image import Image

# --- the judge ------------------------------------------------------------------------------------

# Our choice, since the paper names no judge: this model gives log-probabilities, and it is the
# judge of MovieRecapsQA's paper. Numbers of another judge compare with runs of that judge alone.
PAPER_JUDGE = "gpt-4.1-mini"
WARNING = (
    "the paper publishes neither judge nor criteria nor prompt of its G-Eval: "
    "these ratings cannot be compared with its Table 4"
)
GEVAL = "geval"  # name of the request, and of the item's field that holds the rating

_PARTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("geval", "no_document", "score"), ()),
    "show": ("document", "reference", "candidate"),
}
prompt = prompts.file("haven", "judge", _PARTS)


@prompts.once
def geval_criterion() -> Criterion:
    """Return the criterion of G-Eval; its fields are `reference`, `document` and `candidate`."""
    given = prompt()
    return Criterion(
        name="haven_geval",
        system=given.text["geval"],
        template="\n".join([given.text["show"], given.text["score"]]),
        schema=GEvalRating,
        score=geval.stated_rating,
        prompt_hash=given.hash,
        bare="score",
        top_logprobs=TOP_LOGPROBS,
    )


def describe_rating(judge: JudgeConfig) -> dict[str, object]:
    """Return the kind of rating for a run's results, as plain types, and a warning about it."""
    description: dict[str, object] = {GEVAL: geval.describe_ratings(judge)}
    # For the judge `none`, another warning says that nothing is judged yet.
    if judge.provider != NONE:
        description["warning"] = f"judged by {judge.label}: {WARNING}"
    return description


# --- metrics computed by models -------------------------------------------------------------------

LANGUAGE = "en"  # language of the release; sets bert-score's default encoder (roberta-large)


def doubts() -> list[str]:
    """Return the reasons why metrics were not computed, a line for each."""
    return [
        one for one in provenance.implementation_notes("haven").values() if "not computed" in one
    ]


def reference(item: KeptHaven) -> str:
    """Return the reference summary as one text."""
    return item.get("tagged") or " ".join(item["summary"])


def bertscore(items: Sequence[HavenItem]) -> list[float | None]:
    """Return BERTScore F1 of each item's summary against the reference, not rescaled.

    A candidate without a word has 0. The value is None without a reference or without an encoder.
    """
    if not items:
        return []  # no items, no note
    references = [[one] if text_metrics.tokenize(one) else [] for one in map(reference, items)]
    candidates, model = [item["candidate"] for item in items], settings.value(settings.BERTSCORE)
    scores = bert_score(candidates, references, model=model, lang=LANGUAGE)
    provenance.note("haven", "bertscore", scores.note)
    return list(scores.values)


# --- CLIPScore ----------------------------------------------------------------------------------


class SummaryFrames(NamedTuple):
    """A summary's sentences, and the numbers of the sampled frames that go with it."""

    video: str
    record: str  # hash of the record that the numbers belong to (data.row)
    sentences: Sequence[str]
    frames: Sequence[int]


def clipscore(items: Sequence[HavenItem]) -> list[float | None]:
    """Return the CLIPScore (0..2.5) between each item's summary and its frames.

    An item without a summary or without frames has 0. All values are None if the pictures of any
    item cannot be read: failed replies need no pictures, and their zeros would weigh too much in
    the mean.
    """
    asked = [
        SummaryFrames(item["id"], item["record"], item["sentences"], item["frames"])
        for item in items
        if item["sentences"] and item["frames"]
    ]
    values = clip_values(asked)
    # If no score can be computed, a mean of the failed replies' zeros means nothing.
    if None in values or clip_problem():
        return [None] * len(items)
    known = dict(zip((one.video for one in asked), values, strict=True))
    return [known.get(item["id"], 0.0) for item in items]


def clip_problem() -> str | None:
    """Return the reason why there is no CLIPScore, in one line; None if the model seems usable."""
    if (model := settings.value(CLIPSCORE)) is None:
        return "no model was named with --clipscore"
    return local_models.problem(implementation.KIND, model)


def clip_values(selections: Sequence[SummaryFrames]) -> list[float | None]:
    """Return the CLIPScore, 0..2.5, of summaries and frames (rule: utils/metrics/clipscore.py).

    A value is None if no sentence has a word, if no picture can be read any more, or without a
    model.
    """
    if problem := clip_problem():
        provenance.note("haven", "clipscore", f"CLIPScore not computed: {problem}")
        return [None] * len(selections)
    model = settings.value(CLIPSCORE) or ""  # `clip_problem` made sure that there is one
    values: list[float | None] = []
    lost: list[str] = []
    load = functools.cache(data.load_haven)
    for one in selections:
        try:
            own = pictures(one, load())
            values.append(implementation.clip_score(one.sentences, own, model)[0])
        except TasksError as error:  # a picture can no longer be opened
            lost.append(str(error))
            values.append(None)
    provenance.note("haven", "clipscore", implementation.describe_encoder(model))
    if lost:  # its own note, so that a later mean over other items does not replace it
        told = f"{len(lost)} without pictures, such as {min(lost)}"
        provenance.note("haven", "clipscore_lost", f"CLIPScore not computed: {told}")
    return values


def pictures(selection: SummaryFrames, release: HavenRelease) -> list[implementation.Picture]:
    """Return the pictures of the frames that a reply selected; each is opened only when it is used.

    An item holds the numbers of frames and no file. In a run, these are the frames that the model
    saw. In `rescore`, they come from the user's current copy of the video.

    Raises:
        DataError: the data hold no record of this id or a different one, or the video file is not
            the record's video.
    """
    video = selection.video
    found = [record for record in release.records if record.id == video]
    row = data.row(found[0], "") if found else None
    if row is None or row["record"] != selection.record:
        raise DataError(f"{release.place}: has no {video} like the one that the replies are about")
    if trouble := data.trouble(found[0]):
        raise DataError(f"{video}: {trouble}")
    key = f"{release.digest} {video} frame {{}} {options.current().size} px"

    def opened(number: int) -> Image:
        return inputs.pictures(row["video_path"], row["picks"], [number])[0]

    return [
        implementation.Picture(key.format(number), functools.partial(opened, number))
        for number in selection.frames
    ]
