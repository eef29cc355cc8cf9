"""Colour histograms of pictures: features that need no model, for telling shots apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image

BINS = 8  # for each of red, green and blue: 512 joint bins
NAME = f"joint RGB histogram, {BINS}x{BINS}x{BINS} bins"


def histogram(image: Image.Image) -> NDArray[np.float32]:
    """Shares of a picture's pixels by colour: (BINS ** 3,), from 0, with the sum 1.

    Bin of (r, g, b), each 0 to 255: (r // 32 * 8 + g // 32) * 8 + b // 32.

    Raises:
        ValueError: a picture without pixels.
    """
    import numpy as np

    pixels: NDArray[Any] = np.asarray(image.convert("RGB")).reshape(-1, 3)
    if not len(pixels):
        raise ValueError("a picture without pixels has no colours")
    red, green, blue = (pixels // (256 // BINS)).astype(np.int64).T
    counts = np.bincount((red * BINS + green) * BINS + blue, minlength=BINS**3)
    return (counts / len(pixels)).astype(np.float32)


def histograms(images: Iterable[Image.Image]) -> NDArray[np.float32]:
    """One row for each picture, which are taken one after the other: (n, BINS ** 3).

    Raises:
        ValueError: no pictures, or as `histogram`.
    """
    import numpy as np

    rows = [histogram(image) for image in images]
    if not rows:
        raise ValueError("no pictures")
    return np.stack(rows)
