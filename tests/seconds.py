"""Which second and tick of the packaged sample a picture or a sound is of (second_code.py)."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from lmms_eval_tasks.utils.media.second_code import (
    COUNT,
    TICKS,
    colours,
    colours_of,
    hertz,
    hertz_of,
    part,
)

HERTZ_LIMIT = 3.0  # how far from its tone a sound may be
BY_COLOURS = {colours(number): number for number in range(COUNT)}
BY_HERTZ = {hertz(number): number for number in range(COUNT)}


def number_of_frame(frame: NDArray[Any]) -> int | None:
    """The number whose colours a picture shows (height, width, 3); None for any other picture."""
    return BY_COLOURS.get(colours_of(frame))


def tick_of_frame(frame: NDArray[Any]) -> int | None:
    """Which frame of its second a picture is, 0 to TICKS - 1, by the bar; None without one."""
    lit = [
        bool(part(frame, (t + 0.3) / TICKS, (t + 0.7) / TICKS, 0.93, 0.98).mean() > 128)
        for t in range(TICKS)
    ]
    length = sum(lit)
    return length - 1 if length and all(lit[:length]) else None


def number_of_sound(samples: NDArray[Any], rate: int) -> int | None:
    """The number whose tone is played; None where `hertz_of` reads none."""
    found = hertz_of(samples, rate)
    if found is None:
        return None
    nearest = min(BY_HERTZ, key=lambda one: abs(one - found))
    return BY_HERTZ[nearest] if abs(nearest - found) < HERTZ_LIMIT else None
