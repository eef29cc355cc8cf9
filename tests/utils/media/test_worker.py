"""Broken files, hanging and crashing decoders: a clear error with the name, and nothing left."""

import os

import media_files as files
import numpy as np
import pytest
from PIL import Image

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import cache as media_cache
from lmms_eval_tasks.utils.media.indexed_frames import frames
from lmms_eval_tasks.utils.media.recipes import Recipe, make
from lmms_eval_tasks.utils.media.segments import segment
from lmms_eval_tasks.utils.media.video_checks import probe
from tests.checks import refused, table

UNIFORM = Recipe("uniform", 32)
NO_VIDEO = "not a readable video|holds no video"

# Broken files by the words that their error must hold.
BROKEN = {
    "missing.mp4": "no such file",
    "folder.mp4": "not a regular file",
    "pipe.mp4": "not a regular file",  # refused without waiting
    "empty.mp4": "is empty",
    "html.mp4": NO_VIDEO,
    "noise.mp4": NO_VIDEO,
    "png.mp4": "holds no video that FFmpeg can decode",
    "sound.mp4": "holds no video that FFmpeg can decode",
    "cut.mp4": "not a readable video",
    "cut early.mp4": "cut short",
    "cut.mkv": "is cut short: it ends at",  # its header alone tells that there was more
    "damaged.mp4": "not a readable video|cannot be decoded|cut short|no frame|differently|damaged",
}


@pytest.fixture(scope="module")
def broken_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("broken")
    good = files.write_video(folder / "good.mp4", 60, audio=True).read_bytes()
    front = {"movflags": "faststart"}
    early = files.write_video(folder / "early.mp4", 60, mux_options=front).read_bytes()
    whole = files.write_video(folder / "whole.mkv", 120).read_bytes()
    noise = np.random.default_rng(0).integers(0, 256, 20_000, dtype=np.uint8).tobytes()
    middle, half = early.index(b"mdat") + 4 + len(early) // 8, len(early) // 2
    Image.fromarray(files.picture(0, 64, 48)).save(folder / "png.mp4", "png")
    contents = {
        "empty.mp4": b"",
        "html.mp4": b"<!DOCTYPE html><html><body>404 not found</body></html>" * 50,
        "noise.mp4": noise,
        "cut.mp4": good[: len(good) // 2],
        "cut early.mp4": early[: len(early) * 3 // 4],
        "cut.mkv": whole[: len(whole) // 2],
        "damaged.mp4": early[:middle] + noise[:half] + early[middle + half :],
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    (folder / "folder.mp4").mkdir()
    os.mkfifo(folder / "pipe.mp4")
    files.write_sound_only(folder / "sound.mp4")
    return folder


@table("name", BROKEN)
def test_a_broken_file_is_named_and_leaves_nothing(broken_files, cache, name):
    path = broken_files / name
    calls = [(make, UNIFORM), (frames, [0, 30, 59], 48)]
    if not name.startswith(("cut early", "cut.mkv")):  # a window before the cut does not meet it
        calls.append((segment, 0.5, 1))
    if name != "damaged.mp4":  # whose packets are copied as they are
        calls.append((segment, None, None))
    for call, *wanted in calls:
        assert str(path) in refused(MediaError, BROKEN[name], call, path, *wanted), call
        assert not cache.exists() or files.made_files(cache) == []
    if name != "damaged.mp4":  # its first frame is fine, and that is what a probe looks at
        refused(MediaError, BROKEN[name], probe, path)


def test_a_hanging_decoder_is_ended(video, cache, monkeypatch, fake_worker):
    fake_worker("""
        import json, pathlib, sys, time
        *_, arguments = json.loads(sys.stdin.readline())
        pathlib.Path(arguments["out"]).write_bytes(b"half a clip")
        time.sleep(60)
    """)
    monkeypatch.setattr(media_cache, "PATIENCE", 1.0)
    words = r"some video\.mp4: took more than 1 s"
    for call, *wanted in ((make, UNIFORM), (frames, [0], 48), (segment, 0.5, 3)):
        refused(MediaError, words, call, video, *wanted)
    assert [one.name for one in cache.iterdir()] == [".locks"]


def test_a_crash_is_an_error_and_leaves_nothing(video, cache, fake_worker):
    """At once, and in the middle of the work."""
    in_the_middle = """
        import os
        from lmms_eval_tasks.utils.media import sounds, worker
        sounds.add_sound = lambda *_: os.kill(os.getpid(), 11)  # two files are written
        worker.main()
    """
    for code in ("import os; os.kill(os.getpid(), 11)", in_the_middle):
        fake_worker(code)
        refused(MediaError, r"some video\.mp4: .*SIGSEGV", segment, video, 0.5, 3)
        assert files.made_files(cache) == []
