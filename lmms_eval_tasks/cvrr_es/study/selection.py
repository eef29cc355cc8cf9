"""The judges that the mixture shows to its final judge (vlm_judge, 3.3), and folds to choose them.

The paper takes the judges whose kappa with the reference is above theta, or the top k, and gives
neither number. The authors' code does: above 0.1, strictly. It may show the final judge's own first
rating. If no judge passes, none is shown. They ran six of the eleven dimensions so, in Time Order
with the judge's own rating alone; the other five columns of Table 7 are those of Table 6.

A choice of judges on the items that they are scored on is biased, so by default the judges of an
item are chosen on the other folds; the authors' way is `cross_fit=no`.
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
from lmms_eval_tasks.utils.validation import validation_problems

FOLDS = 5  # at most as many as there are videos


class Stratum(NamedTuple):
    """A group of items with the same choice of judges: a dimension in a fold."""

    # The fold whose items are fitted on the other folds; None: all items of the dimension are
    # fitted on themselves, which is biased.
    fold: int | None
    dimension: str


ByJudge = Mapping[str, Mapping[AnswerKey, float | None]]
Reference = Mapping[AnswerKey, float | None]
Strata = Mapping[AnswerKey, Stratum]


def strata(
    items: Iterable[AnswerKey], places: Mapping[str, QuestionPlace]
) -> dict[AnswerKey, Stratum]:
    """The stratum of each item; the folds split the videos.

    Videos are taken in the order of their hashes. Each goes into the fold with the fewest items of
    the video's dimension so far, then with the fewest items. So every dimension is spread over the
    folds. The same items always give the same folds, in any order; further items may change them.
    """
    of_video: dict[QuestionPlace, list[AnswerKey]] = {}
    for item in items:
        of_video.setdefault(places[item.question], []).append(item)
    loads = [Counter[str]() for _ in range(max(1, min(FOLDS, len(of_video))))]
    by_item: dict[AnswerKey, Stratum] = {}

    def draw_key(place: QuestionPlace) -> bytes:
        return hashlib.sha256(f"0\0video\0{place.video}".encode()).digest()

    for place in sorted(of_video, key=draw_key):
        dimension, video_items = place.dimension, of_video[place]
        fold = min(range(len(loads)), key=lambda i: (loads[i][dimension], loads[i].total(), i))
        loads[fold][dimension] += len(video_items)
        by_item |= dict.fromkeys(video_items, Stratum(fold, dimension))
    return by_item


def judge_kappa(
    ratings: Mapping[AnswerKey, float | None], reference: Reference, items: Iterable[AnswerKey]
) -> float | None:
    """A judge's agreement with the reference on `items`: the mean kappa over candidates (Table 5).

    The study selects judges by this number: a judge that only tells strong candidates from weak
    ones has a high pooled kappa and none within a candidate. Candidates without a kappa are left
    out.
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
    """The kappa of every judge for every stratum, on the items that the stratum may be fitted to.

    With folds these are the dimension's items in all other folds; without, all items of the
    dimension.
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
    """The rule by which the mixture chooses its judges."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    # Judges with a higher kappa pass (not times 100).
    theta: Annotated[float, Field(ge=-1, le=1)] = 0.1
    # The largest number of judges, instead of `theta`.
    top: Annotated[int, Field(ge=1)] | None = None
    cross_fit: bool = True  # choose an item's judges on the other folds

    def __str__(self) -> str:
        """The rule as a text that `parse` reads."""
        limit = f"theta={self.theta!r}" if self.top is None else f"top={self.top}"
        return f"{limit},cross_fit={'yes' if self.cross_fit else 'no'}"


class JudgeChoice(NamedTuple):
    """The judges chosen for one stratum, and the kappas behind the choice."""

    stratum: Stratum  # without a fold if chosen on the same items
    judges: tuple[str, ...]  # sorted by name
    kappas: Mapping[str, float | None]  # of every judge, on the items of the choice


def parse(text: str) -> Selection:
    """Return the rule of an option's text; empty: the defaults. Either `theta` or `top` may be set.

    Raises:
        TasksError: the text is of another form; the message shows the form.
    """
    pairs = [part.partition("=")[::2] for part in text.split(",") if part.strip()]
    given = {name.strip(): value.strip() for name, value in pairs}
    try:
        if len(given) == len(pairs) and not given.keys() >= {"theta", "top"}:
            return TypeAdapter(Selection).validate_python(given)
        why = "a part occurs twice, or theta and top are both there"
    except ValidationError as error:
        why = validation_problems(error)
    raise TasksError(
        f"the mixture's selection {text!r}: {why}; expected a form like theta={Selection.theta}, "
        "top=2 or theta=0.2,cross_fit=no"
    )


def choices(
    ratings: ByJudge, reference: Reference, strata: Strata, selection: Selection
) -> dict[AnswerKey, JudgeChoice]:
    """The choice of judges for every item; items of a stratum share one.

    The final judge's own ratings may be chosen. A judge without a kappa never passes. In the top k
    equal kappas are ordered by name.

    Raises:
        DataError: there are no reference ratings, or cross-fitting has only one fold.
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
