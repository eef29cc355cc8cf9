"""The answers that a judge task rates, and the other judges' ratings that it shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lmms_eval_tasks.cvrr_es.candidates import Aligned
from lmms_eval_tasks.cvrr_es.items import CvrrDoc, RatingDoc
from lmms_eval_tasks.cvrr_es.judge import MOST
from lmms_eval_tasks.cvrr_es.labels import JUDGE_TASKS
from lmms_eval_tasks.cvrr_es.study import selection
from lmms_eval_tasks.cvrr_es.study.ratings import AnswerKey, RatingRow, folded
from lmms_eval_tasks.cvrr_es.study.selection import JudgeChoice, Selection
from lmms_eval_tasks.cvrr_es.study.study import QuestionPlace
from lmms_eval_tasks.errors import DataError


@dataclass(frozen=True)
class JudgeTask:
    """The answers, shown ratings and reference of one judge task."""

    round: str  # one of labels.ROUNDS
    candidates: Sequence[Aligned]  # candidates whose answers are rated
    reference: Mapping[AnswerKey, float]  # empty without a reference
    # First-round ratings that may be shown; empty for the task of the first round.
    first: Mapping[AnswerKey, Sequence[RatingRow]] = field(default_factory=dict)
    rule: Selection | None = None  # the mixture's rule, and the judges that it shows for each item
    choices: Mapping[AnswerKey, JudgeChoice] = field(default_factory=dict)

    def docs(self, rows: Sequence[CvrrDoc]) -> list[RatingDoc]:
        """The docs of all answers to these questions, by question, then by candidate."""
        docs: list[RatingDoc] = []
        for row in rows:
            for aligned in self.candidates:
                if (question := row["id"]) not in aligned.answers:
                    continue
                item = AnswerKey(question, aligned.candidate)
                choice = self.choices.get(item)
                peer_ratings = [
                    rated.as_dict()
                    for rated in self.first.get(item, ())
                    if rated.rating is not None and (choice is None or rated.judge in choice.judges)
                ]
                docs.append(
                    {
                        "id": f"{question}/{aligned.candidate}",
                        "dimension": row["dimension"],
                        "video": row["video"],
                        "video_path": row["video_path"],
                        "start": row["start"],
                        "end": row["end"],
                        "n_frames": row["n_frames"],
                        "question": row["question"],
                        "data": row["data"],
                        "question_id": question,
                        "candidate": aligned.candidate,
                        "answer": aligned.answers[question],
                        "empty": question in aligned.empty,
                        "others": peer_ratings,
                        "fell_back": choice is not None and not choice.judges,
                        "round": self.round,
                        "reference_rating": self.reference.get(item),
                    }
                )
        return docs


def make_judge_task(
    task: str,
    *,
    candidates: Sequence[Aligned],
    places: Mapping[str, QuestionPlace],
    first: Iterable[RatingRow],
    reference: Sequence[RatingRow],
    rule: Selection,
    judge: str,
) -> JudgeTask:
    """Return the answers, shown ratings and reference of one judge task.

    Args:
        task: one of JUDGE_TASKS.
        candidates: the candidates and their answers.
        places: dimension and video of every question.
        first: ratings of any judge; rounds other than the first are left out.
        reference: reference ratings; may be empty.
        rule: the mixture's rule.
        judge: name of the model under test; only the mixture may show it its own ratings.

    Raises:
        DataError: other judges' ratings, or a reference, are missing; the reference rates other
            answers; an answer has more judges than there are names.
    """
    items = {AnswerKey(question, c.candidate) for c in candidates for question in c.answers}
    reference_ratings = {row.item: row.rating for row in reference if row.rating is not None}
    if reference and not reference_ratings.keys() & items:
        raise DataError(
            f"{task}: no reference rating belongs to these answers: compare the "
            "ids of the questions and the names of the candidates in the files "
            "of --cvrr-reference"
        )
    kind = JUDGE_TASKS[task]
    if kind == "first":
        return JudgeTask(kind, candidates, reference_ratings)
    hidden = folded(judge) if kind == "collective" else ""
    peer_ratings: dict[AnswerKey, list[RatingRow]] = {}
    for row in first:
        if row.round == "first" and row.item in items and folded(row.judge) != hidden:
            peer_ratings.setdefault(row.item, []).append(row)
    if not peer_ratings:
        raise DataError(
            f"{task}: no first-round rating of these answers by a judge other "
            f"than {judge}: name them with --cvrr-ratings, and compare the ids "
            "of the questions and the names of the candidates"
        )
    most = max(sum(row.rating is not None for row in rows) for rows in peer_ratings.values())
    if most > MOST:
        raise DataError(
            f"{task}: {most} judges rated one answer; at most {MOST} can be shown: name fewer files"
        )
    if kind == "collective":
        return JudgeTask(kind, candidates, reference_ratings, peer_ratings)
    ratings: dict[str, dict[AnswerKey, float | None]] = {}
    for item, rows in peer_ratings.items():
        for row in rows:
            ratings.setdefault(row.judge, {})[item] = row.rating
    chosen = selection.choices(ratings, reference_ratings, selection.strata(items, places), rule)
    return JudgeTask(kind, candidates, reference_ratings, peer_ratings, rule, chosen)
