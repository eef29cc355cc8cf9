"""The sound of a window: 16 kHz mono wav files, and the sound track of an mp4 made from one.

A wav is the mean of all channels, as in librosa, which Qwen's reader and others use (FFmpeg's
matrix leaves channels out and weighs them by layout). It is cut on the source's samples, before
resampling: sample k belongs to [start, end) if k / rate does. In a gap before or between the
source's sounds, players are silent and so is the wav. Sound that ends early ends early here. A
window without sound, in a file that has some elsewhere, is silent for its whole length.
"""

from __future__ import annotations

import math
import wave
from collections.abc import Iterable
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import mp4

if TYPE_CHECKING:
    import numpy as np
    from av.audio.frame import AudioFrame
    from numpy.typing import NDArray

RATE = 16_000  # samples a second of every wav of this package, the only rate of Whisper
_WAV = (1, 2, RATE, 0, "NONE", "")
_JITTER = 0.01  # seconds that a sound's times may be off before they count as a gap or an overlap
_MANY = 8  # channels: PyAV 15 counts the planes of such a frame wrongly and reads beyond them
_TRACK_RATE, _TRACK_BITS = 48_000, 128_000  # Hz, and bits a second, of an mp4's sound
_PACKET = 1024  # samples of an AAC packet


def write_wav(
    out: str,
    sound_frames: Iterable[tuple[Fraction, AudioFrame]],
    start: Fraction,
    end: Fraction | None,
) -> tuple[int, Fraction | None]:
    """Write the sound of a window to `out`: 16 kHz, mono, 16-bit PCM.

    Args:
        out: the file.
        sound_frames: av.AudioFrames with their times in seconds, from one at or before `start` on.
        start, end: the window, in seconds; end None: the end of the sound.

    Returns:
        The number of samples, 0 if the source has no sound in the window; and the end of the
        source's sound in seconds, or the window's end if the sound goes on.

    Raises:
        MediaError: the sound cannot be decoded, or its sample rate changes.
    """
    import av
    import numpy as np

    resampler = av.AudioResampler("s16", "mono", RATE)
    rate = fed = 0
    position = after = 0  # next sample to pass on; end of the last frame
    stop = math.inf
    with wave.open(out, "wb") as file:
        file.setparams(_WAV)

        def put(samples: NDArray[np.float32] | None) -> None:
            nonlocal fed
            frame = None  # ends the resampler
            if samples is not None:
                frame = av.AudioFrame.from_ndarray(samples[None], format="fltp", layout="mono")
                frame.sample_rate, frame.pts, frame.time_base = rate, fed, Fraction(1, rate)
                fed += len(samples)
            for block in resampler.resample(frame):
                file.writeframesraw(block.to_ndarray()[0].astype("<i2").tobytes())

        for time, frame in sound_frames:
            stamp = round(time * frame.sample_rate)
            if not rate:
                rate, after = frame.sample_rate, stamp
                position = math.ceil(start * rate)
                stop = math.inf if end is None else math.ceil(end * rate)
            elif frame.sample_rate != rate:
                raise MediaError(
                    f"its sound changes from {rate} to {frame.sample_rate} Hz at "
                    f"{float(time):.3f} s"
                )
            # Time stamps are rounded, samples are not: only a real step begins a new count.
            begin = stamp if abs(stamp - after) > _JITTER * rate else after
            if begin >= stop or position >= stop:
                ended = end
                break
            after = begin + frame.samples
            while begin > position:
                length = min(begin - position, rate)
                put(np.zeros(length, np.float32))
                position += length
            if after > position:
                put(_mixed(frame)[position - begin : int(min(after, stop)) - begin])
                position = after
        else:
            ended = Fraction(after, rate or 1)
        if fed:
            put(None)
        return file.tell(), ended


def _mixed(frame: AudioFrame) -> NDArray[np.float32]:
    """Return the mean of an av.AudioFrame's channels, (samples,), in [-1, 1]."""
    import av
    import numpy as np

    if frame.format.is_planar and frame.layout.nb_channels >= _MANY:
        packed = frame.format.name.rstrip("p")
        (frame,) = av.AudioResampler(packed, frame.layout, frame.sample_rate).resample(frame)
    data = frame.to_ndarray()
    if not frame.format.is_planar:
        data = data.reshape(-1, frame.layout.nb_channels).T
    mean = data.mean(axis=0, dtype=np.float64)
    if data.dtype.kind in "iu":
        half = 2.0 ** (8 * data.dtype.itemsize - 1)
        mean = (mean - (half if data.dtype.kind == "u" else 0)) / half
    return np.asarray(mean, np.float32)


def write_silence(out: str, seconds: float) -> None:
    """Write a silent wav of a length in seconds, for a window without sound."""
    with wave.open(out, "wb") as file:
        file.setparams(_WAV)
        file.writeframes(bytes(2 * math.ceil(round(seconds * RATE, 3))))


def add_sound(muted: str, wav: str, out: str) -> None:
    """Write an mp4 file with the picture of `muted`, packet by packet, and `wav` as its sound.

    AAC at 48 kHz has packets of 21 ms, so that its delay (which the edit list removes) and the rest
    of its last packet are short for a reader that ignores them. The last packet is left out if less
    than half of it is sound: the track ends within 11 ms of the wav's end.
    """
    import av

    track_file = f"{out}.m4a"
    with av.open(wav) as sound, mp4.open_mp4(track_file) as file:
        total = (sound.streams.audio[0].duration or 0) * _TRACK_RATE // RATE
        track = file.add_stream("aac", rate=_TRACK_RATE, layout="mono")
        track.bit_rate = _TRACK_BITS
        for frame in chain(sound.decode(audio=0), [None]):
            for packet in track.encode(frame):
                begins = packet.pts or 0
                if begins <= 0 or total - begins > _PACKET // 2:
                    file.mux(packet)
    try:
        mp4.mux(out, muted, track_file)
    finally:
        Path(track_file).unlink()
