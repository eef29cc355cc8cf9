"""Numbers that pictures and tones carry: how a packaged sample's videos tell which second it is.

A benchmark gives every second of its videos a number, 0 to COUNT - 1, and what reaches a model
tells it back. No two numbers have the same two colours or the same tone, and both change clearly
from one number to the next. A bar at the bottom of the picture grows from frame to frame and tells
them apart within the second.

The decoders bear H.264, AAC, other sizes and sampling rates, and one channel in place of two. What
they cannot tell, or is no such code, is None and never a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmms_eval_tasks.sample.render import Colour

# Thirteen colours with a name; any two differ by 100 or more in the distance of red, green, blue.
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
COUNT = N * (N - 1)  # numbers that have colours and a tone of their own
TICKS = 10  # frames a second; a bar at the bottom grows by a tenth from frame to frame
BAR = 0.9  # the bar's upper edge, as a share of the frame's height
# For render.write_mp4. A key frame every 12 s and no other: a cut that copies from a key frame on
# carries up to 12 s too much. No macroblock trees: with them x264's assembler (not its C code) was
# seen to encode plain pictures like these otherwise in every second build.
X264 = {"g": str(12 * TICKS), "sc_threshold": "0", "mbtree": "0"}
# FFmpeg's default coder leaves noise 15 dB below a pure tone, this one 60 dB; noise shaping over
# time made clicks of twice the tone's height.
AAC = {"aac_coder": "fast", "aac_tns": "0"}

LOWEST, CLASS_STEP, FINE_STEP = 300, 165, 10  # hertz
_COLOUR_LIMIT = 50.0  # half of what the nearest two colours differ by
_SILENT = 0.004  # root mean square of full scale below which nothing is heard
_PURE = 0.8  # share of the power that a tone must have; two seconds at once have less
_HERTZ_LIMIT = 3.0  # how far from its tone a sound may be
_SHORTEST = 0.08  # seconds of sound; from less, tones that are 10 Hz apart are one


def colours(number: int) -> tuple[str, str]:
    """Names of the colours of the left and of the right half; both change with every number."""
    left = 5 * number % N
    return NAMES[left], NAMES[(left + 1 + number // N) % N]


def hertz(number: int) -> int:
    """The tone: 13 classes, 165 Hz apart, and within a class 12 tones, 10 Hz apart.

    The tone changes by 485 Hz or more from one number to the next.
    """
    turn = number // N
    return LOWEST + CLASS_STEP * ((6 * number + 4 * turn) % N) + FINE_STEP * turn


_BY_COLOURS = {colours(number): number for number in range(COUNT)}
_BY_HERTZ = {hertz(number): number for number in range(COUNT)}


# --- pictures ---------------------------------------------------------------------------------


def number_of_frame(frame: NDArray[Any], top: float = 0.15, bottom: float = 0.75) -> int | None:
    """The number whose colours a picture shows; None for any other picture (a black one, say).

    Args:
        frame: red, green and blue from 0 to 255, (height, width, 3), of any size.
        top, bottom: between which the halves are looked at, as shares of the height.
    """
    left, right = (colour(part(frame, x0, x1, top, bottom)) for x0, x1 in ((0.1, 0.4), (0.6, 0.9)))
    if left is None or right is None:
        return None
    return _BY_COLOURS.get((left, right))


def tick_of_frame(frame: NDArray[Any]) -> int | None:
    """Which frame of its second a picture is, 0 to TICKS - 1, by the bar; None without one."""
    lit = [
        bool(part(frame, (t + 0.3) / TICKS, (t + 0.7) / TICKS, 0.93, 0.98).mean() > 128)
        for t in range(TICKS)
    ]
    length = sum(lit)
    return length - 1 if length and all(lit[:length]) else None


def part(frame: NDArray[Any], x0: float, x1: float, y0: float, y1: float) -> NDArray[Any]:
    """A rectangle of a picture, by shares of its width and height; a pixel or more each way."""
    height, width = frame.shape[:2]
    rows = slice(int(y0 * height), max(int(y1 * height), int(y0 * height) + 1))
    columns = slice(int(x0 * width), max(int(x1 * width), int(x0 * width) + 1))
    return frame[rows, columns]


def colour(pixels: NDArray[Any]) -> str | None:
    """The name of a part's colour; None if it has none of the names, or more than one colour."""
    import numpy as np

    flat = pixels.reshape(-1, 3).astype(np.float64)
    mean = flat.mean(axis=0)
    far = {name: float(np.linalg.norm(mean - colour)) for name, colour in PALETTE.items()}
    name = min(far, key=lambda each: far[each])
    spread = float(flat.std(axis=0).max())
    return name if far[name] < _COLOUR_LIMIT and spread < _COLOUR_LIMIT else None


# --- sound ------------------------------------------------------------------------------------


def number_of_sound(samples: NDArray[Any], rate: int) -> int | None:
    """The number whose tone a piece of sound plays; None for silence, noise or two tones.

    Args:
        samples: (n,) or (channels, n), floats of full scale 1 or integers; at least 0.08 s.
        rate: samples a second, 8,000 or more.
    """
    found = tone(samples, rate)
    if found is None:
        return None
    nearest = min(_BY_HERTZ, key=lambda one: abs(one - found))
    return _BY_HERTZ[nearest] if abs(nearest - found) < _HERTZ_LIMIT else None


def tone(samples: NDArray[Any], rate: int) -> float | None:
    """Frequency in hertz of the one pure tone that is heard; None if there is none, or not one."""
    import numpy as np

    sound = np.asarray(samples)
    if np.issubdtype(sound.dtype, np.integer):
        sound = sound / np.iinfo(sound.dtype).max
    mono = np.atleast_2d(sound).astype(np.float64).mean(axis=0)
    if len(mono) < _SHORTEST * rate or float(np.sqrt(np.mean(mono**2))) < _SILENT:
        return None
    count = len(mono)
    size = 4 * 2 ** int(np.ceil(np.log2(count)))  # padded: the peak is read between the bins
    power = np.abs(np.fft.rfft((mono - mono.mean()) * np.hanning(count), size)) ** 2
    top = int(power.argmax())
    reach = 2 * size // count + 1  # half the width of a pure tone's peak
    if not reach < top < len(power) - reach:
        return None
    if power[top - reach : top + reach + 1].sum() < _PURE * power.sum():
        return None
    before, here, after = np.log(power[top - 1 : top + 2] + 1e-30)
    offset = 0.5 * (before - after) / (before - 2 * here + after)
    return float((top + offset) * rate / size)
