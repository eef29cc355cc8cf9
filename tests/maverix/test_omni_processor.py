"""Our messages through the real feature extraction of an audio-visual model, Qwen2.5-Omni.

Its processor is built here, with a small vocabulary and default settings; nothing is downloaded.
What comes out is read back: the second from the patches of the picture, the pitch from the mels.
"""

from __future__ import annotations

import math
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from lmms_eval_tasks.host import names
from lmms_eval_tasks.maverix.labels import MODES
from lmms_eval_tasks.maverix.sample import SECONDS, Moment
from lmms_eval_tasks.sample import tiny
from lmms_eval_tasks.sample.second_code import TICKS
from lmms_eval_tasks.utils import segments
from tests.maverix import reading
from tests.maverix.reading import docs, source

# The class came with 4.52; it reads these from attributes of its tokenizer.
transformers = pytest.importorskip("transformers", minversion="4.52")
TOKENS = {
    "image_token": "<|IMAGE|>",
    "audio_token": "<|AUDIO|>",
    "video_token": "<|VIDEO|>",
    "vision_bos_token": "<|vision_bos|>",
    "vision_eos_token": "<|vision_eos|>",
    "audio_bos_token": "<|audio_bos|>",
    "audio_eos_token": "<|audio_eos|>",
}
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'video' %}<|vision_bos|><|VIDEO|><|vision_eos|>"
    "{% elif part['type'] == 'audio' %}<|audio_bos|><|AUDIO|><|audio_eos|>"
    "{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)
RATE, HOP = 16_000, 160  # samples a second and between two mel frames: 100 frames a second
FPS = 5  # of the sample's 10: every second frame, as a model's own sampling would take them
SIZE = {"shortest_edge": 56 * 56, "longest_edge": 112 * 112}  # pixels, so that tests are fast
RAMP = 3  # mel frames at both ends of a second whose window of 25 ms holds some of the next tone


@pytest.fixture(autouse=True)
def on_sample(sample_root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
    monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", "sample")


@pytest.fixture(scope="module")
def processor() -> Any:
    end, pad = "<|im_end|>", "<|endoftext|>"
    specials = (pad, "<|im_start|>", end, *TOKENS.values())
    tokenizer = tiny._tokenizer(specials, eos_token=end, pad_token=pad, extra_special_tokens=TOKENS)
    return transformers.Qwen2_5OmniProcessor(
        image_processor=transformers.Qwen2VLImageProcessor(),
        video_processor=transformers.Qwen2VLVideoProcessor(size=SIZE),
        feature_extractor=transformers.WhisperFeatureExtractor(),
        tokenizer=tokenizer,
        chat_template=TEMPLATE,
    )


def frames_of(path: str) -> Any:
    """(n, height, width, 3), every second frame."""
    with av.open(path) as file:
        frames = [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]
    return np.stack(frames[:: TICKS // FPS])


def samples_of(path: str) -> Any:
    """(n,), in [-1, 1]."""
    with wave.open(path) as file:
        assert file.getframerate() == RATE
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype("f4") / 32768


def processed(processor: Any, doc: dict[str, Any]) -> tuple[Any, Any, Any]:
    """What the processor makes of a doc's messages, with the frames and samples that it was given.

    The messages go through the host's own conversion, which chat classes use.
    """
    from lmms_eval.protocol import ChatMessages

    messages = ChatMessages(messages=names.doc_to_messages(doc))
    images, videos, audios = messages.extract_media()
    assert not images
    pictures = [frames_of(path) for path in videos]
    sounds = [samples_of(path) for path in audios]
    text = processor.apply_chat_template(messages.to_hf_messages(), tokenize=False)
    made = processor(
        text=[text],
        videos=pictures or None,
        audio=sounds or None,
        videos_kwargs={"do_sample_frames": False, "fps": float(FPS)},
        return_tensors="pt",
    )
    return made, pictures, sounds


# --- reading features back --------------------------------------------------------------------


def pictures_in(made: Any, processor: Any) -> Any:
    """Red, green and blue from 0 to 255, (frames, height, width, 3), put together from patches."""
    vision = processor.video_processor
    times, rows, columns = made["video_grid_thw"][0].tolist()
    merge, patch, pair = vision.merge_size, vision.patch_size, vision.temporal_patch_size
    parts = made["pixel_values_videos"].numpy()
    shape = (times, rows // merge, columns // merge, merge, merge, 3, pair, patch, patch)
    frames = parts.reshape(shape).transpose(0, 6, 1, 3, 7, 2, 4, 8, 5)
    frames = frames.reshape(times * pair, rows * patch, columns * patch, 3)
    return (frames * vision.image_std + vision.image_mean) * 255


def mels_in(made: Any) -> Any:
    """(n, mel bins) without the padding at the end."""
    mask = made["feature_attention_mask"][0].bool()
    return made["input_features"][0].T[mask].numpy()


def bin_of(hertz: float, processor: Any) -> int:
    """The mel bin in which a pure tone is loudest."""
    filters = processor.feature_extractor.mel_filters  # (frequencies up to half the rate, bins)
    place = hertz / (RATE / 2) * (len(filters) - 1)
    lower = int(place)
    share = place - lower
    return int(((1 - share) * filters[lower] + share * filters[lower + 1]).argmax())


def seconds_heard(mels: Any, video: int, start: float, processor: Any) -> Iterator[tuple[int, int]]:
    """For every mel frame away from a change of tone: the second it was taken at, and the one that
    it tells, which is of this and six to either side the one with the nearest bin.
    """
    bins = {s: bin_of(Moment(video, s).hertz, processor) for s in range(SECONDS[video - 1])}
    for place, loudest in enumerate(mels.argmax(axis=1)):
        time = round(start * 100) + place  # hundredths
        second = time // 100
        if second in bins and RAMP <= time % 100 <= 100 - RAMP and RAMP <= place < len(mels) - RAMP:
            near = [other for other in bins if abs(other - second) <= 6]
            yield second, min(near, key=lambda other: abs(bins[other] - int(loudest)))


def check_sound(mels: Any, doc: dict[str, Any], processor: Any) -> None:
    video, start, end = source(doc)
    told = list(seconds_heard(mels, video, start, processor))
    wrong = [pair for pair in told if pair[0] != pair[1]]
    assert not wrong
    assert len(told) > 90 * (end - start)


# --- the tests --------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 16])
def test_picture_and_sound_travel_through_feature_extraction(number: int, processor: Any) -> None:
    doc = docs("choice", "av", "localized")[number]
    video, start, end = source(doc)
    made, (frames,), (samples,) = processed(processor, doc)

    length = round((end - start) * RATE)
    assert len(samples) == length
    n_mels = made["feature_attention_mask"].sum().item()
    assert n_mels == math.ceil(length / HOP)  # 100 a second
    assert made["input_features"].shape == (1, 80, 3000)  # padded to the 30 s of the default
    check_sound(mels_in(made), doc, processor)

    times, rows, columns = made["video_grid_thw"][0].tolist()
    assert len(frames) == math.ceil(round(math.ceil(end * TICKS) - math.ceil(start * TICKS)) / 2)
    assert times == math.ceil(len(frames) / 2)  # two frames are one grid
    assert made["pixel_values_videos"].shape == (times * rows * columns, 3 * 2 * 14 * 14)
    first = math.ceil(round(start * TICKS, 6))
    told = [reading.read_frame(frame) for frame in pictures_in(made, processor)]
    taken = [(first + 2 * n) / TICKS for n in range(len(frames))]
    shown = taken + taken[-1:] * (2 * times - len(frames))  # the last one fills the grid
    assert told == [(video, time) for time in shown]

    ids = made["input_ids"][0].tolist()
    assert ids.count(processor.tokenizer.video_token_id) == times * rows * columns // 4
    halved = (n_mels - 1) // 2 + 1  # by the audio tower's convolution, then by its pooling
    assert ids.count(processor.tokenizer.audio_token_id) == (halved - 2) // 2 + 1


@pytest.mark.parametrize("mode", MODES)
def test_what_each_mode_becomes(mode: str, processor: Any) -> None:
    doc = docs("choice", mode, "localized")[0]
    made, pictures, sounds = processed(processor, doc)
    given = MODES[mode]
    assert (len(pictures), len(sounds)) == (given.picture, given.sound)
    assert ("pixel_values_videos" in made) == given.picture
    assert ("input_features" in made) == given.sound
    ids = made["input_ids"][0].tolist()
    assert (processor.tokenizer.video_token_id in ids) == given.picture
    assert (processor.tokenizer.audio_token_id in ids) == given.sound
    text = processor.tokenizer.decode(ids, skip_special_tokens=True).rstrip()
    assert text.endswith(f"{names.doc_to_text(doc)}\nassistant")
    assert bool(reading.moments_of_text(text)) == given.subtitles


@pytest.mark.parametrize("shift", [-0.1, 1.0])
def test_a_shifted_cut_shows_in_the_features(shift: float, processor: Any) -> None:
    """A test of the readers above."""
    doc = docs("choice", "av", "localized")[0]
    _, start, end = source(doc)
    cut = segments.segment(doc["video_path"], round(start + shift, 3), round(end + shift, 3))
    assert cut.sound is not None
    made, *_ = processed(processor, {**doc, "start": cut.start, "end": cut.end})
    with pytest.raises(AssertionError):
        check_sound(mels_in(made), doc, processor)
    first = pictures_in(made, processor)[0]
    assert reading.read_frame(first)[1] == pytest.approx(start + shift)
