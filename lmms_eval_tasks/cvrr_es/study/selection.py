"""What a judge task rates, and which judges the mixture shows to its final judge (vlm_judge, 3.3).

The paper takes the judges whose kappa with the reference passes theta, or the top k, and gives
neither number. The authors' code does: above 0.1, strictly; the final judge's own first rating is
one of those that may be shown; where nobody passes nobody is shown. They ran six of the eleven
dimensions so, in Time Order with the judge's own rating alone; the other five columns of Table 7
are Table 6's. Before that was known ours was `theta=0.08,fallback=all,own=no`, read off the tables.

Choosing judges and scoring them on the same items flatters, so by default the judges of an item are
chosen on the other folds; the authors' way is `cross_fit=no`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es.candidates import Aligned
from lmms_eval_tasks.cvrr_es.judge import MOST
from lmms_eval_tasks.cvrr_es.labels import JUDGE_TASKS, SCALE
from lmms_eval_tasks.cvrr_es.study import study
from lmms_eval_tasks.cvrr_es.study.kappas import average
from lmms_eval_tasks.cvrr_es.study.ratings import Item, RatingRow, folded
from lmms_eval_tasks.cvrr_es.study.study import Place, Ratings, Stratum
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.utils.metrics import agreement
from lmms_eval_tasks.utils.validation import told

# --- what is taken from the reference: never from an item's own fold ------------------------------

ByJudge = Mapping[str, Ratings]
Reference = Mapping[Item, int]
Strata = Mapping[Item, Stratum]


def judge_kappa(ratings: Ratings, reference: Reference, items: Iterable[Item]) -> float | None:
    """A judge's agreement with the reference on `items`: mean over candidates (Table 5).

    The mean weighs candidates the same however many of their answers were rated. It is also what
    the study selects by, since a judge that only tells strong candidates from weak ones has a high
    pooled kappa and none within a candidate. Candidates without a kappa are left out; None if all
    are.
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


def fitting_items(
    items: Iterable[Item], reference: Reference, strata: Strata
) -> dict[Stratum, list[Item]]:
    """For every stratum of `items`: those with a reference that may be fitted to.

    With folds these are the dimension's items of all other folds; without, all of the dimension.
    Sorted, so that nothing depends on the order in which ratings were read.
    """
    everything = sorted(items)
    return {
        stratum: [
            item
            for item in everything
            if reference.get(item) in SCALE
            and strata[item].dimension == stratum.dimension
            and (stratum.fold is None or strata[item].fold != stratum.fold)
        ]
        for stratum in sorted({strata[item] for item in everything})
    }


# --- whom the mixture shows -----------------------------------------------------------------------

FALLBACKS = {
    "all": "every judge, as the collective does",
    "best": "the one judge with the highest kappa",
    "none": "nobody: the final judge rates alone",
}
_FORM = "expected a form like theta=0.08, top=2 or theta=0.2,fallback=none,cross_fit=no"


@dataclass(frozen=True)
class Selection:
    """How the mixture chooses its judges.

    Attributes:
        theta: a kappa above it passes, -1..1 (the paper prints kappas times 100).
        top: how many judges at most, in place of `theta`.
        fallback: one of FALLBACKS, for where the rule leaves nobody.
        cross_fit: whether an item's judges are chosen on the other folds.
        own: whether the final judge's own first rating is chosen from, and shown.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    theta: Annotated[float, Field(ge=-1, le=1)] = 0.1
    top: Annotated[int, Field(ge=1)] | None = None
    fallback: Literal["all", "best", "none"] = "none"
    cross_fit: bool = True
    own: bool = True

    def __str__(self) -> str:
        """As `parse` reads it, whole."""
        return f"{self.limit},cross_fit={'yes' if self.cross_fit else 'no'}"

    @property
    def limit(self) -> str:
        """Who passes, and what if nobody does: the same however it is fitted."""
        limit = f"theta={self.theta!r}" if self.top is None else f"top={self.top}"
        return f"{limit},fallback={self.fallback},own={'yes' if self.own else 'no'}"


class Choice(NamedTuple):
    """What was chosen for one stratum, and on what grounds."""

    stratum: Stratum  # without a fold where it was chosen on the same items
    judges: tuple[str, ...]  # by name; the order says nothing about their kappa
    fell_back: bool  # whether the rule left nobody
    kappas: Mapping[str, float | None]  # of every judge, on the items chosen by


def parse(text: str) -> Selection:
    """The option's text; empty: the defaults. `theta` or `top` is the rule, both at once is not.

    Raises:
        TasksError: anything else; the message shows the form.
    """
    pairs = [part.partition("=")[::2] for part in text.split(",") if part.strip()]
    given = {name.strip(): value.strip() for name, value in pairs}
    why = ""
    if len(given) < len(pairs) or given.keys() >= {"theta", "top"}:
        why = "a setting is given twice, or theta and top at once"
    try:
        if not why:
            return TypeAdapter(Selection).validate_python(given)
    except ValidationError as error:
        why = told(error)
    raise TasksError(f"the mixture's selection {text!r}: {why}; {_FORM}")


def choices(
    ratings: ByJudge, reference: Reference, strata: Strata, selection: Selection
) -> dict[Item, Choice]:
    """The judges of every item, with the kappas that they were chosen by: one choice a stratum.

    A judge without a kappa never passes. In the top k equal kappas are taken by name.

    Args:
        ratings: of the judges to choose from, the final judge's own where it may be shown.
        strata: of all items that are to be rated, which may be more than have ratings; the folds
            are not looked at with cross_fit=no.

    Raises:
        DataError: no judges, no reference ratings, cross-fitting with one fold.
    """
    if not any(ratings.values()):
        raise DataError(
            "the mixture has no judges to choose from: give first-round ratings of at least one"
        )
    if not any(reference.get(item) in SCALE for item in strata):
        raise DataError(
            "the mixture chooses judges by their kappa with reference ratings, and none of these "
            f"items has one: name some with --cvrr-reference or {settings.CVRR_REFERENCE} "
            "(lmms-eval-tasks debate makes them), or show all judges (cvrr_judge_collective)"
        )
    if not selection.cross_fit:
        strata = {item: one._replace(fold=None) for item, one in strata.items()}
    elif len({one.fold for one in strata.values()}) < 2:
        raise DataError(
            "choosing judges on other videos than the ones they rate needs two folds of videos or "
            "more: give the videos' names, or choose on the same items with cross_fit=no"
        )
    found = {}
    for stratum, items in fitting_items(strata, reference, strata).items():
        kappas = {one: judge_kappa(own, reference, items) for one, own in sorted(ratings.items())}
        ranked = best_first(kappas)
        passed = [one for one in ranked if (kappas[one] or 0) > selection.theta]
        if selection.top is not None:
            passed = ranked[: selection.top]
        # With no kappa at all there is no best one either.
        instead = {"all": list(kappas), "best": ranked[:1], "none": []}[selection.fallback]
        found[stratum] = Choice(stratum, tuple(sorted(passed or instead)), not passed, kappas)
    return {item: found[stratum] for item, stratum in strata.items()}


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
        reference: rating by item; empty if there is none yet.
        first: first ratings that may be shown, by item; empty in the first round.
        own: number of first ratings by the judge itself, which it is not shown.
        elsewhere: number of first ratings of answers that are not rated here.
        rule: the mixture's.
        chosen: the judges that it shows of each item.
    """

    round: str
    candidates: Sequence[Aligned]
    reference: Mapping[Item, float]
    first: Mapping[Item, Sequence[RatingRow]] = field(default_factory=dict)
    own: int = 0
    elsewhere: int = 0
    rule: Selection | None = None
    chosen: Mapping[Item, Choice] = field(default_factory=dict)

    @property
    def choices(self) -> dict[Stratum, Choice]:
        """What was chosen, by stratum."""
        return {one.stratum: one for one in self.chosen.values()}

    def docs(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Docs of all answers to these questions, by question, then by candidate."""
        return [
            self._doc(row, candidate)
            for row in rows
            for candidate in self.candidates
            if row["id"] in candidate.answers
        ]

    def _doc(self, row: Row, candidate: Aligned) -> dict[str, Any]:
        item = Item(row["id"], candidate.candidate)
        choice = self.chosen.get(item)
        return {
            **{name: value for name, value in row.items() if name not in _TRUTH},
            "id": f"{row['id']}/{candidate.candidate}",
            "question_id": row["id"],
            "candidate": candidate.candidate,
            "answer": candidate.answers[row["id"]],
            "empty": row["id"] in candidate.empty,
            "others": [
                one.as_dict()
                for one in self.first.get(item, ())
                if one.rating is not None and (choice is None or one.judge in choice.judges)
            ],
            "fell_back": choice is not None and choice.fell_back,
            "round": self.round,
            "reference_rating": self.reference.get(item),
        }


def make(
    task: str,
    *,
    candidates: Sequence[Aligned],
    place_of: Mapping[str, Place],
    first: Iterable[RatingRow],
    reference: Sequence[RatingRow],
    rule: Selection,
    judge: str,
) -> Rated:
    """What one judge task rates.

    Args:
        task: one of labels.JUDGE_TASKS.
        candidates: aligned with the release.
        place_of: dimension and video of every question.
        first: first-round ratings, of any judge.
        reference: reference ratings.
        rule: the mixture's.
        judge: name of the model under test, whose own ratings only the mixture may show to it.

    Raises:
        DataError: ratings of others, or a reference, are needed and not there; the reference is
            of other answers; there are more judges of one answer than names for them.
    """
    asked = {Item(question, one.candidate) for one in candidates for question in one.answers}
    known = {row.item: row.rating for row in reference if row.rating is not None}
    if reference and not known.keys() & asked:
        raise DataError(
            f"{task}: no reference rating is of these answers: compare the ids of the questions "
            f"and the names of the candidates in {settings.CVRR_REFERENCE}"
        )
    rated = Rated(JUDGE_TASKS[task], candidates, known)
    if rated.round == "first":
        return rated
    alone = [row for row in first if row.round == "first"]
    ours = [row for row in alone if row.item in asked]
    hidden = folded(judge) if rated.round == "collective" or not rule.own else ""
    shown: dict[Item, list[RatingRow]] = {}
    for row in ours:
        if folded(row.judge) != hidden:
            shown.setdefault(row.item, []).append(row)
    if not shown:
        raise DataError(
            f"{task}: no first-round rating of these answers by a judge other than {judge}: "
            f"name them with {settings.CVRR_RATINGS} or --cvrr-ratings, and compare the ids of the "
            "questions and the names of the candidates"
        )
    most = max(sum(row.rating is not None for row in rows) for rows in shown.values())
    if most > MOST:
        raise DataError(
            f"{task}: {most} judges rated one answer; at most {MOST} can be shown: name fewer"
        )
    own, elsewhere = len(ours) - sum(map(len, shown.values())), len(alone) - len(ours)
    rated = replace(rated, first=shown, own=own, elsewhere=elsewhere)
    if rated.round != "mixture":
        return rated
    ratings: dict[str, dict[Item, float]] = {}
    for row in itertools.chain(*shown.values()):
        if row.rating is not None:
            ratings.setdefault(row.judge, {})[row.item] = row.rating
    folds = study.folds(asked, place_of) if rule.cross_fit else None
    strata = study.strata(asked, place_of, folds)
    # Kappa knows whole ratings alone: the others are chosen by nowhere.
    whole = {item: int(rating) for item, rating in known.items() if rating == int(rating)}
    return replace(rated, chosen=choices(ratings, whole, strata, rule), rule=rule)
