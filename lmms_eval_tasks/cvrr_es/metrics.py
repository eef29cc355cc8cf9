"""The numbers of CVRR-ES's answers, and the numbers of a judge of the study.

For the answers of a dimension; in the group, `mean_...` is the mean over the dimensions:

- acc_skip_empty: share of answers that the judge calls correct, among non-empty answers with a
  verdict. The published figures are computed so; it is the headline. `acc_valid` also counts empty
  answers, as wrong; `acc` also counts failures of the judge, as wrong.
- score_skip_empty: mean score of 0 to 5 over the same answers; `score_valid` also counts empty
  answers, as 0; `score_authors` is score_skip_empty with each score cut to a whole number.

For the ratings of a judge, each also by dimension (`kappa_DIMENSION`) and most by candidate
(`kappa_of_CANDIDATE`):

- kappa, `kappa_pooled`, `kappa_authors`, leniency: see study/kappas.py. `kappa_skip_empty` leaves
  out empty answers, which the benchmark's scripts skip (the study's scripts rate them). None
  without reference ratings, which can be added later (`rescore`).
- rating_valid: mean of the readable ratings; `rating_share_1` to `_5`: the share of each rating;
  `rating_coverage`: share of the answers with a rating. An unreadable rating is a failure.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from lmms_eval_tasks.benchmark import Metric, Units, refusals, split
from lmms_eval_tasks.cvrr_es.items import Compared, CvrrItem, RatingItem
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, RATINGS
from lmms_eval_tasks.cvrr_es.study import kappas
from lmms_eval_tasks.cvrr_es.study.ratings import AnswerKey
from lmms_eval_tasks.cvrr_es.study.study import RatingPair
from lmms_eval_tasks.utils.metrics import aggregate
from lmms_eval_tasks.utils.metrics.aggregate import CANDIDATE_FAILURES

Answers = Sequence[CvrrItem]
Ratings = Sequence[RatingItem]
T = TypeVar("T")

# --- answers ------------------------------------------------------------------------------------


def points(items: Answers) -> list[tuple[CvrrItem, float]]:
    """The items with a score, and their scores of 0 to 5; 0 for the candidate's own failures.

    Items without a verdict are left out. Empty for a run that is not judged yet.
    """
    if aggregate.is_unjudged(items):
        return []
    given = [
        (0.0 if item["status"] in CANDIDATE_FAILURES else item.get("points"), item)
        for item in items
        if item["status"] == "ok" or item["status"] in CANDIDATE_FAILURES
    ]
    return [(item, float(value)) for value, item in given if value is not None]


def _score(items: Answers, of: Callable[[float], float] = float) -> float | None:
    return aggregate.mean(of(value) for _, value in points(items))


def _scores(items: Answers) -> Units:
    return {item["id"]: (item["video"], value) for item, value in points(items)}


def _without_empty(statistic: Callable[[Answers], T]) -> Callable[[Answers], T]:
    """Return the statistic over non-empty answers, as in the published scripts."""
    return lambda items: statistic([item for item in items if item["status"] != "empty"])


def _valid(items: Answers) -> Units:
    if aggregate.is_unjudged(items):
        return {}
    return aggregate.rights([item for item in items if aggregate.is_valid(item)])


_RIGHT = ("status", "right")


def _mean(
    name: str,
    of: Callable[[Answers], float | None],
    units: Callable[[Answers], Units] | None = None,
    mean: str = "",
) -> Metric[CvrrItem]:
    share = name.startswith("acc")
    shown = _RIGHT if share else ("status", "points")
    return Metric(
        name,
        of,
        host_fields=shown if units else None,
        mean_field=mean,
        per_unit=units,
        is_share=share,
    )


_PUBLISHED = _without_empty(aggregate.accuracy_valid)
_MEANS = [
    _mean("acc_skip_empty", _PUBLISHED, _without_empty(_valid)),
    _mean("acc", aggregate.accuracy, aggregate.rights, "right"),
    _mean("acc_valid", aggregate.accuracy_valid, _valid),
    _mean("score_skip_empty", _without_empty(_score), _without_empty(_scores)),
    _mean("score_valid", _score, _scores),
    # Scores cut to whole numbers, as the published scripts read them.
    _mean("score_authors", _without_empty(functools.partial(_score, of=int))),
]
ANSWERS: list[Metric[CvrrItem]] = [
    *_MEANS,
    Metric("acc_failed", aggregate.count_failed, higher_is_better=False),
    Metric(
        "empty", lambda items: sum(i["status"] == "empty" for i in items), higher_is_better=False
    ),
    *refusals("refusals", {"acc": aggregate.accuracy, "acc_skip_empty": _PUBLISHED}),
]
PREFIX = "mean_"  # begins the names of the group's metrics
MEANS_SHOWN = dict.fromkeys(
    [f"{PREFIX}{name}" for name in ("acc_skip_empty", "acc", "score_skip_empty")],
    (*_RIGHT, "points"),
)


def means(sides: Mapping[str, Answers]) -> dict[str, float | None]:
    """The means over the dimensions, with equal weights; None if a dimension has no number."""
    found = {}
    for one in _MEANS:
        # An error gives None, so that no mean is over fewer dimensions than it seems.
        own = [aggregate.never_raises(one.name)(one.compute)(items) for items in sides.values()]
        known = [value for value in own if value is not None]
        found[f"{PREFIX}{one.name}"] = aggregate.mean(known) if len(known) == len(own) else None
    return found


def partial_means(sides: Iterable[str]) -> list[str]:
    """A line if the means are over some of the dimensions only; else empty."""
    number = len(list(sides))
    if number == len(DIMENSIONS):
        return []
    return [f"means over {number} of {len(DIMENSIONS)} dimensions: those with items"]


# --- ratings --------------------------------------------------------------------------------------

OF = "_of_"  # in a metric's name before a candidate's slug


def pairs(items: Sequence[Compared]) -> list[RatingPair]:
    """One judge's ratings in one round, each with its reference rating.

    Args:
        items: whole items, or only the fields that lmms-eval's table keeps: the id has question and
            candidate.
    """
    made = []
    for item in sorted(items, key=lambda item: item["id"]):
        dimension, number, candidate = item["id"].split("/", 2)
        rated = AnswerKey(f"{dimension}/{number}", candidate)
        sides = item["rating"], item["reference_rating"]
        made.append(RatingPair(rated, dimension, item.get("video", ""), *sides))
    return made


Statistic = Callable[[Ratings], float | None]


def _kappa(kind: str = "mean", key: str = "kappa", times: float = 1) -> Statistic:
    def of(items: Ratings) -> float | None:
        found = kappas.reliability(pairs(items), intervals=False)[kind][key]
        return None if found is None else times * found

    return of


def _given(items: Ratings) -> list[int]:
    return [item["rating"] for item in items if item["rating"] is not None]


def _share(rating: int, items: Ratings) -> float | None:
    return aggregate.mean(float(one == rating) for one in _given(items))


# Name -> statistic, and True if higher is better (None: neither).
_OF_PART: dict[str, tuple[Statistic, bool | None]] = {
    "kappa": (_kappa(), True),
    "leniency": (lambda items: kappas.leniency(pairs(items))["value"], None),
    "rating_valid": (lambda items: aggregate.mean(_given(items)), None),
    "rating_coverage": (lambda items: len(_given(items)) / len(items) if items else None, True),
    **{f"rating_share_{one}": (functools.partial(_share, one), None) for one in RATINGS},
}
_OF_DIMENSION: dict[str, tuple[Statistic, bool | None]] = {
    **_OF_PART,
    "kappa_authors": (_kappa(key="kappa_authors"), True),
    "kappa_pooled": (_kappa("pooled"), True),
}
_OF_ALL: dict[str, tuple[Statistic, bool | None]] = {
    **_OF_DIMENSION,
    "kappa_percent": (_kappa(times=100), True),
    "kappa_skip_empty": (lambda items: _kappa()([i for i in items if not i["empty"]]), True),
    "rating_failed": (lambda items: len(items) - len(_given(items)), False),
    "no_reason": (
        lambda items: sum(i["rating"] is not None and not i["reason"].strip() for i in items),
        False,
    ),
    "empty_rated": (lambda items: sum(i["empty"] and i["rating"] is not None for i in items), None),
    "empty_failed": (lambda items: sum(i["empty"] and i["rating"] is None for i in items), False),
}
_COMPARED = ("id", "rating", "reference_rating")
_SHOWN = {
    **dict.fromkeys(("kappa", "kappa_pooled", "leniency"), _COMPARED),
    **dict.fromkeys(("rating_valid", "rating_coverage"), ("rating",)),
}
RATED: list[Metric[RatingItem]] = [
    *(
        Metric(name, of, higher_is_better=up, host_fields=_SHOWN.get(name))
        for name, (of, up) in _OF_ALL.items()
    ),
    *(
        metric
        for name, (of, up) in _OF_DIMENSION.items()
        for metric in split(Metric(name, of, higher_is_better=up), "dimension", DIMENSIONS)
    ),
]


def slug(candidate: str) -> str:
    """A candidate's name for a metric's name: `Video-LLaVA` gives `video_llava`, `模型` stays."""
    plain = unicodedata.normalize("NFKC", candidate).casefold()
    return re.sub(r"[\W_]+", "_", plain).strip("_") or "unnamed"


def by_candidate(items: Ratings) -> list[Metric[RatingItem]]:
    """The metrics of each candidate of these items."""

    def takes(name: str) -> Callable[[RatingItem], bool]:
        return lambda item: slug(item["candidate"]) == name

    return [
        Metric(f"{name}{OF}{one}", of, takes(one), higher_is_better=up)
        for one in sorted({slug(item["candidate"]) for item in items})
        for name, (of, up) in _OF_PART.items()
    ]


def rated_details(items: Ratings) -> dict[str, object]:
    """This judge's kappas with their intervals, also for every cell of the study's tables."""
    found = kappas.reliability(pairs(items))
    cells = {
        f"{dimension}/{candidate}": one
        for dimension, own in found["cells"].items()
        for candidate, one in own.items()
    }
    return {
        "judge": items[0]["judge"],
        "fell_back": sum(item["fell_back"] for item in items),
        "kappa": {
            **{one: found[one] for one in ("mean", "pooled", "by_dimension")},
            "cells": cells,
        },
    }
