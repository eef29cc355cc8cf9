"""A video's sampled frames cut into coherent shots (KTS), and the most valuable shots (knapsack).

Kernel Temporal Segmentation: Potapov et al. 2014, "Category-specific video summarization", 3. For a
number of segments, dynamic programming finds the segments with the least scatter (sum of squared
distances of the features to their segment's mean). ruptures does the programming (a linear kernel
on features scaled to length 1, as in their experiments). `histograms` of colours are features that
need no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    Features = NDArray[np.floating[Any]]

_BINS = 8  # for each of red, green and blue: 512 joint bins


def histograms(images: Iterable[Image]) -> NDArray[np.float32]:
    """Return the shares of each picture's pixels by colour: (n, 512), each row with sum 1.

    The bin of (r, g, b), each 0 to 255, is (r // 32 * 8 + g // 32) * 8 + b // 32. There must be at
    least one picture; they are read one after the other.
    """
    import numpy as np

    rows = []
    for image in images:
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3)
        red, green, blue = (pixels // (256 // _BINS)).astype(np.int64).T
        counts = np.bincount((red * _BINS + green) * _BINS + blue, minlength=_BINS**3)
        rows.append((counts / len(pixels)).astype(np.float32))
    return np.stack(rows)


def segment(features: Features, n_segments: int) -> list[int]:
    """Return the first frames of the `n_segments` segments with the least scatter.

    Each row is scaled to length 1 first; a row of zeros stays.

    Args:
        features: (n, d), finite.
        n_segments: 1 to n.

    Raises:
        ValueError: another shape, a number that is not finite, or `n_segments` out of range.
    """
    import numpy as np

    rows: Features = np.asarray(features, dtype=np.float64)
    if rows.ndim != 2 or 0 in rows.shape or not np.isfinite(rows).all():
        raise ValueError(f"features of shape {rows.shape}: expected (frames, dimensions), finite")
    if not 1 <= n_segments <= len(rows):
        raise ValueError(f"{n_segments} segments of {len(rows)} frames")
    if n_segments in (1, len(rows)):
        return list(range(n_segments))
    from ruptures import KernelCPD

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    model = KernelCPD(kernel="linear", min_size=1).fit(rows / np.where(lengths > 0, lengths, 1))
    return [0, *(int(end) for end in model.predict(n_bkps=n_segments - 1)[:-1])]


def knapsack(values: Sequence[int], weights: Sequence[int], capacity: int) -> list[int]:
    """Return the places, ascending, of the items with the most value in a 0/1 knapsack.

    Exact, by dynamic programming over whole numbers: scale scores first, so that sums do not depend
    on rounding. Ties: most value, then least weight, then the list of places that comes first
    (earlier items win). So items of value 0 are never taken.

    Args:
        values: of each item, whole numbers, 0 or more.
        weights: of each item, whole numbers, 1 or more.
        capacity: 0 or more.
    """
    # One number for both criteria: weights sum to less than capacity + 1, so value decides first.
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
