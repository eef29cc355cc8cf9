"""One rating out of several of the same answer: majority, median, and a weighted mean.

Ties and halves go down, as in judges/panel.py: a tie never pays.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from lmms_eval_tasks.cvrr_es.reliability.fitting import SCALE


def majority(ratings: Sequence[int]) -> int:
    """The most frequent rating; of equally frequent ones the middle one, of two middle the lower.

    The middle one, since 1, 3 and 5 by three judges say 3 rather than 1.

    Raises:
        ValueError: no ratings.
    """
    counts = Counter(ratings)
    most = max(counts.values())
    tied = sorted(rating for rating, count in counts.items() if count == most)
    return tied[(len(tied) - 1) // 2]


def median(ratings: Sequence[int]) -> int:
    """The middle rating; the mean of the two middle ones, on the scale, where they differ."""
    ordered = sorted(ratings)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return to_scale((low + high) / 2)


def weighted_mean(ratings: Sequence[int], weights: Sequence[float]) -> int:
    """The mean on the scale.

    Args:
        weights: not negative, as many as ratings, at least one of them positive.

    Raises:
        ValueError: other weights.
    """
    total = math.fsum(weights)
    if not total > 0 or min(weights) < 0:
        raise ValueError(f"weights are not negative and have a positive sum, not {list(weights)}")
    return to_scale(math.fsum(r * w for r, w in zip(ratings, weights, strict=True)) / total)


def to_scale(value: float) -> int:
    """The nearest rating of the scale; a half goes down."""
    # Nine digits: a half that was computed from weights may lie a last bit above it.
    nearest = math.ceil(round(value, 9) - 0.5)
    return min(max(nearest, SCALE[0]), SCALE[-1])
