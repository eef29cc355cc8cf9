"""Numbers in pictures and tones: read in every size, rate and depth, and never guessed."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from lmms_eval_tasks.maverix import sample
from lmms_eval_tasks.sample import second_code
from lmms_eval_tasks.sample.second_code import COUNT, TICKS


def test_what_is_no_code_is_none() -> None:
    chance = np.random.default_rng(5)
    noise = chance.integers(0, 256, (24, 32, 3)).astype(np.uint8)
    for frame in (np.zeros((24, 32, 3), dtype=np.uint8), noise):
        assert second_code.number_of_frame(frame) is None
    clock = np.arange(16_000) / 16_000
    tone, other = (np.sin(2 * np.pi * second_code.hertz(n) * clock) for n in (40, 41))
    assert second_code.number_of_sound(tone, 16_000) == 40
    for sound in (
        np.zeros(16_000),
        tone * 0.001,  # as good as silent
        chance.normal(0, 0.2, 16_000),
        tone + other,
        np.sin(2 * np.pi * (second_code.hertz(40) + 5) * clock),  # between two tones
        np.sin(2 * np.pi * 4000 * clock),
        np.ones(16_000),
        tone[:100],
        tone[:0],
    ):
        assert second_code.number_of_sound(sound, 16_000) is None


@pytest.mark.parametrize("rate", [8_000, 16_000, 44_100, 48_000])
def test_every_tone_is_read_at_every_rate_and_depth(rate: int) -> None:
    for length in (0.08, 0.3):
        clock = np.arange(round(length * rate)) / rate
        for number in range(COUNT):
            tone = 0.3 * np.sin(2 * np.pi * second_code.hertz(number) * clock + 1)
            assert second_code.number_of_sound(tone, rate) == number
            short = (tone * 32767).astype(np.int16)
            assert second_code.number_of_sound(np.stack([short, short // 2]), rate) == number


@pytest.mark.parametrize("size", [(320, 240), (112, 112), (56, 28)])
def test_every_picture_is_read_in_every_size(size: tuple[int, int]) -> None:
    first = 0
    for video, length in enumerate(sample.SECONDS, 1):
        for index, frame in enumerate(sample.frames(video)):
            if index % 7 == 0:
                small = np.asarray(Image.fromarray(frame).resize(size))
                assert second_code.number_of_frame(small) == first + index // TICKS
                assert second_code.tick_of_frame(small) == index % TICKS
        first += length
