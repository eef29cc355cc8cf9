"""Segments of a video with sound: the files that all input modes need of [start, end).

    >>> cut = segment("videos/5.mp4", 61.37, 64.81)
    >>> cut.video, cut.video_with_sound, cut.sound
    ('.../segment-61.37-64.81-3f....mp4', '.../...-3f....av.mp4', '.../...-3f....wav')

One decoding makes a muted mp4 (no audio stream), an mp4 with sound, and a 16 kHz mono wav. They are
one entry of the cache, so that the second mode of an item finds the first mode's files. Files hold
exactly the window (see cut.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.media import cache
from lmms_eval_tasks.utils.media.sounds import RATE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Increase this if a file for the same source and window can change.
_VERSION = 5


@dataclass(frozen=True)
class CutSegment:
    """A window of a video as files; times in seconds of the source, sizes in pixels.

    video: mp4 without an audio stream.
    video_with_sound, sound: mp4 with both, and the sound as a 16 kHz mono 16-bit wav (the same
        signal); None only if the source has no audio stream at all, or sound was excluded.
    end: the requested end, or the end of the file (`end` of video_checks.probe: the later end of
        picture and sound). A window may end beyond the file by less than a frame or 20 ms. After
        the picture's end, the last frame stays: both mp4 files last `duration`.
    width, height: upright.
    """

    video: str
    video_with_sound: str | None
    sound: str | None
    start: float
    end: float
    duration: float
    width: int
    height: int
    n_frames: int


def segment(
    source: str | Path, start: float | None = None, end: float | None = None, *, sound: bool = True
) -> CutSegment:
    """Return the files of a window of `source`, from the cache if they exist.

    Args:
        source: a video file.
        start: seconds after the first frame, read as the decimal number that Python shows (0.1 is a
            tenth); None is the beginning.
        end: seconds, exclusive; None is the end of the file. If both are None, the picture of the
            whole file is copied if mp4 can hold it, so that only the sound is decoded.
        sound: False makes the muted video alone, with the same content. For a whole movie, the
            other files would be a second copy and an hour of wav that nobody needs.

    Raises:
        MediaError: the window is invalid or not inside the file, the source cannot be read or has
            no video, or the files cannot be written. The message is one line that names the source.
    """
    try:
        first, last = str(float(start or 0)), None if end is None else str(float(end))
        if not 0 <= Fraction(first) < (Fraction(last) if last else math.inf):
            raise ValueError("expected 0 <= start < end")
    # Also for an infinite value or a value that is no number.
    except (TypeError, ValueError) as error:
        raise MediaError(f"{source}: no segment from {start} s to {end} s: {error}") from error
    name = f"{'segment' if sound else 'muted'}-{first}-{last or 'end'}"
    work = ("lmms_eval_tasks.utils.media.cut", "write_window")
    entry = cache.cached_files(source, name, _VERSION, work, start=first, end=last, sound=sound)
    return CutSegment(
        video=entry.paths[".mp4"],
        video_with_sound=entry.paths.get(".av.mp4"),
        sound=entry.paths.get(".wav"),
        **entry.facts,
    )


def samples(path: str | Path) -> NDArray[np.float32]:
    """Return the samples of a 16 kHz mono 16-bit wav file: float32, shape (n,), in [-1, 1].

    Raises:
        MediaError: the file has another form; the message names it.
    """
    import numpy as np
    from scipy.io import wavfile

    try:
        rate, integers = wavfile.read(path)
    except (OSError, EOFError, ValueError) as error:
        raise MediaError(f"{path}: cannot be read as a wav file ({error})") from error
    if (rate, integers.ndim, integers.dtype.name) != (RATE, 1, "int16"):
        form = f"found {rate} Hz, {integers.dtype.name} of shape {integers.shape}"
        raise MediaError(f"{path}: expected {RATE} Hz, one channel of 16 bits; {form}")
    floats: NDArray[np.float32] = integers.astype(np.float32) / np.float32(2**15)
    return floats
