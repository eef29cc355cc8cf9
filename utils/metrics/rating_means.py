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
from lmms_eval_tasks.utils.metrics.aggregate import CANDIDATE_FAILURES, Outcome


class DimensionRating(Outcome):
    """A judge's rating of an answer in one dimension."""

    score: ReadOnly[float | None]  # on the benchmark's scale; None where there is none


class WithDimensions(Outcome):
    """An answer with its ratings."""

    dimensions: NotRequired[ReadOnly[Mapping[str, DimensionRating]]]


class RatedItem(WithDimensions):
    """The same with its place, for intervals."""

    id: ReadOnly[str]
    video: ReadOnly[str]


def rating(dimension: str, item: WithDimensions) -> DimensionRating:
    """The dimension's `score` and `status`; of an item that has none, no score and its status."""
    given = (item.get("dimensions") or {}).get(dimension)
    return given or {"score": None, "status": item["status"]}


def value(dimension: str, item: WithDimensions) -> float | None:
    """The rating that counts: 0 for the candidate's failures, None for all others."""
    found = rating(dimension, item)
    if found["status"] in CANDIDATE_FAILURES:
        return 0.0
    if found["status"] != "ok" or found["score"] is None:
        return None
    return float(found["score"])


def values(dimension: str, items: Sequence[WithDimensions]) -> list[float]:
    """The ratings that count; none in a run that waits for its judge.

    There 0 for empty answers alone would be no number.
    """
    if is_unjudged(dimension, items):
        return []
    return [v for v in (value(dimension, item) for item in items) if v is not None]


def is_unjudged(dimension: str, items: Sequence[WithDimensions]) -> bool:
    """Whether the run waits for its judge."""
    return aggregate.is_unjudged([rating(dimension, item) for item in items])


def mean_valid(dimension: str, items: Sequence[WithDimensions]) -> float | None:
    """Mean of the ratings that count; None if there are none."""
    return aggregate.mean(values(dimension, items))


def variance_valid(dimension: str, items: Sequence[WithDimensions]) -> float | None:
    """Population variance of the ratings that count; None if there are none."""
    return variance(values(dimension, items))


def count_failed(dimension: str, items: Sequence[WithDimensions]) -> int:
    """Items that `mean_valid` leaves out: the judge failed, or the host's request did.

    All of them in a run that waits for its judge.
    """
    return len(items) - len(values(dimension, items))


def coverage(dimension: str, items: Sequence[WithDimensions]) -> float | None:
    """Share of items that `mean_valid` takes in, 0..1."""
    return len(values(dimension, items)) / len(items) if items else None


def units(dimension: str, items: Sequence[RatedItem]) -> dict[str, tuple[str, float]]:
    """What `mean_valid` is the mean of, by id, with the items' `video`."""
    if is_unjudged(dimension, items):
        return {}
    found = ((item, value(dimension, item)) for item in items)
    return {item["id"]: (item["video"], one) for item, one in found if one is not None}


def variance(numbers: Sequence[float]) -> float | None:
    """Population variance, or None of nothing; the same in whatever order the numbers come."""
    middle = aggregate.mean(numbers)
    if middle is None:
        return None
    return math.fsum((number - middle) ** 2 for number in numbers) / len(numbers)
