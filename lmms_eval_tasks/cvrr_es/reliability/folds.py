"""Folds for what is fitted to the reference: fitted on other videos than those it is scored on.

Choosing judges by their agreement and reporting that agreement on the same items flatters them
(metrics.md). All questions of a video, with every candidate's answers, lie in one fold.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lmms_eval_tasks.cvrr_es.rating_rows import Item
from lmms_eval_tasks.cvrr_es.reliability.study import Place, Study

FOLDS = 5


@dataclass(frozen=True)
class Folds:
    """Which fold each question is in.

    Attributes:
        of: question -> fold, from 0.
        count: number of folds; 1 if there is one video only, and then nothing can be fitted.
        note: what stands in for videos where they are not known; "" if all are.
    """

    of: Mapping[str, int]
    count: int
    note: str = ""

    def fold(self, item: Item) -> int:
        """The item's fold."""
        return self.of[item.question]

    def fold_of(self, items: Iterable[Item]) -> dict[Item, int]:
        """The fold of each of these items, for what is fitted fold by fold."""
        return {item: self.fold(item) for item in items}


def by_video(study: Study, count: int = FOLDS, seed: int = 0) -> Folds:
    """Folds of a study; arguments, folds and errors as `of_items`."""
    return of_items(study.items, study.questions, count, seed)


def of_items(
    items: Iterable[Item], places: Mapping[str, Place], count: int = FOLDS, seed: int = 0
) -> Folds:
    """Folds of about equal size, by videos; by questions where no video is known.

    Videos go one after another, in the order of their hashes, into the fold that so far has the
    fewest items of the video's dimension (its main one, if it has several), then the fewest items.
    So every dimension is spread over the folds, and within a dimension whose videos have no other
    the sizes differ by at most its largest video. The same items always give the same folds, in
    whatever order they come; more items may give others.

    Args:
        items: what is to be split.
        places: dimension and video of every question; the video is "" where it is not known.
        count: of folds, if there are as many videos.
        seed: other seeds give other folds.

    Raises:
        ValueError: fewer than two folds.
    """
    if count < 2:
        raise ValueError(f"count={count}: fitting on other videos needs at least 2 folds")
    units: dict[tuple[str, str], Counter[str]] = {}  # (kind, name) -> items by dimension
    of_unit: dict[str, tuple[str, str]] = {}
    for item in items:
        dimension, video = places[item.question]
        unit = ("video", video) if video else ("question", item.question)
        of_unit[item.question] = unit
        units.setdefault(unit, Counter())[dimension] += 1
    count = max(1, min(count, len(units)))
    loads = [Counter[str]() for _ in range(count)]
    chosen: dict[tuple[str, str], int] = {}
    for unit in sorted(units, key=lambda unit: _hash(seed, *unit)):
        own = units[unit]
        main = min(own, key=lambda dimension: (-own[dimension], dimension))
        fold = min(range(count), key=lambda i: (loads[i][main], loads[i].total(), i))
        loads[fold].update(own)
        chosen[unit] = fold
    return Folds({name: chosen[unit] for name, unit in of_unit.items()}, count, _note(places))


def _hash(seed: int, kind: str, name: str) -> bytes:
    return hashlib.sha256(f"{seed}\0{kind}\0{name}".encode()).digest()


def _note(places: Mapping[str, Place]) -> str:
    unknown = sum(not place.video for place in places.values())
    if not unknown:
        return ""
    if unknown == len(places):
        return (
            "no video is known: folds are by question, so that questions on one video may be "
            "fitted on and scored"
        )
    return f"{unknown} of {len(places)} questions have no video: each is its own unit"
