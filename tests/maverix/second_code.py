"""Which second of the packaged videos a picture or a piece of sound is of (sample/second_code.py).

Bears H.264, AAC, other sizes and sampling rates, and one channel in place of two. What is no such
code is None and never a guess.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmms_eval_tasks.sample.second_code import COUNT, PALETTE, TICKS, colours, hertz, part

COLOUR_LIMIT = 50.0  # half of what the nearest two colours differ by
PURE = 0.8  # share of the power that a tone must have; two seconds at once have less
HERTZ_LIMIT = 3.0  # how far from its tone a sound may be
SHORTEST = 0.08  # seconds of sound; from less, tones that are 10 Hz apart are one
BY_COLOURS = {colours(number): number for number in range(COUNT)}
BY_HERTZ = {hertz(number): number for number in range(COUNT)}


def number_of_frame(frame: NDArray[Any]) -> int | None:
    """The number whose colours a picture shows (height, width, 3); None for any other picture."""
    left, right = (_colour(part(frame, x0, x1, 0.15, 0.75)) for x0, x1 in ((0.1, 0.4), (0.6, 0.9)))
    return BY_COLOURS.get((left, right))


def tick_of_frame(frame: NDArray[Any]) -> int | None:
    """Which frame of its second a picture is, 0 to TICKS - 1, by the bar; None without one."""
    lit = [
        bool(part(frame, (t + 0.3) / TICKS, (t + 0.7) / TICKS, 0.93, 0.98).mean() > 128)
        for t in range(TICKS)
    ]
    length = sum(lit)
    return length - 1 if length and all(lit[:length]) else None


def number_of_sound(samples: NDArray[Any], rate: int) -> int | None:
    """The number whose tone is played; None for silence, noise, two tones or less than 0.08 s.

    Args:
        samples: (n,) or (channels, n), floats of full scale 1 or integers.
        rate: samples a second, 8,000 or more.
    """
    sound = np.asarray(samples)
    if np.issubdtype(sound.dtype, np.integer):
        sound = sound / np.iinfo(sound.dtype).max
    mono = np.atleast_2d(sound).astype(np.float64).mean(axis=0)
    count = len(mono)
    if count < SHORTEST * rate or float(np.sqrt(np.mean(mono**2))) < 0.004:
        return None
    size = 4 * 2 ** int(np.ceil(np.log2(count)))  # padded: the peak is read between the bins
    power = np.abs(np.fft.rfft((mono - mono.mean()) * np.hanning(count), size)) ** 2
    top, reach = int(power.argmax()), 2 * size // count + 1  # half the width of a pure tone's peak
    if not reach < top < len(power) - reach:
        return None
    if power[top - reach : top + reach + 1].sum() < PURE * power.sum():
        return None
    before, here, after = np.log(power[top - 1 : top + 2] + 1e-30)
    found = (top + 0.5 * (before - after) / (before - 2 * here + after)) * rate / size
    nearest = min(BY_HERTZ, key=lambda one: abs(one - found))
    return BY_HERTZ[nearest] if abs(nearest - found) < HERTZ_LIMIT else None


def _colour(pixels: NDArray[Any]) -> str:
    """The name of a part's colour; "" if it has none of the names, or more than one colour."""
    flat = pixels.reshape(-1, 3).astype(np.float64)
    far = {one: float(np.linalg.norm(flat.mean(axis=0) - rgb)) for one, rgb in PALETTE.items()}
    name = min(far, key=lambda one: far[one])
    return name if max(far[name], float(flat.std(axis=0).max())) < COLOUR_LIMIT else ""
