"""Segments are made once for all modes, threads and processes, from a part of the file only."""

import multiprocessing
from fractions import Fraction
from pathlib import Path

import media_files as files
import numpy as np
import pytest
import segment_files as coded

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils import segment_head, segment_read, worker_call
from lmms_eval_tasks.utils.segments import segment
from tests.checks import in_threads, table

FILES = 4  # an entry: two mp4 files, a wav and the note


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return coded.write(tmp_path_factory.mktemp("coded") / "coded.mp4", 6)


@pytest.fixture
def jobs(monkeypatch):
    """The jobs that the worker is given."""
    given = []
    work = worker_call.call
    monkeypatch.setattr(worker_call, "call", lambda *job: given.append(job[0]) or work(*job))
    return given


def test_the_modes_of_an_item_share_one_decoding(source, tmp_path, jobs):
    cuts = [segment(source, 1.3, 2.9, tmp_path) for _ in ("a", "s", "v", "vs", "av")]
    assert len(jobs) == 1
    assert cuts == [cuts[0]] * 5
    assert segment(source, 1.30, np.float64(2.9), tmp_path) == cuts[0]  # equal numbers
    segment(source, 1.3, 2.91, tmp_path)
    assert len(jobs) == 2
    assert len(files.made_files(tmp_path)) == 2 * FILES


@table("window", [(1.3, 2.9), (None, None)])
def test_muted_alone_is_the_same_video_and_nothing_else(source, tmp_path, window):
    both = segment(source, *window, tmp_path / "both")
    muted = segment(source, *window, tmp_path / "muted", sound=False)
    assert Path(muted.video).read_bytes() == Path(both.video).read_bytes()
    assert muted.video_with_sound is None
    assert muted.sound is None
    assert muted.has_audio
    assert (muted.start, muted.end, muted.duration) == (both.start, both.end, both.duration)
    assert len(files.made_files(tmp_path / "muted")) == 2  # the video and the note
    assert segment(source, *window, tmp_path / "muted", sound=False) == muted


@table("broken", ["video", "video_with_sound", "sound", "note"])
@table("damage", ["delete", "cut"])
def test_a_damaged_entry_is_made_again(source, tmp_path, jobs, broken, damage):
    jobs.clear()
    first = segment(source, 1.3, 1.9, tmp_path)
    note = str(Path(first.video).with_suffix(".json"))
    path = Path(note if broken == "note" else getattr(first, broken))
    content = path.read_bytes()
    path.unlink() if damage == "delete" else path.write_bytes(content[: len(content) // 2])
    assert segment(source, 1.3, 1.9, tmp_path) == first
    assert path.read_bytes() == content  # the same bytes each time
    assert len(jobs) == 2


def _make(source, cache, start, queue):
    start.wait()
    queue.put(segment(source, 0.7, 3.1, cache))


def test_processes_make_one_good_entry(source, tmp_path):
    context = multiprocessing.get_context("fork")
    start, queue = context.Event(), context.Queue()
    processes = [
        context.Process(target=_make, args=(source, tmp_path, start, queue)) for _ in range(2)
    ]
    for process in processes:
        process.start()
    start.set()
    results = [queue.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()
    assert results == [results[0]] * 2
    assert len(files.made_files(tmp_path)) == FILES
    assert len(coded.frames_and_times(results[0].video_with_sound)[0]) == 60


def test_threads_make_an_entry_once(source, tmp_path, jobs):
    results = in_threads(3, lambda _: segment(source, 0.7, 3.1, tmp_path))
    assert results == [results[0]] * 3
    assert len(jobs) == 1


def test_a_killed_worker_is_an_error_and_leaves_nothing(source, tmp_path, monkeypatch):
    """Each worker is killed in the middle of its work."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "fake_worker.py").write_text(
        "import os\n"
        "from lmms_eval_tasks.utils import media_worker, segment_track\n"
        "segment_track.add_track = lambda *_: os.kill(os.getpid(), 9)  # two files are written\n"
        "media_worker.main()\n"
    )
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path / "site"))
        patch.setattr(worker_call, "WORKER", "fake_worker")
        with pytest.raises(MediaError, match="SIGKILL"):
            segment(source, 0, 6, tmp_path)
    assert files.made_files(tmp_path) == []
    assert segment(source, 0, 6, tmp_path).n_frames == 150


def test_a_time_limit_is_kept(source, tmp_path):
    with pytest.raises(MediaError, match=r"took more than 0\.05 s"):
        segment(source, 0, 6, tmp_path, time_limit=0.05)
    assert files.made_files(tmp_path) == []


@pytest.fixture(scope="module")
def minute(tmp_path_factory):
    """60 s with a key frame every 2 s, and its clock."""
    path = str(coded.write(tmp_path_factory.mktemp("coded") / "minute.mp4", 60, gop=50))
    return path, segment_head.head(path).clock


@table("kind", ["video", "audio"])
def test_reading_begins_near_the_window(minute, kind):
    begin, _ = next(segment_read.frames(*minute, Fraction("55.3"), kind))
    assert 52 < begin <= Fraction("55.3")


@table("kind", ["video", "audio"])
@table("late", [2, 100])
def test_an_index_that_leads_behind_the_window(minute, monkeypatch, kind, late):
    """Where a jump ends too late, or beyond the end of the file, the next one is longer."""
    seek = segment_read._seek
    monkeypatch.setattr(
        segment_read, "_seek", lambda file, video, clock, at: seek(file, video, clock, at + late)
    )
    begin, _ = next(segment_read.frames(*minute, Fraction("51.3"), kind))
    assert begin <= Fraction("51.3")
