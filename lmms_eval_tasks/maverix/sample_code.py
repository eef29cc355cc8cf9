"""The code of MAVERIX's packaged videos: every second shows its own colours and plays its own tone.

A second is a `Moment`. No two moments of the whole sample have the same two colours, the same tone
or the same number in their subtitles, so that whatever reaches a model tells which video and which
second it was taken from: a leak of one second, or of another video, shows.

    >>> moment_of_frame(frame)                  # what a picture shows
    Moment(video=2, second=17)
    >>> moment_of_sound(samples, 16_000)        # what a piece of sound plays
    Moment(video=2, second=17)
    >>> moments_of_text("[00:01.0 - 00:01.8] Word seventy-seven.")
    [Moment(video=2, second=17)]

The decoders bear H.264, AAC, other sizes and sampling rates, and one channel in place of two. What
they cannot tell, or is no such code, is None and never a guess.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

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
SECONDS = (30, 30, 32, 64)  # of the sample's videos, 1 to 4: N * (N - 1) in all
TICKS = 10  # frames a second; a bar at the bottom grows by a tenth from frame to frame
BAR = 0.9  # the bar's upper edge, as a share of the frame's height

LOWEST, CLASS_STEP, FINE_STEP = 300, 165, 10  # hertz
_COLOUR_LIMIT = 50.0  # half of what the nearest two colours differ by
_SILENT = 0.004  # root mean square of full scale below which nothing is heard
_PURE = 0.8  # share of the power that a tone must have; two seconds at once have less
_HERTZ_LIMIT = 3.0  # how far from its tone a sound may be
_SHORTEST = 0.08  # seconds of sound; from less, tones that are 10 Hz apart are one
# fmt: off
_ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
# fmt: on


class Moment(NamedTuple):
    """A second of a video of the sample: `second` s to `second` + 1 s."""

    video: int  # from 1 on
    second: int  # from 0 on

    @property
    def number(self) -> int:
        """Its place among all seconds of the sample, 0 to N * (N - 1) - 1."""
        return sum(SECONDS[: self.video - 1]) + self.second

    @property
    def colours(self) -> tuple[str, str]:
        """Names of the colours of the left and of the right half; both change every second."""
        left = 5 * self.number % N
        return NAMES[left], NAMES[(left + 1 + self.number // N) % N]

    @property
    def hertz(self) -> int:
        """The tone: 13 classes, 165 Hz apart, and within a class 12 tones, 10 Hz apart.

        The tone changes by 485 Hz or more from one second to the next.
        """
        turn = self.number // N
        return LOWEST + CLASS_STEP * ((6 * self.number + 4 * turn) % N) + FINE_STEP * turn

    @property
    def word(self) -> str:
        """What the subtitles say: its number in words."""
        return in_words(self.number)


MOMENTS = tuple(
    Moment(video, second) for video, length in enumerate(SECONDS, 1) for second in range(length)
)
_BY_COLOURS = {moment.colours: moment for moment in MOMENTS}
_BY_HERTZ = {moment.hertz: moment for moment in MOMENTS}


def in_words(number: int) -> str:
    """0 to 199 in English words."""
    if number >= 100:
        rest = in_words(number - 100) if number > 100 else ""
        return f"one hundred {rest}".strip()
    if number < 20:
        return _ONES[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_ONES[ones]}" if ones else "")


_BY_WORD = {moment.word: moment for moment in MOMENTS}


# --- pictures ---------------------------------------------------------------------------------


def moment_of_frame(frame: NDArray[Any]) -> Moment | None:
    """The second that a picture was taken from; None for any other picture (a black one, say).

    Args:
        frame: red, green and blue from 0 to 255, (height, width, 3), of any size.
    """
    left, right = (_colour(_part(frame, x0, x1, 0.15, 0.75)) for x0, x1 in ((0.1, 0.4), (0.6, 0.9)))
    if left is None or right is None:
        return None
    return _BY_COLOURS.get((left, right))


def second_of_colour(frame: NDArray[Any]) -> int | None:
    """The second in its video, whichever that is; see `moment_of_frame`."""
    moment = moment_of_frame(frame)
    return None if moment is None else moment.second


def time_of_frame(frame: NDArray[Any]) -> float | None:
    """When its video shows a picture, in seconds: exact to a frame, by second and bar."""
    moment = moment_of_frame(frame)
    lit = [
        bool(_part(frame, (t + 0.3) / TICKS, (t + 0.7) / TICKS, 0.93, 0.98).mean() > 128)
        for t in range(TICKS)
    ]
    length = sum(lit)
    if moment is None or not length or not all(lit[:length]):
        return None
    return round(moment.second + (length - 1) / TICKS, 3)


def _part(frame: NDArray[Any], x0: float, x1: float, y0: float, y1: float) -> NDArray[Any]:
    height, width = frame.shape[:2]
    rows = slice(int(y0 * height), max(int(y1 * height), int(y0 * height) + 1))
    columns = slice(int(x0 * width), max(int(x1 * width), int(x0 * width) + 1))
    return frame[rows, columns]


def _colour(part: NDArray[Any]) -> str | None:
    """The name of a part's colour; None if it has none of the names, or more than one colour."""
    import numpy as np

    pixels = part.reshape(-1, 3).astype(np.float64)
    mean = pixels.mean(axis=0)
    far = {name: float(np.linalg.norm(mean - colour)) for name, colour in PALETTE.items()}
    name = min(far, key=lambda each: far[each])
    spread = float(pixels.std(axis=0).max())
    return name if far[name] < _COLOUR_LIMIT and spread < _COLOUR_LIMIT else None


# --- sound ------------------------------------------------------------------------------------


def moment_of_sound(samples: NDArray[Any], rate: int) -> Moment | None:
    """The second that a piece of sound was taken from; None for silence, noise or two seconds.

    Args:
        samples: (n,) or (channels, n), floats of full scale 1 or integers; at least 0.08 s.
        rate: samples a second, 8,000 or more.
    """
    found = tone(samples, rate)
    if found is None:
        return None
    nearest = min(_BY_HERTZ, key=lambda hertz: abs(hertz - found))
    return _BY_HERTZ[nearest] if abs(nearest - found) < _HERTZ_LIMIT else None


def second_of_tone(samples: NDArray[Any], rate: int) -> int | None:
    """The second in its video, whichever that is; see `moment_of_sound`."""
    moment = moment_of_sound(samples, rate)
    return None if moment is None else moment.second


def moments_of_sound(samples: NDArray[Any], rate: int, window: float = 0.1) -> list[Moment | None]:
    """`moment_of_sound` of one window of `window` seconds after the other; the rest is left out."""
    step = round(window * rate)
    total = samples.shape[-1]
    return [
        moment_of_sound(samples[..., start : start + step], rate)
        for start in range(0, total - step + 1, step)
    ]


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


# --- subtitles --------------------------------------------------------------------------------


def spoken(moment: Moment) -> str:
    """The text of a second's subtitle."""
    return f"Word {moment.word}."


def moments_of_text(text: str) -> list[Moment]:
    """The seconds whose subtitles stand in a text, in its order, however often."""
    words = re.findall(r"\bWord ([a-z]+(?:[ -][a-z]+)*)\.", text)
    return [_BY_WORD[word] for word in words if word in _BY_WORD]
