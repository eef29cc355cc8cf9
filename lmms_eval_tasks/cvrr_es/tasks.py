"""CVRR-ES (Khattak et al. 2024), and the study of judges on its answers (vlm_judge).

A judge compares the answers to eleven dimensions of questions with the reference. In three more
tasks the model under test is the judge: it rates candidates' answers alone, with all other judges'
ratings, or with those of selected judges.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from lmms_eval_tasks import prompts
from lmms_eval_tasks.benchmark import (
    Benchmark,
    Doc,
    Items,
    JointMetric,
    KnownAnswers,
    MediaJob,
    Part,
    Ran,
    Task,
    select_fields,
)
from lmms_eval_tasks.cvrr_es import data, labels, metrics, published, release
from lmms_eval_tasks.cvrr_es import judge as judging
from lmms_eval_tasks.cvrr_es.data import running_model
from lmms_eval_tasks.cvrr_es.items import (
    CvrrDoc,
    CvrrFields,
    CvrrItem,
    CvrrScore,
    CvrrShown,
    KeptCvrr,
    KeptRating,
    RatedAnswer,
    RatingDoc,
    RatingItem,
    RatingScore,
)
from lmms_eval_tasks.cvrr_es.labels import ANSWERS, DIMENSIONS, HINT, JUDGE_TASKS
from lmms_eval_tasks.cvrr_es.study import replies
from lmms_eval_tasks.cvrr_es.study.ratings import AnswerKey, RatingRow, rated_hash
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.judges.asking import judge_reply
from lmms_eval_tasks.judges.verdict import Criterion, ScoringSteps
from lmms_eval_tasks.media import clips
from lmms_eval_tasks.prompts import Prompt
from lmms_eval_tasks.utils import saved_runs
from lmms_eval_tasks.utils.conditions import Condition, Kind

# --- prompts ----------------------------------------------------------------------------------


def question_prompt(doc: CvrrDoc, file: str) -> list[Part]:
    """The muted video or its frames, then the question."""
    text = judging.load_judge_prompt(file).text["question"]
    return _after_video(doc, prompts.fill(text, {"question": doc["question"]}))


def rating_prompt(doc: RatingDoc) -> list[Part]:
    """The muted video or its frames, then the judge's prompt on an answer."""
    others = [RatingRow(**row) for row in doc["others"]]
    return _after_video(doc, judging.request(doc["question"], doc["answer"], others))


def _after_video(doc: CvrrShown, text: str) -> list[Part]:
    seen = (
        Part("images", lambda: clips.visuals(doc))
        if doc["n_frames"]
        else Part("video", lambda: clips.visuals(doc)[0])
    )
    return [seen, Part("text", text)]


# --- scores -----------------------------------------------------------------------------------


def keep_answer(doc: CvrrDoc) -> KeptCvrr:
    """Return the fields of a question for the log, with the name of the model that answers."""
    return {**select_fields(doc, CvrrFields), "candidate": running_model()}


def keep_rating(doc: RatingDoc) -> KeptRating:
    """Return the fields of a rated answer for the log, with the name of the model that rates."""
    return {
        **select_fields(doc, RatedAnswer),
        "question": doc["question_id"],
        "asked": doc["question"],
        "judge": running_model(),
    }


def answer(doc: KeptCvrr, reply: str) -> ScoringSteps[CvrrScore]:
    """Score one answer: correct or not, and 0 to 5 points.

    An answer that needed no judge has 0 points. If the verdict's own score is unreadable, `points`
    is None: the verdict's 0 or 1 is another number.
    """
    fields = {"question": doc["question"], "reference": doc["reference"], "id": doc["id"]}
    done = yield from judge_reply("correct", judging.answer_criterion(), fields, reply)
    points = judging.points(done.verdict, done.candidate)
    return {
        "answer": done.candidate,
        "status": done.status,
        "right": done.score,
        "points": done.score if done.verdict is None else points,
    }


def rating(doc: KeptRating, reply: str) -> RatingScore:
    """Score a rating of the model under test; an unreadable one is a failure, never a 3."""
    rating, reason, status = replies.read_rating(reply, [doc["answer"]])
    return {"rating": rating, "reason": reason, "status": status}


# --- the tasks --------------------------------------------------------------------------------


def _file(task: str) -> str:
    """Return the name of a task's file of prompts."""
    if task in JUDGE_TASKS:
        return "rating"
    return "hint" if task.startswith(HINT) else "task"


def _media_log(doc: CvrrShown) -> dict[str, object]:
    return {"media": clips.log(doc)}


def _answered(name: str) -> Task[CvrrDoc, KeptCvrr, CvrrItem]:
    return Task(
        name,
        functools.partial(question_prompt, file=_file(name)),
        keep_answer,
        answer,
        metrics.ANSWERS,
        identity=("video", "question", "reference"),
        media_log=_media_log,
        judgements=("correct",),
        required_fields=("dimension", "question", "reference"),
        failed_item={"answer": "", "right": None, "points": None},
        example_reply=lambda doc, number: doc["reference"],  # noqa: ARG005
    )


def _rated(name: str) -> Task[RatingDoc, KeptRating, RatingItem]:
    return Task(
        name,
        rating_prompt,
        keep_rating,
        rating,
        metrics.RATED,
        identity=("video", "asked", "candidate", "answer", "round"),
        extra_metrics=metrics.by_candidate,
        media_log=_media_log,
        required_fields=(
            "dimension",
            "question",
            "candidate",
            "answer",
            "empty",
            "fell_back",
            "round",
            "judge",
        ),
        failed_item={"rating": None, "reason": ""},
        details=metrics.rated_details,
        notes=_uncompared,
        splits={"dimension": "heat"},
    )


def _uncompared(items: Sequence[RatingItem]) -> list[str]:
    told = (
        "the reference has no rating of these answers: compare the ids of the "
        "questions and the names of the candidates"
    )
    compared = any(item["reference_rating"] is not None for item in items)
    return [told] if not compared and data.reference() else []


class CvrrEs(Benchmark):
    """The benchmark CVRR-ES, with the tasks of the judge study."""

    name = "cvrr_es"
    title = "CVRR-ES"
    how_to_get = release.HOW_TO_GET
    downloads = release.DOWNLOADS
    by_hand = release.BY_HAND
    records = "questions"
    paper_counts = labels.PAPER_COUNTS
    paper_judge = judging.PAPER_JUDGE

    tasks: Mapping[str, Task] = {
        **{
            f"{start}{one}": _answered(f"{start}{one}")
            for start in (ANSWERS, HINT)
            for one in DIMENSIONS
        },
        **{name: _rated(name) for name in JUDGE_TASKS},
    }
    joint_metrics = tuple(
        JointMetric(
            start.removesuffix("_"),
            tuple(f"{start}{one}" for one in DIMENSIONS),
            metrics.means,
            metrics.MEANS_SHOWN,
            metrics.partial_means,
            share_names=("mean_acc_skip_empty", "mean_acc"),
        )
        for start in (ANSWERS, HINT)
    )

    read_release = staticmethod(release.read_cvrr)
    sources = staticmethod(release.media_sources)
    docs = staticmethod(data.make_cvrr_docs)
    data_notes = staticmethod(release.list_missing)

    def load(
        self, names: Sequence[str], *, videos: bool = True, only: Collection[str] | None = None
    ) -> data.CvrrData:
        """Load the data, with the answers and ratings for judge tasks."""
        return data.with_study(super().load(names, videos=videos, only=only), names)

    def media_job(self, doc: Doc) -> MediaJob:
        """The job that makes the muted copy of a video, or its frames."""
        window = (doc["video_path"], doc["start"], doc["end"], doc["n_frames"])
        return MediaJob(doc.get("question_id", doc["id"]), window, lambda: clips.make_clip(*window))

    def prompts(self, names: Sequence[str]) -> dict[str, Prompt]:
        """The prompts of the tasks: those of the candidates, and the rating prompt of judges."""
        files = {_file(name) for name in names}
        return {name: judging.load_judge_prompt(name) for name in sorted(files, reverse=True)}

    def criteria(self) -> Sequence[Criterion]:
        """The criterion of the benchmark's judge: an answer is correct."""
        return [judging.answer_criterion()]

    def judge_prompt(self) -> Prompt:
        """The file of prompts of that criterion."""
        return judging.load_judge_prompt("judge")

    def known_answers(self, place: Path) -> KnownAnswers | None:
        """The published judgements of GPT-3.5, or the packaged sample's references."""
        return published.known_answers(place, self.tasks)

    def describe(self, ran: Ran) -> tuple[dict[str, object], list[Condition]]:
        """Return data, candidates, ratings and frames for the results file, and conditions."""
        section, conditions = super().describe(ran)
        of_study, more = data.describe_data(ran.loaded)
        section |= of_study
        conditions += more
        for joint in self.joint_metrics:
            if answered := [name for name in ran.names if name in joint.tasks]:
                conditions += [
                    Condition(Kind.NOTE, f"{joint.group}: {note}")
                    for note in metrics.partial_means(answered)
                ]
        return section, conditions

    def upgrade_items(
        self,
        items: Items,
        *,
        judged: bool,  # noqa: ARG002
    ) -> Items:
        """Return ratings with the reference that the user names now; without one, the run's.

        Items of candidates' answers are returned unchanged.

        Raises:
            DataError: a rating has no `reference_rating`; names it.
        """
        if not any("round" in item for item in items):
            return items
        known = {row.item: row for row in data.reference()}
        made = []
        for item in items:
            if "reference_rating" not in item:
                raise DataError(f"{item['id']} has no `reference_rating`; {saved_runs.MEND}")
            later = {}
            if known:
                row = known.get(AnswerKey(item["question"], item["candidate"]))
                own = rated_hash(item.get("asked", ""), item["video"], item["answer"])
                is_same = row is not None and ("asked" not in item or row.rated in ("", own))
                later["reference_rating"] = row.rating if row is not None and is_same else None
            made.append({**item, **later})
        return made


BENCHMARK = CvrrEs()
