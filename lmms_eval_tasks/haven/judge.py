"""What models say of a summary: a judge's rating (G-Eval), BERTScore, and CLIPScore with frames.

The paper (4.1, Tables 3 and 4) speaks of "a simplified G-Eval-style" judge and prints ratings of
2.25 to 3.54, BERTScores of 0.847 to 0.874 and CLIPScores of 0.741 to 0.899; it names neither the
judge nor its criteria nor its prompt, nor an encoder, its layer or a CLIP model. All of these are
ours, named with each result, and unverified.

The rating is the mean over the probabilities of the score's token where the judge gives them, else
over samples (judges/geval.py): two measurements, so two metrics, geval_logprobs and
geval_samples. It stays on the scale of 1 to 5, which Table 4 has.

BERTScore and CLIPScore are computed over many texts at once, and then known for the process: a
task's mean over all items is asked for first, and its means over valid replies and over single
sources find every value computed.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks import settings
from lmms_eval_tasks.benchmark import Item, Items
from lmms_eval_tasks.errors import DataError, JudgeError, TasksError
from lmms_eval_tasks.haven import data, inputs, options
from lmms_eval_tasks.haven.records.release import Release
from lmms_eval_tasks.judges import Criterion, JudgeConfig, geval
from lmms_eval_tasks.judges.geval import TOP_LOGPROBS, Rating
from lmms_eval_tasks.judges.verdict import DEBATE, NONE, PANEL
from lmms_eval_tasks.utils import prompts, provenance
from lmms_eval_tasks.utils.metrics import local_models, text_metrics
from lmms_eval_tasks.utils.metrics.model_scores import bert_score

if TYPE_CHECKING:
    from PIL.Image import Image

    from lmms_eval_tasks.utils.metrics.clipscore import Picture

# --- the judge ------------------------------------------------------------------------------------

# Ours, since the paper names none: it gives log-probabilities, and MovieRecapsQA's paper judges
# with it. Whoever uses another compares with runs of that judge alone.
PAPER_JUDGE = "gpt-4.1-mini"
WARNING = (
    "the paper names neither judge nor criteria nor prompt of its G-Eval: these ratings cannot be "
    "compared with its Table 4"
)
GEVAL = "geval"  # name of the ask, and of the item's field with its rating

_PLACEHOLDERS: dict[str, tuple[str, ...]] = {
    "geval": (),
    "show": ("document", "reference", "candidate"),
    "no_document": (),
    "score": (),
}


@prompts.once
def prompt() -> prompts.Prompt:
    """The judge's prompt, ours or the user's.

    Raises:
        PromptError: the user's file does not fit.
    """
    return prompts.load("haven", "judge", _PLACEHOLDERS)


@prompts.once
def criterion() -> Criterion:
    """The criterion; its fields are `reference`, `document` and `candidate`."""
    given = prompt()
    return Criterion(
        name="haven_geval",
        system=given.text["geval"],
        template="\n".join([given.text["show"], given.text["score"]]),
        schema=Rating,
        score=geval.stated,
        prompt_hash=given.hash,
        bare="score",
        top_logprobs=TOP_LOGPROBS,
    )


def suited(judge: JudgeConfig) -> JudgeConfig:
    """The judge, never the paper's (`comparable`), which is not known.

    Raises:
        JudgeError: it is several judges in one.
    """
    if judge.provider in (PANEL, DEBATE):
        raise JudgeError(
            f"the judge {judge.label} is several judges, and G-Eval's rating is one model's: name "
            "one model for HAVEN, and judge again with another (judge --judge)"
        )
    return replace(judge, comparable=False)


def notes(judge: JudgeConfig) -> dict[str, Any]:
    """The way of rating for a run's results, as plain types, and what warns of it."""
    told: dict[str, Any] = {GEVAL: geval.describe(judge)}
    if judge.provider != NONE:  # whose warning says that nothing is judged yet
        told["warning"] = f"judged by {judge.label}: {WARNING}"
    return told


# --- metrics computed by models -------------------------------------------------------------------

LANGUAGE = "en"  # of the release; decides bert-score's default encoder (roberta-large)
NOTES = "haven"  # in provenance.py: metric -> what it was computed with
NOT_ASKED = f"no model was named with --clipscore ({settings.CLIPSCORE})"


def check() -> None:
    """Stop before a run whose CLIP model, if the user named one, cannot be used.

    Raises:
        TasksError: what is wrong with it.
    """
    if settings.value(settings.CLIPSCORE) and (problem := clip_problem()):
        raise TasksError(
            f"{settings.CLIPSCORE}={settings.text(settings.CLIPSCORE)}: {problem}; nothing is "
            "downloaded: name the folder of a model such as openai/clip-vit-base-patch32, or leave "
            "the option out"
        )


def note(metric: str, told: str) -> None:
    """Keep what a metric was computed with, for the results."""
    provenance.note(NOTES, {**computed_with(), metric: told})


def computed_with() -> dict[str, str]:
    """What BERTScore and CLIPScore were computed with so far in this process, or why not."""
    found: dict[str, str] = provenance.notes().get(NOTES, {})
    return found


def doubts() -> list[str]:
    """Why a number is missing."""
    return [one for one in computed_with().values() if "not computed" in one]


def reference(item: Item) -> str:
    """The summary that a reply is compared with."""
    return str(item.get("tagged") or " ".join(item["summary"]))


# --- BERTScore ----------------------------------------------------------------------------------


def bertscore(items: Items) -> list[float | None]:
    """BERTScore F1 of each item's summary against the release's, not rescaled.

    0 of a candidate without a word; None without a reference, or an encoder.
    """
    if not items:
        return []  # nothing is told of it either
    references = [[one] if text_metrics.tokenize(one) else [] for one in map(reference, items)]
    candidates, model = [item["candidate"] for item in items], settings.value(settings.BERTSCORE)
    scores = bert_score(candidates, references, model=model, lang=LANGUAGE)
    note("bertscore", scores.note)
    return list(scores.values)


# --- CLIPScore ----------------------------------------------------------------------------------


class Asked(NamedTuple):
    """A summary's sentences and numbers of a video's sampled frames.

    record: which record the numbers are of (data.row): another one's frames are not its.
    """

    video: str
    record: str
    sentences: Sequence[str]
    frames: Sequence[int]


def clipscore(items: Items, *, pairs: bool = False) -> list[float | None]:
    """CLIPScore between each item's summary and its frames; 0 where one of them is missing.

    None for all if the pictures of any cannot be had: failed replies, which need none, would weigh
    too much in the mean of the others.

    Args:
        items: of any sources.
        pairs: as of `clip_values`.
    """
    asked = [
        Asked(item["id"], item["record"], item["sentences"], item["frames"])
        for item in items
        if item["sentences"] and item["frames"]
    ]
    values = clip_values(asked, pairs=pairs)
    # Where nothing is computed, 0 for those that failed would be no mean of anything.
    if None in values or clip_problem():
        return [None] * len(items)
    known = {one.video: value for one, value in zip(asked, values, strict=True)}
    return [known.get(item["id"], 0.0) for item in items]


def clip_problem() -> str | None:
    """Why there is no CLIPScore, in one line; None if the model can be used, or so it looks."""
    from lmms_eval_tasks.utils.metrics import clipscore as implementation

    model = settings.value(settings.CLIPSCORE)
    return NOT_ASKED if model is None else local_models.problem(implementation.KIND, model)


def clip_values(asked: Sequence[Asked], *, pairs: bool = False) -> list[float | None]:
    """CLIPScore, 0..2.5, of summaries and frames (utils/metrics/clipscore.py has the rule).

    With `pairs` it is the mean over pairs of a sentence and a frame. None where there is no
    sentence with a word or no picture any more, or no model.
    """
    from lmms_eval_tasks.utils.metrics import clipscore as implementation

    model, problem = settings.value(settings.CLIPSCORE), clip_problem()
    if model is None or problem:
        note("clipscore", f"CLIPScore not computed: {problem}")
        return [None] * len(asked)
    values: list[float | None] = []
    lost: list[str] = []
    load = functools.cache(data.load)
    for one in asked:
        try:
            found = implementation.clip_score(one.sentences, pictures(one, load()), model)
            values.append(found.pairs if pairs else found.value)
        except TasksError as error:  # a picture that cannot be opened any more
            lost.append(str(error))
            values.append(None)
    note("clipscore", implementation.describe(model))
    if lost:  # a note of its own: a mean over other items must not take its place
        told = f"{len(lost)} without pictures of theirs, as: {min(lost)}"
        note("clipscore_lost", f"CLIPScore not computed: {told}")
    return values


def pictures(asked: Asked, release: Release) -> list[Picture]:
    """The pictures of the frames that a reply selected: opened only when they are embedded.

    An item has numbers of frames and no file: in a run they are the frames that the model saw, and
    in `rescore` those of the user's own copy of the video, wherever it is now.

    Raises:
        DataError: the data hold no or another record of this id, or the video file does not fit it.
    """
    from lmms_eval_tasks.utils.metrics.clipscore import Picture

    video = asked.video
    found = [record for record in release.records if record.id == video]
    row = data.row(found[0], "") if found else {"record": ""}
    if row["record"] != asked.record:
        raise DataError(f"{release.folder}: has no {video} like the one that the replies are about")
    if trouble := data.troubles(found):
        raise DataError(f"{video}: {trouble[video]}")
    size = options.current().size

    def opened(number: int) -> Image:
        return inputs.pictures(row, [number])[0]

    return [
        Picture(
            f"{release.digest} {video} frame {number} {size} px", functools.partial(opened, number)
        )
        for number in asked.frames
    ]
