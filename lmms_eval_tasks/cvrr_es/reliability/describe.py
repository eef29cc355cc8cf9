"""What a rater gave, before any comparison: Table 4, the left of Figure 4, and what failed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lmms_eval_tasks.cvrr_es.rating_rows import Item
from lmms_eval_tasks.cvrr_es.reliability.fitting import SCALE
from lmms_eval_tasks.cvrr_es.reliability.study import Cell, Ratings, Study

T = TypeVar("T")


@dataclass(frozen=True)
class Split(Generic[T]):
    """One number (or several) of all items, and of their parts, in the order of the tables."""

    overall: T
    by_dimension: Mapping[str, T]
    by_candidate: Mapping[str, T]
    cells: Mapping[Cell, T]


@dataclass(frozen=True)
class Summary:
    """Ratings of some items.

    Attributes:
        mean: of all ratings, whole or not, 1 to 5; None if there are none. A failure is no rating.
        distribution: how often each whole rating was given, for every one of the scale.
        not_whole: ratings such as 4.5, which have no place in the distribution.
        failed: items that the rater has a row for and no rating.
        missing: items without a row: nobody asked.
    """

    mean: float | None
    distribution: Mapping[int, int]
    not_whole: int
    failed: int
    missing: int

    @property
    def rated(self) -> int:
        """Items with a rating."""
        return sum(self.distribution.values()) + self.not_whole

    @property
    def failure_share(self) -> float | None:
        """Share of failures among the items that the rater was asked about, 0 to 1."""
        asked = self.rated + self.failed
        return self.failed / asked if asked else None

    @property
    def coverage(self) -> float | None:
        """Share of all items that have a rating, 0 to 1."""
        items = self.rated + self.failed + self.missing
        return self.rated / items if items else None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "mean": self.mean,
            "rated": self.rated,
            "distribution": {str(label): number for label, number in self.distribution.items()},
            "not_whole": self.not_whole,
            "failed": self.failed,
            "missing": self.missing,
            "failure_share": self.failure_share,
            "coverage": self.coverage,
        }


def summaries(study: Study, ratings: Ratings) -> Split[Summary]:
    """Means, distributions and failures of one rater, or of the reference."""
    return split(study, lambda items: summary(ratings, items))


def summary(ratings: Ratings, items: Iterable[Item]) -> Summary:
    """Of some items."""
    asked = missing = 0
    given: list[float] = []
    for item in items:
        if item not in ratings:
            missing += 1
            continue
        asked += 1
        rating = ratings[item]
        if rating is not None:
            given.append(rating)
    counts = Counter(given)
    distribution = {label: counts[label] for label in SCALE}
    return Summary(
        mean=math.fsum(given) / len(given) if given else None,
        distribution=distribution,
        not_whole=len(given) - sum(distribution.values()),
        failed=asked - len(given),
        missing=missing,
    )


def split(study: Study, of: Callable[[Sequence[Item]], T]) -> Split[T]:
    """Apply a function of items to all of them and to every part."""
    dimensions: dict[str, list[Item]] = {name: [] for name in study.dimensions}
    candidates: dict[str, list[Item]] = {name: [] for name in study.candidates}
    for cell, items in study.cells.items():
        dimensions[cell.dimension].extend(items)
        candidates[cell.candidate].extend(items)
    return Split(
        overall=of(study.items),
        by_dimension={name: of(items) for name, items in dimensions.items()},
        by_candidate={name: of(items) for name, items in candidates.items()},
        cells={cell: of(items) for cell, items in study.cells.items()},
    )
