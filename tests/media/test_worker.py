"""Broken files, hanging and crashing decoders: a clear error with the name, and nothing left.

And looking at videos: children that go from file to file, what is kept, and what a run needs.
"""

import multiprocessing
import os
from pathlib import Path

import media_files as files
import numpy as np
import pytest
from PIL import Image

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.media import cache as media_cache
from lmms_eval_tasks.media import sources, video_checks
from lmms_eval_tasks.media.clip_specs import MediaSpec, make_clip_file
from lmms_eval_tasks.media.indexed_frames import load_frames
from lmms_eval_tasks.media.segments import segment
from lmms_eval_tasks.media.video_checks import VideoInfo, check_ends, probe
from lmms_eval_tasks.utils.media import worker
from tests.checks import refused, table

UNIFORM = MediaSpec("uniform", 32)
NO_VIDEO = "not a readable video|holds no video"

# Broken files by the words that their error must hold.
BROKEN = {
    "missing.mp4": "no such file",
    "folder.mp4": "not a regular file",
    "pipe.mp4": "not a regular file",  # refused without waiting
    "empty.mp4": "is empty",
    "html.mp4": "is a web page, not the file itself: download the raw file",
    "pointer.mp4": "is a pointer of Git LFS.*git lfs pull",
    "zeros.mp4": "is full of zeros at its beginning",
    "noise.mp4": NO_VIDEO,
    "png.mp4": "holds no video that FFmpeg can decode",
    "sound.mp4": "holds no video that FFmpeg can decode",
    "list.mp4": r"is a list of other files \(concat\); make one file of them",
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
        "pointer.mp4": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
        "zeros.mp4": bytes(20_000),
        "list.mp4": b"ffconcat version 1.0\nfile good.mp4\n",
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


@table(
    "name, begin, said",
    [
        ("b-frames.mp4", None, ""),
        ("one key frame.mp4", None, ""),
        ("mpeg4.avi", None, ""),
        ("uneven.mp4", None, ""),
        ("gray.mkv", None, ""),
        ("b-frames.mp4", 3.0, "is damaged: its picture near"),
        ("mpeg4.avi", 3.0, "is damaged: its picture near"),
    ],
)
def test_the_ends_of_a_video_are_decoded(tmp_path, cache, name, begin, said):
    path = files.write_video(tmp_path / name, 90, **files.SOURCES[name])
    if begin is None:
        check_ends(path)
        return
    files.damage(path, "video", begin, 9)
    assert probe(path).n_frames == 90  # all that its packets promise
    refused(MediaError, f"{name}: {said}", check_ends, path)


@table("name", BROKEN)
def test_a_broken_file_is_named_and_leaves_nothing(broken_files, cache, name):
    path = broken_files / name
    calls = [(make_clip_file, UNIFORM), (load_frames, [0, 30, 59], 48)]
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
    for call, *wanted in ((make_clip_file, UNIFORM), (load_frames, [0], 48), (segment, 0.5, 3)):
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


# --- looking at many files ------------------------------------------------------------------------


@pytest.fixture
def look(tmp_path, cache):
    """Looks at files of these names as a new process would, and says what is wrong with some."""
    good = files.write_video(tmp_path / "good.mp4", 5).read_bytes()

    def looked(*names):
        video_checks._looked.cache_clear()
        paths = {name: tmp_path / f"{name}.mp4" for name in names}
        for path in paths.values():
            path.exists() or path.write_bytes(good)
        found, bad = video_checks.look(paths)
        assert {type(one) for one in found.values()} <= {VideoInfo}
        assert sorted([*found, *bad]) == sorted(names)
        return bad

    return looked


def test_a_child_goes_from_file_to_file(look):
    worker.end_waiting()
    assert look(*"abcdefgh") == {}
    assert 1 <= len(worker._waiting) <= 2
    context = multiprocessing.get_context("fork")  # whose child has children of its own
    queue = context.Queue()
    process = context.Process(target=lambda: queue.put(len(worker._waiting)))
    process.start()
    assert queue.get(timeout=60) == 0
    process.join()


def test_crashes(look, tmp_path, fake_worker):
    """One costs its own file only, and only a new child's death says something about the file."""
    fake_worker("""
        import os
        from pathlib import Path
        from lmms_eval_tasks.media import sources, video_checks
        from lmms_eval_tasks.utils.media import worker
        work, done = video_checks.facts, []
        def facts(source, out):
            name = Path(source).stem
            if name == "crash" or (name == "later" and done):
                os.kill(os.getpid(), 11)
            done.append(source)
            return work(source, out)
        video_checks.facts = facts
        worker.main()
    """)
    said = f"{tmp_path}/crash.mp4: reading it failed (the decoder crashed: SIGSEGV)"
    assert look("a", "crash", "later") == {"crash": f"unreadable: {said}"}


def test_later_runs_look_at_files_that_changed(look, tmp_path, jobs):
    def looked_at():
        names = sorted(Path(job[2]).stem for job in jobs)
        jobs.clear()
        return names

    bad = tmp_path / "bad.mp4"
    bad.write_bytes(b"no video")
    for seen in (["a", "b", "bad"], ["bad"]):  # which may be readable now
        told = look("a", "b", "bad")
        assert told["bad"].startswith(f"unreadable: {bad}: ")
        assert looked_at() == seen
    assert f"unreadable: {refused(MediaError, 'bad', video_checks.probe, bad)}" == told["bad"]
    assert looked_at() == []  # within a run it stays so
    bad.unlink()
    assert (look("a", "b", "bad"), looked_at()) == ({}, ["bad"])
    for note in (settings.cache_dir() / "probes").glob("probe-*.json"):
        note.write_bytes(note.read_bytes()[:20])  # a full disk
    assert (look("a", "b", "bad"), looked_at()) == ({}, ["a", "b", "bad"])


@table(
    "start, end, says",
    [
        (None, None, ""),
        (9.9, 10, ""),
        (5, 11, ""),
        (5, 11.5, "ends at 11.5 s; its video ends at 10.000 s"),
        (None, 12, "ends at 12 s; its video ends at 10.000 s"),
        (9.99, 10.5, "starts at 9.99 s; its video ends at 10.000 s"),
    ],
)
def test_windows_of_a_video(start, end, says):
    assert sources.outside(start, end, 10.0) == says


def test_a_link_that_leads_to_itself_is_a_missing_video(tmp_path):
    loop = tmp_path / "loop.mp4"
    loop.symlink_to(tmp_path / "back.mp4")
    (tmp_path / "back.mp4").symlink_to(loop)
    for only in (None, {str(loop), str(tmp_path / "back.mp4")}):
        assert video_checks.look({"v": loop}, only)[1] == {"v": f"missing: {loop}"}
    assert video_checks.look({"v": loop}, {"other"}) == ({}, {})
