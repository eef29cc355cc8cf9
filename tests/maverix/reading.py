"""Reads again what a MAVERIX task hands to a model, and checks it by the code of the sample.

Every picture says when it was taken, to the frame, and sound which second it is.
The truth is the sample's own plan (sample.py), not what the loader made of it.
"""

from __future__ import annotations

import base64
import functools
import io
import math
import re
import wave
from typing import Any

import av
import numpy as np
from PIL import Image

from lmms_eval_tasks.maverix.sample import SECONDS, VIDEOS, SampleSecond, plans
from lmms_eval_tasks.utils.media.second_code import TICKS
from tests.maverix import runs
from tests.seconds import number_of_frame, number_of_sound, tick_of_frame

RAMP = 0.01  # seconds at both ends of a tone that are not read: it fades in and out there
# Seconds: AAC ends with a whole block of 1024 samples. What is beyond the window must be silent.
BLOCK = 1024.5 / 44_100
QUIET = 0.01  # root mean square; the sample's tones have 0.25


def docs(kind: str, mode: str, length: str) -> list[dict[str, Any]]:
    """The docs of a task, as the host gets them."""
    end = {"choice": "", "open": "_oe", "circular": "_circular"}[kind]
    return runs.docs(f"maverix_{'long_' if length == 'long' else ''}{mode}{end}")


def source(doc: dict[str, Any]) -> tuple[int, float, float]:
    """Number of the video and the window that the sample's own plan gives the doc's question."""
    video = int(doc["video"].removeprefix("lights-"))
    if doc["length"] == "long":
        return video, 0.0, float(SECONDS[video - 1])
    return video, *PLANNED[doc["question_id"]]


def planned() -> dict[str, tuple[float, float]]:
    """Windows by question."""
    found = {}
    for number, plan in enumerate(plans(), 1):
        start, end = plan.segment or (0, SECONDS[plan.video - 1])
        name = f"{VIDEOS[plan.video - 1]}-q{number:02}"
        found[name] = (float(start), float(end))
    return found


PLANNED = planned()
MOMENTS = [SampleSecond(video, s) for video, length in enumerate(SECONDS, 1) for s in range(length)]
_BY_WORD = {moment.word: moment for moment in MOMENTS}


@functools.lru_cache(maxsize=256)
def streams(path: str) -> tuple[str, ...]:
    """The kinds of a file's streams, all of them."""
    with av.open(path) as file:
        return tuple(sorted(stream.type for stream in file.streams))


@functools.lru_cache(maxsize=256)
def seen(path: str) -> tuple[tuple[int | None, float | None], ...]:
    """Video and time, in seconds, that each frame of a file says it was taken at."""
    with av.open(path) as file:
        frames = [frame.to_ndarray(format="rgb24")[::2, ::2] for frame in file.decode(video=0)]
    return tuple(read_frame(frame) for frame in frames)


def read_frame(frame: Any) -> tuple[int | None, float | None]:
    """Video and time of a picture: exact to a frame, by second and bar."""
    moment, tick = moment_of(number_of_frame(frame)), tick_of_frame(frame)
    if moment is None or tick is None:
        return moment and moment.video, None
    return moment.video, round(moment.second + tick / TICKS, 3)


def moment_of(number: int | None) -> SampleSecond | None:
    """The second that a number of the code stands for."""
    return None if number is None else MOMENTS[number]


def moments_of_text(text: str) -> list[SampleSecond]:
    """The seconds whose subtitles stand in a text, in its order, however often."""
    words = re.findall(r"\bWord ([a-z]+(?:[ -][a-z]+)*)\.", text)
    return [_BY_WORD[word] for word in words if word in _BY_WORD]


@functools.lru_cache(maxsize=256)
def heard(path: str) -> tuple[Any, int]:
    """Samples in [-1, 1], (n,), at their place on the file's own clock, and their rate."""
    with av.open(path) as file:
        blocks = [(b.time, b.to_ndarray(), b.layout.nb_channels) for b in file.decode(audio=0)]
        rate = file.streams.audio[0].rate
    assert {channels for *_, channels in blocks} == {1}
    assert abs(blocks[0][0]) < 1 / rate
    samples = np.concatenate([block.reshape(-1) for _, block, _ in blocks])
    scale = np.iinfo(samples.dtype).max if np.issubdtype(samples.dtype, np.integer) else 1
    return samples / scale, rate


@functools.lru_cache(maxsize=256)
def check_picture(path: str, video: int, start: float, end: float) -> None:
    """Every frame of [start, end) of this video, in order, and no other.

    Raises:
        AssertionError: one is missing, or comes from elsewhere.
    """
    first, last = math.ceil(start * TICKS - 1e-6), math.ceil(end * TICKS - 1e-6)
    assert seen(path) == tuple((video, frame / TICKS) for frame in range(first, last))


def check_sound(samples: Any, rate: int, video: int, start: float, end: float) -> None:
    """The tone of every second in [start, end), as long as the window, and silence behind it.

    How exactly sound is cut: tests/media/test_cut.py.

    Raises:
        AssertionError: a tone is missing, or comes from elsewhere.
    """
    assert -BLOCK < len(samples) / rate - (end - start) < BLOCK
    beyond = samples[round((end - start) * rate) :]
    assert not len(beyond) or np.sqrt(np.mean(beyond**2)) < QUIET
    for second in range(math.floor(start), math.ceil(end)):
        begin, stop = max(second + RAMP, start), min(second + 1 - RAMP, end)
        if stop - begin >= 0.1:
            part = samples[round((begin - start) * rate) : round((stop - start) * rate)]
            assert moment_of(number_of_sound(part, rate)) == SampleSecond(video, second)


@functools.lru_cache(maxsize=256)
def check_wav(path: str, video: int, start: float, end: float) -> None:
    """16 kHz, mono, 16 bits, nothing else in the file, and the tones of the window.

    Raises:
        AssertionError: something differs.
    """
    assert streams(path) == ("audio",)
    with wave.open(path) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16_000, 1, 2)
        excess = file.getnframes() / 16_000 - (end - start)
    # A cut ends to the sample; a whole video's sound with its own last block.
    assert abs(excess) < 1e-6 or (end == SECONDS[video - 1] and 0 < excess < BLOCK)
    check_sound(*heard(path), video, start, end)


def check_frames(
    parts: list[dict[str, Any]], count: int, video: int, start: float, end: float
) -> None:
    """The frames in a request to a server: so many, evenly spread over the window, in their places.

    Raises:
        AssertionError: a frame is missing or comes from elsewhere.
    """
    first, last = math.ceil(start * TICKS - 1e-6), math.ceil(end * TICKS - 1e-6) - 1
    for part, place in zip(parts, np.linspace(first, last, count), strict=True):
        kind, data = part["image_url"]["url"].split(",", 1)
        assert kind == "data:image/png;base64"
        frame = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"))
        # Some readers round a place, others cut it off.
        whole = {math.floor(place), round(place)}
        assert read_frame(frame) in [(video, one / TICKS) for one in whole]
