"""The packaged sample with other pictures: every frame of a video says which one it is.

A frame's colours tell its second and its bar the tenth of it (second_code.py), at any rate
of frames: number n shows second n // 10 and tick n % 10. All are squares, so that nothing is cut
off or padded where a processor wants one.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from lmms_eval_tasks.maverix import sample as maverix
from lmms_eval_tasks.sample import render
from lmms_eval_tasks.utils.media.second_code import AAC, BAR, PALETTE, TICKS, X264, colours
from tests.seconds import number_of_frame, tick_of_frame

SIDE = 240
# Of the first doc of each task that is run: the path, and which video of MAVERIX's sample it is,
# whose sound stays.
REDRAWN = {
    "maia/videos/1.mp4": None,
    "maverix/videos/lights-1.mp4": 1,
    "haven/videos/summe/video_1.mp4": None,
}


def root(sample_root: Path, folder: Path) -> Path:
    """A data root with the sample's files; the redrawn ones have as many frames, at that rate."""
    for name in ("maia", "maverix", "haven"):
        shutil.copytree(sample_root / name, folder / name)
    for name, number in REDRAWN.items():
        path = folder / name
        with av.open(str(path)) as container:
            (video,) = container.streams.video
            count, rate = sum(1 for _ in container.decode(video)), int(video.average_rate)
        sound = functools.partial(maverix.sound, number) if number else None
        shown = functools.partial(frames, count)
        render.Clip(shown, rate, sound, maverix.RATE, X264, AAC).write(path)
    return folder


def frames(count: int) -> Iterator[NDArray[np.uint8]]:
    """(SIDE, SIDE, 3) each."""
    top = round(BAR * SIDE)
    for number in range(count):
        second, tick = divmod(number, TICKS)
        left, right = colours(second)
        picture = np.zeros((SIDE, SIDE, 3), dtype=np.uint8)
        picture[:top, : SIDE // 2] = PALETTE[left]
        picture[:top, SIDE // 2 :] = PALETTE[right]
        picture[top:, : (tick + 1) * SIDE // TICKS] = 255
        yield picture


def number(picture: NDArray[Any]) -> int | None:
    """Which frame of its video a picture is; None where it cannot be read."""
    small = picture[:: max(1, len(picture) // 100), :: max(1, len(picture[0]) // 100)]
    second, tick = number_of_frame(small), tick_of_frame(small)
    return None if second is None or tick is None else TICKS * second + tick


def pictures(visual: Any) -> list[NDArray[Any]]:
    """Of what a task hands over: a picture itself, or all of a video by its path; none of sound."""
    if not isinstance(visual, str):
        return [np.asarray(visual.convert("RGB"))]
    if visual.endswith(".wav"):
        return []
    with av.open(visual) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
