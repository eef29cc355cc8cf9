"""Small video files for the tests of media, written with PyAV: good ones, odd ones, broken ones.

Coded ones tell when they are: each frame its number and each second of sound its own
(second_code.py), ten frames a second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from scipy.signal import correlate

from lmms_eval_tasks.media import segments
from lmms_eval_tasks.utils.media import second_code
from tests import seconds as code

# Options of `write_video`, by the name of the file that is made.
SOURCES: dict[str, dict[str, Any]] = {
    "b-frames.mp4": {},
    "one key frame.mp4": {"gop": 1000, "b_frames": 4},
    "key frames only.mp4": {"gop": 1, "b_frames": 0},
    "bt709.mp4": {"matrix": 1},
    "full range.mp4": {"full_range": True, "pix_fmt": "yuvj420p"},
    "vp9 odd size.mkv": {"size": (97, 65), "codec": "libvpx-vp9", "options": {"crf": "20"}},
    "odd size 444.mp4": {"size": (97, 65), "pix_fmt": "yuv444p"},
    "422.mp4": {"pix_fmt": "yuv422p"},
    "10 bits.mp4": {"pix_fmt": "yuv420p10le"},
    "mpeg4.avi": {"codec": "mpeg4", "b_frames": 0},
    "vp8.webm": {"codec": "libvpx", "options": {"auto-alt-ref": "1", "crf": "10"}},
    "open gop.ts": {"options": {"x264-params": "open-gop=1"}},
    "open gop.mp4": {"options": {"x264-params": "open-gop=1"}},
    "rgb.mov": {"codec": "png", "pix_fmt": "rgb24"},
    "gray.mkv": {"codec": "ffv1", "pix_fmt": "gray"},
    "uneven.mp4": {"times": [n / 25 + (n % 7) ** 2 / 2000 + n // 9 for n in range(90)]},
}
TICKS = 12_800  # a second, in the time base of the files made here


def picture(number: int, width: int, height: int) -> np.ndarray:
    """A textured RGB picture that differs from its neighbours."""
    rows, columns = np.mgrid[0:height, 0:width]
    red = (columns * 3 + number * 5) % 256
    green = (rows * 4 + number * 3) % 256
    blue = ((rows + columns) * 2 + number * 7) % 256
    return np.stack([red, green, blue], axis=2).astype(np.uint8)


@dataclass(frozen=True)
class Sound:
    """A track: samples in [-1, 1] of shape (n, channels), heard from `start` seconds on."""

    samples: np.ndarray
    codec: str = "aac"
    rate: int = 16_000
    layout: str = "mono"
    start: float = 0.0


def hum(seconds: float) -> Sound:
    """One tone."""
    return Sound(np.sin(np.arange(int(seconds * 16_000)) / 10)[:, None])


def write_video(path: Path, *args: Any, codec: str = "libx264", **kwargs: Any) -> Path:
    """A file of `n_frames` pictures shown from `times` (default 25 a second)."""
    if codec.startswith("libvpx"):
        # After all else that a whole test run loads, opening libvpx in this process was seen to
        # fail (EINVAL); alone it never did. A fresh process is what media.py itself uses.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
            return fresh.submit(_write_video, path, *args, codec=codec, **kwargs).result()
    return _write_video(path, *args, codec=codec, **kwargs)


def _write_video(
    path: Path,
    n_frames: int = 90,
    size: tuple[int, int] = (96, 64),
    *,
    times: Sequence[float] | None = None,
    begin: float = 0.0,
    stamps: Sequence[float] | None = None,
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    gop: int = 12,
    b_frames: int = 2,
    audio: bool = False,
    sound: Sound | None = None,
    fps: int = 25,
    matrix: int = 2,
    full_range: bool = False,
    options: dict[str, str] | None = None,
    mux_options: dict[str, str] | None = None,
    rgb: Any = picture,
    ticks: int = TICKS,
) -> Path:
    """begin: seconds added to all time stamps; stamps: other ones of packets, without B-frames."""
    times = times or [n / 25 for n in range(n_frames)]
    base = Fraction(1, ticks)
    with av.open(str(path), "w", options=mux_options or {}) as file:
        stream: Any = file.add_stream(codec, rate=fps)
        stream.width, stream.height = size
        stream.pix_fmt = pix_fmt
        stream.time_base = stream.codec_context.time_base = base
        context = stream.codec_context
        context.gop_size, context.max_b_frames = gop, b_frames
        context.color_range = 2 if full_range else 1
        context.colorspace = context.color_primaries = context.color_trc = matrix
        stream.options = options or {}
        sound = hum(times[-1]) if audio else sound
        track = sound and file.add_stream(sound.codec, rate=sound.rate, layout=sound.layout)
        packets = []
        for number, time in enumerate(times):
            frame = av.VideoFrame.from_ndarray(rgb(number, *size), format="rgb24")
            frame = frame.reformat(format=pix_fmt)
            frame.pts, frame.time_base = round((time + begin) * ticks), base
            packets += stream.encode(frame)
        packets += stream.encode(None)
        for packet, stamp in zip(packets, stamps or (), strict=stamps is not None):
            packet.pts = packet.dts = round(stamp * ticks)
        packets += _encoded(track, sound, begin) if sound else []
        for packet in sorted(packets, key=lambda packet: packet.dts * packet.time_base):
            file.mux(packet)
    return path


def _encoded(track: Any, sound: Sound, begin: float) -> list[Any]:
    packets, step = [], sound.rate // 10
    for start in range(0, len(sound.samples), step):
        part = sound.samples[start : start + step].astype(np.float32).reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(part, format="flt", layout=sound.layout)
        frame.sample_rate, frame.time_base = sound.rate, Fraction(1, sound.rate)
        frame.pts = round((sound.start + begin) * sound.rate) + start
        packets += track.encode(frame)
    return packets + track.encode(None)


def write_sound_only(path: Path) -> None:
    with av.open(str(path), "w", format="mp4") as file:
        for packet in _encoded(file.add_stream("aac", rate=16_000, layout="mono"), hum(1), 0):
            file.mux(packet)


def rotate(path: Path, degrees: int) -> None:
    """Ask players to turn the picture clockwise, as phones do."""
    cos, sin = {0: (1, 0), 90: (0, 1), 180: (-1, 0), 270: (0, -1)}[degrees]
    show_by(path, (cos, sin, -sin, cos))


def show_by(path: Path, matrix: Sequence[int]) -> None:
    """Ask players to show a point (x, y) at (a x + c y, b x + d y): the matrix of the mp4's track.

    matrix: a, b, c, d.
    """
    one, whole = 0x10000, 0x40000000
    a, b, c, d = (value * one for value in matrix)
    data = bytearray(path.read_bytes())
    start = data.index(b"tkhd") + 4 + 40  # version 0: flags, times, id, layer, volume
    values = (a, b, 0, c, d, 0, 0, 0, whole)
    data[start : start + 36] = b"".join(value.to_bytes(4, "big", signed=True) for value in values)
    path.write_bytes(bytes(data))


def decord_frames(path: str | Path, indices: list[int] | None = None) -> np.ndarray:
    """RGB as the host's loaders see it: (n, height, width, 3)."""
    import decord

    reader = decord.VideoReader(str(path))
    frames: np.ndarray = reader.get_batch(indices or list(range(len(reader)))).asnumpy()
    return frames


def pyav_frames(path: str | Path) -> tuple[np.ndarray, list[float]]:
    """RGB and times as PyAV gives them, in the order of presentation."""
    with av.open(str(path)) as file:
        frames = list(file.decode(video=0))
        return np.stack([f.to_ndarray(format="rgb24") for f in frames]), [f.time for f in frames]


def psnr(a: np.ndarray, b: np.ndarray) -> float:
    """Mean over frames, in dB; 100 stands for equal frames."""
    error = ((a.astype(float) - b.astype(float)) ** 2).mean(axis=(1, 2, 3))
    return float(np.mean(10 * np.log10(255**2 / np.maximum(error, 255**2 / 1e10))))


def made_files(folder: Path) -> list[str]:
    """What a run left in the cache folder, locks aside, hidden files included."""
    return sorted(file.name for file in folder.iterdir() if file.is_file())


# --- coded files --------------------------------------------------------------------------------

SIZE = (96, 64)
START, END = 1.37, 4.81  # the usual segment
STEADY = [n / 10 for n in range(80)]
UNEVEN = [time + 0.033 * (n % 3) for n, time in enumerate(STEADY) if n % 7 != 3]


def coded_picture(number: int, width: int, height: int) -> np.ndarray:
    rgb = np.zeros((height, width, 3), np.uint8)
    left, right = second_code.colours(number // 10)
    top = round(second_code.BAR * height)
    rgb[:top, : width // 2] = second_code.PALETTE[left]
    rgb[:top, width // 2 :] = second_code.PALETTE[right]
    rgb[top:, : (number % 10 + 1) * width // 10] = 255
    return rgb


def number_of(rgb: np.ndarray) -> int | None:
    """Which frame of a coded file a picture is; None where it cannot be read."""
    second, tick = code.number_of_frame(rgb), code.tick_of_frame(rgb)
    return None if second is None or tick is None else 10 * second + tick


def tones(rate: int, seconds: float, start: float = 0.0) -> np.ndarray:
    """One channel in [-1, 1] from `start` on, a tone for each second."""
    times = np.arange(math.ceil(start * rate), math.ceil((start + seconds) * rate)) / rate
    hertz = np.array([second_code.hertz(n) for n in range(int(start + seconds) + 2)])
    return 0.5 * np.sin(2 * np.pi * hertz[np.floor(times + 1e-9).astype(int)] * times)


def write_coded(
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
    """sound: from when to when there is some; gains: of each channel."""
    begins, ends = sound or (0.0, seconds)
    heard = np.outer(tones(rate, ends - begins, begins), gains)
    track = Sound(heard, audio, rate, layout, begins) if audio else None
    if options.get("codec", "libx264") == "libx264":
        options.setdefault("options", {"crf": "16"})
    times = times or [n / 10 for n in range(round(seconds * 10))]
    how: dict[str, Any] = {"size": SIZE, "fps": 10, "rgb": coded_picture, **options}
    return write_video(path, times=times, gop=gop, sound=track, **how)


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


def streams(path: str) -> list[str]:
    """Types of all streams of a file."""
    with av.open(path) as file:
        return [stream.type for stream in file.streams]


def track_of(path: str) -> tuple[np.ndarray, float, int]:
    """One channel of an mp4's sound as PyAV decodes it, when it starts in seconds, and its rate."""
    with av.open(path) as file:
        frames = list(file.decode(audio=0))
    samples = np.concatenate([frame.to_ndarray()[0] for frame in frames])
    return samples, frames[0].time, frames[0].sample_rate


def numbers_and_times(path: str) -> tuple[list[int | None], list[float]]:
    """Of each frame as PyAV shows it."""
    pictures, times = pyav_frames(path)
    return [number_of(rgb) for rgb in pictures], times


def check_picture(
    path: str,
    times: Sequence[float],
    start: float = START,
    end: float = END,
    tolerance: float = 1e-4,
) -> None:
    """The frames of `times` in [start, end) and no other, each at its time, for both readers."""
    wanted = [n for n, time in enumerate(times) if start <= round(time, 6) < end]
    read, shown = numbers_and_times(path)
    assert read == wanted
    assert shown == pytest.approx([times[n] - start for n in wanted], abs=tolerance)
    assert [number_of(rgb) for rgb in decord_frames(path)] == wanted


def check_sound(samples: np.ndarray, rate: int, start: float = START, end: float = END) -> None:
    """Each tenth of a second is of the second that it should be, if it is of one alone."""
    assert len(samples) / rate == pytest.approx(end - start, abs=0.02)
    for begin in range(0, len(samples) - rate // 10 + 1, rate // 10):
        time = start + begin / rate
        if int(time) == int(time + 0.1) and time + 0.1 <= end:
            heard = code.number_of_sound(samples[begin : begin + rate // 10], rate)
            assert heard == int(time), time


def check_all(
    cut: segments.CutSegment,
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
    wav = segments.samples(cut.sound)
    check_sound(wav, 16_000, start, end)
    track, begins, rate = track_of(cut.video_with_sound)
    assert abs(begins) <= 1e-3
    check_sound(track, rate, start, end)
    lag = int(correlate(track[:: rate // 16_000], wav).argmax()) - (len(wav) - 1)
    assert abs(lag) <= 16  # a millisecond
