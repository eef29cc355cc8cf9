"""What a judge task rates, and which judges the mixture shows to its final judge (vlm_judge, 3.3).

The paper takes the judges whose kappa with the reference is at least theta, or the top k, and gives
neither number, nor what happens where no judge passes. Its tables narrow both down:

- Tables 6 (collective) and 7 (mixture) print the same five numbers in Non-exist (E), Non-exist
  (NE), Partial Actions and Unusual Activities. The best judge there has a kappa (x100, Table 5's
  averages without the final judge) of 2.18, 3.10, 3.21 and 7.27. So where nobody passes, all judges
  are shown: FALLBACK is "all". A top k alone never gives this.
- Six dimensions differ in all five numbers; the lowest of their best judges has 9.33 (Time Order).
  For fine action the text names InternVL2 (13.47) and GPT-4o mini (21.43) and leaves out LLaMA-VID
  (2.01). A theta above 7.27 and up to 9.33 gives all that: THETA is the round number in between.
- Emotional Context is left, and fits no theta: four of its five numbers are the same in both tables
  although GPT-4o mini has 12.11 there, more than the best of Time Order, which differs. (Its fifth
  number is Table 6's for Time Order, and its average the collective's: a slip in Table 7.) By
  InternVL2's kappas alone, 7.50 there, a theta up to 9.33 would explain all eleven.

Choosing judges and scoring them on the same items flatters, so by default the judges of an item are
chosen on the other folds; the paper's way is `cross_fit=no`.

A judge task rates candidates' answers. The collective's judge sees all other judges' ratings of an
answer, the mixture's those of selected ones. A judge's own first rating is never shown to it, and
no reference answer is in a doc.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es import judge
from lmms_eval_tasks.cvrr_es.candidates import Aligned
from lmms_eval_tasks.cvrr_es.labels import JUDGE_TASKS, SCALE
from lmms_eval_tasks.cvrr_es.study import study
from lmms_eval_tasks.cvrr_es.study.kappas import average
from lmms_eval_tasks.cvrr_es.study.leniency import folded
from lmms_eval_tasks.cvrr_es.study.ratings import Item, RatingRow
from lmms_eval_tasks.cvrr_es.study.study import Place, Ratings
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.utils import agreement

# --- what is taken from the reference: never from an item's own fold ------------------------------

ByJudge = Mapping[str, Ratings]
Reference = Mapping[Item, int]
Part = tuple[int | None, str]  # fold and dimension; without a fold: all items of the dimension


def judge_kappa(ratings: Ratings, reference: Reference, items: Iterable[Item]) -> float | None:
    """A judge's agreement with the reference on `items`: mean over candidates (Table 5).

    The mean weighs candidates the same however many of their answers were rated. It is also what
    the study selects by, since a judge that only tells strong candidates from weak ones has a high
    pooled kappa and none within a candidate.

    Returns:
        At most 1; None if no candidate has a kappa. Candidates without one (nothing rated by both,
        or both constant on one rating) are left out.
    """
    by_candidate: dict[str, list[Item]] = {}
    for item in items:
        by_candidate.setdefault(item.candidate, []).append(item)
    return average(
        agreement.kappa(
            [ratings.get(item) for item in own],
            [reference.get(item) for item in own],
            SCALE,
            "quadratic",
        ).value
        for own in by_candidate.values()
    )


def best_first(kappas: Mapping[str, float | None]) -> list[str]:
    """Judges with a kappa, the highest first, equal ones by name."""
    known = {judge: kappa for judge, kappa in kappas.items() if kappa is not None}
    return sorted(known, key=lambda judge: (-known[judge], judge))


def part_of(
    item: Item, dimension_of: Mapping[Item, str], fold_of: Mapping[Item, int] | None
) -> Part:
    """The item's dimension, and its fold where there are folds.

    Raises:
        DataError: the item has no dimension, or no fold.
    """
    if item not in dimension_of:
        raise DataError(f"{item.question}, {item.candidate}: no dimension is known for this item")
    if fold_of is None:
        return None, dimension_of[item]
    if item not in fold_of:
        raise DataError(
            f"{item.question}, {item.candidate}: this item is in no fold, so nothing can be fitted "
            "without it; give its video"
        )
    return fold_of[item], dimension_of[item]


def fitting_items(
    items: Collection[Item],
    reference: Reference,
    dimension_of: Mapping[Item, str],
    fold_of: Mapping[Item, int] | None,
) -> dict[Part, list[Item]]:
    """For every fold and dimension among `items`: the items with a reference that may be fitted to.

    With folds these are the dimension's items of all other folds; without, all of the dimension.
    Sorted, so that nothing depends on the order in which ratings were read.

    Raises:
        DataError: an item without a dimension or a fold.
    """
    parts = {item: part_of(item, dimension_of, fold_of) for item in items}
    usable = sorted(item for item in items if reference.get(item) in SCALE)
    found: dict[Part, list[Item]] = {part: [] for part in sorted(set(parts.values()), key=repr)}
    for (fold, dimension), own in found.items():
        own += [
            item
            for item in usable
            if parts[item][1] == dimension and (fold is None or parts[item][0] != fold)
        ]
    return found


# --- whom the mixture shows -----------------------------------------------------------------------

RULES = ("theta", "top")
FALLBACKS = {
    "all": "every judge, as the collective does",
    "best": "the one judge with the highest kappa",
    "none": "nobody: the final judge rates alone",
}
THETA = 0.08  # on kappa's own scale; 8 as the paper prints it (see above)
TOP = 2  # as many as in the paper's only example (5.3, fine action)
FALLBACK = "all"
_FORM = "expected a form like theta=0.08, top=2 or theta=0.2,fallback=none,cross_fit=no"


@dataclass(frozen=True)
class Selection:
    """How the mixture chooses its judges.

    rule: one of RULES. theta: the least kappa that passes, -1..1, for the rule of that name.
    k: how many judges at most, for `top`. fallback: one of FALLBACKS, for where the rule leaves
    nobody. cross_fit: whether an item's judges are chosen on the other folds.
    """

    rule: str = "theta"
    theta: float = THETA
    k: int = TOP
    fallback: str = FALLBACK
    cross_fit: bool = True

    def __str__(self) -> str:
        """As `parse` reads it, whole."""
        return f"{self.limit},cross_fit={'yes' if self.cross_fit else 'no'}"

    @property
    def limit(self) -> str:
        """Who passes, and what if nobody does: the same however it is fitted."""
        limit = f"theta={self.theta!r}" if self.rule == "theta" else f"top={self.k}"
        return f"{limit},fallback={self.fallback}"


@dataclass(frozen=True)
class Choice:
    """What was chosen for one fold and dimension, and on what grounds."""

    judges: tuple[str, ...]  # by name; the order says nothing about their kappa
    fell_back: bool  # whether the rule left nobody
    kappas: Mapping[str, float | None]  # of every judge, on the items chosen by


def parse(text: str) -> Selection:
    """The option's text; empty: the defaults. `theta` or `top` is the rule, both at once is not.

    Raises:
        TasksError: anything else; the message shows the form.
    """
    given: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (side.strip() for side in part.partition("="))
        if not equals or name not in (*RULES, "fallback", "cross_fit"):
            raise _wrong(text, f"{part!r} is no setting of the mixture")
        if name in given:
            raise _wrong(text, f"{name} is given twice")
        given[name] = value
    if all(rule in given for rule in RULES):
        raise _wrong(text, "theta and top are two rules, of which one holds")
    fallback = given.get("fallback", FALLBACK)
    if fallback not in FALLBACKS:
        raise _wrong(text, f"fallback={fallback} is none of {', '.join(FALLBACKS)}")
    cross_fit = given.get("cross_fit", "yes")
    if cross_fit not in ("yes", "no"):
        raise _wrong(text, f"cross_fit={cross_fit} is neither yes nor no")
    return Selection(
        "top" if "top" in given else "theta",
        _theta(text, given.get("theta", str(THETA))),
        _top(text, given.get("top", str(TOP))),
        fallback,
        cross_fit == "yes",
    )


def choices(
    ratings: ByJudge,
    reference: Reference,
    dimension_of: Mapping[Item, str],
    fold_of: Mapping[Item, int] | None,
    selection: Selection,
) -> dict[Part, Choice]:
    """The judges of every fold and dimension, with the kappas that they were chosen by.

    Kappa is quadratic, of each candidate and then the mean over candidates, as in Table 5. A judge
    without a kappa never passes. In the top k equal kappas are taken by name.

    Args:
        ratings: of the judges to choose from; leave the final judge's own out.
        reference: may lack items; those are not chosen by.
        dimension_of: of all items that are to be rated, which may be more than have ratings.
        fold_of: of the same items; not looked at with cross_fit=no.
        selection: the rule.

    Returns:
        By (fold, dimension); by (None, dimension) with cross_fit=no. `choice_for` looks it up.

    Raises:
        DataError: no judges, no reference ratings, cross-fitting without folds or with one fold, an
            item without a fold.
    """
    if not any(ratings.values()):
        raise DataError(
            "the mixture has no judges to choose from: give first-round ratings of at least one"
        )
    if not any(reference.get(item) in SCALE for item in dimension_of):
        raise DataError(
            "the mixture chooses judges by their kappa with reference ratings, and none of these "
            f"items has one: name some with --cvrr-reference or {settings.CVRR_REFERENCE} "
            "(lmms-eval-tasks debate makes them), or show all judges (cvrr_judge_collective)"
        )
    folds = fold_of if selection.cross_fit else None
    if selection.cross_fit and len(set((folds or {}).values())) < 2:
        raise DataError(
            "choosing judges on other videos than the ones they rate needs two folds of videos or "
            "more: give the videos' names, or choose on the same items with cross_fit=no"
        )
    found = {}
    for part, items in fitting_items(dimension_of, reference, dimension_of, folds).items():
        kappas = {
            judge: judge_kappa(own, reference, items) for judge, own in sorted(ratings.items())
        }
        found[part] = _choice(kappas, selection)
    return found


def choice_for(chosen: Mapping[Part, Choice], dimension: str, fold: int | None) -> Choice:
    """What was chosen for an item of this dimension and fold, whichever way it was chosen.

    Raises:
        KeyError: the dimension or the fold was not among the items chosen for.
    """
    everywhere = (None, dimension)
    return chosen[everywhere] if everywhere in chosen else chosen[fold, dimension]


def _choice(kappas: Mapping[str, float | None], selection: Selection) -> Choice:
    ranked = best_first(kappas)
    if selection.rule == "top":
        passed = ranked[: selection.k]
    else:
        passed = [judge for judge in ranked if (kappas[judge] or 0) >= selection.theta]
    if passed:
        return Choice(tuple(sorted(passed)), False, kappas)
    # With no kappa at all there is no best one either.
    instead = {"all": list(kappas), "best": ranked[:1], "none": []}[selection.fallback]
    return Choice(tuple(sorted(instead)), True, kappas)


def _theta(text: str, value: str) -> float:
    try:
        theta = float(value)
    except ValueError:
        theta = math.nan
    if not -1 <= theta <= 1:
        raise _wrong(text, f"theta={value} is no kappa in -1..1 (the paper prints it times 100)")
    return theta


def _top(text: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and int(value)):
        raise _wrong(text, f"top={value} is no number of judges")
    return int(value)


def _wrong(text: str, why: str) -> TasksError:
    return TasksError(f"the mixture's selection {text!r}: {why}; {_FORM}")


# --- what a judge task rates ----------------------------------------------------------------------

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
        choice = choice_for(self.chosen, dimension, fold)
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
    split = study.of_items(asked, given.place_of) if given.rule.cross_fit else None
    fold_of = split.fold_of(asked) if split else None
    # Kappa knows whole ratings alone: the others are chosen by nowhere.
    whole = {item: int(rating) for item, rating in known.items() if rating == int(rating)}
    chosen = choices(ratings, whole, items, fold_of, given.rule)
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
    if shown[item] > judge.MOST:
        raise DataError(
            f"{task}: {shown[item]} judges rated {item.candidate}'s answer to "
            f"{item.question}; at most {judge.MOST} can be shown: name fewer"
        )
    return found, left_out
