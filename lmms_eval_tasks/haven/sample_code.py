"""What pictures of HAVEN's packaged sample say about themselves: a strip of light and dark cells.

Every frame carries its number in time, its level of importance, its shot's importance as a fraction
(sum of levels, number of sampled frames), its scene, and whether its shot is a key shot. A picture
says nothing about its video, and a reader needs no file and no key:

    >>> read(picture)
    Mark(frame=35, level=6, total=34, sampled=6, scene=17, key=False)

The strip stands at the bottom of the picture, ROWS x COLUMNS cells; the last ones hold a check sum.
It bears H.264, JPEG and other sizes. What cannot be told, or is no such strip, is None.
"""

from __future__ import annotations

import zlib
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROWS, COLUMNS = 2, 20
TOP_EDGE = 0.875  # the strip's upper edge, as a share of the picture's height
CHECK_BITS = 9
_SURE = 60  # how far from half of full scale a cell's mean must be


class Mark(NamedTuple):
    """What a picture says."""

    frame: int  # its place among all frames of its video, from 0
    level: int  # its importance
    total: int  # of the levels of its shot's sampled frames
    sampled: int  # number of its shot's sampled frames
    scene: int  # of sample_stories.SCENES
    key: bool  # whether its shot is a key shot

    @property
    def importance(self) -> Fraction:
        """Of its shot: the mean of the levels."""
        return Fraction(self.total, self.sampled)


WIDTHS = (8, 4, 7, 4, 7, 1)  # of a Mark's fields in bits; 31 in all
_PAYLOAD = sum(WIDTHS)


def bits(mark: Mark) -> list[int]:
    """The strip's cells row by row, 0 (dark) or 1 (light).

    Raises:
        ValueError: a number has more bits than its field.
    """
    value = 0
    for name, number, width in zip(Mark._fields, mark, WIDTHS, strict=True):
        if not 0 <= number < 1 << width:
            raise ValueError(f"{name}={number} does not fit into {width} bits")
        value = value << width | int(number)
    whole = value << CHECK_BITS | _check(value)
    return [whole >> place & 1 for place in reversed(range(_PAYLOAD + CHECK_BITS))]


def draw(picture: NDArray[np.uint8], mark: Mark) -> NDArray[np.uint8]:
    """A picture, (height, width, 3), with the strip drawn over its lower edge."""
    import numpy as np

    height, width = picture.shape[:2]
    top = round(TOP_EDGE * height)
    cells = np.array(bits(mark), dtype=np.uint8).reshape(ROWS, COLUMNS) * 255
    rows = np.arange(height - top) * ROWS // (height - top)
    columns = np.arange(width) * COLUMNS // width
    marked: NDArray[np.uint8] = picture.copy()
    marked[top:] = cells[rows][:, columns][..., None]
    return marked


def read(picture: Any) -> Mark | None:
    """What a picture says; None if it is not one of the sample's, or cannot be read.

    Args:
        picture: a PIL image, or red, green and blue of 0 to 255, (height, width, 3); of any size.
    """
    import numpy as np

    pixels = np.asarray(picture.convert("RGB") if hasattr(picture, "convert") else picture)
    height, width = pixels.shape[:2]
    found = 0
    for place in range(ROWS * COLUMNS):
        row, column = divmod(place, COLUMNS)
        y0, y1 = (TOP_EDGE + (1 - TOP_EDGE) * (row + part) / ROWS for part in (0.3, 0.7))
        x0, x1 = ((column + part) / COLUMNS for part in (0.3, 0.7))
        ys = slice(int(y0 * height), max(int(y1 * height), int(y0 * height) + 1))
        xs = slice(int(x0 * width), max(int(x1 * width), int(x0 * width) + 1))
        mean = float(pixels[ys, xs].mean())
        if abs(mean - 127.5) < _SURE:
            return None
        found = found << 1 | (mean > 127.5)
    value, check = found >> CHECK_BITS, found & (1 << CHECK_BITS) - 1
    if check != _check(value):
        return None
    fields = []
    for width in reversed(WIDTHS):
        fields.append(value & (1 << width) - 1)
        value >>= width
    frame, level, total, sampled, scene, key = reversed(fields)
    return Mark(frame, level, total, sampled, scene, bool(key)) if sampled else None


def _check(value: int) -> int:
    """A check sum that neither a dark nor a light strip has."""
    return zlib.crc32(value.to_bytes(4, "big")) & (1 << CHECK_BITS) - 1
