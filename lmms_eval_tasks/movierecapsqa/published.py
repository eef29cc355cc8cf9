"""Answers whose scores are known, to check a judge with (`lmms-eval-tasks agreement`).

The site's sample has the answers of seven models and of people, with factuality and relevance 0 to
5; empty answers and a few more have no scores. Of a release without scores the dataset's answer is
worth 5, and an answer to another segment's question 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, cast

from lmms_eval_tasks import leaderboards, settings
from lmms_eval_tasks.benchmark import (
    Doc,
    Items,
    KnownAnswer,
    KnownAnswers,
    LoadedData,
    TableRow,
    Task,
)
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.media.sources import bad_items, check, stop
from lmms_eval_tasks.movierecapsqa import data, judge, schema
from lmms_eval_tasks.movierecapsqa.items import RecapItem
from lmms_eval_tasks.movierecapsqa.settings import BASELINES, JUDGED_BASELINES
from lmms_eval_tasks.report import aggregation
from lmms_eval_tasks.tables import layouts
from lmms_eval_tasks.tables.paper_tables import by_row, fixed
from lmms_eval_tasks.utils.metrics import aggregate, rating_means, stats
from lmms_eval_tasks.utils.metrics.agreement import AgreementRow, ScorePair, row

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

TASK = "movierecapsqa_segment"  # what the models and people of the release were asked
DIMENSIONS = ("factuality", "relevance")  # with published scores
PEOPLE = "people"  # in place of a model's name


@dataclass(frozen=True)
class Released:
    """One answer of a release."""

    doc: Doc  # its question, as a run has it
    by: str  # a model as Table 4 names it, or PEOPLE
    text: str
    scores: Mapping[str, int | None]  # published, by DIMENSIONS

    @property
    def known(self) -> dict[str, float]:
        """Those of the scores that there are."""
        return {name: float(score) for name, score in self.scores.items() if score is not None}


@dataclass(frozen=True)
class Data:
    """A release's answers, in its order, and where they are from."""

    file: Path
    digest: str
    answers: tuple[Released, ...]

    def coverage(self) -> Iterator[str]:
        """How many answers there are of whom, and how many of them have scores."""
        ids, videos = ({one.doc[name] for one in self.answers} for name in ("id", "video"))
        yield (
            f"{self.file} (data {self.digest}): {len(ids)} questions on {len(videos)} videos; "
            "answers that have published scores:"
        )
        scored: dict[str, list[bool]] = {}
        for one in self.answers:
            scored.setdefault(one.by, []).append(bool(one.known))
        yield from (f"{name}: {sum(own)} of {len(own)}" for name, own in scored.items())


def known_answers(source: Path, task: Task, *, whole: bool) -> KnownAnswers:
    """The answers of a data file, or of the one in a folder, with their scores.

    Args:
        task: whose judge they are put to, TASK.
        whole: judge Table 4's baselines too, unless the user named others.

    Raises:
        DataError: the data cannot be read; segments are bad and `--allow-bad-items` was not given;
            a model has two answers to a question.
    """
    release, chosen = schema.read(source), data.options()
    problems = bad_items(release.problems, "segments cannot be used")
    stop(release.place, problems + data.without_own(release, chosen))
    spoken = [check(one) for one in data.sources(release, [TASK]) if not one.is_video]
    docs = {doc["id"]: doc for doc in data.docs(LoadedData(release, spoken), TASK)}
    scale = range(judge.LOWEST, judge.HIGHEST + 1)
    own = Data(release.place, release.digest, _released(release, docs))
    if not any(one.known for one in own.answers):
        told = (
            f"{release.place} (data {release.digest}): the dataset's answers, and answers to "
            "another segment's question as wrong ones"
        )
        return KnownAnswers(list(_made(docs.values(), task)), [told], scale)
    baselines = {}
    if whole and not settings.text(BASELINES):
        baselines = {"judged_baselines": list(JUDGED_BASELINES)}
    answers = [
        KnownAnswer(task.name, task.log_fields({**one.doc, **baselines}), one.text, one.known)
        for one in own.answers
    ]
    return KnownAnswers(answers, list(own.coverage()), scale, tables=partial(_tables, own, task))


def _released(release: schema.MovieRelease, docs: Mapping[str, Doc]) -> tuple[Released, ...]:
    """The answers of models and people in a release, in its order."""
    names = leaderboards.stored("movierecapsqa")["models"]
    answers: dict[tuple[str, str], Released] = {}
    for segment, question in release.questions():
        place = segment.question_id(question)
        given = [(one, names.get(one.model)) for one in question.model_answers]
        given += [(question.human_answer, PEOPLE)] if question.human_answer else []
        for one, name in given if place in docs else ():
            by = name or one.model.removesuffix(".response")
            if (place, by) in answers:
                raise DataError(f"{release.place}: {place} has two answers of {by}")
            scores = {dimension: getattr(one.scores, dimension) for dimension in DIMENSIONS}
            answers[place, by] = Released(docs[place], by, one.answer, scores)
    return tuple(answers.values())


def _made(docs: Iterable[Doc], task: Task) -> Iterator[KnownAnswer]:
    """Of each question the dataset's answer, and one that is neither true nor to the point."""
    for doc in docs:
        for text, worth in ((doc["reference"], judge.HIGHEST), (doc["lure"], judge.LOWEST)):
            if text:
                known = dict.fromkeys(DIMENSIONS, float(worth))
                yield KnownAnswer(task.name, task.log_fields(doc), text, known)


# --- our judge beside the published scores --------------------------------------------------------

_KEPT = ("id", "status", "claims", "rouge_l", "baselines", "dimensions", "verdicts")


def _tables(
    found: Data, task: Task, items: Items, is_invalid: bool
) -> tuple[list[RenderableType], dict[str, object]]:
    """Tables 4 and 5 of the answers' items and their agreement by model; and all of it for JSON."""
    answered = cast(Sequence[RecapItem], items)
    by: dict[str, list[RecapItem]] = {}
    for one, item in zip(found.answers, answered, strict=True):
        by.setdefault(one.by, []).append(item)
    numbers = {one: aggregation.numbers(task, own) for one, own in by.items()}
    made = [TableRow(TASK, own, name, is_invalid) for name, own in numbers.items()]
    shown = layouts.tables(leaderboards.stored("movierecapsqa"), made)
    by_dimension = {one: rows(found.answers, answered, one) for one in DIMENSIONS}
    tables: list[RenderableType] = [*shown]
    for name, compared in by_dimension.items():
        tables += [*table(name, compared), ""]
    return tables, {
        "dimensions": {
            name: {"rows": {title: one.as_dict() for title, one in own.items()}}
            for name, own in by_dimension.items()
        },
        "numbers": numbers,
        "statuses": dict(Counter(item["status"] for item in items)),
        # An answer's own text stays in the release.
        "answers": [
            {"by": one.by, "published": one.scores, **{key: item.get(key) for key in _KEPT}}
            for one, item in zip(found.answers, items, strict=True)
        ],
    }


def rows(
    answers: Sequence[Released], items: Sequence[RecapItem], dimension: str
) -> dict[str, AgreementRow]:
    """How far our scores of the answers agree with the published ones: of each model, all models
    and people.
    """
    rated = map(rating_means.value, rating_means.ratings(dimension, aggregate.as_counted(items)))
    groups: dict[str, list[ScorePair]] = {}
    for one, ours in zip(answers, rated, strict=True):
        pair = ours, one.scores[dimension], one.doc["video"]
        groups.setdefault(one.by, []).append(pair)
    people = groups.pop(PEOPLE, None)
    if len(groups) > 1:
        groups["all models"] = list(chain.from_iterable(groups.values()))
    groups |= {PEOPLE: people} if people else {}
    scale = range(judge.LOWEST, judge.HIGHEST + 1)
    return {name: row(own, scale) for name, own in groups.items()}


def table(dimension: str, found: Mapping[str, AgreementRow]) -> list[Table]:
    """A dimension's coefficients, a row for each model, for all of them and for people."""

    def cells(one: AgreementRow) -> list[str]:
        kappa, interval = fixed(one.kappa), one.intervals.get("kappa")
        if one.kappa is not None and interval is not None and interval.ends is not None:
            kappa += " [{:.2f}, {:.2f}]".format(*interval.ends)
        means = ((one.ours, one.ours_var), (one.published, one.published_var))
        told = (fixed(mean) if mean is None else f"{mean:.2f}±{fixed(var)}" for mean, var in means)
        return [str(one.n), str(one.missing), kappa, fixed(one.rho), fixed(one.absolute), *told]

    intervals = [interval for one in found.values() for interval in one.intervals.values()]
    videos = max((interval.clusters for interval in intervals), default=0)
    told = stats.few(videos)
    return by_row(
        f"{dimension}: our judge and the published scores",
        ["answers of"],
        ["n", "judge\nfailed", "kappa", "rho", "|diff.|", "ours", "published"],
        [([name], cells(one)) for name, one in found.items()],
        "kappa: quadratic weights, over the whole scale; rho: Spearman's; |diff.|: mean distance;\n"
        f"ours, published: mean±variance. [low, high]: 95 %, clustered by {videos} videos"
        + (f"\n{told}" if told else ""),
    )
