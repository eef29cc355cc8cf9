"""What the judge study is computed from: each rater's ratings, beside those of one reference.

Numbers on the scale that are not whole (4.5) come in: means and leniency take them as they are,
agreement leaves them out and counts them, since kappa knows five labels and rounding would invent
one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, RATINGS, SCALE
from lmms_eval_tasks.cvrr_es.study.ratings import AnswerKey, RatingRow
from lmms_eval_tasks.errors import DataError

ReportPart = dict[str, Any]  # of the report, as its JSON has it
_ORDER = {slug: place for place, slug in enumerate(DIMENSIONS)}


class Rater(NamedTuple):
    """Who rated, and how: a judge that rates alone and in a collective is two raters."""

    judge: str
    round: str


class QuestionPlace(NamedTuple):
    """Where a question stands."""

    dimension: str
    video: str


class RatingPair(NamedTuple):
    """A rater's rating of one answer, and the reference's."""

    item: AnswerKey
    dimension: str
    video: str
    rating: float | None  # None where it failed, or nobody asked
    reference: float | None
    asked: bool = True  # whether the rater has a row for it

    @property
    def whole(self) -> bool:
        """Whether both are labels of the scale, so that kappa knows them."""
        return self.rating in RATINGS and self.reference in RATINGS


RatingPairs = Sequence[RatingPair]


class Study(NamedTuple):
    """Ratings of the same items by several raters."""

    places: Mapping[str, QuestionPlace]  # of questions
    items: Sequence[
        AnswerKey
    ]  # that anyone has a row for: by dimension as in tables, question, name
    raters: Mapping[Rater, RatingPairs]  # a pair for every item; the reference's rater too
    reference: RatingPairs  # beside itself, for every item; empty if there is none yet


def study(rows: Sequence[RatingRow], reference: Sequence[RatingRow]) -> Study:
    """A study of these rows, in whatever order they come; one of each rater for each item.

    Raises:
        DataError: a question in two dimensions or on two videos; no item in common with the
            reference.
    """
    truth = {row.item: row.rating for row in reference}
    rated = {row.item for row in rows}
    if truth and not rated & truth.keys():
        one, other = min(rated), min(truth)
        raise DataError(
            "the ratings and the reference have no item in common, for example "
            f"{one.question} by {one.candidate} and {other.question} by "
            f"{other.candidate}: compare the ids of the questions and the names "
            "of the candidates"
        )
    places: dict[str, QuestionPlace] = {}
    given: dict[Rater, dict[AnswerKey, float | None]] = {}
    for row in (*rows, *reference):
        place = QuestionPlace(row.dimension, row.video)
        if (known := places.setdefault(row.question, place)) != place:
            raise DataError(
                f"question {row.question}: is in the dimension "
                f"{known.dimension} on the video {known.video!r} in one row and "
                f"in {row.dimension} on {row.video!r} in another: an id must "
                "stand for one question on one video"
            )
    for row in rows:
        given.setdefault(Rater(row.judge, row.round), {})[row.item] = row.rating
    items = sorted(
        rated | truth.keys(), key=lambda item: (_ORDER[places[item.question].dimension], item)
    )

    def pairs(own: Mapping[AnswerKey, float | None]) -> RatingPairs:
        return [
            RatingPair(item, *places[item.question], own.get(item), truth.get(item), item in own)
            for item in items
        ]

    raters = {rater: pairs(given[rater]) for rater in sorted(given)}
    return Study(places, items, raters, pairs(truth) if truth else [])


def cells(pairs: RatingPairs) -> dict[str, dict[str, list[RatingPair]]]:
    """By dimension, in the order of the paper's tables, then by candidate."""
    found: dict[str, dict[str, list[RatingPair]]] = {}
    for pair in sorted(pairs, key=lambda one: (_ORDER[one.dimension], one.item.candidate)):
        found.setdefault(pair.dimension, {}).setdefault(pair.item.candidate, []).append(pair)
    return found


def summaries(pairs: RatingPairs) -> ReportPart:
    """Of all of a rater's ratings, and of those of every candidate, and in every dimension."""
    names = sorted({pair.item.candidate for pair in pairs})
    return {
        "overall": summary(pairs),
        "by_candidate": {
            name: summary([pair for pair in pairs if pair.item.candidate == name]) for name in names
        },
        "cells": {
            dimension: {name: summary(cell) for name, cell in own.items()}
            for dimension, own in cells(pairs).items()
        },
    }


def summary(pairs: RatingPairs) -> ReportPart:
    """A rater's ratings of some items: Table 4, the left of Figure 4, and what failed.

    `mean` is of all ratings, whole or not, None if there are none: a failure is no rating.
    `distribution` is how often each whole one was given; those such as 4.5 are `not_whole`. Items
    without a rating are `failed` if there is a row for them, else `missing`: nobody asked.
    `coverage` is the share that has a rating.
    """
    given = [pair.rating for pair in pairs if pair.rating is not None]
    counts = Counter(given)
    asked = sum(pair.asked for pair in pairs)
    return {
        "mean": math.fsum(given) / len(given) if given else None,
        "rated": len(given),
        "distribution": {str(label): counts[label] for label in SCALE},
        "not_whole": len(given) - sum(counts[label] for label in SCALE),
        "failed": asked - len(given),
        "missing": len(pairs) - asked,
        "coverage": len(given) / len(pairs) if pairs else None,
    }
