"""What the judge study is computed from: the ratings of all judges, and one reference.

Numbers on the scale that are not whole (4.5) come in: means, leniency and preferences take them as
they are, agreement leaves them out and counts them, since kappa knows five labels and rounding
would invent one.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, SCALE
from lmms_eval_tasks.cvrr_es.study.ratings import Item, RatingRow
from lmms_eval_tasks.errors import DataError

T = TypeVar("T")
Part = dict[str, Any]  # of the report, as its JSON has it
Ratings = Mapping[Item, float | None]  # None: asked and failed; absent: never asked
_ORDER = {slug: place for place, slug in enumerate(DIMENSIONS)}


class Rater(NamedTuple):
    """Who rated, and how: a judge that rates alone and in a collective is two raters."""

    judge: str
    round: str


class Place(NamedTuple):
    """Where a question stands. `video` is "" if it is not known."""

    dimension: str
    video: str


class Cell(NamedTuple):
    """The smallest unit of Tables 4 to 7, for one judge."""

    dimension: str
    candidate: str


class Stratum(NamedTuple):
    """What is fitted to the reference together.

    Attributes:
        fold: whose items are fitted on all other folds; None: all of the dimension are fitted on
            themselves, which flatters.
        dimension: a slug of labels.DIMENSIONS.
    """

    fold: int | None
    dimension: str


@dataclass(frozen=True)
class Study:
    """Ratings of the same items by several raters. Make one with `Study.of`.

    Attributes:
        questions: id -> where it stands.
        items: everything that anyone has a row for, by dimension, question and candidate.
        raters: each one's ratings.
        reference: the ratings that all others are compared with; empty if there are none yet.
        referees: who made the reference. A rater among them would be compared with itself.
    """

    questions: Mapping[str, Place]
    items: tuple[Item, ...]
    raters: Mapping[Rater, Ratings]
    reference: Ratings
    referees: frozenset[Rater] = field(default_factory=frozenset)

    @classmethod
    def of(cls, rows: Iterable[RatingRow], reference: Iterable[RatingRow]) -> Study:
        """A study of these rows, in whatever order they come.

        Args:
            rows: of all judges and rounds, one of each rater for each item.
            reference: at most one row for each item; none at all means that it is still to come,
                and every agreement with it is None with that reason.

        Raises:
            DataError: no rows; a question in two dimensions or on two videos; no item in common
                with the reference.
        """
        given, referred = list(rows), list(reference)
        if not given:
            raise DataError("there are no ratings: name a file with at least one judge's rows")
        raters: dict[Rater, dict[Item, float | None]] = {}
        for row in given:
            raters.setdefault(Rater(row.judge, row.round), {})[row.item] = _whole(row.rating)
        compared = {row.item: _whole(row.rating) for row in referred}
        rated = {row.item for row in given}
        if compared and not rated & compared.keys():
            one, other = min(rated), min(compared)
            raise DataError(
                "the ratings and the reference have no item in common, such as "
                f"{one.question} by {one.candidate} and {other.question} by {other.candidate}: "
                "compare the ids of the questions and the names of the candidates"
            )
        questions = _questions([*given, *referred])

        def place(item: Item) -> tuple[int, Item]:
            return _ORDER[questions[item.question].dimension], item

        return cls(
            questions=questions,
            items=tuple(sorted(rated | compared.keys(), key=place)),
            raters={rater: raters[rater] for rater in sorted(raters)},
            reference=compared,
            referees=frozenset(Rater(row.judge, row.round) for row in referred),
        )

    def keep(self, wanted: Callable[[Item], bool]) -> Study:
        """The same study of some items only. Raters without any of them stay."""
        items = tuple(item for item in self.items if wanted(item))
        kept, asked = set(items), {item.question for item in items}

        def of(ratings: Ratings) -> Ratings:
            return {item: rating for item, rating in ratings.items() if item in kept}

        return replace(
            self,
            questions={name: place for name, place in self.questions.items() if name in asked},
            items=items,
            raters={rater: of(ratings) for rater, ratings in self.raters.items()},
            reference=of(self.reference),
        )

    @functools.cached_property
    def cells(self) -> Mapping[Cell, tuple[Item, ...]]:
        """Items of every dimension and candidate, in the order of the paper's tables."""
        found: dict[Cell, list[Item]] = {}
        for item in self.items:
            found.setdefault(Cell(self.dimension(item), item.candidate), []).append(item)
        ordered = sorted(found, key=lambda cell: (_ORDER[cell.dimension], cell.candidate))
        return {cell: tuple(found[cell]) for cell in ordered}

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Those that have items, in the order of the paper's tables."""
        return tuple(dict.fromkeys(cell.dimension for cell in self.cells))

    @property
    def candidates(self) -> tuple[str, ...]:
        """All, by name."""
        return tuple(sorted({cell.candidate for cell in self.cells}))

    def dimension(self, item: Item) -> str:
        """The item's dimension, a slug of labels.DIMENSIONS."""
        return self.questions[item.question].dimension

    def video(self, item: Item) -> str:
        """The item's video, "" if it is not known."""
        return self.questions[item.question].video


def _whole(rating: float | None) -> float | None:
    """The rating, whole ones as int."""
    return rating if rating is None or not float(rating).is_integer() else int(rating)


def _questions(rows: Iterable[RatingRow]) -> dict[str, Place]:
    """Where each question stands; a row that does not know the video leaves it to the others."""
    found: dict[str, Place] = {}
    for row in rows:
        place = found.setdefault(row.question, Place(row.dimension, row.video))
        known, given = (place, (row.dimension, row.video or place.video))
        if not place.video:
            known = Place(place.dimension, given[1])
        if known != given:
            raise DataError(
                f"question {row.question}: is in the dimension {place.dimension} on the video "
                f"{place.video!r} in one row and in {row.dimension} on {row.video!r} in another: "
                "an id names one question on one video"
            )
        found[row.question] = known
    return found


# --- what a rater gave: Table 4, the left of Figure 4, and what failed ----------------------------


def summary(ratings: Ratings, items: Sequence[Item]) -> Part:
    """Ratings of some items.

    Returns:
        `mean` of all ratings, whole or not, 1 to 5, None if there are none: a failure is no rating.
        `distribution`: how often each whole rating was given; ratings such as 4.5, which have no
        place there, are `not_whole`. Items without a rating are `failed` if there is a row for
        them, else `missing`: nobody asked. `failure_share` is of what was asked, `coverage` of all.
    """
    asked = [ratings[item] for item in items if item in ratings]
    given = [rating for rating in asked if rating is not None]
    counts = Counter(given)
    failed = len(asked) - len(given)
    return {
        "mean": math.fsum(given) / len(given) if given else None,
        "rated": len(given),
        "distribution": {str(label): counts[label] for label in SCALE},
        "not_whole": len(given) - sum(counts[label] for label in SCALE),
        "failed": failed,
        "missing": len(items) - len(asked),
        "failure_share": failed / len(asked) if asked else None,
        "coverage": len(given) / len(items) if items else None,
    }


def summaries(study: Study, ratings: Ratings) -> Part:
    """`summary` of one rater, or of the reference, in every part."""
    return split(study, lambda items: summary(ratings, items))


def split(study: Study, of: Callable[[Sequence[Item]], Part]) -> Part:
    """A function of items, of all of them and of every part, in the order of the tables."""
    dimensions: dict[str, list[Item]] = {name: [] for name in study.dimensions}
    candidates: dict[str, list[Item]] = {name: [] for name in study.candidates}
    for cell, items in study.cells.items():
        dimensions[cell.dimension].extend(items)
        candidates[cell.candidate].extend(items)
    return {
        "overall": of(study.items),
        "by_dimension": {name: of(items) for name, items in dimensions.items()},
        "by_candidate": {name: of(items) for name, items in candidates.items()},
        "cells": nested({cell: of(items) for cell, items in study.cells.items()}),
    }


def nested(cells: Mapping[Cell, T]) -> dict[str, dict[str, T]]:
    """By dimension, then by candidate."""
    found: dict[str, dict[str, T]] = {}
    for cell, own in cells.items():
        found.setdefault(cell.dimension, {})[cell.candidate] = own
    return found


# --- folds, for what is fitted to the reference on other videos than those it is scored on --------

FOLDS = 5  # if there are as many videos


@dataclass(frozen=True)
class Folds:
    """Which fold each question is in; a video's questions, by all candidates, lie in one.

    Attributes:
        of: question -> fold, from 0.
        count: number of folds; 1 if there is one video only, and then nothing can be fitted.
        note: what stands in for videos where they are not known; "" if all are.
    """

    of: Mapping[str, int]
    count: int
    note: str = ""


def strata(
    items: Iterable[Item], places: Mapping[str, Place], folds: Folds | None
) -> dict[Item, Stratum]:
    """Each item's stratum; without folds its dimension."""
    return {
        item: Stratum(folds.of[item.question] if folds else None, places[item.question].dimension)
        for item in items
    }


def folds(items: Iterable[Item], places: Mapping[str, Place], seed: int = 0) -> Folds:
    """Folds of about equal size, by videos; a question without a video is a unit of its own.

    Videos go one after another, in the order of their hashes, into the fold that so far has the
    fewest items of the video's dimension (its main one, if it has several), then the fewest items.
    So every dimension is spread over the folds. The same items always give the same folds, in
    whatever order they come; more items may give others.
    """
    units: dict[tuple[str, str], Counter[str]] = {}  # (kind, name) -> items by dimension
    of_unit: dict[str, tuple[str, str]] = {}
    for item in items:
        dimension, video = places[item.question]
        unit = ("video", video) if video else ("question", item.question)
        of_unit[item.question] = unit
        units.setdefault(unit, Counter())[dimension] += 1
    count = max(1, min(FOLDS, len(units)))
    loads = [Counter[str]() for _ in range(count)]
    chosen: dict[tuple[str, str], int] = {}

    def drawn(unit: tuple[str, str]) -> bytes:
        return hashlib.sha256("\0".join((str(seed), *unit)).encode()).digest()

    for unit in sorted(units, key=drawn):
        own = units[unit]
        main = min(own, key=lambda dimension: (-own[dimension], dimension))
        fold = min(range(count), key=lambda i: (loads[i][main], loads[i].total(), i))
        loads[fold].update(own)
        chosen[unit] = fold
    unknown = sum(not place.video for place in places.values())
    note = f"{unknown} of {len(places)} questions have no video: each is its own unit"
    found = {name: chosen[unit] for name, unit in of_unit.items()}
    return Folds(found, count, note if unknown else "")
