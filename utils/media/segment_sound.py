"""The sound of a segment: a 16 kHz wav file (segment_track.py makes an mp4's track of it).

- Downmix: the mean of all channels, whatever their number and layout. It is what librosa, with
  which Qwen's reader and others load sound, makes of the source; FFmpeg's matrix leaves channels
  out (LFE), weighs them by layout, and refuses eight channels without a layout.
- The cut is made on the source's samples, before resampling: sample k belongs to [start, end) if
  k / rate does. So nothing from outside reaches the resampler's filter. Containers with coarse
  clocks (Matroska: 1 ms) place samples no finer than that.
- Where the source has a gap before or between its sounds, players are silent and so is the file, or
  what follows would be heard too early. Sound that ends early ends early here: nothing is added.
  A window without any sound, in a file that has some elsewhere, is silent for its whole length.
"""

from __future__ import annotations

import math
import wave
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import segment_read
from lmms_eval_tasks.utils.media.segment_head import Clock
from lmms_eval_tasks.utils.media.sound_files import RATE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MANY = 8  # channels: FFmpeg keeps so many in a frame itself
_JITTER = 0.01  # seconds that time stamps may be off before a gap or an overlap is believed
# Full scale and middle of a sample by format; floating point is in [-1, 1] already.
_SCALES = {"u8": (2**7, 2**7), "s16": (2**15, 0), "s32": (2**31, 0), "s64": (2**63, 0)}


@dataclass(frozen=True)
class Sound:
    """What was written.

    samples: of the wav; 0 if the source has no sound in the window.
    end: when the source's sound ends, in seconds; None if it goes on beyond the window.
    """

    samples: int
    end: Fraction | None


def write_wav(path: str, clock: Clock, start: Fraction, end: Fraction | None, out: str) -> Sound:
    """Write the sound of [start, end) of a source to `out`: 16 kHz, mono, 16-bit PCM.

    Args:
        path: a source with a sound stream.
        clock: its clock.
        start: seconds on the clock.
        end: the same; None is the end of the sound.
        out: file to write; it is empty of samples if the source is silent throughout.

    Raises:
        MediaError: the sound cannot be decoded, or its sample rate changes on the way.
    """
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        window = _Window(start, end)
        resampler = None
        for chunk in window.chunks(segment_read.frames(path, clock, start, "audio")):
            resampler = resampler or Resampler(window.rate, RATE, "s16")
            for block in resampler.feed(chunk):
                file.writeframesraw(block.astype("<i2").tobytes())
        for block in resampler.feed(None) if resampler else ():
            file.writeframesraw(block.astype("<i2").tobytes())
        samples = file.tell()
    return Sound(samples, window.ended)


def write_silence(out: str, length: Fraction) -> None:
    """Write `length` seconds of silence, for a window in which nothing is heard.

    A model that is given the sound of such a window hears silence: the window is as good as others.
    """
    samples = math.ceil(length * RATE)
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        for begin in range(0, samples, RATE):
            file.writeframesraw(bytes(2 * min(RATE, samples - begin)))


def end(path: str, clock: Clock, after: Fraction) -> Fraction:
    """When a source's sound ends, or `after` if it ends before; decodes only what is near or later.

    Sound that cannot be decoded there counts as ended: who reads that part is told so.
    """
    found = after
    with suppress(MediaError):
        for time, frame in segment_read.late_sound(path, clock, after):
            found = max(found, time + Fraction(frame.samples, frame.sample_rate))
    return found


class _Window:
    """Cuts a stream of decoded frames to [start, end), mixed to one channel.

    After `chunks` is used up: the source's rate, and `ended`, when the sound ended if it did so
    before `end`.
    """

    def __init__(self, start: Fraction, end: Fraction | None) -> None:
        self.start, self.end = start, end
        self.rate = 0
        self.ended: Fraction | None = None
        self._packer: Any = None

    def chunks(self, found: Iterator[tuple[Fraction, Any]]) -> Iterator[NDArray[np.float32]]:
        """Consecutive samples at the source's rate, in [-1, 1]."""
        position = after = 0  # samples on the clock: next one to hand on, end of the last frame
        first = True
        for time, frame in found:
            if first:
                self.rate = frame.sample_rate
                position = math.ceil(self.start * self.rate)
                stop = None if self.end is None else math.ceil(self.end * self.rate)
            elif frame.sample_rate != self.rate:
                raise MediaError(
                    f"its sound changes from {self.rate} to {frame.sample_rate} Hz at "
                    f"{float(time):.3f} s"
                )
            stamp = round(time * self.rate)
            # Time stamps are rounded, samples are not: only a real step starts a new count.
            if first or abs(stamp - after) > _JITTER * self.rate:
                after = stamp
            first = False
            begin, after = after, after + frame.samples
            if stop is not None and begin >= stop:
                return
            if after <= position:
                continue
            while begin > position:
                length = min(begin - position, self.rate)
                position += length
                yield _zeros(length)
            until = after if stop is None else min(after, stop)
            yield mix(self._readable(frame))[position - begin : until - begin]
            position = until
            if position == stop:
                return
        self.ended = Fraction(after, self.rate or 1)

    def _readable(self, frame: Any) -> Any:
        """The frame with interleaved channels if PyAV cannot read it with separate ones."""
        import av

        # PyAV 15 counts the planes of a frame wrongly from eight on: it reads beyond the list.
        if not frame.format.is_planar or frame.layout.nb_channels < _MANY:
            return frame
        if self._packer is None:
            packed = frame.format.name.rstrip("p")
            self._packer = av.AudioResampler(packed, frame.layout, frame.sample_rate)
        (packed,) = self._packer.resample(frame)
        return packed


def mix(frame: Any) -> NDArray[np.float32]:
    """The mean of an av.AudioFrame's channels, of shape (samples,), in [-1, 1].

    Raises:
        MediaError: a sample format that is not known.
    """
    import numpy as np

    data, name = frame.to_ndarray(), frame.format.name
    if not frame.format.is_planar:
        data = data.reshape(-1, frame.layout.nb_channels).T
    if name.rstrip("p") in ("flt", "dbl"):
        return np.asarray(data.mean(axis=0, dtype=np.float64), np.float32)
    if name.rstrip("p") not in _SCALES:
        raise MediaError(f"has sound of the sample format {name}, which is not supported")
    scale, middle = _SCALES[name.rstrip("p")]
    return np.asarray((data.mean(axis=0, dtype=np.float64) - middle) / scale, np.float32)


def _zeros(length: int) -> NDArray[np.float32]:
    import numpy as np

    return np.zeros(length, np.float32)


class Resampler:
    """FFmpeg's resampler on one channel; output sample n is at n / new rate (no delay is left)."""

    def __init__(self, rate: int, new_rate: int, form: str) -> None:
        import av

        self._resampler = av.AudioResampler(form, "mono", new_rate)
        self._rate, self._fed = rate, 0

    def feed(self, chunk: NDArray[Any] | None) -> Iterator[NDArray[Any]]:
        """Resampled blocks; None gets the rest."""
        import av

        frame = None
        if chunk is not None:
            if not len(chunk):
                return
            form = "fltp" if chunk.dtype.kind == "f" else "s16"
            frame = av.AudioFrame.from_ndarray(chunk[None], format=form, layout="mono")
            frame.sample_rate, frame.pts = self._rate, self._fed
            frame.time_base = Fraction(1, self._rate)
            self._fed += len(chunk)
        for block in self._resampler.resample(frame):
            yield block.to_ndarray()[0]
