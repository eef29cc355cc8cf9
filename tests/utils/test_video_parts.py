"""The parts behind media.make that a child process hides: frame lists, decord, large clips."""

import sys
from pathlib import Path
from types import SimpleNamespace

import media_files as files
import numpy as np
import pytest

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import h264_pcm, video_checks, video_clip, video_source
from lmms_eval_tasks.utils.media.video_frames import Look
from tests.checks import refused, table


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    return files.write_video(tmp_path_factory.mktemp("source") / "v.mp4", 30)


def listing(monkeypatch, times):
    """Put a decord in place that lists frames at `times`."""

    class Reader:
        def __init__(self, path, num_threads):
            pass

        def __len__(self):
            return len(times)

        def get_frame_timestamp(self, indices):
            return np.array([[times[i], 0] for i in indices], np.float32)

    monkeypatch.setitem(sys.modules, "decord", SimpleNamespace(VideoReader=Reader))


@table(
    "times, used",
    [
        ([n / 25 for n in range(29)], True),
        ([], False),
        ([n / 25 for n in range(31)], False),
        ([0.0, 0.02, 0.04], False),
        ([0.0, 0.04, 0.04], False),
        (None, False),  # no decord at all
    ],
)
def test_decords_list_is_used_where_it_fits(video, monkeypatch, times, used):
    monkeypatch.setitem(sys.modules, "decord", None)
    if times is not None:
        listing(monkeypatch, times)
    table = video_source.frame_table(str(video))
    assert len(table.times) == (29 if used else 30)
    assert table.duration == pytest.approx(len(table.times) / 25)


def noise(n, look, seed=0):
    random = np.random.default_rng(seed)
    chroma = (look.height, look.width)
    if not look.full_chroma:
        chroma = (look.height // 2, look.width // 2)
    return [
        tuple(
            random.integers(low, high, size, dtype=np.uint8)
            for low, high, size in [(0, 256, (look.height, look.width))] + [(90, 160, chroma)] * 2
        )
        for _ in range(n)
    ]


@table("look", [Look(96, 64), Look(97, 65, full_chroma=True)])
def test_large_clips_are_near_lossless(tmp_path, monkeypatch, look):
    monkeypatch.setattr(video_clip, "_PLAIN_BYTES", 0)
    clip, source = str(tmp_path / "clip.mp4"), noise(4, look)
    video_clip.write_clip(clip, source, look, [0, 0.5, 2, 3], 4.0)
    read, times = files.pyav_frames(clip)
    assert times == [0, 0.5, 2, 3]
    wanted = [video_clip._rgb(planes, look) for planes in source]
    assert files.psnr(read, np.stack(wanted)) >= 45
    assert len(files.decord_frames(clip)) == 4


def test_a_clip_that_is_not_its_frames_is_an_error(tmp_path, monkeypatch):
    look, write = Look(64, 48), video_clip.write_clip
    made = (str(tmp_path / "clip.mp4"), noise(2, look), look, [0, 1], 2.0)
    units = list(h264_pcm.access_units(noise(2, look, seed=1), look))
    with monkeypatch.context() as patch:
        patch.setattr(h264_pcm, "access_units", lambda pictures, look: units)
        refused(MediaError, "differs", write, *made)
    monkeypatch.setattr(video_clip, "_PLAIN_BYTES", 0)
    monkeypatch.setattr(video_clip, "_QPS", (40,))  # not good enough
    refused(MediaError, "dB only", write, *made)


def test_a_link_that_leads_to_itself_is_a_missing_video(tmp_path: Path) -> None:
    loop = tmp_path / "loop.mp4"
    loop.symlink_to(tmp_path / "back.mp4")
    (tmp_path / "back.mp4").symlink_to(loop)
    for only in (None, {str(loop), str(tmp_path / "back.mp4")}):
        assert video_checks.look({"v": loop}, only)[1] == {"v": f"missing: {loop}"}
    assert video_checks.look({"v": loop}, {"other"}) == ({}, {})
