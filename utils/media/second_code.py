"""A code for seconds: the colours and the tone by which sample videos tell which second it is.

A benchmark gives every second of its videos a number, 0 to COUNT - 1. The media that reach a model
show the number, also after H.264 and AAC, in other sizes and at other sampling rates, and as one
channel instead of two. A picture or sound without a code is read as "" or None and never guessed.
No two numbers have the same two colours or the same tone, and both change clearly from one number
to the next. A bar at the bottom of the picture grows from frame to frame and tells the frames of a
second apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from lmms_eval_tasks.sample.render import Colour

Number = TypeVar("Number", bound="np.generic")

# Thirteen colours with names; any two are 100 or more apart in RGB distance.
PALETTE: dict[str, Colour] = {
    "red": (220, 20, 30),
    "orange": (250, 140, 20),
    "yellow": (250, 240, 40),
    "lime": (120, 230, 60),
    "green": (20, 120, 40),
    "cyan": (40, 220, 230),
    "blue": (30, 50, 220),
    "purple": (130, 30, 170),
    "pink": (255, 150, 200),
    "brown": (110, 60, 20),
    "white": (250, 250, 250),
    "grey": (128, 128, 128),
    "black": (8, 8, 8),
}
NAMES = tuple(PALETTE)
N = len(NAMES)
COUNT = N * (N - 1)  # numbers with their own colours and tone
TICKS = 10  # frames a second; a bar at the bottom grows by a tenth from frame to frame
BAR = 0.9  # the bar's upper edge, as a share of the frame's height
# For render.Clip. A key frame every 12 s and no other, so that a cut that copies from a key frame
# on would carry up to 12 s too much. No macroblock trees: with them x264's assembler (not its C
# code) was seen to encode plain pictures like these differently in every second build.
X264 = {"g": str(12 * TICKS), "sc_threshold": "0", "mbtree": "0"}
# FFmpeg's default coder leaves noise 15 dB below a pure tone, this one 60 dB; temporal noise
# shaping made clicks of twice the tone's height.
AAC = {"aac_coder": "fast", "aac_tns": "0"}

LOWEST, CLASS_STEP, FINE_STEP = 300, 165, 10  # hertz


def colours(number: int) -> tuple[str, str]:
    """Return the names of the colours of the left and right half; both change with every number."""
    left = 5 * number % N
    return NAMES[left], NAMES[(left + 1 + number // N) % N]


def hertz(number: int) -> int:
    """Return the tone in hertz: 13 classes, 165 Hz apart, each with 12 tones, 10 Hz apart.

    The tone changes by 485 Hz or more from one number to the next.
    """
    turn = number // N
    return LOWEST + CLASS_STEP * ((6 * number + 4 * turn) % N) + FINE_STEP * turn


# --- reading the code -----------------------------------------------------------------------------

_COLOUR_LIMIT = 50.0  # half the distance of the nearest two colours
_PURE = 0.8  # share of the power in a pure tone; a mix of two seconds has less
_SHORTEST = 0.08  # seconds of sound; in less, tones 10 Hz apart cannot be told apart
_QUIET = 0.004  # root mean square


def colours_of(frame: NDArray[np.uint8]) -> tuple[str, str]:
    """Return the names of the colours of both halves of a picture (height, width, 3).

    "" for a half of another colour, or of several colours.
    """
    import numpy as np

    names = []
    for x0, x1 in ((0.1, 0.4), (0.6, 0.9)):
        flat = part(frame, x0, x1, 0.15, 0.75).reshape(-1, 3).astype(np.float64)
        mean = flat.mean(axis=0)
        far = {one: float(np.linalg.norm(mean - rgb)) for one, rgb in PALETTE.items()}
        name = min(far, key=lambda one: far[one])
        near = max(far[name], float(flat.std(axis=0).max())) < _COLOUR_LIMIT
        names.append(name if near else "")
    return names[0], names[1]


def hertz_of(samples: ArrayLike, rate: int) -> float | None:
    """Return the pitch of a pure tone in hertz; None for silence, noise, two tones or under 0.08 s.

    Args:
        samples: (n,) or (channels, n), floats with full scale 1, or integers.
        rate: samples a second, 8,000 or more.
    """
    import numpy as np

    sound = np.asarray(samples)
    if np.issubdtype(sound.dtype, np.integer):
        sound = sound / np.iinfo(sound.dtype).max
    mono = np.atleast_2d(sound).astype(np.float64).mean(axis=0)
    count = len(mono)
    if count < _SHORTEST * rate or float(np.sqrt(np.mean(mono**2))) < _QUIET:
        return None
    size = 4 * 2 ** int(np.ceil(np.log2(count)))  # padded, to read the peak between the bins
    power = np.abs(np.fft.rfft((mono - mono.mean()) * np.hanning(count), size)) ** 2
    top, reach = int(power.argmax()), 2 * size // count + 1  # half the width of a pure tone's peak
    if not reach < top < len(power) - reach:
        return None
    if power[top - reach : top + reach + 1].sum() < _PURE * power.sum():
        return None
    before, here, after = np.log(power[top - 1 : top + 2] + 1e-30)
    return float((top + 0.5 * (before - after) / (before - 2 * here + after)) * rate / size)


def part(frame: NDArray[Number], x0: float, x1: float, y0: float, y1: float) -> NDArray[Number]:
    """Return a rectangle of a picture, by shares of its width and height; at least a pixel."""
    height, width = frame.shape[:2]
    rows = slice(int(y0 * height), max(int(y1 * height), int(y0 * height) + 1))
    columns = slice(int(x0 * width), max(int(x1 * width), int(x0 * width) + 1))
    return frame[rows, columns]
