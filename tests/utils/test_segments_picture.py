"""The picture of segments: quality, formats, sizes, rotation, key frames."""

import itertools

import media_files as files
import numpy as np
import segment_files as coded
from segment_files import STEADY, UNEVEN

from lmms_eval_tasks.utils.segments import segment
from tests.checks import table


def test_the_picture_is_visually_lossless(tmp_path):
    path = files.write_video(tmp_path / "textured.mp4", 90, (320, 240), options={"crf": "18"})
    cut = segment(path, 1.01, 2.5, tmp_path / "cache")
    expected = files.pyav_frames(path)[0][26:63]
    assert files.psnr(files.pyav_frames(cut.video)[0], expected) > 42


KINDS = {
    "bt709 full range.mp4": {"matrix": 1, "full_range": True, "pix_fmt": "yuvj420p"},
    "10 bits.mp4": {"pix_fmt": "yuv420p10le"},
    "422.mp4": {"pix_fmt": "yuv422p"},
    "rgb.mov": {"codec": "png", "pix_fmt": "rgb24"},
    "gray.mkv": {"codec": "ffv1", "pix_fmt": "gray"},
}


@table("name", KINDS)
def test_colours_of_other_formats(tmp_path, name):
    """Fine textures lose chroma in 4:2:0, so means of areas are compared."""
    path = files.write_video(tmp_path / name, 30, **KINDS[name])
    cut = segment(path, 0.2, 0.8, tmp_path / "cache")
    read, expected = files.pyav_frames(cut.video)[0], files.pyav_frames(path)[0][5:20]
    assert read.shape == expected.shape

    def areas(rgb):
        return rgb.reshape(-1, 8, 8, 12, 8, 3).mean(axis=(2, 4))

    assert np.abs(areas(read) - areas(expected)).mean() < 2.5


def luma(path):
    import av

    with av.open(str(path)) as file:
        frames = [frame.to_ndarray(format="gray") for frame in file.decode(video=0)]
    return np.stack(frames)


@table("size", [(97, 65), (96, 65), (17, 3)])
def test_odd_sizes_become_even_by_repeating_the_border(tmp_path, size):
    path = files.write_video(tmp_path / "odd.mkv", 10, size, codec="ffv1", pix_fmt="yuv420p", gop=1)
    cut = segment(path, 0.1, 0.3, tmp_path / "cache")
    assert (cut.width, cut.height) == (size[0] + size[0] % 2, size[1] + size[1] % 2)
    read, expected = luma(cut.video), luma(path)[3:8]
    assert read.shape[1:] == (cut.height, cut.width)
    assert files.psnr(read[:, : size[1], : size[0], None], expected[..., None]) > 40
    border = np.pad(expected, [(0, 0), (0, size[1] % 2), (0, size[0] % 2)], mode="edge")
    assert files.psnr(read[..., None], border[..., None]) > 40


@table("window", [(0.2, 0.8), (None, None)])
@table("degrees", [90, 180, 270])
def test_a_turned_video_is_upright(tmp_path, degrees, window):
    path = files.write_video(tmp_path / "phone.mp4", 25)
    files.rotate(path, degrees)
    cut = segment(path, *window, tmp_path / "cache")
    assert cut.rotation == degrees
    assert (cut.width, cut.height) == ((96, 64) if degrees == 180 else (64, 96))
    expected = files.decord_frames(path)[slice(5, 20) if window[0] else slice(None)]
    read = files.pyav_frames(cut.video)[0]
    assert read.shape == expected.shape
    assert files.psnr(read, expected) > 40


@table("times", [STEADY, UNEVEN, [n * 0.7 for n in range(11)]])
def test_readers_can_seek(tmp_path, times):
    import av

    path = coded.write(tmp_path / "v.mp4", times=times, audio=None)
    cut = segment(path, 0.3, 7.5, tmp_path / "cache")
    with av.open(cut.video) as file:
        assert file.streams.video[0].codec_context.pix_fmt == "yuv420p"
        keys = [(p.pts * p.time_base, p.is_keyframe) for p in file.demux(video=0) if p.size]
    between = 0
    for (before, _), (time, is_key) in itertools.pairwise(keys):
        between += time - before
        assert between <= 1 or is_key
        between = 0 if is_key else between
    assert keys[0][1]
