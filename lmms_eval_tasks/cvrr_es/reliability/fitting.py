"""What panels and the mixture take from the reference ratings, never from an item's own fold.

Everything works on plain mappings: a judge's ratings by item, the reference by item, and for each
item its dimension and its fold. Folds keep a video together, so a judge that was fitted on the
other folds was not fitted on the video that it rates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from lmms_eval_tasks.cvrr_es.labels import RATINGS
from lmms_eval_tasks.cvrr_es.rating_rows import Item
from lmms_eval_tasks.cvrr_es.reliability.kappa_values import average
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import agreement

SCALE = tuple(RATINGS)  # the whole of it, for every coefficient

Rated = Mapping[Item, float | None]  # one judge's ratings; None or left out: no rating
ByJudge = Mapping[str, Rated]
Reference = Mapping[Item, int]
Part = tuple[int | None, str]  # fold and dimension; without a fold: all items of the dimension


def judge_kappa(ratings: Rated, reference: Reference, items: Iterable[Item]) -> float | None:
    """A judge's agreement with the reference on `items`: mean over candidates (Table 5).

    The mean weighs candidates the same however many of their answers were rated. It is also what
    the study selects by, since a judge that only tells strong candidates from weak ones has a high
    pooled kappa and none within a candidate.

    Returns:
        At most 1; None if no candidate has a kappa. Candidates without one (nothing rated by both,
        or both constant on one rating) are left out.
    """
    by_candidate: dict[str, list[Item]] = {}
    for item in items:
        by_candidate.setdefault(item.candidate, []).append(item)
    return average(
        agreement.kappa(
            [ratings.get(item) for item in own],
            [reference.get(item) for item in own],
            SCALE,
            "quadratic",
        ).value
        for own in by_candidate.values()
    )


def on_scale(ratings: ByJudge) -> tuple[dict[str, dict[Item, int]], int]:
    """The ratings that are one of 1 to 5, as integers, and how many were not (4.5, 0, 6).

    The same are left out of every kappa (agreement.kappa), so that panels and judges are compared
    on the same ratings.
    """
    given = {
        judge: {item: rating for item, rating in own.items() if rating is not None}
        for judge, own in ratings.items()
    }
    kept = {
        judge: {item: int(rating) for item, rating in own.items() if rating in SCALE}
        for judge, own in given.items()
    }
    left_out = sum(len(own) - len(kept[judge]) for judge, own in given.items())
    return kept, left_out


def part_of(
    item: Item, dimension_of: Mapping[Item, str], fold_of: Mapping[Item, int] | None
) -> Part:
    """The item's dimension, and its fold where there are folds.

    Raises:
        DataError: the item has no dimension, or no fold.
    """
    if item not in dimension_of:
        raise DataError(f"{item.question}, {item.candidate}: no dimension is known for this item")
    if fold_of is None:
        return None, dimension_of[item]
    if item not in fold_of:
        raise DataError(
            f"{item.question}, {item.candidate}: this item is in no fold, so nothing can be fitted "
            "without it; give its video"
        )
    return fold_of[item], dimension_of[item]


def fitting_items(
    items: Collection[Item],
    reference: Reference,
    dimension_of: Mapping[Item, str],
    fold_of: Mapping[Item, int] | None,
) -> dict[Part, list[Item]]:
    """For every fold and dimension among `items`: the items with a reference that may be fitted to.

    With folds these are the dimension's items of all other folds; without, all of the dimension.
    Sorted, so that nothing depends on the order in which ratings were read.

    Raises:
        DataError: an item without a dimension or a fold.
    """
    parts = {item: part_of(item, dimension_of, fold_of) for item in items}
    usable = sorted(item for item in items if reference.get(item) in SCALE)
    found: dict[Part, list[Item]] = {part: [] for part in sorted(set(parts.values()), key=repr)}
    for (fold, dimension), own in found.items():
        own += [
            item
            for item in usable
            if parts[item][1] == dimension and (fold is None or parts[item][0] != fold)
        ]
    return found
