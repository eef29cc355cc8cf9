"""Images as parts of a message, and the frames of a video for judges that see."""

import io
from base64 import b64decode

import numpy as np
import pytest
from PIL import Image, ImageFile, PngImagePlugin

from lmms_eval_tasks.errors import JudgeError, MediaError
from lmms_eval_tasks.judges.images import image_part, video_frames
from tests.checks import refused, table

PIXELS = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)


def content(part):
    assert (list(part), list(part["image_url"])) == (["type", "image_url"], ["url"])
    assert part["type"] == "image_url"
    kind, _, data = part["image_url"]["url"].partition(";base64,")
    return kind.removeprefix("data:"), b64decode(data, validate=True)


def shown(part):
    return np.asarray(Image.open(io.BytesIO(content(part)[1])).convert("RGB"))


def saved(path, kind, size=(60, 40)):
    image = Image.effect_noise(size, 50).convert("RGB")
    image.save(path, kind)
    return path


def test_pixels_arrive_as_they_are():
    told = Image.fromarray(PIXELS)
    told.info = {"comment": b"taken today", "dpi": (300, 300), "icc_profile": b"x" * 20}
    for image in (PIXELS, Image.fromarray(PIXELS), PIXELS[::-1][::-1], told):
        part = image_part(image)
        assert content(part)[0] == "image/png"
        assert np.array_equal(shown(part), PIXELS)
        assert part == image_part(PIXELS.copy())  # what is no pixel changes nothing


@table("kind", ["JPEG", "PNG", "WEBP", "BMP"])
def test_files_that_endpoints_take_go_over_unchanged(tmp_path, kind):
    path = saved(tmp_path / f"image.{kind}", kind)
    for part in (image_part(path), image_part(str(path)), image_part(path, max_side=60)):
        if kind == "BMP":
            assert content(part)[0] == "image/png"
            assert np.array_equal(shown(part), np.asarray(Image.open(path)))
        else:
            assert content(part) == (f"image/{kind.lower()}", path.read_bytes())
    reduced = image_part(path, max_side=30)
    assert content(reduced)[0] == "image/png"
    assert shown(reduced).shape == (20, 30, 3)


def test_the_longer_side_is_reduced_and_never_enlarged():
    for size, side, expected in (((60, 40), 30, (20, 30)), ((40, 60), 30, (30, 20)),
                                 ((6, 4), 30, (4, 6)), ((300, 1), 3, (1, 3))):  # fmt: skip
        part = image_part(Image.new("RGB", size), max_side=side)
        assert shown(part).shape[:2] == expected
    for side in (0, -1):
        refused(JudgeError, "max_side", image_part, PIXELS, max_side=side)


@table("lenient", [False, True])
def test_files_that_are_no_images_are_named(tmp_path, monkeypatch, lenient):
    # What the host sets for the whole process when it is imported, and what some of its tasks do.
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", lenient)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 89_478_485)
    text, huge = tmp_path / "a.png", tmp_path / "huge.png"
    text.write_text("no image")
    with huge.open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        header = (50_000).to_bytes(4, "big") * 2 + b"\x08\x02\0\0\0"
        PngImagePlugin.putchunk(file, b"IHDR", header)
        PngImagePlugin.putchunk(file, b"IDAT", b"")
    cuts = [saved(tmp_path / f"cut.{kind}", kind) for kind in ("JPEG", "PNG", "WEBP")]
    for path in cuts:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    for path in (text, huge, *cuts, tmp_path / "absent.png", tmp_path):
        with pytest.raises(JudgeError, match=path.name):
            image_part(path)


def test_frames_of_a_video_are_those_that_models_get(maia_data, tmp_path):
    decord = pytest.importorskip("decord")
    from lmms_eval_tasks.utils.media import uniform_indices

    video = maia_data / "videos" / "5.mp4"
    frames = video_frames(video, 4, tmp_path)
    source = decord.VideoReader(str(video))
    expected = source.get_batch(uniform_indices(len(source), 4)).asnumpy()
    assert np.array_equal(np.stack(frames), expected)
    assert frames[0].dtype == np.uint8
    (first,) = video_frames(video, 1, tmp_path)
    assert np.array_equal(first, expected[0])


def test_frames_of_what_is_no_video(tmp_path):
    path = tmp_path / "a.mp4"
    path.write_text("no video")
    refused(MediaError, r"a\.mp4", video_frames, path, 4, tmp_path)
    refused(JudgeError, "0 frames", video_frames, path, 0, tmp_path)
