"""Numbers that pictures and tones carry: how a packaged sample's videos tell which second it is.

A benchmark gives every second of its videos a number, 0 to COUNT - 1, and what reaches a model
tells it back (tests/maverix/second_code.py), also after H.264 and AAC, in other sizes and at other
sampling rates. No two numbers have the same two colours or the same tone, and both change clearly
from one number to the next. A bar at the bottom of the picture grows from frame to frame and tells
them apart within the second.
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


def part(frame: NDArray[Any], x0: float, x1: float, y0: float, y1: float) -> NDArray[Any]:
    """A rectangle of a picture, by shares of its width and height; a pixel or more each way."""
    height, width = frame.shape[:2]
    rows = slice(int(y0 * height), max(int(y1 * height), int(y0 * height) + 1))
    columns = slice(int(x0 * width), max(int(x1 * width), int(x0 * width) + 1))
    return frame[rows, columns]
