"""Frames of a video by index: the right ones, upright, once decoded; broken files; processes."""

from pathlib import Path

import media_files as files
import numpy as np
from PIL import Image

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media.indexed_frames import frames
from tests.checks import refused, table

ODD = [0, 1, 5, 11, 12, 13, 30, 47, 48, 61, 88, 89]
ALL = 10_000  # pixels: nothing is made smaller


def pixels(taken):
    images = taken.images(range(1, len(taken.indices) + 1))
    return np.stack([np.asarray(image) for image in images])


@table("size, shown", [(96, (96, 64)), (95, (95, 63)), (48, (48, 32)), (1, (1, 1))])
def test_the_longest_side_is_made_smaller_and_never_larger(video, size, shown):
    taken = frames(video, [0, 50], size)
    assert (taken.width, taken.height) == shown
    assert {image.size for image in taken.images([1, 2])} == {shown}


def test_images_come_by_number_and_carry_nothing(video):
    taken = frames(video, ODD, ALL)
    everything = pixels(taken)
    for image, number in zip(taken.images([4, 4, 12]), (4, 4, 12), strict=True):
        assert np.array_equal(np.asarray(image), everything[number - 1])
        assert type(image) is Image.Image
        assert (image.mode, image.info) == ("RGB", {})
        assert not hasattr(image, "filename")
    refused(MediaError, r"no item named '0\.jpg'", taken.images, [1, 0])


def test_an_entry_that_is_lost_while_it_is_used_is_named(video, cache):
    taken = frames(video, [0, 9], 48)
    for damage in (lambda: Path(taken.path).write_bytes(bytes(500)), Path(taken.path).unlink):
        damage()
        refused(MediaError, r"frames-2-48.*made of .*some video\.mp4", taken.images, [2])


@table(
    "indices, size, error, words",
    [
        ([0, 90], 48, MediaError, "no frame 90: it has 90 frames"),
        ([88, 91, 200], 48, MediaError, "no frame 91: it has 90 frames"),
        *[(wrong, 48, ValueError, "ascending") for wrong in ([], [-1, 3], [3, 3], [4, 3])],
        ([0], 0, ValueError, "ascending"),
    ],
)
def test_what_no_record_may_ask_for(video, cache, indices, size, error, words):
    message = refused(error, words, frames, video, indices, size)
    assert error is ValueError or message.startswith(f"{video}: ")
    assert not cache.exists() or files.made_files(cache) == []
