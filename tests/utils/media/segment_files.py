"""Clips whose every frame and every 20 ms of sound tell when they are, and readers of that code.

Second n has a colour and a tone of its own; each frame also carries its number in stripes.
"""

from __future__ import annotations

import functools
import math
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import av
import media_files as files
import numpy as np
import pytest

SIZE = (96, 64)
BITS = 12  # frame numbers up to 4095, in stripes over the lower half
STRIPE = SIZE[0] // BITS
# Apart by 110 or more in one component at least; second n has colour n modulo 12.
LEVELS = (20, 130, 240)
COLOURS = [(r, g, b) for r in LEVELS for g in LEVELS for b in LEVELS if r != b][:12]
WINDOW = 0.02  # seconds
START, END = 1.37, 4.81  # the usual segment
STEADY = [n / 25 for n in range(200)]
UNEVEN = [time + 0.013 * (n % 3) for n, time in enumerate(STEADY) if n % 7 != 3]


def tone(second: Any) -> Any:
    """Hz; a multiple of 50, so that a window of 20 ms holds whole waves."""
    return 500 + 200 * second


def picture(number: int, time: float) -> np.ndarray:
    """The frame with a number, shown at a time of the source."""
    rgb = np.empty((SIZE[1], SIZE[0], 3), np.uint8)
    rgb[:] = COLOURS[int(time) % len(COLOURS)]
    for bit in range(BITS):
        columns = slice(bit * STRIPE, (bit + 1) * STRIPE)
        rgb[SIZE[1] // 2 :, columns] = 235 if number >> bit & 1 else 20
    return rgb


def read_picture(rgb: np.ndarray) -> tuple[int, int]:
    """Second (modulo the number of colours) and number of a frame."""
    height = rgb.shape[0]
    colour = rgb[height // 8 : height * 3 // 8].reshape(-1, 3).mean(axis=0)
    distances = [np.abs(colour - known).max() for known in COLOURS]
    second = int(np.argmin(distances))
    assert distances[second] < 40, colour
    stripes = rgb[height * 5 // 8 : height * 7 // 8].mean(axis=(0, 2))
    bits = [
        stripes[(bit * STRIPE) + 2 : (bit + 1) * STRIPE - 2].mean() > 128 for bit in range(BITS)
    ]
    return second, sum(1 << bit for bit, is_set in enumerate(bits) if is_set)


def wave_of(rate: int, seconds: float, start: float = 0.0) -> np.ndarray:
    """One channel of tones in [-1, 1] from `start` on."""
    times = np.arange(math.ceil(start * rate), math.ceil((start + seconds) * rate)) / rate
    return 0.5 * np.sin(2 * np.pi * (tone(np.floor(times + 1e-9))) * times)


def seconds_heard(samples: np.ndarray, rate: int) -> list[int]:
    """The second that each window of 20 ms is from, by its pitch."""
    length = round(WINDOW * rate)
    heard = []
    for begin in range(0, len(samples) - length + 1, length):
        spectrum = np.abs(np.fft.rfft(samples[begin : begin + length]))
        pitch = np.argmax(spectrum) / WINDOW
        heard.append(round((pitch - tone(0)) / (tone(1) - tone(0))))
        assert np.abs(samples[begin : begin + length]).max() > 0.1, "silence"
    return heard


def coded(times: Sequence[float], number: int, *_: int) -> np.ndarray:
    return picture(number, times[number])


def write(
    path: Path,
    seconds: float = 8,
    *,
    times: Sequence[float] | None = None,
    gop: int = 250,
    audio: str | None = "aac",
    rate: int = 48_000,
    layout: str = "stereo",
    sound: tuple[float, float] | None = None,
    gains: Sequence[float] = (1, 1),
    **options: Any,
) -> Path:
    """A coded clip of 25 frames a second, or with frames at `times`.

    sound: from when to when there is sound; gains: of each channel.
    """
    times = times or [n / 25 for n in range(round(seconds * 25))]
    begins, ends = sound or (0.0, seconds)
    heard = np.outer(wave_of(rate, ends - begins, begins), gains)
    track = files.Sound(heard, audio, rate, layout, begins) if audio else None
    if options.get("codec", "libx264") == "libx264":
        options.setdefault("options", {"crf": "16"})
    shown = functools.partial(coded, times)
    return files.write_video(
        path, size=SIZE, times=times, gop=gop, sound=track, rgb=shown, **options
    )


def damage(path: Path, kind: str, start: float, end: float) -> None:
    """Overwrite the packets of [start, end) s of a file's picture or sound; others stay whole."""
    noise = np.random.default_rng(0)
    with av.open(str(path)) as file:
        packets = [packet for packet in file.demux(**{kind: 0}) if packet.size]
    data = bytearray(path.read_bytes())
    for packet in packets:
        if start <= packet.pts * packet.time_base < end:
            kept = 6 if kind == "video" else 0  # a unit's length and type: it is found, and bad
            junk = noise.integers(0, 256, packet.size - kept, np.uint8)
            data[packet.pos + kept : packet.pos + packet.size] = junk.tobytes()
    path.write_bytes(data)


def read_wav(path: str) -> np.ndarray:
    """Samples in [-1, 1] of a 16 kHz mono 16-bit PCM file, which it must be."""
    with wave.open(path) as file:
        parameters = file.getparams()
        assert parameters[:3] == (1, 2, 16_000)
        assert parameters.comptype == "NONE"
        return np.frombuffer(file.readframes(file.getnframes()), "<i2") / 2**15


def read_track(path: str) -> tuple[np.ndarray, float, int]:
    """One channel of an mp4's sound as PyAV decodes it, when it starts in seconds, and its rate."""
    with av.open(path) as file:
        frames = list(file.decode(audio=0))
    samples = np.concatenate([frame.to_ndarray()[0] for frame in frames])
    return samples, frames[0].time, frames[0].sample_rate


def lag(samples: np.ndarray, reference: np.ndarray) -> int:
    """By how many samples the first is later than the second, by cross-correlation."""
    size = len(samples) + len(reference)
    product = np.fft.rfft(samples, size) * np.conj(np.fft.rfft(reference, size))
    shift = int(np.argmax(np.fft.irfft(product, size)))
    return shift if shift < size / 2 else shift - size


def streams(path: str) -> list[str]:
    """Types of all streams of a file."""
    with av.open(path) as file:
        return [stream.type for stream in file.streams]


def frames_and_times(path: str) -> tuple[list[tuple[int, int]], list[float]]:
    """Code and time of each frame as PyAV shows it."""
    pictures, times = files.pyav_frames(path)
    return [read_picture(rgb) for rgb in pictures], times


def check_picture(
    path: str | Path,
    times: Sequence[float],
    start: float = START,
    end: float = END,
    tolerance: float = 1e-4,
) -> None:
    """The frames of `times` in [start, end) and no other, each at its time and of its second.

    A single one is there twice, the second time halfway through.
    """
    wanted = [n for n, time in enumerate(times) if start <= round(time, 6) < end]
    shown_at = [times[n] - start for n in wanted]
    if len(wanted) == 1:
        wanted, shown_at = wanted * 2, [*shown_at, (end - start) / 2]
    read, shown = frames_and_times(path)
    seconds = [int(times[n] + 1e-6) % len(COLOURS) for n in wanted]
    assert read == list(zip(seconds, wanted, strict=True))
    assert shown == pytest.approx(shown_at, abs=tolerance)
    assert len(files.decord_frames(path)) == len(wanted)
    assert [read_picture(rgb) for rgb in files.decord_frames(path)] == read


def check_sound(samples: np.ndarray, rate: int, start: float = START, end: float = END) -> None:
    """Each 20 ms is of the second that it should be; either of two where the second changes."""
    assert len(samples) / rate == pytest.approx(end - start, abs=WINDOW)
    heard = seconds_heard(samples[: math.ceil((end - start) * rate)], rate)
    assert len(heard) >= int((end - start) / WINDOW) - 1
    for number, second in enumerate(heard):
        time = start + number * WINDOW
        assert second in {int(time + 1e-6), int(time + WINDOW - 1e-6)}, time


def check_all(
    cut: Any,
    times: Sequence[float],
    start: float = START,
    end: float = END,
    tolerance: float = 1e-4,
) -> None:
    """Every file of a segment holds its window and nothing else; track and wav agree."""
    for path in (cut.video, cut.video_with_sound):
        check_picture(path, times, start, end, tolerance)
    assert streams(cut.video) == ["video"]
    assert sorted(streams(cut.video_with_sound)) == ["audio", "video"]
    wav = read_wav(cut.sound)
    check_sound(wav, 16_000, start, end)
    track, begins, rate = read_track(cut.video_with_sound)
    assert abs(begins) <= 1e-3
    check_sound(track, rate, start, end)
    assert abs(lag(track[:: rate // 16_000], wav)) <= 16  # a millisecond
