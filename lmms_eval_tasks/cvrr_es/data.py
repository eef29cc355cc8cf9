"""The docs of a run: questions to ask, or candidates' answers to rate.

release.py reads the release, candidates.py the answers, and study/ the ratings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.benchmark import LoadedData, option_set
from lmms_eval_tasks.cvrr_es import candidates
from lmms_eval_tasks.cvrr_es.candidates import Aligned
from lmms_eval_tasks.cvrr_es.items import CvrrDoc, RatingDoc
from lmms_eval_tasks.cvrr_es.labels import JUDGE_TASKS, dimension_of
from lmms_eval_tasks.cvrr_es.metrics import OF, slug
from lmms_eval_tasks.cvrr_es.release import CvrrQuestion, CvrrRelease
from lmms_eval_tasks.cvrr_es.settings import (
    CVRR_CANDIDATES,
    CVRR_NAME,
    CVRR_RATINGS,
    CVRR_REFERENCE,
    CVRR_SELECTION,
)
from lmms_eval_tasks.cvrr_es.study import ratings, selection
from lmms_eval_tasks.cvrr_es.study.rated import JudgeTask, make_judge_task
from lmms_eval_tasks.cvrr_es.study.ratings import AnswerKey, RatingRow, folded
from lmms_eval_tasks.cvrr_es.study.study import QuestionPlace
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.conditions import Condition, Kind

NO_REFERENCE = (
    "no reference ratings (--cvrr-reference), so kappa and leniency are "
    "missing; to make some: lmms-eval-tasks debate; to add them to this run: "
    f"{CVRR_REFERENCE}=FILE lmms-eval-tasks rescore RUN"
)
# Names of this argument in lmms-eval's classes.
_NAMING = ("model_version", "model", "pretrained", "model_name")


def running_model() -> str:
    """The name of the model under test among candidates and judges.

    The user's name for it (`--cvrr-name`), else the last part of the checkpoint's name, else its
    class; "model" if the run's model is not known. Runs are joined by these names: they tell a
    judge's ratings from those of others, and mark a judge that rates its own answers. So they must
    not depend on the folder of a checkpoint.
    """
    if given := settings.text(CVRR_NAME):
        return given
    model = context.current().model
    if model is None:
        return "model"
    for name in _NAMING:
        value = model.arguments.get(name)
        if isinstance(value, str) and value.strip("/ "):
            return value.strip("/ ").rpartition("/")[2]
    return model.name


# --- loaded data ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class CvrrData(LoadedData):
    """The data of a run, with the answers and ratings for judge tasks."""

    candidates: Sequence[Aligned] = ()  # the rated candidates; empty without a judge task
    rated: Mapping[str, JudgeTask] = field(default_factory=dict)  # by task
    # Number of ratings of other questions, videos or answers under the same ids: left out.
    other_ratings: int = 0


def with_study(loaded: LoadedData, names: Sequence[str]) -> CvrrData:
    """Return the loaded data, with the answers and ratings for the judge tasks among `names`.

    Raises:
        DataError: candidates or ratings are not named or do not fit, or no candidate answered a
            question that can be asked.
    """
    release: CvrrRelease = loaded.release
    judging = [task for task in names if task in JUDGE_TASKS]
    if not judging:
        return CvrrData(release, loaded.sources)
    first: list[RatingRow] = []
    if any(JUDGE_TASKS[task] != "first" for task in judging):
        rating_files = settings.value(CVRR_RATINGS)
        if not rating_files:
            raise DataError(
                "no ratings by other judges: name files of ratings, or saved "
                "samples of cvrr_judge runs, with --cvrr-ratings PATH,PATH (or "
                f"{CVRR_RATINGS}=PATH,PATH)"
            )
        first = ratings.read_ratings(rating_files)
    answered = aligned(release)
    lost = loaded.left_out(judging[0])
    if not any(name not in lost for candidate in answered for name in candidate.answers):
        raise DataError("no candidate has an answer to a usable question")
    expected = {
        AnswerKey(q.id, candidate.candidate): ratings.rated_hash(
            q.question, q.video_id, candidate.answers[q.id]
        )
        for candidate in answered
        for q in release.questions
        if q.id in candidate.answers
    }
    first_same, reference_same = (ratings.same(rows, expected) for rows in (first, reference()))
    arguments: dict[str, Any] = {
        "candidates": answered,
        "places": {q.id: QuestionPlace(q.dimension, q.video_id) for q in release.questions},
        "first": first_same.rows,
        "reference": reference_same.rows,
        "rule": selection.parse(settings.text(CVRR_SELECTION)),
        "judge": running_model(),
    }
    rated = {task: make_judge_task(task, **arguments) for task in judging}
    others = first_same.others + reference_same.others
    return CvrrData(release, loaded.sources, candidates=answered, rated=rated, other_ratings=others)


def _asks(task: str, question: CvrrQuestion) -> bool:
    return task in JUDGE_TASKS or dimension_of(task) == question.dimension


def aligned(release: CvrrRelease) -> list[Aligned]:
    """The candidates that the user named, with their answers joined to the release's questions.

    Raises:
        DataError: none is named, answers cannot be joined, or two candidates would have the same
            name in metrics.
    """
    paths = settings.value(CVRR_CANDIDATES)
    if not paths:
        raise DataError(
            "no answers to judge: name folders of MODEL/DIMENSION.json, or "
            "saved samples of cvrr_es runs, with --cvrr-candidates PATH,PATH "
            f"(or {CVRR_CANDIDATES}=PATH,PATH)"
        )
    fitting = candidates.fitting(paths, release)
    slugs: dict[str, str] = {}
    for one in fitting:
        other = slugs.setdefault(slug(one.candidate), one.candidate)
        if other != one.candidate:
            raise DataError(
                f"candidates {other} and {one.candidate} would have the same metrics "
                f"(kappa{OF}{slug(other)}): rename the folder of one of them"
            )
    return fitting


def reference() -> list[RatingRow]:
    """The reference ratings that the user named; empty if none are named: they can be added later.

    Raises:
        DataError: the files cannot be used, or two rows rate the same item.
    """
    paths = settings.value(CVRR_REFERENCE)
    rows = [row for row in ratings.read_ratings(paths) if row.round == "reference"] if paths else []
    if paths and not rows:
        raise DataError(
            f"{', '.join(map(str, paths))}: no ratings of the round `reference` "
            "(--cvrr-reference); to make some: lmms-eval-tasks debate"
        )
    judges: dict[AnswerKey, str] = {}
    for row in rows:
        other = judges.setdefault(row.item, row.judge)
        if other != row.judge:
            raise DataError(
                f"{row.question}, {row.candidate}: reference ratings by {other} "
                f"and {row.judge}; name only one of them"
            )
    return rows


# --- docs -----------------------------------------------------------------------------------------


def make_cvrr_docs(loaded: LoadedData, task: str) -> Sequence[CvrrDoc | RatingDoc]:
    """The docs of a task, in the release's order, then by candidate."""
    rows = questions(loaded, task)
    return cast(CvrrData, loaded).rated[task].docs(rows) if task in JUDGE_TASKS else rows


def questions(loaded: LoadedData, task: str) -> list[CvrrDoc]:
    """The questions of a task, in the release's order: asked, or with answers to rate.

    `lure` is the reference answer of the next question; the last question has that of the first.
    """
    release: CvrrRelease = loaded.release
    asked, left_out = release.questions, loaded.left_out(task)
    lures = [one.reference for one in (*asked[1:], *asked[:1])]
    return [
        {
            "id": one.id,
            "dimension": one.dimension,
            "video": one.video_id,
            "video_path": str(released_files.real(release.video_path(one))),
            "start": None,
            "end": None,
            "n_frames": settings.frames_for(one.video, default=0),
            "question": one.question,
            "reference": one.reference,
            "references": [one.reference],
            "lure": lure,
            "data": loaded.digest,
        }
        for one, lure in zip(asked, lures, strict=True)
        if one.id not in left_out and _asks(task, one)
    ]


# --- results --------------------------------------------------------------------------------------


def describe_data(loaded: LoadedData | None) -> tuple[dict[str, object], list[Condition]]:
    """Return candidates, shown ratings and frames for the results file, and conditions."""
    section: dict[str, Any] = {"model": running_model()}
    conditions: list[Condition] = []
    if loaded is not None:
        known = cast(CvrrData, loaded)
        section |= _of_judges(known)
        if known.other_ratings:
            told = (
                f"{known.other_ratings:,} ratings by others have the ids of "
                "this run's questions, but other questions, videos or answers: "
                "skipped"
            )
            conditions.append(Condition(Kind.OTHER_ITEMS, told))
        if known.rated and not any(one.reference for one in known.rated.values()):
            conditions.append(Condition(Kind.NOTE, NO_REFERENCE))
        for task, one in known.rated.items():
            conditions += [
                Condition(Kind.NOTE, f"{task}: {told}", (task,)) for told in _of_mixture(one)
            ]
    rule = "the video is passed as a file: the model's own maximum of frames applies"
    frames: dict[str, Any] = {"rule": rule}
    if asked := settings.frames_for("", default=0):
        frames = {"rule": "uniform frames in order, as images", "asked": asked}
    return {**section, "frames": frames}, [*conditions, *option_set(settings.FRAMES)]


def _of_mixture(judge_task: JudgeTask) -> Iterator[str]:
    """Yield lines if the mixture's rule chose no judge, or the judge's own ratings are missing."""
    if judge_task.rule is None:
        return
    choices = {choice.stratum: choice for choice in judge_task.choices.values()}.values()
    if often := sum(not choice.judges for choice in choices):
        yield (
            f"no judge passed in {often} of {len(choices)} choices (one for "
            f"each fold and dimension; {judge_task.rule}); there the final judge rates "
            "alone"
        )
    mine = folded(running_model())
    if all(folded(row.judge) != mine for own in judge_task.first.values() for row in own):
        yield (
            f"no first rating by {running_model()} itself, which the published "
            "mixture may also see: name its cvrr_judge run with --cvrr-ratings"
        )


def _of_judges(data: CvrrData) -> dict[str, object]:
    """The candidates, the counts of ratings that may be shown, and the judges of a mixture."""
    details: dict[str, Any] = {"candidates": {}, "first_ratings": {}, "selected": {}}
    for candidate in data.candidates:
        details["candidates"][candidate.candidate] = {
            "answers": len(candidate.answers),
            "empty": len(candidate.empty),
            "problems": list(candidate.problems),
        }
    for task, rated in data.rated.items():
        if judges := Counter(row.judge for rows in rated.first.values() for row in rows):
            details["first_ratings"][task] = {"judges": dict(sorted(judges.items()))}
        if rated.rule:
            details["selection"] = str(rated.rule)
            details["selected"][task] = {
                f"{'all' if fold is None else f'fold {fold}'}, {dimension}": {
                    "judges": list(judges),
                    "fell_back": not judges,
                    "kappa": dict(kappa),
                }
                for (fold, dimension), judges, kappa in rated.choices.values()
            }
    return {name: value for name, value in details.items() if value}
