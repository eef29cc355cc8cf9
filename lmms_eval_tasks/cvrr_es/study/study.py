"""The data of the judge study: each rater's ratings with the reference ratings.

Ratings between two levels (4.5) are kept: means and leniency take them unchanged. Agreement leaves
them out and counts them, since kappa knows five labels and rounding would invent one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, RATINGS, SCALE
from lmms_eval_tasks.cvrr_es.study.ratings import AnswerKey, RatingRow
from lmms_eval_tasks.errors import DataError

ReportPart = dict[str, Any]  # a part of the report's JSON
_ORDER = {slug: place for place, slug in enumerate(DIMENSIONS)}


class Rater(NamedTuple):
    """A judge in a round: a judge that rates alone and in a collective is two raters."""

    judge: str
    round: str


class QuestionPlace(NamedTuple):
    """The dimension and the video of a question."""

    dimension: str
    video: str


class RatingPair(NamedTuple):
    """A rater's rating of an answer, and the reference rating."""

    item: AnswerKey
    dimension: str
    video: str
    rating: float | None  # None if the rating failed or was not requested
    reference: float | None
    was_asked: bool = True  # True if the rater has a row for the item

    @property
    def whole(self) -> bool:
        """True if both ratings are labels of the scale, as kappa requires."""
        return self.rating in RATINGS and self.reference in RATINGS


RatingPairs = Sequence[RatingPair]


class Study(NamedTuple):
    """The ratings of the same items by several raters."""

    places: Mapping[str, QuestionPlace]  # by question
    items: Sequence[AnswerKey]  # with a row of any rater: by dimension as in tables, question, name
    raters: Mapping[Rater, RatingPairs]  # a pair for every item; includes the reference's rater
    # The reference paired with itself, for every item; empty if there is none.
    reference: RatingPairs


def study(rows: Sequence[RatingRow], reference: Sequence[RatingRow]) -> Study:
    """Return the study of these rows, in any order; a rater has at most one row per item.

    Raises:
        DataError: a question is in two dimensions or on two videos; the ratings and the reference
            have no item in common.
    """
    truth = {row.item: row.rating for row in reference}
    rated = {row.item for row in rows}
    if truth and not rated & truth.keys():
        rated_item, reference_item = min(rated), min(truth)
        raise DataError(
            "the ratings and the reference have no item in common, for example "
            f"{rated_item.question} by {rated_item.candidate} and {reference_item.question} by "
            f"{reference_item.candidate}: compare the ids of the questions and the names "
            "of the candidates"
        )
    places: dict[str, QuestionPlace] = {}
    ratings_by_rater: dict[Rater, dict[AnswerKey, float | None]] = {}
    for row in (*rows, *reference):
        place = QuestionPlace(row.dimension, row.video)
        if (first_place := places.setdefault(row.question, place)) != place:
            raise DataError(
                f"question {row.question}: is in the dimension "
                f"{first_place.dimension} on the video {first_place.video!r} in one row and "
                f"in {row.dimension} on {row.video!r} in another: an id must "
                "stand for one question on one video"
            )
    for row in rows:
        ratings_by_rater.setdefault(Rater(row.judge, row.round), {})[row.item] = row.rating
    items = sorted(
        rated | truth.keys(), key=lambda item: (_ORDER[places[item.question].dimension], item)
    )

    def pairs(ratings: Mapping[AnswerKey, float | None]) -> RatingPairs:
        return [
            RatingPair(
                item, *places[item.question], ratings.get(item), truth.get(item), item in ratings
            )
            for item in items
        ]

    raters = {rater: pairs(ratings_by_rater[rater]) for rater in sorted(ratings_by_rater)}
    return Study(places, items, raters, pairs(truth) if truth else [])


def cells(pairs: RatingPairs) -> dict[str, dict[str, list[RatingPair]]]:
    """The pairs by dimension, in the order of the paper's tables, then by candidate."""
    by_dimension: dict[str, dict[str, list[RatingPair]]] = {}
    for pair in sorted(pairs, key=lambda pair: (_ORDER[pair.dimension], pair.item.candidate)):
        by_dimension.setdefault(pair.dimension, {}).setdefault(pair.item.candidate, []).append(pair)
    return by_dimension


def summaries(pairs: RatingPairs) -> ReportPart:
    """The summaries of a rater's ratings: of all, by candidate, and by dimension and candidate."""
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
    """Return a summary of a rater's ratings of items: Table 4, the left of Figure 4, failures.

    - `mean`: of all ratings, whole or not; None if there are none.
    - `distribution`: the count of each whole rating; `not_whole`: the count of others, such as 4.5.
    - `failed`: items with a row but no rating; `missing`: items without a row.
    - `coverage`: the share of items with a rating.
    """
    given = [pair.rating for pair in pairs if pair.rating is not None]
    counts = Counter(given)
    asked = sum(pair.was_asked for pair in pairs)
    return {
        "mean": math.fsum(given) / len(given) if given else None,
        "rated": len(given),
        "distribution": {str(label): counts[label] for label in SCALE},
        "not_whole": len(given) - sum(counts[label] for label in SCALE),
        "failed": asked - len(given),
        "missing": len(pairs) - asked,
        "coverage": len(given) / len(pairs) if pairs else None,
    }
