"""MovieRecapsQA: open questions about a part of a movie, judged by its atomic facts.

Four visual sources in three conditions each (abstract; 5.2). Facts and reference are in the doc for
the judge alone: nothing here hands them to a model.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from lmms_eval_tasks import judges, prompts, settings
from lmms_eval_tasks.benchmark import (
    Benchmark,
    Items,
    KnownAnswers,
    LoadedData,
    Part,
    Ran,
    Task,
    option_set,
    select_fields,
)
from lmms_eval_tasks.judges.verdict import Criterion, Scoring
from lmms_eval_tasks.media import clips
from lmms_eval_tasks.movierecapsqa import baselines, data, metrics, published, schema
from lmms_eval_tasks.movierecapsqa import judge as judging
from lmms_eval_tasks.movierecapsqa.items import KeptRecap, RecapDoc, RecapItem, RecapScore
from lmms_eval_tasks.movierecapsqa.schema import SPLITS
from lmms_eval_tasks.movierecapsqa.settings import BARTSCORE, BASELINES, JUDGED_BASELINES
from lmms_eval_tasks.prompts import Prompt
from lmms_eval_tasks.report import provenance
from lmms_eval_tasks.utils.conditions import Condition, Kind
from lmms_eval_tasks.utils.metrics import aggregate, local_models, model_scores, text_metrics

# --- what the model is given ------------------------------------------------------------------


def prompt(doc: RecapDoc) -> list[Part]:
    """The muted clip, or its frames; then the dialogue or that there is none, and the question.

    Recap videos are narrated: their sound says what the answers are, so clips are muted (5.2).
    """
    condition, texts = data.CONDITIONS[doc["condition"]], task_prompts().text
    values = {"question": doc["question"]}
    if condition.dialogue:
        part = "dialogue" if doc["dialogue"] else "no_dialogue"
        values["dialogue"] = prompts.fill(texts[part], {"lines": doc["dialogue"]})
    text = Part("text", prompts.fill(texts[condition.prompt], values))
    if not condition.picture:
        return [text]
    if doc["n_frames"]:
        return [Part("images", functools.partial(clips.visuals, doc)), text]
    return [Part("video", lambda: clips.visuals(doc)[0]), text]


_PARTS: dict[str, set[str]] = {
    "dialogue": {"lines"},
    "no_dialogue": set(),
    "both": {"dialogue", "question"},
    "only_frames": {"question"},
    "only_dialogue": {"dialogue", "question"},
}
task_prompts = prompts.file("movierecapsqa", "task", _PARTS)


# --- what the reply is worth ------------------------------------------------------------------

# What `score` reads of a saved item; older runs have neither aligned facts nor what was shown.
_READ = tuple(name for name in KeptRecap.__annotations__ if name not in ("aligned", "shown"))


def handed(doc: RecapDoc) -> dict[str, object]:
    """The media that were handed over (clips.log, or the kind none), and whether with dialogue."""
    condition = data.CONDITIONS[doc["condition"]]
    told = {"dialogue": condition.dialogue and bool(doc["dialogue"])}
    return {"media": {**(clips.log(doc) if condition.picture else {"kind": "none"}), **told}}


def score(doc: KeptRecap, reply: str) -> Scoring[RecapScore]:
    """One open answer: judged without a reference, and compared with the dataset's answer."""
    question, reference = doc["question"], doc["reference"]
    claims = yield from judging.judged(shown(doc), question, reply)
    rated = yield from baselines.rated(doc["judged_baselines"], question, reference, reply)
    is_comparable = bool(text_metrics.tokenize(reference))
    rouge_l = text_metrics.rouge_l(claims["candidate"], [reference]) if is_comparable else None
    return {**claims, "baselines": rated, "rouge_l": rouge_l}


def shown(doc: KeptRecap) -> judging.SegmentContext:
    """The segment's facts and dialogue, as far as the judge is shown them."""
    chosen = data.JudgeOptions(**doc.get("shown", {}))  # of an older run the default
    facts = doc["aligned"] if chosen.facts == data.ALIGNED else doc["facts"]
    dialogue = doc["dialogue"] if chosen.dialogue == data.GIVEN else ""
    return judging.SegmentContext(doc["segment"], facts, dialogue)


def stand_in(doc: RecapDoc, number: int) -> str:  # noqa: ARG001
    """The dataset's own answer; the question where it has none."""
    return doc["reference"].strip() or doc["question"]


def told_shown(items: Sequence[RecapItem]) -> list[str]:
    """A line if the judge is shown other things than by default."""
    chosen = data.JudgeOptions(**items[0].get("shown", {}))
    told = f"the judge is shown facts={chosen.facts}, dialogue={chosen.dialogue}"
    return [] if chosen == data.JudgeOptions() else [told]


def opposed(items: Sequence[RecapItem]) -> dict[str, int]:
    """Return how many scores contradict all of their labels (judge.py), by dimension; no zeros."""
    counts = Counter(
        dimension
        for item in items
        for dimension, one in (item.get("dimensions") or {}).items()
        if judging.contradicts(dimension, one.get("labels") or (), one["score"])
    )
    return dict(counts)


def is_many(counts: Mapping[str, int], items: Items) -> bool:
    """Return True if more than 5 % of a task's scores contradict all of their labels."""
    return sum(counts.values()) > 0.05 * len(items) * len(judging.DIMENSIONS)


def told_opposed(counts: Mapping[str, int]) -> str:
    """The counts of `opposed` in a line for the user."""
    told = ", ".join(f"{name} {count}" for name, count in counts.items())
    return (
        "scores are at the other end of the rubric than all their labels "
        f"({told}): the judge contradicts itself; the scores count as they are"
    )


# --- the tasks --------------------------------------------------------------------------------

_ASKS = ("claims", *judging.DIMENSIONS, *baselines.GEVAL_NAMES, *baselines.HELMET_NAMES)
_BLANK: dict[str, object] = {
    **{"candidate": "", "claims": [], "n_claims": 0},
    **{"dimensions": {}, "baselines": {}, "rouge_l": None},
}


class MovieRecapsQA(Benchmark):
    """MovieRecapsQA for the shared code."""

    name = "movierecapsqa"
    title = "MovieRecapsQA"
    how_to_get = data.HOW_TO_GET
    records = "segments"
    paper_counts = schema.PAPER_COUNTS
    paper_judge = "gpt-4.1-mini"  # paper, 4.2; it names no dated version
    one_judge = "which have no claims in common to label"

    tasks: Mapping[str, Task] = {
        name: Task(
            name,
            prompt,
            functools.partial(select_fields, kind=KeptRecap),
            score,
            metrics.METRICS,
            identity=(
                *("segment", "video", "source", "condition", "question", "reference"),
                *("dialogue", "facts"),
            ),
            media_log=handed,
            judgements=_ASKS,
            required_fields=_READ,
            failed_item=_BLANK,
            example_reply=stand_in,
            notes=told_shown,
            splits=dict.fromkeys(SPLITS, "dots"),
        )
        for name in data.TASKS
    }

    read = staticmethod(schema.read)
    sources = staticmethod(data.sources)
    complaints = staticmethod(data.complaints)
    docs = staticmethod(data.docs)
    media_job = staticmethod(data.cut)
    data_notes = staticmethod(data.notes)
    judge_prompt = staticmethod(judging.prompt)

    def prompts(self, names: Sequence[str]) -> dict[str, Prompt]:  # noqa: ARG002
        """One file for all tasks."""
        return {"task": task_prompts()}

    def configure_judge(self, judge: judges.JudgeConfig) -> judges.JudgeConfig:
        """One with room for its replies."""
        return judging.with_room(super().configure_judge(judge))

    def notes(self, asked: Mapping[str, Items]) -> list[str]:
        """Lines for sources whose conditions were not asked the same questions.

        Table 5's differences are then between other questions, as where clips are missing.
        """
        notes = []
        for source, title in data.SOURCES.items():
            tasks = {one.title: data.task_name(source, at) for at, one in data.CONDITIONS.items()}
            own = {name: asked[task] for name, task in tasks.items() if task in asked}
            if counts := aggregate.unlike(own):
                notes.append(
                    f"{title}: the conditions have different questions "
                    f"({counts}): their differences are not those of the "
                    "paper's Table 5"
                )
        return notes

    def criteria(self) -> list[Criterion]:
        """Claims, their labels, and the baselines that the user asked for."""
        labels = [judging.dimension_criterion(name, 1) for name in judging.DIMENSIONS]
        more = baselines.criteria(settings.value(BASELINES)).values()
        return [judging.claims_criterion(), *labels, *more]

    def known_answers(self, place: Path, *, whole: bool = False) -> KnownAnswers:
        """The released answers with their published scores, or answers made of the dataset's."""
        return published.known_answers(place, self.tasks[published.TASK], whole=whole)

    def check(self, names: Sequence[str], loaded: LoadedData) -> None:  # noqa: ARG002
        """The model of BARTScore, if the user named one."""
        model, like = settings.value(BARTSCORE), "facebook/bart-large-cnn"
        local_models.check(BARTSCORE, model, model_scores.SEQ2SEQ, like)

    # --- results ------------------------------------------------------------------------------

    def describe(self, ran: Ran) -> tuple[dict[str, object], list[Condition]]:
        """Data, left-out segments, scores against their labels, and how the baselines were made."""
        section, conditions = super().describe(ran)
        answers = cast(Mapping[str, Sequence[RecapItem]], ran.items)
        conditions += [
            Condition(Kind.OPTION, f"{task}: {one}", (task,))
            for task, own in answers.items()
            for one in told_shown(own)
        ]
        if against := {name: own for name, items in answers.items() if (own := opposed(items))}:
            section["scores_against_labels"] = against
            many = (name for name, own in against.items() if is_many(own, ran.items[name]))
            conditions += [
                Condition(Kind.NOTE, f"{name}: {told_opposed(against[name])}", (name,))
                for name in many
            ]
        conditions += [Condition(Kind.NOTE, line) for line in self.notes(ran.items)]
        conditions += option_set(settings.FRAMES) if any(map(data.shows, ran.names)) else []

        def look() -> dict[str, object]:
            config = self.configure_judge(judges.configured(self.paper_judge))
            return baselines.describe(settings.value(BASELINES), config)

        if (made := provenance.known("baselines", look, conditions)) is not None:
            rouge = text_metrics.IMPLEMENTATIONS["rouge_l"]  # no stemmer, Unicode words
            section["baselines"] = {**made, "rouge_l": rouge, **provenance.notes(self.name)}
        return section, conditions

    def upgrade_items(self, items: Items, *, judged: bool) -> Items:
        """The judged baselines of a run are kept; with a judge those asked for now come too."""
        wanted = {name for item in items for name in item["judged_baselines"]}
        wanted |= set(settings.value(BASELINES) if judged else ())
        which = [name for name in JUDGED_BASELINES if name in wanted]
        return [{**item, "judged_baselines": which} for item in items]


BENCHMARK = MovieRecapsQA()
