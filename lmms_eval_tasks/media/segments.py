"""Segments of a video with its sound: what each input mode needs of [start, end), made at once.

    >>> cut = segment("videos/5.mp4", 61.37, 64.81)
    >>> cut.video, cut.video_with_sound, cut.sound
    ('.../segment-61.37-64.81-3f....mp4', '.../...-3f....av.mp4', '.../...-3f....wav')

One decoding makes a muted mp4 (no audio stream), an mp4 with its sound, and a 16 kHz mono wav, and
keeps them as one entry of the cache: the second mode of an item finds what the first has made.
Files hold exactly the window; how they are made: cut.py.
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

# Raise when a made file can change for the same source and window.
_VERSION = 5


@dataclass(frozen=True)
class CutSegment:
    """A window of a video as files; in seconds of the source, and pixels.

    video: mp4 without an audio stream.
    video_with_sound, sound: mp4 with both, and the sound as a 16 kHz mono 16-bit wav (the same
        signal); None only if the source has no audio stream at all, or no sound was asked for.
    end: as asked for, or the end of the file: the later of its last frame's and its sound's, which
        video_checks.probe tells as `end`. A window may end beyond it by less than a frame or 20 ms.
        After the picture's end the last frame stays: both mp4 files last `duration`.
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
    """The files of a window of `source`, from the cache if they are there.

    Args:
        source: a video file.
        start: seconds after the first frame, read as the decimal number that Python shows (0.1 is
            a tenth); None is the beginning.
        end: seconds; not included; None is the end of the file. With neither, the whole file: its
            picture is copied where mp4 can hold it, so that only the sound is decoded.
        sound: False keeps the muted video alone, the same file; of a whole movie the others would
            be a second copy and an hour of wav for nothing.

    Raises:
        MediaError: the window is not inside the file or is none, the source cannot be read or holds
            no video, or the files cannot be written; one line, which names the source.
    """
    try:
        first, last = str(float(start or 0)), None if end is None else str(float(end))
        if not 0 <= Fraction(first) < (Fraction(last) if last else math.inf):
            raise ValueError("expected 0 <= start < end")
    except (TypeError, ValueError) as error:  # also one that is infinite, or no number
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
    """Samples of a 16 kHz mono wav file of 16 bits: float32, shape (n,), from -1 to 1.

    Raises:
        MediaError: it is not such a file; names it.
    """
    import numpy as np
    from scipy.io import wavfile

    try:
        rate, found = wavfile.read(path)
    except (OSError, EOFError, ValueError) as error:
        raise MediaError(f"{path}: cannot be read as a wav file ({error})") from error
    if (rate, found.ndim, found.dtype.name) != (RATE, 1, "int16"):
        form = f"found {rate} Hz, {found.dtype.name} of shape {found.shape}"
        raise MediaError(f"{path}: expected {RATE} Hz, one channel of 16 bits; {form}")
    made: NDArray[np.float32] = found.astype(np.float32) / np.float32(2**15)
    return made
