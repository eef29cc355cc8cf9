"""What a judge task rates: candidates' answers, with what the judge is shown of other judges.

The collective's judge sees all other judges' ratings of an answer, the mixture's those of selected
ones (selection.py). A judge's own first rating is never shown to it, and no reference answer is in
a doc.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es import rating_prompt, selection
from lmms_eval_tasks.cvrr_es.candidates import Aligned
from lmms_eval_tasks.cvrr_es.labels import JUDGE_TASKS
from lmms_eval_tasks.cvrr_es.rating_rows import Item, RatingRow
from lmms_eval_tasks.cvrr_es.reliability import folds
from lmms_eval_tasks.cvrr_es.reliability.fitting import Part
from lmms_eval_tasks.cvrr_es.reliability.leniency import folded
from lmms_eval_tasks.cvrr_es.reliability.study import Place
from lmms_eval_tasks.cvrr_es.selection import Choice, Selection
from lmms_eval_tasks.errors import DataError

Row = Mapping[str, Any]

# Fields of a question's row that say what is right.
_TRUTH = ("reference", "references", "lure")


@dataclass(frozen=True)
class Rated:
    """One judge task of a run.

    Attributes:
        round: one of labels.ROUNDS.
        candidates: whose answers are rated.
        first: the other judges' first ratings, by item; empty in the first round.
        reference: rating by item; empty if there is none yet.
        chosen: the mixture's judges by fold and dimension; None in the other rounds.
        fold_of: each item's fold; empty without cross-fitting.
        rule: the mixture's; None in the other rounds.
        own: number of first ratings by the judge itself, which it is not shown.
        elsewhere: number of first ratings of answers that are not rated here.
    """

    round: str
    candidates: Sequence[Aligned]
    first: Mapping[Item, Sequence[RatingRow]]
    reference: Mapping[Item, float]
    chosen: Mapping[Part, Choice] | None = None
    fold_of: Mapping[Item, int] | None = None
    rule: Selection | None = None
    own: int = 0
    elsewhere: int = 0

    def docs(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Docs of all answers to these questions, by question, then by candidate."""
        made = []
        for row in rows:
            asked = {name: value for name, value in row.items() if name not in _TRUTH}
            for candidate in self.candidates:
                if row["id"] not in candidate.answers:
                    continue
                item = Item(row["id"], candidate.candidate)
                others, fell_back = self._others(item, row["dimension"])
                made.append(
                    {
                        **asked,
                        "id": f"{row['id']}/{candidate.candidate}",
                        "question_id": row["id"],
                        "candidate": candidate.candidate,
                        "answer": candidate.answers[row["id"]],
                        "empty": row["id"] in candidate.empty,
                        "others": [other.as_dict() for other in others],
                        "fell_back": fell_back,
                        "round": self.round,
                        "reference_rating": self.reference.get(item),
                    }
                )
        return made

    def _others(self, item: Item, dimension: str) -> tuple[list[RatingRow], bool]:
        rows = [row for row in self.first.get(item, ()) if row.rating is not None]
        if self.chosen is None:
            return rows, False
        fold = None if self.fold_of is None else self.fold_of[item]
        choice = selection.choice_for(self.chosen, dimension, fold)
        return [row for row in rows if row.judge in choice.judges], choice.fell_back


@dataclass(frozen=True)
class Material:
    """All that judge tasks are made of.

    Attributes:
        candidates: aligned with the release.
        place_of: dimension and video of every question.
        first: first-round ratings, of any judge.
        reference: reference ratings.
        rule: the mixture's.
        judge: name of the model under test, whose own ratings are not shown to it.
    """

    candidates: Sequence[Aligned]
    place_of: Mapping[str, Place]
    first: Sequence[RatingRow]
    reference: Sequence[RatingRow]
    rule: Selection
    judge: str

    @property
    def asked(self) -> set[Item]:
        """All answers that are rated."""
        return {
            Item(question, one.candidate) for one in self.candidates for question in one.answers
        }


def make(task: str, given: Material) -> Rated:
    """What one judge task rates.

    Args:
        task: one of labels.JUDGE_TASKS.
        given: candidates and ratings.

    Raises:
        DataError: ratings of others, or a reference, are needed and not there; the reference is
            of other answers; there are more judges than names for them.
    """
    known = {row.item: row.rating for row in given.reference if row.rating is not None}
    if given.reference and not known.keys() & given.asked:
        raise DataError(
            f"{task}: no reference rating is of these answers: compare the ids of the questions "
            f"and the names of the candidates in {settings.CVRR_REFERENCE}"
        )
    kind = JUDGE_TASKS[task]
    if kind == "first":
        return Rated(kind, given.candidates, {}, known)
    others, left_out = _of_others(task, given)
    own, elsewhere = left_out["own"], left_out["elsewhere"]
    rated = Rated(kind, given.candidates, others, known, own=own, elsewhere=elsewhere)
    if kind == "collective":
        return rated
    ratings: dict[str, dict[Item, float]] = {}
    for row in (row for rows in others.values() for row in rows):
        if row.rating is not None:
            ratings.setdefault(row.judge, {})[row.item] = row.rating
    asked = given.asked
    items = {item: given.place_of[item.question].dimension for item in asked}
    split = folds.of_items(asked, given.place_of) if given.rule.cross_fit else None
    fold_of = split.fold_of(asked) if split else None
    # Kappa knows whole ratings alone: the others are chosen by nowhere.
    whole = {item: int(rating) for item, rating in known.items() if rating == int(rating)}
    chosen = selection.choices(ratings, whole, items, fold_of, given.rule)
    return replace(rated, chosen=chosen, fold_of=fold_of, rule=given.rule)


def _of_others(task: str, given: Material) -> tuple[dict[Item, list[RatingRow]], Counter[str]]:
    """The other judges' first ratings of the answers, by item, and the numbers of those left out.

    Raises:
        DataError: there is none, or there are more judges of one answer than names for them.
    """
    asked = given.asked
    found: dict[Item, list[RatingRow]] = {}
    left_out: Counter[str] = Counter(own=0, elsewhere=0)
    for row in (row for row in given.first if row.round == "first"):
        if row.item not in asked:
            left_out["elsewhere"] += 1
        elif folded(row.judge) == folded(given.judge):
            left_out["own"] += 1
        else:
            found.setdefault(row.item, []).append(row)
    if not found:
        raise DataError(
            f"{task}: no first-round rating of these answers by a judge other than {given.judge}: "
            f"name them with {settings.CVRR_RATINGS} or --cvrr-ratings, and compare the ids of the "
            "questions and the names of the candidates"
        )
    shown = {item: sum(row.rating is not None for row in rows) for item, rows in found.items()}
    item = max(shown, key=lambda item: shown[item])
    if shown[item] > rating_prompt.MOST:
        raise DataError(
            f"{task}: {shown[item]} judges rated {item.candidate}'s answer to "
            f"{item.question}; at most {rating_prompt.MOST} can be shown: name fewer"
        )
    return found, left_out
