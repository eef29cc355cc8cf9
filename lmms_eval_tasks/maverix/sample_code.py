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

Colours and tones are those of sample/second_code.py, which reads them too: what it cannot tell, or
is no such code, is None and never a guess.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks.sample import second_code
from lmms_eval_tasks.sample.second_code import BAR, NAMES, PALETTE, TICKS, tone

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "BAR",
    "MOMENTS",
    "NAMES",
    "PALETTE",
    "SECONDS",
    "TICKS",
    "Moment",
    "in_words",
    "moment_of_frame",
    "moment_of_sound",
    "moments_of_sound",
    "moments_of_text",
    "second_of_colour",
    "second_of_tone",
    "spoken",
    "time_of_frame",
    "tone",
]

SECONDS = (30, 30, 32, 64)  # of the sample's videos, 1 to 4: second_code.COUNT in all

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
        """Its place among all seconds of the sample, from 0 on."""
        return sum(SECONDS[: self.video - 1]) + self.second

    @property
    def colours(self) -> tuple[str, str]:
        """Names of the colours of the left and of the right half; both change every second."""
        return second_code.colours(self.number)

    @property
    def hertz(self) -> int:
        """Its tone."""
        return second_code.hertz(self.number)

    @property
    def word(self) -> str:
        """What the subtitles say: its number in words."""
        return in_words(self.number)


MOMENTS = tuple(
    Moment(video, second) for video, length in enumerate(SECONDS, 1) for second in range(length)
)


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
    number = second_code.number_of_frame(frame)
    return None if number is None else MOMENTS[number]


def second_of_colour(frame: NDArray[Any]) -> int | None:
    """The second in its video, whichever that is; see `moment_of_frame`."""
    moment = moment_of_frame(frame)
    return None if moment is None else moment.second


def time_of_frame(frame: NDArray[Any]) -> float | None:
    """When its video shows a picture, in seconds: exact to a frame, by second and bar."""
    moment, tick = moment_of_frame(frame), second_code.tick_of_frame(frame)
    return None if moment is None or tick is None else round(moment.second + tick / TICKS, 3)


# --- sound ------------------------------------------------------------------------------------


def moment_of_sound(samples: NDArray[Any], rate: int) -> Moment | None:
    """The second that a piece of sound was taken from; None for silence, noise or two seconds.

    Args:
        samples: (n,) or (channels, n), floats of full scale 1 or integers; at least 0.08 s.
        rate: samples a second, 8,000 or more.
    """
    number = second_code.number_of_sound(samples, rate)
    return None if number is None else MOMENTS[number]


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


# --- subtitles --------------------------------------------------------------------------------


def spoken(moment: Moment) -> str:
    """The text of a second's subtitle."""
    return f"Word {moment.word}."


def moments_of_text(text: str) -> list[Moment]:
    """The seconds whose subtitles stand in a text, in its order, however often."""
    words = re.findall(r"\bWord ([a-z]+(?:[ -][a-z]+)*)\.", text)
    return [_BY_WORD[word] for word in words if word in _BY_WORD]
