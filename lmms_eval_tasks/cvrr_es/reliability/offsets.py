"""A judge without its constant leniency: would it agree if it only rated too high?

Each rating loses the judge's mean offset (rating minus reference) on the *other* folds' videos: one
offset for all dimensions, since it is the judge that is lenient.
What is left is rounded to the next whole number, halves up, and clipped to the scale, since kappa
knows whole labels only. Kappa of the result (`kappas.reliability`) beside the kappa of the ratings
themselves tells a biased judge, which this mends, from one that does not see differences.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

from lmms_eval_tasks.cvrr_es.labels import RATINGS
from lmms_eval_tasks.cvrr_es.rating_rows import Item
from lmms_eval_tasks.cvrr_es.reliability.fitting import SCALE
from lmms_eval_tasks.cvrr_es.reliability.folds import Folds
from lmms_eval_tasks.cvrr_es.reliability.study import Ratings, Study


@dataclass(frozen=True)
class Corrected:
    """Ratings after taking off the offset.

    Attributes:
        ratings: whole numbers 1 to 5; None where there was no rating, or no offset could be fitted.
            Ratings that are not whole stay as they are: agreement leaves them out before and after,
            so that both kappas are of the same items where `not_fitted` is 0.
        offsets: what each fold's ratings lost, in points; None: nothing to fit it on elsewhere.
        clipped: ratings that had to be put back on the scale.
        not_fitted: ratings that were lost because their fold has no offset.
        note: of the folds, where not all videos are known.
    """

    ratings: Ratings
    offsets: tuple[float | None, ...]
    clipped: int
    not_fitted: int
    note: str


def take_off(study: Study, ratings: Ratings, folds: Folds) -> Corrected:
    """Take the mean offset off a judge's ratings, cross-fitted.

    Args:
        study: with the reference that the offset is fitted to.
        ratings: of one rater.
        folds: of the same study.
    """
    offsets = _offsets(study, ratings, folds)
    moved = {
        (fold, label): math.floor(label - offset + Fraction(1, 2))
        for fold, offset in enumerate(offsets)
        if offset is not None
        for label in SCALE
    }
    corrected: dict[Item, float | None] = {}
    clipped = not_fitted = 0
    for item in study.items:
        if item not in ratings:
            continue
        rating, fold = ratings[item], folds.fold(item)
        if rating is None or rating not in RATINGS:
            corrected[item] = rating
        elif offsets[fold] is None:
            corrected[item] = None
            not_fitted += 1
        else:
            label = moved[fold, int(rating)]
            corrected[item] = min(max(label, SCALE[0]), SCALE[-1])
            clipped += corrected[item] != label
    return Corrected(
        corrected,
        tuple(None if offset is None else float(offset) for offset in offsets),
        clipped,
        not_fitted,
        folds.note,
    )


def _offsets(study: Study, ratings: Ratings, folds: Folds) -> list[Fraction | None]:
    """Each fold's mean difference over all others; exact, so that halves are halves anywhere."""
    totals, numbers = [Fraction(0)] * folds.count, [0] * folds.count
    pairs: Counter[tuple[int, float, float]] = Counter(
        (folds.fold(item), rating, compared)
        for item in study.items
        if (rating := ratings.get(item)) is not None
        and (compared := study.reference.get(item)) is not None
    )
    for (fold, rating, compared), times in pairs.items():
        totals[fold] += times * (Fraction(rating) - Fraction(compared))
        numbers[fold] += times
    everything, n = sum(totals, Fraction(0)), sum(numbers)
    return [
        (everything - total) / (n - number) if n > number else None
        for total, number in zip(totals, numbers, strict=True)
    ]
