"""Clips of uniform frames and pictures of given ones: the right ones, upright, for every reader."""

from dataclasses import replace
from pathlib import Path

import av
import media_files as files
import numpy as np
import pytest
from PIL import Image

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.media import clip_specs
from lmms_eval_tasks.media.clip_specs import MediaSpec, make_clip_file, uniform_indices
from lmms_eval_tasks.media.clips import images
from lmms_eval_tasks.media.indexed_frames import load_frames
from lmms_eval_tasks.media.video_checks import probe
from tests.checks import refused, table

UNIFORM = MediaSpec("uniform", 32)


def test_a_clip_is_the_sources_frames_at_their_times(video):
    clip = make_clip_file(video, UNIFORM)
    indices = uniform_indices(90, 32)
    assert (clip.kind, clip.n_frames, clip.width, clip.height) == ("video", 32, 96, 64)
    assert (clip.recipe, clip.source) == ("uniform-32", str(video))
    assert np.array_equal(files.decord_frames(clip.path), files.decord_frames(video, indices))
    source, times = files.pyav_frames(video)
    read, shown = files.pyav_frames(clip.path)
    assert np.array_equal(read, source[indices])
    assert shown == pytest.approx([times[i] for i in indices], abs=1e-3)
    assert probe(video).has_audio
    with av.open(clip.path) as file:  # key frames only, and no sound
        (stream,) = file.streams
        assert (stream.type, stream.frames) == ("video", 32)
        assert float(stream.average_rate) == pytest.approx(32 / 3.6, rel=1e-4)
        assert float(stream.duration * stream.time_base) == pytest.approx(3.6, abs=1e-3)
        assert all(packet.is_keyframe for packet in file.demux(stream) if packet.size)


def test_black_is_zero_and_has_the_same_times(video):
    black = make_clip_file(video, MediaSpec("black", 32))
    read, shown = files.pyav_frames(black.path)
    assert shown == files.pyav_frames(make_clip_file(video, UNIFORM).path)[1]
    for seen in (read, files.decord_frames(black.path)):
        assert seen.shape == (32, 64, 96, 3)
        assert seen.max() == 0


def test_one_frame_is_an_image_or_a_still_clip_on_request(video, tmp_path):
    first = files.decord_frames(video, [0])
    for recipe in (MediaSpec("first_frame"), MediaSpec("uniform", 1), MediaSpec("black", 1)):
        image = make_clip_file(video, recipe)
        assert (image.kind, image.n_frames) == ("image", 1)
        assert image.path.endswith(".png")
        pixels = np.asarray(Image.open(image.path))
        assert np.array_equal(pixels, first[0] * (recipe.kind != "black"))
    clip = make_clip_file(video, MediaSpec("first_frame", still=True))
    assert (clip.kind, files.pyav_frames(clip.path)[1]) == ("video", [0, 0.5, 1, 1.5])
    assert np.array_equal(files.decord_frames(clip.path), first.repeat(4, axis=0))
    source = files.write_video(tmp_path / "short.mp4", 5)  # fewer frames than asked for: all
    clip = make_clip_file(source, UNIFORM)
    assert clip.n_frames == 5
    assert np.array_equal(files.decord_frames(clip.path), files.decord_frames(source))


# decord's own limits: an exception, or other frames than those shown.
BEYOND_DECORD = {"rgb.mov", "open gop.ts", "open gop.mp4"}
BY_DECORD = {"bt709.mp4", "full range.mp4"}  # whose colours PyAV alone does not show as the host
ODD = [0, 1, 5, 11, 12, 13, 30, 47, 48, 61, 88, 89]


def pixels(found):
    """Images as one array; each is RGB."""
    assert {image.mode for image in found} == {"RGB"}
    return np.stack([np.asarray(image) for image in found])


def check_frames(source, original, indices):
    """Each picture is nearest to the frame it should be, and near."""
    taken = load_frames(source, indices, 10_000)
    assert (taken.indices, taken.n_frames) == (tuple(indices), len(original))
    assert (taken.width, taken.height) == original.shape[2:0:-1]
    seen = pixels(taken.images(range(1, len(indices) + 1)))
    for index, picture in zip(indices, seen, strict=True):
        errors = ((original.astype(int) - picture) ** 2).mean(axis=(1, 2, 3))
        assert int(np.argmin(errors)) == index
        assert 10 * np.log10(255**2 / errors[index]) >= 36


@table("name", files.SOURCES)
def test_formats_keep_their_pixels_for_both_readers(tmp_path, name):
    source = files.write_video(tmp_path / name, 90, **files.SOURCES[name])
    clip = make_clip_file(source, MediaSpec("uniform", 9))
    original, times = files.pyav_frames(source)
    indices = uniform_indices(90, 9)
    read, shown = files.pyav_frames(clip.path)
    assert read.shape == (9, *original.shape[1:])
    assert shown == pytest.approx([times[i] - times[0] for i in indices], abs=1.1e-3)
    assert files.psnr(read, original[indices]) >= 45
    seen = files.decord_frames(clip.path)
    assert files.psnr(pixels(images(clip)), seen) > 46
    if name not in BEYOND_DECORD:
        assert files.psnr(seen, files.decord_frames(source, indices)) >= 45
        image = make_clip_file(source, MediaSpec("first_frame"))
        assert files.psnr(pixels(images(image)), files.decord_frames(source, [0])) >= 46
    check_frames(source, files.decord_frames(source) if name in BY_DECORD else original, ODD)


@table("degrees", [90, 180, 270])
def test_a_turned_video_is_upright_as_decord_shows_it(tmp_path, degrees):
    source = files.write_video(tmp_path / "phone.mp4", 20)
    files.rotate(source, degrees)
    clip = make_clip_file(source, UNIFORM)
    assert (clip.width, clip.height) == ((96, 64) if degrees == 180 else (64, 96))
    expected = files.decord_frames(source)
    assert np.array_equal(files.decord_frames(clip.path), expected)
    check_frames(source, expected, [2, 7, 19])


def test_a_clip_that_is_gone_or_another_one_has_no_images(video, tmp_path):
    made = make_clip_file(video, MediaSpec("uniform", 4))
    words = rf"made of {video}: cannot be read: has 4 frames, not 5"
    refused(MediaError, words, images, replace(made, n_frames=5))
    Path(made.path).write_bytes(b"no video")
    refused(MediaError, rf"made of {video}: cannot be read", images, made)


def test_large_clips_are_near_lossless(tmp_path, monkeypatch):
    monkeypatch.setattr(clip_specs, "_LOSSLESS", 0)
    for name in ("b-frames.mp4", "odd size 444.mp4"):
        source = files.write_video(tmp_path / name, 9, **files.SOURCES[name])
        clip_specs.write_clip(str(source), str(tmp_path / "clip"), vars(UNIFORM))
        (read, times), (wanted, shown) = map(files.pyav_frames, (tmp_path / "clip.mp4", source))
        assert 46 < files.psnr(read, wanted) < 100
        assert times == pytest.approx(shown, abs=1e-3)


@table("number", [5, 12])
def test_real_videos(number, maia_data):
    source = maia_data / "videos" / f"{number}.mp4"
    clip, info = make_clip_file(source, UNIFORM), probe(source)
    expected = files.decord_frames(source, uniform_indices(info.n_frames, 32))
    assert np.array_equal(files.decord_frames(clip.path), expected)
    assert info.duration == pytest.approx(30, abs=1)


# --- frames by index as pictures -----------------------------------------------------------------


@table("size, shown", [(96, (96, 64)), (95, (95, 63)), (48, (48, 32)), (1, (1, 1))])
def test_the_longest_side_is_made_smaller_and_never_larger(video, size, shown):
    taken = load_frames(video, [0, 50], size)
    assert (taken.width, taken.height) == shown
    assert {image.size for image in taken.images([1, 2])} == {shown}


def test_images_come_by_number_and_carry_nothing(video):
    taken = load_frames(video, ODD, 10_000)
    everything = pixels(taken.images(range(1, len(ODD) + 1)))
    for image, number in zip(taken.images([4, 4, 12]), (4, 4, 12), strict=True):
        assert np.array_equal(np.asarray(image), everything[number - 1])
        assert type(image) is Image.Image
        assert (image.mode, image.info) == ("RGB", {})
        assert not hasattr(image, "filename")
    refused(MediaError, r"no item named '0\.jpg'", taken.images, [1, 0])


def test_an_entry_that_is_lost_while_it_is_used_is_named(video, cache):
    taken = load_frames(video, [0, 9], 48)
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
    message = refused(error, words, load_frames, video, indices, size)
    assert error is ValueError or message.startswith(f"{video}: ")
    assert not cache.exists() or files.made_files(cache) == []
