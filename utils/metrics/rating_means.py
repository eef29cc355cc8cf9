"""Means of a judge's ratings: only as `_valid`, with the number of failures and the coverage.

A failed rating cannot count as "wrong": a mean with made-up lowest ratings would be no mean of
ratings (docs/metrics.md). A failure of the candidate (no answer, a refusal, a truncated answer)
counts as 0, because abstaining must not pay. An item without dimensions (its scoring failed) has
its own `status` alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from typing_extensions import NotRequired, ReadOnly

from lmms_eval_tasks.utils.metrics import aggregate
from lmms_eval_tasks.utils.metrics.aggregate import CANDIDATE_FAILURES, Outcome, is_unjudged


class DimensionRating(Outcome):
    """A judge's rating of an answer in one dimension."""

    score: ReadOnly[float | None]  # on the benchmark's scale; None if there is none


class WithDimensions(Outcome):
    """An answer with its ratings."""

    dimensions: NotRequired[ReadOnly[Mapping[str, DimensionRating]]]


class RatedItem(WithDimensions):
    """An answer with its ratings, id and video, for intervals."""

    id: ReadOnly[str]
    video: ReadOnly[str]


def rating(dimension: str, item: WithDimensions) -> DimensionRating:
    """Return an item's rating in a dimension; without one, no score and the item's status."""
    given = (item.get("dimensions") or {}).get(dimension)
    return given or {"score": None, "status": item["status"]}


def ratings(dimension: str, items: Sequence[WithDimensions]) -> list[DimensionRating]:
    """Return the ratings of some items in a dimension."""
    return [rating(dimension, item) for item in items]


def value(rated: DimensionRating) -> float | None:
    """Return the number that counts: 0 for the candidate's failures, None for other failures."""
    if rated["status"] in CANDIDATE_FAILURES:
        return 0.0
    if rated["status"] != "ok" or rated["score"] is None:
        return None
    return float(rated["score"])


def values(rated: Sequence[DimensionRating]) -> list[float]:
    """Return the ratings that count; [] for a run that waits for its judge.

    In such a run, the zeros of empty answers alone would make no mean.
    """
    known = [] if is_unjudged(rated) else map(value, rated)
    return [one for one in known if one is not None]


def mean_valid(rated: Sequence[DimensionRating]) -> float | None:
    """Return the mean of the ratings that count; None if there are none."""
    return aggregate.mean(values(rated))


def units(dimension: str, items: Sequence[RatedItem]) -> dict[str, tuple[str, float]]:
    """Return the values that `mean_valid` averages, by id, with the items' `video`."""
    rated = ratings(dimension, items)
    if is_unjudged(rated):
        return {}
    found = zip(items, map(value, rated), strict=True)
    return {item["id"]: (item["video"], one) for item, one in found if one is not None}


def variance(numbers: Sequence[float]) -> float | None:
    """Return the population variance; None without numbers.

    The order of the numbers is irrelevant.
    """
    middle = aggregate.mean(numbers)
    if middle is None:
        return None
    return math.fsum((number - middle) ** 2 for number in numbers) / len(numbers)
