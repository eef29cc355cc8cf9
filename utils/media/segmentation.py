"""A video's sampled frames cut into coherent shots (KTS), and the shots worth most (knapsack).

Features that need no model, for telling shots apart, are `histograms` of colours.

Kernel Temporal Segmentation: Potapov et al. 2014, "Category-specific video summarization", 3: for a
number of segments, those with the least scatter (sum of squared distances of the features to their
segment's mean) are found by dynamic programming; the number is given, or found with a penalty. The
programming is ruptures' (a linear kernel on features scaled to length 1, as in their experiments).
Everything here is pure; a segmentation is the list of its segments' first frames, which begins
with 0.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    Features = NDArray[np.floating[Any]]

# Weight of the penalty, theirs: their code has vmax / 2 with vmax = 1 as everybody calls it.
PENALTY = 0.5
_BINS = 8  # for each of red, green and blue: 512 joint bins
FEATURES = f"joint RGB histogram, {_BINS}x{_BINS}x{_BINS} bins"
_EXACT = 1e-9  # mean scatter below which nothing is left to be told apart


def histograms(images: Iterable[Image]) -> NDArray[np.float32]:
    """Shares of each picture's pixels by colour: (n, 512), each row with the sum 1.

    Bin of (r, g, b), each 0 to 255: (r // 32 * 8 + g // 32) * 8 + b // 32. Pictures are taken one
    after the other; there must be one at least.
    """
    import numpy as np

    rows = []
    for image in images:
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3)
        red, green, blue = (pixels // (256 // _BINS)).astype(np.int64).T
        counts = np.bincount((red * _BINS + green) * _BINS + blue, minlength=_BINS**3)
        rows.append((counts / len(pixels)).astype(np.float32))
    return np.stack(rows)


def normalised(features: Features) -> Features:
    """Features (n, d) scaled to length 1 each, as float64; a row of zeros stays.

    Raises:
        ValueError: another shape, or a number that is not finite.
    """
    import numpy as np

    rows: Features = np.asarray(features, dtype=np.float64)
    if rows.ndim != 2 or 0 in rows.shape or not np.isfinite(rows).all():
        raise ValueError(f"features of shape {rows.shape}: expected (frames, dimensions), finite")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1)


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
    """First frames of the `n_segments` segments (1 to n) of features (n, d) with the least scatter.

    Where fewer segments leave no scatter at all (a still picture), further borders mean nothing:
    then the longest segment is halved until there are enough, the first one of equals.

    Raises:
        ValueError: as `normalised`, or a number of segments out of range.
    """
    rows = normalised(features)
    if not 1 <= n_segments <= len(rows):
        raise ValueError(f"{n_segments} segments of {len(rows)} frames")
    starts = _best(rows, n_segments)

    def leaves_nothing(number: int) -> bool:
        return scatter(rows, starts(number)) <= _EXACT * len(rows)

    if leaves_nothing(n_segments):
        least = 1 + bisect_left(range(1, n_segments), True, key=leaves_nothing)
        return halved(starts(least), len(rows), n_segments)
    return starts(n_segments)


def automatic(features: Features, most: int) -> list[int]:
    """As many segments as the penalty allows (Potapov et al., equations 5 and 6).

    The number m of borders between segments has the least
    L(m) / n + PENALTY * m / n * (log(n / m) + 1), L the least scatter with m borders and n the
    number of frames; of equals the smallest. Their paper's g(m, n) is m (log(n/m) + 1); that both
    terms are divided by n, and the weight, is from their code.

    Args:
        features: (n, d).
        most: segments at most, at least 1; more than n counts as n.

    Raises:
        ValueError: as `normalised`.
    """
    rows = normalised(features)
    n = len(rows)
    most = min(most, n)
    starts = _best(rows, most)

    def objective(borders: int) -> float:
        term = borders * (math.log(n / borders) + 1) if borders else 0.0
        return (scatter(rows, starts(borders + 1)) + PENALTY * term) / n

    return starts(min(range(most), key=objective) + 1)


def halved(starts: Sequence[int], n: int, n_segments: int) -> list[int]:
    """Segments of n frames with the longest one halved until there are enough."""
    made = list(starts)
    while len(made) < n_segments:
        lengths = [b - a for a, b in zip(made, [*made[1:], n], strict=True)]
        place = lengths.index(max(lengths))
        # The first half is the longer one.
        made.insert(place + 1, made[place] + (lengths[place] + 1) // 2)
    return made


def _best(rows: Features, most: int) -> Callable[[int], list[int]]:
    """First frames of the best segmentation into any number up to `most`: one run finds all."""
    n = len(rows)
    most = min(most, n - 1)  # into n there is only one
    if most > 1:
        from ruptures import KernelCPD

        model = KernelCPD(kernel="linear", min_size=1).fit(rows)
        model.predict(n_bkps=most - 1)

    def starts(number: int) -> list[int]:
        if number in (1, n):
            return list(range(number))
        return [0, *(int(end) for end in model.predict(n_bkps=number - 1)[:-1])]

    return starts


def knapsack(values: Sequence[int], weights: Sequence[int], capacity: int) -> list[int]:
    """The 0/1 knapsack: places of the items worth most together within the capacity, ascending.

    Exact, by dynamic programming over whole numbers: scale scores first, so that sums do not depend
    on rounding. Of equals: most value, least weight, the list of places that comes first (earlier
    items win). Items of value 0 are therefore never taken.

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
