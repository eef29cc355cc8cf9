"""A video's sampled frames cut into coherent shots (KTS), and the shots worth most (knapsack).

Kernel Temporal Segmentation: Potapov et al. 2014, "Category-specific video summarization", 3: for a
number of segments, those with the least scatter (sum of squared distances of the features to their
segment's mean) are found by dynamic programming; the number is given, or found with a penalty. The
programming is ruptures' (a linear kernel on features scaled to length 1, as in their experiments).
Everything here is pure; a segmentation is the list of its segments' first frames, which begins
with 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Features = NDArray[np.floating[Any]]

# Weight of the penalty, theirs: their code has vmax / 2 with vmax = 1 as everybody calls it.
PENALTY = 0.5
_EXACT = 1e-9  # mean scatter below which nothing is left to be told apart


def normalised(features: Features) -> Features:
    """Features scaled to length 1 each, as float64; a row of zeros stays.

    Args:
        features: (n, d), n and d at least 1.

    Raises:
        ValueError: another shape, or a number that is not finite.
    """
    import numpy as np

    rows = np.asarray(features, dtype=np.float64)
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"features of shape {rows.shape}: expected (frames, dimensions)")
    if not np.isfinite(rows).all():
        raise ValueError("a feature is not finite")
    # By the largest first: squares of huge or tiny numbers would leave the range of floats.
    largest = np.abs(rows).max(axis=1, keepdims=True)
    rows = rows / np.where(largest > 0, largest, 1)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Features = rows / np.where(lengths > 0, lengths, 1)
    return scaled


def scatter(rows: Features, starts: Sequence[int]) -> float:
    """Sum over segments of the squared distances to the segment's mean; 0 or more.

    Args:
        rows: (n, d), taken as they are.
        starts: first frames, ascending from 0.
    """
    import numpy as np

    parts = np.split(rows, list(starts)[1:])
    return math.fsum(float(((part - part.mean(axis=0)) ** 2).sum()) for part in parts)


def segment(features: Features, n_segments: int) -> list[int]:
    """The `n_segments` segments with the least scatter.

    Where fewer segments leave no scatter at all (a still picture), further borders mean nothing:
    then the longest segment is halved until there are enough, the first one of equals.

    Args:
        features: (n, d); scaled to length 1 here.
        n_segments: 1 to n.

    Returns:
        First frames, ascending from 0, `n_segments` of them.

    Raises:
        ValueError: as `normalised`, or a number of segments out of range.
    """
    rows = normalised(features)
    if not 1 <= n_segments <= len(rows):
        raise ValueError(f"{n_segments} segments of {len(rows)} frames")
    found = _Best(rows, n_segments)
    if found.leaves_nothing(n_segments):
        low, high = 1, n_segments  # the least number that leaves nothing
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if found.leaves_nothing(middle) else (middle + 1, high)
        return halved(found.starts(low), len(rows), n_segments)
    return found.starts(n_segments)


def automatic(features: Features, most: int) -> list[int]:
    """As many segments as the penalty allows (Potapov et al., equations 5 and 6).

    The number m of borders between segments has the least
    L(m) / n + PENALTY * m / n * (log(n / m) + 1), L the least scatter with m borders and n the
    number of frames; of equals the smallest. Their paper's g(m, n) is m (log(n/m) + 1); that both
    terms are divided by n, and the weight, is from their code.

    Args:
        features: (n, d); scaled to length 1 here.
        most: segments at most, at least 1; more than n counts as n.

    Raises:
        ValueError: as `normalised`, or an argument out of range.
    """
    if most < 1:
        raise ValueError(f"at most {most} segments")
    rows = normalised(features)
    n = len(rows)
    found = _Best(rows, min(most, n))

    def objective(borders: int) -> float:
        term = borders * (math.log(n / borders) + 1) if borders else 0.0
        return (scatter(rows, found.starts(borders + 1)) + PENALTY * term) / n

    return found.starts(min(range(found.most), key=objective) + 1)


def halved(starts: Sequence[int], n: int, n_segments: int) -> list[int]:
    """Segments with the longest one halved until there are enough, the first one of equals.

    Args:
        starts: first frames.
        n: number of frames.
        n_segments: from their number to n.
    """
    made = list(starts)
    while len(made) < n_segments:
        lengths = [b - a for a, b in zip(made, [*made[1:], n], strict=True)]
        place = lengths.index(max(lengths))
        # The first half is the longer one.
        made.insert(place + 1, made[place] + (lengths[place] + 1) // 2)
    return made


@dataclass
class _Best:
    """The best segmentations of rows into 1 to `most` segments: one run finds them all."""

    rows: Features
    most: int
    _model: Any = None

    def starts(self, n_segments: int) -> list[int]:
        if n_segments == 1:
            return [0]
        if n_segments == len(self.rows):  # the only one
            return list(range(n_segments))
        if self._model is None:
            from ruptures import KernelCPD

            self._model = KernelCPD(kernel="linear", min_size=1).fit(self.rows)
            # All smaller numbers come with the largest one that is not the only one.
            self._model.predict(n_bkps=min(self.most, len(self.rows) - 1) - 1)
        ends: list[int] = self._model.predict(n_bkps=n_segments - 1)
        return [0, *(int(end) for end in ends[:-1])]

    def leaves_nothing(self, n_segments: int) -> bool:
        return scatter(self.rows, self.starts(n_segments)) <= _EXACT * len(self.rows)


def knapsack(values: Sequence[int], weights: Sequence[int], capacity: int) -> list[int]:
    """The 0/1 knapsack: places of the items worth most together within the capacity, ascending.

    Exact, by dynamic programming over whole numbers: scale scores first, as with
    `round(score * 10**6)`, so that sums do not depend on rounding and equals are equal. Ties are
    resolved in this order: most value, least weight, the list of places that comes first (earlier
    items win). Items of value 0 are therefore never taken.

    Time and memory grow with items times capacity.

    Args:
        values: of each item, whole numbers, 0 or more.
        weights: of each item, whole numbers, 1 or more.
        capacity: 0 or more.
    """
    # One number for both criteria: weights add up to less than capacity + 1, so value decides.
    gains = [value * (capacity + 1) - weight for value, weight in zip(values, weights, strict=True)]
    best_from = [[0] * (capacity + 1)]  # best_from[-1 - i][room]: most gain of items i, i+1, ...
    for gain, weight in zip(reversed(gains), reversed(weights), strict=True):
        later = best_from[-1]
        best_from.append(
            [
                max(later[room], gain + later[room - weight]) if weight <= room else later[room]
                for room in range(capacity + 1)
            ]
        )
    taken, room = [], capacity
    for place, (gain, weight) in enumerate(zip(gains, weights, strict=True)):
        here, later = best_from[-1 - place], best_from[-2 - place]
        if weight <= room and gain + later[room - weight] == here[room]:
            taken.append(place)
            room -= weight
    return taken
