"""The released answers with their published scores, for `lmms-eval-tasks agreement`.

The release has the answers of seven models and of people, with factuality and relevance 0 to 5;
empty answers and a few more have no scores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lmms_eval_tasks import leaderboards, settings
from lmms_eval_tasks.benchmark import Doc
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa import data, judge, schema
from lmms_eval_tasks.movierecapsqa.data import ALIGNED, ALL, GIVEN, NONE, Options
from lmms_eval_tasks.utils.media.video_checks import bad_items, stop

TASK = "movierecapsqa_segment"  # what the models and people of the release were asked
DIMENSIONS = ("factuality", "relevance")  # with published scores
SCALE = range(judge.LOWEST, judge.HIGHEST + 1)
PEOPLE = "people"  # in place of a model's name
# What a judge may be shown, by the title of its row; ours first.
WAYS = {
    "all facts + dialogue": Options(),
    "all facts": Options(dialogue=NONE),
    "own facts + dialogue": Options(ALIGNED, GIVEN),
    "own facts": Options(ALIGNED, NONE),
}


@dataclass(frozen=True)
class Released:
    """One answer of a release."""

    doc: Doc  # its question, as a run keeps it
    by: str  # a model as Table 4 names it, or PEOPLE
    number: int  # of several answers of people to one question, from 0
    text: str
    scores: Mapping[str, int | None]  # published, by DIMENSIONS

    @property
    def is_scored(self) -> bool:
        """Whether it has a published score in any dimension."""
        return any(score is not None for score in self.scores.values())


@dataclass(frozen=True)
class Data:
    """A release's answers, in its order, and where they are from.

    Attributes:
        left_out: segments that do not fit the schema, and why.
        unsure: questions whose own facts are those of two readings (schema.Question).
        ways: what the judge is shown, by title.
    """

    file: Path
    digest: str
    answers: tuple[Released, ...]
    left_out: Mapping[str, str]
    unsure: int
    ways: Mapping[str, Options]

    @property
    def models(self) -> list[str]:
        """The models in the release's order."""
        return [name for name in dict.fromkeys(one.by for one in self.answers) if name != PEOPLE]


def read(source: Path) -> Data:
    """The released answers of a data file, or of the one in a folder.

    Judged are all metrics of Table 4 unless the user named baselines; and in all ways unless the
    user chose one, or a question has no facts of its own.

    Raises:
        DataError: the data cannot be read; segments are bad and `--allow-bad-items` was not given;
            a model has two answers to a question; no answer has a score.
    """
    release = schema.read(source)
    stop(release.file, bad_items(release.problems, "segments cannot be used"))
    named = settings.text(settings.BASELINES)
    which = list(settings.value(settings.BASELINES) if named else settings.JUDGED_BASELINES)
    names = leaderboards.stored("movierecapsqa")["models"]
    known = data.Checked(release, release.digest, {}, Options())
    docs = {doc["id"]: {**doc, "judged_baselines": which} for doc in data.docs(known, TASK)}
    answers: dict[tuple[str, str, int], Released] = {}
    for segment, question in release.questions():
        place = segment.question_id(question)
        models = ((names.get(one.model), 0, one) for one in question.model_answers)
        people = ((PEOPLE, number, one) for number, one in enumerate(question.human_answers))
        for name, number, one in (*models, *people):
            by = name or one.model.removesuffix(".response")
            if (place, by, number) in answers:
                raise DataError(f"{release.file}: {place} has two answers of {by}")
            scores = {dimension: getattr(one.scores, dimension) for dimension in DIMENSIONS}
            answers[place, by, number] = Released(docs[place], by, number, one.answer, scores)
    if not any(one.is_scored for one in answers.values()):
        raise DataError(
            f"{release.file}: no answer has published scores to agree with (modelAnswers and "
            "humanAnswer with scores, as on the project's site)"
        )
    ways: Mapping[str, Options] = WAYS
    if settings.text(settings.MOVIERECAPSQA):
        ways = {title: one for title, one in WAYS.items() if one == data.options()}
    if lacking := data.without_own(release):
        ways = {title: one for title, one in ways.items() if one.facts == ALL}
        if not ways:
            raise DataError(f"{release.file}: {lacking}")
    unsure = sum(question.unsure for _, question in release.questions())
    told = tuple(answers.values())
    return Data(release.file, release.digest, told, release.problems, unsure, ways)
