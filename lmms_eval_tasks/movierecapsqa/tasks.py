"""MovieRecapsQA's tasks: open questions about a part of a movie, judged by atomic facts.

There are four visual sources in three conditions each (abstract; 5.2). Facts and reference are in
the doc for the judge alone. No prompt for a model contains them.
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
from lmms_eval_tasks.judges.verdict import Criterion, ScoringSteps
from lmms_eval_tasks.media import clips
from lmms_eval_tasks.movierecapsqa import baselines, data, metrics, published
from lmms_eval_tasks.movierecapsqa import judge as judging
from lmms_eval_tasks.movierecapsqa import release as files
from lmms_eval_tasks.movierecapsqa.items import KeptRecap, RecapDoc, RecapItem, RecapScore
from lmms_eval_tasks.movierecapsqa.release import SPLITS
from lmms_eval_tasks.movierecapsqa.settings import BARTSCORE, BASELINES, JUDGED_BASELINES
from lmms_eval_tasks.prompts import Prompt
from lmms_eval_tasks.report import provenance
from lmms_eval_tasks.utils.conditions import Condition, Kind
from lmms_eval_tasks.utils.metrics import aggregate, local_models, model_scores, text_metrics

# --- prompts ------------------------------------------------------------------------------------


def question_prompt(doc: RecapDoc) -> list[Part]:
    """Return the muted clip or its frames, then a text with the dialogue and the question.

    If there is no dialogue, the text says so. Recap videos have a narrator whose words give the
    answers away, so clips are muted (5.2).
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


# --- scoring ------------------------------------------------------------------------------------

# The fields of a saved item that `score` reads; older runs have no aligned facts and no context.
_READ = tuple(name for name in KeptRecap.__annotations__ if name not in ("aligned", "shown"))


def _media_log(doc: RecapDoc) -> dict[str, object]:
    """Return the media in the prompt (clips.log, or kind `none`), and whether it has dialogue."""
    condition = data.CONDITIONS[doc["condition"]]
    told = {"dialogue": condition.dialogue and bool(doc["dialogue"])}
    return {"media": {**(clips.log(doc) if condition.picture else {"kind": "none"}), **told}}


def score(doc: KeptRecap, reply: str) -> ScoringSteps[RecapScore]:
    """Judge one open answer without a reference, and compare it with the dataset's answer."""
    question, reference = doc["question"], doc["reference"]
    claims = yield from judging.judge_claims(judge_context(doc), question, reply)
    rated = yield from baselines.rated(doc["judged_baselines"], question, reference, reply)
    is_comparable = bool(text_metrics.tokenize(reference))
    rouge_l = text_metrics.rouge_l(claims["candidate"], [reference]) if is_comparable else None
    return {**claims, "baselines": rated, "rouge_l": rouge_l}


def judge_context(doc: KeptRecap) -> judging.SegmentContext:
    """Return the facts and the dialogue of the segment that the judge gets."""
    chosen = data.JudgeOptions(**doc.get("shown", {}))  # an older run has the default
    facts = doc["aligned"] if chosen.facts == data.ALIGNED else doc["facts"]
    dialogue = doc["dialogue"] if chosen.dialogue == data.GIVEN else ""
    return judging.SegmentContext(doc["segment"], facts, dialogue)


def example_reply(doc: RecapDoc, number: int) -> str:  # noqa: ARG001
    """Return the dataset's answer as a reply; the question if there is none."""
    return doc["reference"].strip() or doc["question"]


def told_shown(items: Sequence[RecapItem]) -> list[str]:
    """Return a line if the judge's context differs from the default; else []."""
    chosen = data.JudgeOptions(**items[0].get("shown", {}))
    told = f"the judge is shown facts={chosen.facts}, dialogue={chosen.dialogue}"
    return [] if chosen == data.JudgeOptions() else [told]


def opposed(items: Sequence[RecapItem]) -> dict[str, int]:
    """Return the number of scores that contradict all of their labels (judge.py), by dimension.

    Dimensions without such scores are left out.
    """
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
    """Return the counts of `opposed` as a line for the user."""
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
    """MovieRecapsQA as the shared code sees it (benchmark.py)."""

    name = "movierecapsqa"
    title = "MovieRecapsQA"
    how_to_get = data.HOW_TO_GET
    downloads = data.DOWNLOADS
    by_hand = data.BY_HAND
    records = "segments"
    paper_counts = files.PAPER_COUNTS
    paper_judge = "gpt-4.1-mini"  # paper, 4.2; it names no dated version
    one_judge = "which have no claims in common to label"

    tasks: Mapping[str, Task] = {
        name: Task(
            name,
            question_prompt,
            functools.partial(select_fields, kind=KeptRecap),
            score,
            metrics.METRICS,
            identity=(
                *("segment", "video", "source", "condition", "question", "reference"),
                *("dialogue", "facts"),
            ),
            media_log=_media_log,
            judgements=_ASKS,
            required_fields=_READ,
            failed_item=_BLANK,
            example_reply=example_reply,
            notes=told_shown,
            splits=dict.fromkeys(SPLITS, "dots"),
        )
        for name in data.TASKS
    }

    read_release = staticmethod(files.read_recaps)
    sources = staticmethod(data.media_sources)
    complaints = staticmethod(data.complaints)
    docs = staticmethod(data.make_recap_docs)
    media_job = staticmethod(data.cut)
    data_notes = staticmethod(data.status_notes)
    judge_prompt = staticmethod(judging.load_judge_prompts)

    def prompts(self, names: Sequence[str]) -> dict[str, Prompt]:  # noqa: ARG002
        """Return the prompt file that all tasks use."""
        return {"task": task_prompts()}

    def configure_judge(self, judge: judges.JudgeConfig) -> judges.JudgeConfig:
        """Return the judge with limits that fit long replies."""
        return judging.with_room(super().configure_judge(judge))

    def notes(self, items_by_task: Mapping[str, Items]) -> list[str]:
        """Return a line for each source whose conditions have different questions.

        Table 5's differences then compare different questions, for example if clips are missing.
        """
        notes = []
        for source, title in data.SOURCES.items():
            tasks = {one.title: data.task_name(source, at) for at, one in data.CONDITIONS.items()}
            own = {
                name: items_by_task[task] for name, task in tasks.items() if task in items_by_task
            }
            if counts := aggregate.unlike(own):
                notes.append(
                    f"{title}: the conditions have different questions "
                    f"({counts}): their differences are not those of the "
                    "paper's Table 5"
                )
        return notes

    def criteria(self) -> list[Criterion]:
        """Return the criteria of claims, of their labels, and of the chosen baselines."""
        labels = [judging.dimension_criterion(name, 1) for name in judging.DIMENSIONS]
        more = baselines.criteria(settings.value(BASELINES)).values()
        return [judging.claims_criterion(), *labels, *more]

    def known_answers(self, place: Path) -> KnownAnswers:
        """Return the released answers with their scores, or answers made from the dataset's."""
        return published.known_answers(place, self.tasks[published.TASK])

    def check(self, names: Sequence[str], loaded: LoadedData) -> None:  # noqa: ARG002
        """Check that the model of BARTScore exists, if the user named one."""
        model, like = settings.value(BARTSCORE), "facebook/bart-large-cnn"
        local_models.check_model(BARTSCORE, model, model_scores.SEQ2SEQ, like)

    # --- results ------------------------------------------------------------------------------

    def describe(self, ran: Ran) -> tuple[dict[str, object], list[Condition]]:
        """Return data, left-out segments, contradictory scores, and the baselines."""
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
            return baselines.describe_baselines(settings.value(BASELINES), config)

        if (made := provenance.value_or_condition("baselines", look, conditions)) is not None:
            rouge = text_metrics.IMPLEMENTATIONS["rouge_l"]  # no stemmer, Unicode words
            section["baselines"] = {
                **made,
                "rouge_l": rouge,
                **provenance.implementation_notes(self.name),
            }
        return section, conditions

    def upgrade_items(self, items: Items, *, judged: bool) -> Items:
        """Return the items with the run's judged baselines; with a judge, also the chosen ones."""
        wanted = {name for item in items for name in item["judged_baselines"]}
        wanted |= set(settings.value(BASELINES) if judged else ())
        which = [name for name in JUDGED_BASELINES if name in wanted]
        return [{**item, "judged_baselines": which} for item in items]


BENCHMARK = MovieRecapsQA()
