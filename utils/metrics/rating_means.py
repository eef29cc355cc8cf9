"""Means of a judge's ratings: as `_valid` only, with the count of failures and the coverage.

A failed rating cannot count as "wrong": a mean over a made-up lowest rating would be no mean of
ratings (docs/metrics.md). What the candidate did itself (answered nothing, refused, was cut off) is
worth 0, since abstaining must not pay.

An item without dimensions (its scoring failed) has its own `status` alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from typing_extensions import NotRequired, ReadOnly

from lmms_eval_tasks.utils.metrics import aggregate
from lmms_eval_tasks.utils.metrics.aggregate import CANDIDATE_FAILURES, Outcome, is_unjudged


class DimensionRating(Outcome):
    """A judge's rating of an answer in one dimension."""

    score: ReadOnly[float | None]  # on the benchmark's scale; None where there is none


class WithDimensions(Outcome):
    """An answer with its ratings."""

    dimensions: NotRequired[ReadOnly[Mapping[str, DimensionRating]]]


class RatedItem(WithDimensions):
    """An answer with its ratings, id and video, for intervals."""

    id: ReadOnly[str]
    video: ReadOnly[str]


def rating(dimension: str, item: WithDimensions) -> DimensionRating:
    """The dimension's rating of an item; of an item that has none, no score and its status."""
    given = (item.get("dimensions") or {}).get(dimension)
    return given or {"score": None, "status": item["status"]}


def ratings(dimension: str, items: Sequence[WithDimensions]) -> list[DimensionRating]:
    """The dimension's ratings of some items."""
    return [rating(dimension, item) for item in items]


def value(rated: DimensionRating) -> float | None:
    """The number that counts: 0 for the candidate's failures, None for all others."""
    if rated["status"] in CANDIDATE_FAILURES:
        return 0.0
    if rated["status"] != "ok" or rated["score"] is None:
        return None
    return float(rated["score"])


def values(rated: Sequence[DimensionRating]) -> list[float]:
    """The ratings that count; none in a run that waits for its judge.

    There 0 for empty answers alone would be no number.
    """
    known = [] if is_unjudged(rated) else map(value, rated)
    return [one for one in known if one is not None]


def mean_valid(rated: Sequence[DimensionRating]) -> float | None:
    """Mean of the ratings that count; None if there are none."""
    return aggregate.mean(values(rated))


def units(dimension: str, items: Sequence[RatedItem]) -> dict[str, tuple[str, float]]:
    """The values that `mean_valid` is the mean of, by id, with the items' `video`."""
    rated = ratings(dimension, items)
    if is_unjudged(rated):
        return {}
    found = zip(items, map(value, rated), strict=True)
    return {item["id"]: (item["video"], one) for item, one in found if one is not None}


def variance(numbers: Sequence[float]) -> float | None:
    """Population variance, or None of nothing; the same in whatever order the numbers come."""
    middle = aggregate.mean(numbers)
    if middle is None:
        return None
    return math.fsum((number - middle) ** 2 for number in numbers) / len(numbers)
