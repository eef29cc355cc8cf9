"""What the reliability report is computed from: the ratings of all judges, and one reference.

Ratings off the scale never come in: a 7 or a "four" means that something was read wrongly. Numbers
on the scale that are not whole (4.5) do: means, leniency and preferences take them as they are,
agreement leaves them out and counts them, since kappa knows five labels and rounding would invent
one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import NamedTuple

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, RATINGS, ROUNDS
from lmms_eval_tasks.cvrr_es.rating_rows import Item, RatingRow
from lmms_eval_tasks.cvrr_es.reliability.fitting import SCALE
from lmms_eval_tasks.errors import DataError

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


@dataclass(frozen=True)
class Counts:
    """What one rater did with the items of a study; rated + failed + missing = items.

    Attributes:
        items: of the study: whatever a judge or the reference has a row for.
        rated: items with a rating; not_whole of them are no whole number, left out of agreement.
        failed: items with a row and no rating.
        missing: items without a row; more than 0 means that only a part was rated.
        empty: items whose candidate answer is empty, which the published scripts skip;
            empty_rated and empty_failed count them among `rated` and `failed`.
    """

    items: int
    rated: int
    failed: int
    missing: int
    not_whole: int
    empty: int
    empty_rated: int
    empty_failed: int


@dataclass(frozen=True)
class Study:
    """Ratings of the same items by several raters. Make one with `Study.of`.

    Attributes:
        questions: id -> where it stands.
        items: everything that anyone has a row for, by dimension, question and candidate.
        empty: items whose candidate answer is empty; one row that says so is enough.
        raters: each one's ratings.
        reference: the ratings that all others are compared with; empty if there are none yet.
        referees: who made the reference. A rater among them would be compared with itself.
    """

    questions: Mapping[str, Place]
    items: tuple[Item, ...]
    empty: frozenset[Item]
    raters: Mapping[Rater, Ratings]
    reference: Ratings
    referees: frozenset[Rater] = field(default_factory=frozenset)

    @classmethod
    def of(cls, rows: Iterable[RatingRow], reference: Iterable[RatingRow]) -> Study:
        """A study of these rows, in whatever order they come.

        Args:
            rows: of all judges and rounds.
            reference: at most one row for each item; none at all means that it is still to come,
                and every agreement with it is None with that reason.

        Raises:
            DataError: no rows; a row of an unknown dimension or round, without a name, or with a
                rating that is no number from 1 to 5 or stands beside a status of failure; two rows
                of one rater for one item, or of the reference; a question in two dimensions or on
                two videos; no item in common with the reference.
        """
        given, referred = list(rows), list(reference)
        if not given:
            raise DataError("there are no ratings: name a file with at least one judge's rows")
        raters: dict[Rater, dict[Item, float | None]] = {}
        for row in given:
            _add(raters.setdefault(Rater(row.judge, row.round), {}), row, _named(row))
        compared: dict[Item, float | None] = {}
        for row in referred:
            _add(compared, row, f"the reference, {_named(row)}")
        rated = {row.item for row in given}
        if compared and not rated & compared.keys():
            raise DataError(
                "the ratings and the reference have no item in common, such as "
                f"{_example(rated)} and {_example(compared)}: compare the ids of the questions and "
                "the names of the candidates"
            )
        questions = _questions([*given, *referred])
        return cls(
            questions=questions,
            items=tuple(sorted(rated | compared.keys(), key=_by(questions))),
            empty=frozenset(row.item for row in (*given, *referred) if row.empty),
            raters={rater: raters[rater] for rater in sorted(raters)},
            reference=compared,
            referees=frozenset(Rater(row.judge, row.round) for row in referred),
        )

    @functools.cached_property
    def without_empty(self) -> Study:
        """Items whose answer is not empty, as in the published scripts."""
        return self.keep(lambda item: item not in self.empty)

    def keep(self, wanted: Callable[[Item], bool]) -> Study:
        """The same study of some items only. Raters without any of them stay."""

        def of(ratings: Ratings) -> Ratings:
            return {item: rating for item, rating in ratings.items() if item in kept}

        items = tuple(item for item in self.items if wanted(item))
        kept = set(items)
        asked = {item.question for item in items}
        return replace(
            self,
            questions={name: place for name, place in self.questions.items() if name in asked},
            items=items,
            empty=self.empty & kept,
            raters={rater: of(ratings) for rater, ratings in self.raters.items()},
            reference=of(self.reference),
        )

    @functools.cached_property
    def cells(self) -> Mapping[Cell, tuple[Item, ...]]:
        """Items of every dimension and candidate, in the order of the paper's tables."""
        found: dict[Cell, list[Item]] = {}
        for item in self.items:
            cell = Cell(self.dimension(item), item.candidate)
            found.setdefault(cell, []).append(item)
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

    def counts(self, ratings: Ratings) -> Counts:
        """What a rater of this study (or the reference) did with its items."""
        asked = [item for item in self.items if item in ratings]
        rated = [rating for item in asked if (rating := ratings[item]) is not None]
        empty = [item for item in asked if item in self.empty]
        empty_rated = sum(ratings[item] is not None for item in empty)
        return Counts(
            items=len(self.items),
            rated=len(rated),
            failed=len(asked) - len(rated),
            missing=len(self.items) - len(asked),
            not_whole=sum(rating not in RATINGS for rating in rated),
            empty=len(self.empty),
            empty_rated=empty_rated,
            empty_failed=len(empty) - empty_rated,
        )


def _add(ratings: dict[Item, float | None], row: RatingRow, who: str) -> None:
    """The checked row goes in."""
    for name in ("question", "candidate", "judge"):
        if not getattr(row, name):
            raise DataError(f"{who}: the row has no {name}: every row names it")
    if row.dimension not in DIMENSIONS:
        raise DataError(
            f"{who}: the dimension {row.dimension!r} is unknown: expected one of "
            f"{', '.join(DIMENSIONS)}"
        )
    if row.round not in ROUNDS:
        raise DataError(f"{who}: the round {row.round!r} is none of {', '.join(ROUNDS)}")
    if row.item in ratings:
        raise DataError(f"{who}: there are two rows for this item: keep the one that counts")
    if row.rating is not None and row.status != "ok":
        raise DataError(
            f"{who}: has the rating {row.rating!r} and the status {row.status!r}: drop one of them"
        )
    ratings[row.item] = _on_scale(row.rating, who)


def _on_scale(rating: object, who: str) -> float | None:
    """The rating, whole ones as int."""
    if rating is None:
        return None
    if isinstance(rating, bool) or not isinstance(rating, Real):
        raise DataError(f"{who}: the rating {rating!r} is no number: a failed one is null")
    number = float(rating)
    if not SCALE[0] <= number <= SCALE[-1]:  # false for nan as well
        raise DataError(
            f"{who}: the rating {rating!r} is off the scale {SCALE[0]} to {SCALE[-1]}: a rating "
            "that cannot be used is null, with its status"
        )
    return int(number) if number.is_integer() else number


def _questions(rows: Iterable[RatingRow]) -> dict[str, Place]:
    """Where each question stands; a row that does not know the video leaves it to the others."""
    found: dict[str, Place] = {}
    for row in rows:
        place = found.setdefault(row.question, Place(row.dimension, row.video))
        if place.dimension != row.dimension:
            raise DataError(
                f"question {row.question}: is in the dimension {place.dimension} in one row and in "
                f"{row.dimension} in another: an id names one question"
            )
        if not place.video:
            found[row.question] = Place(row.dimension, row.video)
        elif row.video and row.video != place.video:
            raise DataError(
                f"question {row.question}: is on the video {place.video!r} in one row and on "
                f"{row.video!r} in another: an id names one question on one video"
            )
    return found


def _by(questions: Mapping[str, Place]) -> Callable[[Item], tuple[int, Item]]:
    return lambda item: (_ORDER[questions[item.question].dimension], item)


def _named(row: RatingRow) -> str:
    return f"{row.judge or '?'} ({row.round}) on {row.question or '?'} by {row.candidate or '?'}"


def _example(items: Iterable[Item]) -> str:
    first = min(items)
    return f"{first.question} by {first.candidate}"
