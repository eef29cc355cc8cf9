"""What reaches a model in each of MAVERIX's modes: decoded again, and told by the sample's code.

Every picture says when it was taken, to the frame, and every 20 ms of sound which second it is.
"""

from __future__ import annotations

import base64
import functools
import io
import math
import re
import wave
from collections import Counter
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from lmms_eval_tasks import running
from lmms_eval_tasks.maverix import data, sample_code, utils
from lmms_eval_tasks.maverix.labels import LETTERS, MODES
from lmms_eval_tasks.maverix.sample_code import SECONDS, TICKS, Moment
from lmms_eval_tasks.models import sound as sound_table
from lmms_eval_tasks.utils import segments
from tests.conftest import HostRun, Launch, host
from tests.local_endpoint import LocalEndpoint, Recorded, last_user_text

WINDOW = 0.02  # seconds of sound that are read at once
RAMP = 0.01  # seconds at both ends of a tone that are not read: it fades in and out there
LENGTHS = ("localized", "long")
NO_SUBTITLES = "There are no subtitles for this video."
RIGHT = sample_code.LOWEST  # hertz; the lowest tone, half of its distance to a neighbour is allowed


@pytest.fixture(autouse=True)
def on_sample(sample_root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
    monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", "sample")


def docs(kind: str, mode: str, length: str) -> list[dict[str, Any]]:
    """The docs of a task, made of the data set by the function that its YAML names."""
    import datasets

    rows = datasets.load_from_disk(data.DATASET_PATH)["test"]
    name = f"{kind}_{'long_' if length == 'long' else ''}{mode}"
    found = list(getattr(data, name)(rows))
    assert {(doc["mode"], doc["length"]) for doc in found} == {(mode, length)}
    return found


def source(doc: dict[str, Any]) -> tuple[int, float, float]:
    """Number of the video and the window that the sample's own plan gives the doc's question."""
    video = int(doc["video"].removeprefix("lights-"))
    if doc["length"] == "long":
        return video, 0.0, float(SECONDS[video - 1])
    return video, *PLANNED[doc["question_id"]]


def planned() -> dict[str, tuple[float, float]]:
    """Windows by question, from the plan and not from what the loader made of it."""
    from lmms_eval_tasks.maverix.item import seconds
    from lmms_eval_tasks.maverix.sample_items import PLANS, VIDEOS

    found = {}
    for number, plan in enumerate(PLANS, 1):
        start, end = plan.segment or (0.0, float(SECONDS[plan.video - 1]))
        name = f"{VIDEOS[plan.video - 1]}-q{number:02}"
        found[name] = (float(seconds(start)), float(seconds(end)))
    return found


PLANNED = planned()


# --- reading what was handed over -------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def streams(path: str) -> tuple[str, ...]:
    """The kinds of a file's streams, all of them."""
    with av.open(path) as file:
        return tuple(sorted(stream.type for stream in file.streams))


@functools.lru_cache(maxsize=256)
def seen(path: str) -> tuple[tuple[int | None, float | None], ...]:
    """Video and time, in seconds, that each frame of a file says it was taken at."""
    with av.open(path) as file:
        frames = [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]
    return tuple(read_frame(frame) for frame in frames)


def read_frame(frame: Any) -> tuple[int | None, float | None]:
    moment = sample_code.moment_of_frame(frame)
    return moment and moment.video, sample_code.time_of_frame(frame)


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


def pitch(samples: Any, rate: int) -> float:
    """The strongest frequency of a short piece of sound, hertz; 0 for silence."""
    if np.sqrt(np.mean(samples**2)) < 0.01:
        return 0.0
    size = 16 * len(samples)  # padded: 20 ms alone would read in steps of 50 Hz
    power = np.abs(np.fft.rfft(samples * np.hanning(len(samples)), size))
    return float(power.argmax() * rate / size)


def check_picture(path: str, video: int, start: float, end: float) -> None:
    """Every frame of [start, end) of this video, in order, and no other.

    Raises:
        AssertionError: one is missing, or comes from elsewhere.
    """
    first, last = math.ceil(start * TICKS - 1e-6), math.ceil(end * TICKS - 1e-6)
    assert seen(path) == tuple((video, frame / TICKS) for frame in range(first, last))


def check_sound(samples: Any, rate: int, video: int, start: float, end: float) -> None:
    """The tone of every second in [start, end), in windows of 20 ms, as long as the window.

    Read twice: over 20 ms the tone of the second is told from its neighbours', over the whole of
    what is there of a second from every other one in the sample.

    Raises:
        AssertionError: a tone is missing, or comes from elsewhere.
    """
    assert abs(len(samples) / rate - (end - start)) < WINDOW
    pieces = [
        (second, max(second + RAMP, start), min(second + 1 - RAMP, end, start + len(samples) / rate))
        for second in range(math.floor(start), math.ceil(end))
    ]
    for second, begin, stop in pieces:
        moment = Moment(video, second)
        part = samples[round((begin - start) * rate) : round((stop - start) * rate)]
        step = round(WINDOW * rate)
        for place in range(0, len(part) - step + 1, step):
            found = pitch(part[place : place + step], rate)
            assert abs(found - moment.hertz) < 60, (moment, begin + place / rate, found)
        if stop - begin >= 0.1:
            assert sample_code.moment_of_sound(part, rate) == moment


def check_wav(path: str, video: int, start: float, end: float) -> None:
    """16 kHz, mono, 16 bits, nothing else in the file, and the tones of the window.

    Raises:
        AssertionError: something differs.
    """
    assert streams(path) == ("audio",)
    with wave.open(path) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16_000, 1, 2)
        assert file.getnframes() == round((end - start) * 16_000)
    check_sound(*heard(path), video, start, end)


# --- the media of each mode -------------------------------------------------------------------


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("mode", MODES)
class TestMedia:
    def test_chat(self, mode: str, length: str) -> None:
        kinds = {"a": ["audio"], "s": [], "v": ["video"], "vs": ["video"], "av": ["video", "audio"]}
        found = docs("choice", mode, length)
        assert len(found) == 20
        for doc in found:
            (message,) = utils.doc_to_messages(doc)
            assert message["role"] == "user"
            *media, text = message["content"]
            assert text == {"type": "text", "text": utils.doc_to_text(doc)}
            assert [item["type"] for item in media] == kinds[mode]
            for item in media:
                if item["type"] == "video":
                    assert streams(item["url"]) == ("video",)
                    check_picture(item["url"], *source(doc))
                else:
                    check_wav(item["url"], *source(doc))

    def test_simple(self, mode: str, length: str) -> None:
        for doc in docs("choice", mode, length):
            visuals = utils.doc_to_visual(doc)
            assert len(visuals) == (mode != "s")
            for path in visuals:
                if mode == "a":
                    check_wav(path, *source(doc))
                    continue
                assert Path(path).suffix == ".mp4"
                assert streams(path) == (("audio", "video") if mode == "av" else ("video",))
                check_picture(path, *source(doc))
                if mode == "av":
                    check_sound(*heard(path), *source(doc))

    def test_open_and_circular_docs_carry_the_same(self, mode: str, length: str) -> None:
        media = {d["id"]: utils.doc_to_visual(d) for d in docs("choice", mode, length)}
        for kind, times in (("open", 2), ("circular", 8)):
            found = docs(kind, mode, length)
            assert len(found) == times * len(media)
            for doc in found:
                assert utils.doc_to_visual(doc) == media[doc["question_id"]]


@pytest.mark.parametrize("length", LENGTHS)
def test_a_and_av_carry_the_same_sound_and_v_and_av_the_same_picture(length: str) -> None:
    made = zip(*(docs("choice", mode, length) for mode in ("a", "v", "av")), strict=True)
    for a, v, both in made:
        (sound, _), (video, _) = (utils.doc_to_messages(doc)[0]["content"] for doc in (a, v))
        assert utils.doc_to_messages(both)[0]["content"][:2] == [video, sound]
        assert utils.doc_to_visual(a) == [sound["url"]]
        assert utils.doc_to_visual(v) == [video["url"]]


def test_the_wav_is_the_mean_of_both_channels() -> None:
    """They are 0.5 and 0.2 of full scale: the left alone would be 0.5, their sum 0.7."""
    for doc in docs("choice", "a", "localized"):
        samples, rate = heard(utils.doc_to_visual(doc)[0])
        assert np.percentile(np.abs(samples), 99) == pytest.approx(0.35, abs=0.01)
        assert rate == 16_000


def test_samples_for_classes_that_take_no_path() -> None:
    doc, simple = docs("choice", "a", "localized")[0], running.Model("whisper", "simple")
    (path,) = utils.doc_to_visual(doc)
    with running.model(simple):
        (item,) = utils.doc_to_visual(doc)
    assert item["sampling_rate"] == 16_000
    with wave.open(path) as file:
        written = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    assert np.array_equal(item["array"] * 32768, written)
    check_sound(item["array"], item["sampling_rate"], *source(doc))


class TestTheTest:
    """Cuts that are wrong on purpose, made of the real videos: the checks above must see them."""

    SHIFTS = ((-1, -1), (1, 1), (-1, 0), (0, 1), (-0.1, 0), (0, 0.1), (0.1, 0), (0, -0.1))

    @pytest.mark.parametrize(("before", "after"), SHIFTS)
    def test_a_shifted_cut_is_caught(self, before: float, after: float) -> None:
        doc = docs("choice", "av", "localized")[0]
        video, start, end = source(doc)
        cut = segments.segment(doc["video_path"], round(start + before, 3), round(end + after, 3))
        assert cut.sound is not None
        with pytest.raises(AssertionError):
            check_picture(cut.video, video, start, end)
        with pytest.raises(AssertionError):
            check_wav(cut.sound, video, start, end)

    def test_the_same_length_from_30_ms_earlier_is_heard(self) -> None:
        """No frame tells it: the tone of the first second ends too late."""
        doc = docs("choice", "a", "localized")[0]
        video, start, end = source(doc)
        moved = segments.segment(doc["video_path"], start - 0.03, end - 0.03).sound
        assert moved is not None
        with pytest.raises(AssertionError):
            check_wav(moved, video, start, end)

    def test_another_video_is_caught(self) -> None:
        one, *_, other = docs("choice", "av", "long")
        assert one["video"] != other["video"]
        cut = segments.segment(other["video_path"], 0, SECONDS[0])
        assert cut.sound is not None
        with pytest.raises(AssertionError):
            check_picture(cut.video, *source(one))
        with pytest.raises(AssertionError):
            check_wav(cut.sound, *source(one))
