"""What the strip of a picture of HAVEN's packaged sample says, read again (haven/sample.py)."""

from __future__ import annotations

from typing import Any

import numpy as np

from lmms_eval_tasks.haven.sample import CHECK_BITS, COLUMNS, ROWS, TOP_EDGE, WIDTHS, check_sum
from lmms_eval_tasks.utils.media.second_code import part

_SURE = 60  # how far from half of full scale a cell's mean must be


def read(picture: Any) -> tuple[int, ...] | None:
    """The numbers of its mark; None if it is none of the sample's, or cannot be read.

    Args:
        picture: a PIL image, or red, green and blue of 0 to 255, (height, width, 3); of any size.
    """
    pixels = np.asarray(picture.convert("RGB") if hasattr(picture, "convert") else picture)
    found = 0
    for place in range(ROWS * COLUMNS):
        row, column = divmod(place, COLUMNS)
        y0, y1 = (TOP_EDGE + (1 - TOP_EDGE) * (row + share) / ROWS for share in (0.3, 0.7))
        x0, x1 = ((column + share) / COLUMNS for share in (0.3, 0.7))
        mean = float(part(pixels, x0, x1, y0, y1).mean())
        if abs(mean - 127.5) < _SURE:
            return None
        found = found << 1 | (mean > 127.5)
    value = found >> CHECK_BITS
    if found & (1 << CHECK_BITS) - 1 != check_sum(value):
        return None
    fields = []
    for width in reversed(WIDTHS):
        fields.append(value & (1 << width) - 1)
        value >>= width
    return tuple(reversed(fields))
