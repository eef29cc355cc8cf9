"""Answers with known scores, to test a judge with (`lmms-eval-tasks agreement`).

The sample on the project's site has answers of seven models and of people, with factuality and
relevance 0 to 5; empty answers and a few others have no scores. For a release without scores, the
dataset's answer counts as 5, and the answer to another segment's question as 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, cast

from lmms_eval_tasks import leaderboards
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
from lmms_eval_tasks.media.sources import bad_items, check_source, stop
from lmms_eval_tasks.movierecapsqa import data, judge
from lmms_eval_tasks.movierecapsqa import release as files
from lmms_eval_tasks.movierecapsqa.items import RecapItem
from lmms_eval_tasks.report import aggregation
from lmms_eval_tasks.tables import layouts
from lmms_eval_tasks.tables.paper_tables import by_row, fixed
from lmms_eval_tasks.utils.metrics import aggregate, rating_means, stats
from lmms_eval_tasks.utils.metrics.agreement import AgreementRow, ScorePair, row

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

TASK = "movierecapsqa_segment"  # the task that the models and people of the release did
DIMENSIONS = ("factuality", "relevance")  # the dimensions with published scores
PEOPLE = "people"  # the name for answers of people


@dataclass(frozen=True)
class Released:
    """One answer of a release, with its published scores."""

    doc: Doc  # the doc of its question
    by: str  # the model's name in Table 4, or PEOPLE
    text: str
    scores: Mapping[str, int | None]  # published scores, by DIMENSIONS

    @property
    def known_scores(self) -> dict[str, float]:
        """The published scores that exist, by dimension."""
        return {name: float(score) for name, score in self.scores.items() if score is not None}


@dataclass(frozen=True)
class Data:
    """The answers of a release, in the release's order, with the file and its hash."""

    file: Path
    digest: str
    answers: tuple[Released, ...]

    def coverage(self) -> Iterator[str]:
        """Yield lines: the numbers of answers by author, and how many of them have scores."""
        ids, videos = ({one.doc[name] for one in self.answers} for name in ("id", "video"))
        yield (
            f"{self.file} (data {self.digest}): {len(ids)} questions on {len(videos)} videos; "
            "answers that have published scores:"
        )
        scored: dict[str, list[bool]] = {}
        for one in self.answers:
            scored.setdefault(one.by, []).append(bool(one.known_scores))
        yield from (f"{name}: {sum(own)} of {len(own)}" for name, own in scored.items())


def known_answers(source: Path, task: Task) -> KnownAnswers:
    """Return the answers of a data file with their known scores.

    Args:
        source: a data file, or the folder with it.
        task: the task whose judge gets the answers, TASK.

    Raises:
        DataError: the data cannot be read; segments are invalid and `--allow-bad-items` was not
            given; a model has two answers to a question.
    """
    release, chosen = files.read_recaps(source), data.options()
    problems = bad_items(release.problems, "segments cannot be used")
    stop(release.place, problems + data.without_own(release, chosen))
    spoken = [check_source(one) for one in data.media_sources(release, [TASK]) if not one.is_video]
    docs = {doc["id"]: doc for doc in data.make_recap_docs(LoadedData(release, spoken), TASK)}
    scale = range(judge.LOWEST, judge.HIGHEST + 1)
    rated = Data(release.place, release.digest, _released(release, docs))
    if not any(answer.known_scores for answer in rated.answers):
        line = (
            f"{release.place} (data {release.digest}): the dataset's answers, and answers to "
            "another segment's question as wrong ones"
        )
        return KnownAnswers(list(_made(docs.values(), task)), [line], scale)
    answers = [
        KnownAnswer(task.name, task.log_fields(row.doc), row.text, row.known_scores)
        for row in rated.answers
    ]
    return KnownAnswers(
        answers, list(rated.coverage()), scale, tables=partial(_tables, rated, task)
    )


def _released(release: files.MovieRelease, docs: Mapping[str, Doc]) -> tuple[Released, ...]:
    """Return the answers of models and people in a release, in its order."""
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
    """Yield two answers for each question: the dataset's, and one that is wrong and irrelevant."""
    for doc in docs:
        for text, worth in ((doc["reference"], judge.HIGHEST), (doc["lure"], judge.LOWEST)):
            if text:
                known = dict.fromkeys(DIMENSIONS, float(worth))
                yield KnownAnswer(task.name, task.log_fields(doc), text, known)


# --- our judge beside the published scores --------------------------------------------------------

_KEPT = ("id", "status", "claims", "rouge_l", "baselines", "dimensions", "verdicts")


def _tables(
    data: Data, task: Task, items: Items, is_invalid: bool
) -> tuple[list[RenderableType], dict[str, object]]:
    """Return Tables 4 and 5 of the answers, tables of agreement, and their content as JSON."""
    answered = cast(Sequence[RecapItem], items)
    by: dict[str, list[RecapItem]] = {}
    for one, item in zip(data.answers, answered, strict=True):
        by.setdefault(one.by, []).append(item)
    numbers = {one: aggregation.numbers(task, own) for one, own in by.items()}
    made = [TableRow(TASK, own, name, is_invalid) for name, own in numbers.items()]
    shown = layouts.draw_tables(leaderboards.stored("movierecapsqa"), made)
    by_dimension = {one: agreement_rows(data.answers, answered, one) for one in DIMENSIONS}
    tables: list[RenderableType] = [*shown]
    for name, compared in by_dimension.items():
        tables += [*agreement_tables(name, compared), ""]
    return tables, {
        "dimensions": {
            name: {"rows": {title: one.as_dict() for title, one in own.items()}}
            for name, own in by_dimension.items()
        },
        "numbers": numbers,
        "statuses": dict(Counter(item["status"] for item in items)),
        # The texts of answers stay in the release.
        "answers": [
            {"by": one.by, "published": one.scores, **{key: item.get(key) for key in _KEPT}}
            for one, item in zip(data.answers, items, strict=True)
        ],
    }


def agreement_rows(
    answers: Sequence[Released], items: Sequence[RecapItem], dimension: str
) -> dict[str, AgreementRow]:
    """Return the agreement of our scores with the published ones, in one dimension.

    Returns:
        By name: one row for each model, one for all models together, and one for people.
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


def agreement_tables(dimension: str, rows_by_model: Mapping[str, AgreementRow]) -> list[Table]:
    """Return the tables of a dimension's coefficients, with the rows of `rows`."""

    def cells(row: AgreementRow) -> list[str]:
        kappa, interval = fixed(row.kappa), row.intervals.get("kappa")
        if row.kappa is not None and interval is not None and interval.ends is not None:
            kappa += " [{:.2f}, {:.2f}]".format(*interval.ends)
        means = ((row.ours, row.ours_var), (row.published, row.published_var))
        told = (fixed(mean) if mean is None else f"{mean:.2f}±{fixed(var)}" for mean, var in means)
        return [str(row.n), str(row.missing), kappa, fixed(row.rho), fixed(row.absolute), *told]

    intervals = [interval for one in rows_by_model.values() for interval in one.intervals.values()]
    videos = max((interval.clusters for interval in intervals), default=0)
    note = stats.few(videos)
    return by_row(
        f"{dimension}: our judge and the published scores",
        ["answers of"],
        ["n", "judge\nfailed", "kappa", "rho", "|diff.|", "ours", "published"],
        [([name], cells(one)) for name, one in rows_by_model.items()],
        "kappa: quadratic weights, over the whole scale; rho: Spearman's; |diff.|: mean distance;\n"
        f"ours, published: mean±variance. [low, high]: 95 %, clustered by {videos} videos"
        + (f"\n{note}" if note else ""),
    )
