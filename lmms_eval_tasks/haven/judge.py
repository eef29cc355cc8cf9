"""A summary's scores by models: a judge's rating (G-Eval), BERTScore, CLIPScore with frames.

The paper (4.1, Tables 3 and 4) speaks of "a simplified G-Eval-style" judge and prints ratings of
2.25 to 3.54, BERTScores of 0.847 to 0.874 and CLIPScores of 0.741 to 0.899; it names neither the
judge nor its criteria nor its prompt, nor an encoder, its layer or a CLIP model. All of these are
ours, named with each result, and unverified.

The rating is the mean over the probabilities of the score's token where the judge gives them, else
over samples (judges/geval.py): two measurements, so two metrics, geval_logprobs and
geval_samples. It stays on the scale of 1 to 5, which Table 4 has.
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

# Ours, since the paper names none: it gives log-probabilities, and MovieRecapsQA's paper judges
# with it. Whoever uses another compares with runs of that judge alone.
PAPER_JUDGE = "gpt-4.1-mini"
WARNING = (
    "the paper publishes neither judge nor criteria nor prompt of its G-Eval: "
    "these ratings cannot be compared with its Table 4"
)
GEVAL = "geval"  # name of the ask, and of the item's field with its rating

_PARTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("geval", "no_document", "score"), ()),
    "show": ("document", "reference", "candidate"),
}
prompt = prompts.file("haven", "judge", _PARTS)


@prompts.once
def criterion() -> Criterion:
    """Its fields are `reference`, `document` and `candidate`."""
    given = prompt()
    return Criterion(
        name="haven_geval",
        system=given.text["geval"],
        template="\n".join([given.text["show"], given.text["score"]]),
        schema=GEvalRating,
        score=geval.stated,
        prompt_hash=given.hash,
        bare="score",
        top_logprobs=TOP_LOGPROBS,
    )


def notes(judge: JudgeConfig) -> dict[str, object]:
    """The way of rating for a run's results, as plain types, and what warns of it."""
    told: dict[str, object] = {GEVAL: geval.describe(judge)}
    if judge.provider != NONE:  # whose warning says that nothing is judged yet
        told["warning"] = f"judged by {judge.label}: {WARNING}"
    return told


# --- metrics computed by models -------------------------------------------------------------------

LANGUAGE = "en"  # of the release; decides bert-score's default encoder (roberta-large)


def doubts() -> list[str]:
    """Why a number is missing."""
    return [one for one in provenance.notes("haven").values() if "not computed" in one]


def reference(item: KeptHaven) -> str:
    """The summary that a reply is compared with."""
    return item.get("tagged") or " ".join(item["summary"])


def bertscore(items: Sequence[HavenItem]) -> list[float | None]:
    """BERTScore F1 of each item's summary against the release's, not rescaled.

    0 of a candidate without a word; None without a reference, or an encoder.
    """
    if not items:
        return []  # nothing is told of it either
    references = [[one] if text_metrics.tokenize(one) else [] for one in map(reference, items)]
    candidates, model = [item["candidate"] for item in items], settings.value(settings.BERTSCORE)
    scores = bert_score(candidates, references, model=model, lang=LANGUAGE)
    provenance.note("haven", "bertscore", scores.note)
    return list(scores.values)


# --- CLIPScore ----------------------------------------------------------------------------------


class SummaryFrames(NamedTuple):
    """A summary's sentences and numbers of a video's sampled frames."""

    video: str
    record: str  # which one the numbers are of (data.row): another one's frames are not its
    sentences: Sequence[str]
    frames: Sequence[int]


def clipscore(items: Sequence[HavenItem]) -> list[float | None]:
    """CLIPScore between each item's summary and its frames; 0 where one of them is missing.

    None for all if the pictures of any cannot be had: failed replies, which need none, would weigh
    too much in the mean of the others.
    """
    asked = [
        SummaryFrames(item["id"], item["record"], item["sentences"], item["frames"])
        for item in items
        if item["sentences"] and item["frames"]
    ]
    values = clip_values(asked)
    # Where nothing is computed, 0 for those that failed would be no mean of anything.
    if None in values or clip_problem():
        return [None] * len(items)
    known = dict(zip((one.video for one in asked), values, strict=True))
    return [known.get(item["id"], 0.0) for item in items]


def clip_problem() -> str | None:
    """Why there is no CLIPScore, in one line; None if the model can be used, or so it looks."""
    if (model := settings.value(CLIPSCORE)) is None:
        return "no model was named with --clipscore"
    return local_models.problem(implementation.KIND, model)


def clip_values(asked: Sequence[SummaryFrames]) -> list[float | None]:
    """CLIPScore, 0..2.5, of summaries and frames (utils/metrics/clipscore.py has the rule).

    None where there is no sentence with a word or no picture any more, or no model.
    """
    if problem := clip_problem():
        provenance.note("haven", "clipscore", f"CLIPScore not computed: {problem}")
        return [None] * len(asked)
    model = settings.value(CLIPSCORE) or ""  # `clip_problem` has looked
    values: list[float | None] = []
    lost: list[str] = []
    load = functools.cache(data.load)
    for one in asked:
        try:
            own = pictures(one, load())
            values.append(implementation.clip_score(one.sentences, own, model)[0])
        except TasksError as error:  # a picture that cannot be opened any more
            lost.append(str(error))
            values.append(None)
    provenance.note("haven", "clipscore", implementation.describe(model))
    if lost:  # a note of its own: a mean over other items must not take its place
        told = f"{len(lost)} without pictures, such as {min(lost)}"
        provenance.note("haven", "clipscore_lost", f"CLIPScore not computed: {told}")
    return values


def pictures(asked: SummaryFrames, release: HavenRelease) -> list[implementation.Picture]:
    """The pictures of the frames that a reply selected: opened only when they are embedded.

    An item has numbers of frames and no file: in a run they are the frames that the model saw, and
    in `rescore` those of the user's own copy of the video, wherever it is now.

    Raises:
        DataError: the data hold no or another record of this id, or the video file does not fit it.
    """
    video = asked.video
    found = [record for record in release.records if record.id == video]
    row = data.row(found[0], "") if found else None
    if row is None or row["record"] != asked.record:
        raise DataError(f"{release.place}: has no {video} like the one that the replies are about")
    if trouble := data.trouble(found[0]):
        raise DataError(f"{video}: {trouble}")
    key = f"{release.digest} {video} frame {{}} {options.current().size} px"

    def opened(number: int) -> Image:
        return inputs.pictures(row["video_path"], row["picks"], [number])[0]

    return [
        implementation.Picture(key.format(number), functools.partial(opened, number))
        for number in asked.frames
    ]
