"""Which judges the mixture shows to its final judge, dimension by dimension (vlm_judge, 3.3).

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
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es.rating_rows import Item
from lmms_eval_tasks.cvrr_es.reliability.fitting import (
    SCALE,
    ByJudge,
    Part,
    Reference,
    fitting_items,
    judge_kappa,
)
from lmms_eval_tasks.errors import DataError, TasksError

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
    values = {judge: kappa for judge, kappa in kappas.items() if kappa is not None}
    ranked = sorted(values, key=lambda judge: (-values[judge], judge))
    if selection.rule == "top":
        passed = ranked[: selection.k]
    else:
        passed = [judge for judge in ranked if values[judge] >= selection.theta]
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
