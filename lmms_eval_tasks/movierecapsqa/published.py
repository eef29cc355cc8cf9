"""The released answers with their published scores, for `lmms-eval-tasks agreement`.

The site's sample has the answers of seven models and of people, with factuality and relevance 0 to
5; empty answers and a few more have no scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import leaderboards, settings
from lmms_eval_tasks.benchmark import Items
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa import data, judge, schema
from lmms_eval_tasks.report.paper_tables import by_row, fixed
from lmms_eval_tasks.utils.media.video_checks import bad_items, stop
from lmms_eval_tasks.utils.metrics import aggregate, rating_means, stats
from lmms_eval_tasks.utils.metrics.agreement import Pair, Row, row

if TYPE_CHECKING:
    from rich.table import Table

TASK = "movierecapsqa_segment"  # what the models and people of the release were asked
DIMENSIONS = ("factuality", "relevance")  # with published scores
PEOPLE = "people"  # in place of a model's name


@dataclass(frozen=True)
class Released:
    """One answer of a release."""

    doc: Mapping[str, Any]  # its question, as a run has it
    by: str  # a model as Table 4 names it, or PEOPLE
    text: str
    scores: Mapping[str, int | None]  # published, by DIMENSIONS


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
            has_score = any(score is not None for score in one.scores.values())
            scored.setdefault(one.by, []).append(has_score)
        yield from (f"{name}: {sum(own)} of {len(own)}" for name, own in scored.items())


def read(source: Path) -> Data:
    """The released answers of a data file, or of the one in a folder.

    Judged are all metrics of Table 4 unless the user named baselines.

    Raises:
        DataError: the data cannot be read; segments are bad and `--allow-bad-items` was not given;
            a model has two answers to a question; nobody has a score.
    """
    release, chosen = schema.read(source), data.options()
    problems = bad_items(release.problems, "segments cannot be used")
    stop(release.file, problems + data.without_own(release, chosen))
    named = settings.text(settings.BASELINES)
    which = list(settings.value(settings.BASELINES) if named else settings.JUDGED_BASELINES)
    names = leaderboards.stored("movierecapsqa")["models"]
    known = data.Checked(release=release, digest=release.digest, held={}, options=chosen)
    docs = {doc["id"]: {**doc, "judged_baselines": which} for doc in data.docs(known, TASK)}
    answers: dict[tuple[str, str], Released] = {}
    for segment, question in release.questions():
        place = segment.question_id(question)
        given = [(one, names.get(one.model)) for one in question.model_answers]
        given += [(question.human_answer, PEOPLE)] if question.human_answer else []
        for one, name in given:
            by = name or one.model.removesuffix(".response")
            if (place, by) in answers:
                raise DataError(f"{release.file}: {place} has two answers of {by}")
            scores = {dimension: getattr(one.scores, dimension) for dimension in DIMENSIONS}
            answers[place, by] = Released(docs[place], by, one.answer, scores)
    if all(score is None for one in answers.values() for score in one.scores.values()):
        raise DataError(
            f"{release.file}: no answer has published scores to agree with (modelAnswers and "
            "humanAnswer with scores, as on the project's site)"
        )
    return Data(release.file, release.digest, tuple(answers.values()))


# --- our judge beside the published scores --------------------------------------------------------


def rows(answers: Sequence[Released], items: Items, dimension: str) -> dict[str, Row]:
    """How far our scores of the answers agree with the published ones: of each model, all models
    and people.
    """
    pairs = [
        Pair(
            *(one.by, one.doc["id"], one.doc["video"]),
            *(rating_means.value(dimension, item), one.scores[dimension]),
        )
        for one, item in zip(answers, aggregate.as_counted(items), strict=True)
    ]
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.rater, []).append(pair)
    people = groups.pop(PEOPLE, None)
    if len(groups) > 1:
        groups["all models"] = [pair for pair in pairs if pair.rater != PEOPLE]
    groups |= {PEOPLE: people} if people else {}
    scale = range(judge.LOWEST, judge.HIGHEST + 1)
    return {name: row(own, scale) for name, own in groups.items()}


def table(dimension: str, found: Mapping[str, Row]) -> list[Table]:
    """A dimension's coefficients, a row for each model, for all of them and for people."""

    def cells(one: Row) -> list[str]:
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
        f"{dimension}: our judge beside the published scores",
        ["answers of"],
        ["n", "judge\nfailed", "kappa", "rho", "|diff.|", "ours", "published"],
        [([name], cells(one)) for name, one in found.items()],
        "kappa: quadratic weights, over the whole scale; rho: Spearman's; |diff.|: mean distance;\n"
        f"ours, published: mean±variance. [low, high]: 95 %, clustered by {videos} videos"
        + (f"\n{told}" if told else ""),
    )
