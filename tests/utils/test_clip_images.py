"""Frames of a made clip as images: those that a reader of the clip sees."""

from dataclasses import replace
from pathlib import Path

import media_files as files
import numpy as np
import pytest

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils import media
from lmms_eval_tasks.utils.clip_images import images
from tests.checks import table


@table("look")
def test_every_frame_as_decord_sees_it(look, tmp_path: Path):
    pix_fmt = "yuv444p" if "size" in look else "yuv420p"
    source = files.write_video(tmp_path / "x.mp4", 30, **{"pix_fmt": pix_fmt, **look})
    made = media.make(source, media.Recipe("uniform", 7), cache=tmp_path)
    found = images(made)
    assert [image.mode for image in found] == ["RGB"] * 7
    assert {image.size for image in found} == {(made.width, made.height)}
    wanted = files.decord_frames(made.path)
    assert files.psnr(np.stack([np.asarray(image) for image in found]), wanted) > 48
    taken = [media.uniform_indices(30, 7)[n] for n in range(7)]
    assert files.psnr(wanted, files.decord_frames(source, taken)) > 46


def test_one_frame_is_an_image_already(tmp_path: Path):
    source = files.write_video(tmp_path / "x.mp4", 30)
    made = media.make(source, media.Recipe("uniform", 1), cache=tmp_path)
    assert made.kind == "image"
    (image,) = images(made)
    assert (image.mode, image.size) == ("RGB", (96, 64))
    assert files.psnr(np.asarray(image)[None], files.decord_frames(source, [0])) > 46


def test_a_file_that_is_gone_or_another_one(tmp_path: Path):
    source = files.write_video(tmp_path / "x.mp4", 30)
    made = media.make(source, media.Recipe("uniform", 4), cache=tmp_path)
    with pytest.raises(MediaError, match=rf"made of {source}: has 4 frames, not 5"):
        images(replace(made, timestamps=[], n_frames=5))
    Path(made.path).write_bytes(b"no video")
    with pytest.raises(MediaError, match=rf"made of {source}: cannot be read"):
        images(made)
    Path(made.path).unlink()
    with pytest.raises(MediaError, match="cannot be read"):
        images(made)
