"""Draws and sounds MAVERIX's packaged videos second by second, from their code (sample_code.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lmms_eval_tasks.maverix.sample_code import BAR, PALETTE, SECONDS, TICKS, Moment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WIDTH, HEIGHT = 320, 240
FPS = TICKS
RATE = 44_100  # samples a second
LEVELS = (0.5, 0.2)  # peak of the left and of the right channel, full scale is 1
RAMP = 0.005  # seconds at both ends of a tone, so that it does not click


def frames(video: int) -> Iterator[NDArray[np.uint8]]:
    """Every frame of a video, (HEIGHT, WIDTH, 3): two halves in their colours, a bar below."""
    import numpy as np

    top = round(BAR * HEIGHT)
    for second in range(SECONDS[video - 1]):
        left, right = Moment(video, second).colours
        picture = np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8)
        picture[:top, : WIDTH // 2] = PALETTE[left]
        picture[:top, WIDTH // 2 :] = PALETTE[right]
        for tick in range(TICKS):
            frame = picture.copy()
            frame[top:, : (tick + 1) * WIDTH // TICKS] = 255
            yield frame


def sound(video: int) -> NDArray[np.float32]:
    """The tones of a video, (2, seconds * RATE), in [-1, 1]; the right channel is softer."""
    import numpy as np

    clock = np.arange(RATE) / RATE
    ramp = np.clip(np.minimum(clock, 1 - clock) / RAMP, 0, 1)
    tones = [
        np.sin(2 * np.pi * Moment(video, second).hertz * clock) * ramp
        for second in range(SECONDS[video - 1])
    ]
    return np.outer(LEVELS, np.concatenate(tones)).astype(np.float32)
