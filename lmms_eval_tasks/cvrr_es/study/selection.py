"""Which judges the mixture shows to its final judge (vlm_judge, 3.3), and folds to choose them on.

The paper takes the judges whose kappa with the reference passes theta, or the top k, and gives
neither number. The authors' code does: above 0.1, strictly; the final judge's own first rating is
one of those that may be shown; where nobody passes nobody is shown. They ran six of the eleven
dimensions so, in Time Order with the judge's own rating alone; the other five columns of Table 7
are Table 6's.

Choosing judges and scoring them on the same items flatters, so by default the judges of an item are
chosen on the other folds; the authors' way is `cross_fit=no`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from lmms_eval_tasks.cvrr_es.labels import SCALE
from lmms_eval_tasks.cvrr_es.study.ratings import AnswerKey
from lmms_eval_tasks.cvrr_es.study.study import QuestionPlace
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.utils.metrics import aggregate, agreement
from lmms_eval_tasks.utils.validation import told

FOLDS = 5  # if there are as many videos


class Stratum(NamedTuple):
    """What is fitted to the reference together."""

    # Whose items are fitted on all other folds; None: all of the dimension on themselves, which
    # flatters.
    fold: int | None
    dimension: str


ByJudge = Mapping[str, Mapping[AnswerKey, float | None]]
Reference = Mapping[AnswerKey, float | None]
Strata = Mapping[AnswerKey, Stratum]


def strata(
    items: Iterable[AnswerKey], places: Mapping[str, QuestionPlace]
) -> dict[AnswerKey, Stratum]:
    """Each item's stratum; the folds are by videos.

    Videos go one after another, in the order of their hashes, into the fold that so far has the
    fewest items of the video's dimension, then the fewest items. So every dimension is spread over
    the folds. The same items always give the same folds, in whatever order they come; more items
    may give others.
    """
    of_video: dict[QuestionPlace, list[AnswerKey]] = {}
    for item in items:
        of_video.setdefault(places[item.question], []).append(item)
    loads = [Counter[str]() for _ in range(max(1, min(FOLDS, len(of_video))))]
    found: dict[AnswerKey, Stratum] = {}

    def drawn(place: QuestionPlace) -> bytes:
        return hashlib.sha256(f"0\0video\0{place.video}".encode()).digest()

    for place in sorted(of_video, key=drawn):
        dimension, own = place.dimension, of_video[place]
        fold = min(range(len(loads)), key=lambda i: (loads[i][dimension], loads[i].total(), i))
        loads[fold][dimension] += len(own)
        found |= dict.fromkeys(own, Stratum(fold, dimension))
    return found


def judge_kappa(
    ratings: Mapping[AnswerKey, float | None], reference: Reference, items: Iterable[AnswerKey]
) -> float | None:
    """A judge's agreement with the reference on `items`: mean over candidates (Table 5).

    It is what the study selects by: a judge that only tells strong candidates from weak ones has a
    high pooled kappa and none within a candidate. Candidates without a kappa are left out.
    """
    by_candidate: dict[str, list[AnswerKey]] = {}
    for item in items:
        by_candidate.setdefault(item.candidate, []).append(item)
    return aggregate.mean(
        agreement.kappa(
            [*map(ratings.get, own)], [*map(reference.get, own)], SCALE, "quadratic"
        ).value
        for own in by_candidate.values()
    )


def kappas_elsewhere(
    ratings: ByJudge, reference: Reference, strata: Strata
) -> dict[Stratum, dict[str, float | None]]:
    """Every judge's kappa on what a stratum may be fitted to, never on an item's own fold.

    With folds these are the dimension's items of all other folds; without, all of the dimension.
    """
    found = {}
    for stratum in sorted(set(strata.values())):
        items = [
            item
            for item, other in strata.items()
            if other.dimension == stratum.dimension
            and (stratum.fold is None or other.fold != stratum.fold)
        ]
        found[stratum] = {
            judge: judge_kappa(own, reference, items) for judge, own in sorted(ratings.items())
        }
    return found


@dataclass(frozen=True)
class Selection:
    """How the mixture chooses its judges."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    theta: Annotated[float, Field(ge=-1, le=1)] = 0.1  # a kappa above it passes (not times 100)
    top: Annotated[int, Field(ge=1)] | None = None  # judges at most, in place of `theta`
    cross_fit: bool = True  # whether an item's judges are chosen on the other folds

    def __str__(self) -> str:
        """As `parse` reads it, whole."""
        limit = f"theta={self.theta!r}" if self.top is None else f"top={self.top}"
        return f"{limit},cross_fit={'yes' if self.cross_fit else 'no'}"


class JudgeChoice(NamedTuple):
    """What was chosen for one stratum, and on what grounds."""

    stratum: Stratum  # without a fold where it was chosen on the same items
    judges: tuple[str, ...]  # by name; the order says nothing about their kappa
    kappas: Mapping[str, float | None]  # of every judge, on the items chosen by


def parse(text: str) -> Selection:
    """The option's text; empty: the defaults. `theta` or `top` is the rule, both at once is not.

    Raises:
        TasksError: anything else; the message shows the form.
    """
    pairs = [part.partition("=")[::2] for part in text.split(",") if part.strip()]
    given = {name.strip(): value.strip() for name, value in pairs}
    try:
        if len(given) == len(pairs) and not given.keys() >= {"theta", "top"}:
            return TypeAdapter(Selection).validate_python(given)
        why = "a part occurs twice, or theta and top are both there"
    except ValidationError as error:
        why = told(error)
    raise TasksError(
        f"the mixture's selection {text!r}: {why}; expected a form like theta=0.08, top=2 or "
        "theta=0.2,cross_fit=no"
    )


def choices(
    ratings: ByJudge, reference: Reference, strata: Strata, selection: Selection
) -> dict[AnswerKey, JudgeChoice]:
    """The judges of every item, with the kappas that they were chosen by: one choice a stratum.

    The final judge's own ratings are among those to choose from. A judge without a kappa never
    passes. In the top k equal kappas are taken by name.

    Raises:
        DataError: no reference ratings, cross-fitting with one fold.
    """
    if not any(reference.get(item) in SCALE for item in strata):
        raise DataError(
            "the mixture chooses judges by their kappa with reference ratings, "
            "and none of these items has one: name some with --cvrr-reference "
            "FILE (lmms-eval-tasks debate makes them), or run "
            "cvrr_judge_collective, which shows all judges"
        )
    if not selection.cross_fit:
        strata = {item: Stratum(None, one.dimension) for item, one in strata.items()}
    elif len({one.fold for one in strata.values()}) < 2:
        raise DataError(
            "choosing judges on videos that they do not rate requires two "
            "folds of videos or more: add the videos' names, or choose on the "
            "same items with cross_fit=no"
        )
    found = {}
    for stratum, kappas in kappas_elsewhere(ratings, reference, strata).items():
        known = {judge: kappa for judge, kappa in kappas.items() if kappa is not None}
        ranked = sorted(known, key=lambda judge: (-known[judge], judge))
        passed = [judge for judge in ranked if known[judge] > selection.theta]
        chosen = passed if selection.top is None else ranked[: selection.top]
        found[stratum] = JudgeChoice(stratum, tuple(sorted(chosen)), kappas)
    return {item: found[stratum] for item, stratum in strata.items()}
