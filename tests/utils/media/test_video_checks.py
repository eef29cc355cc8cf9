"""Looking at videos: children that go from file to file, what is kept, and what a run needs."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import media_files as files
import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import video_checks, worker
from lmms_eval_tasks.utils.media.video_checks import VideoInfo
from tests.checks import refused, table

Look = Callable[..., dict[str, str]]


@pytest.fixture
def look(tmp_path: Path, cache: Path) -> Look:
    """Looks at files of these names as a new process would, and says what is wrong with some."""
    good = files.write_video(tmp_path / "good.mp4", 5).read_bytes()

    def looked(*names: str) -> dict[str, str]:
        video_checks._looked.cache_clear()
        paths = {name: tmp_path / f"{name}.mp4" for name in names}
        for path in paths.values():
            path.exists() or path.write_bytes(good)
        found, bad = video_checks.look(paths)
        assert {type(one) for one in found.values()} <= {VideoInfo}
        assert sorted([*found, *bad]) == sorted(names)
        return bad

    return looked


def test_a_child_goes_from_file_to_file(look: Look) -> None:
    worker.end_waiting()
    assert look(*"abcdefgh") == {}
    assert 1 <= len(worker._waiting) <= 2
    context = multiprocessing.get_context("fork")  # whose child has children of its own
    queue = context.Queue()
    process = context.Process(target=lambda: queue.put(len(worker._waiting)))
    process.start()
    assert queue.get(timeout=60) == 0
    process.join()


def test_crashes(look: Look, tmp_path: Path, fake_worker: Callable[[str], None]) -> None:
    """One costs its own file only, and only a new child's death says something about the file."""
    fake_worker("""
        import os
        from pathlib import Path
        from lmms_eval_tasks.utils.media import video_checks, worker
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


def test_later_runs_look_at_files_that_changed(look: Look, tmp_path: Path, jobs: Any) -> None:
    def looked_at() -> list[str]:
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
def test_windows_of_a_video(start: float | None, end: float | None, says: str) -> None:
    assert video_checks.outside(start, end, 10.0) == says


def test_a_link_that_leads_to_itself_is_a_missing_video(tmp_path: Path) -> None:
    loop = tmp_path / "loop.mp4"
    loop.symlink_to(tmp_path / "back.mp4")
    (tmp_path / "back.mp4").symlink_to(loop)
    for only in (None, {str(loop), str(tmp_path / "back.mp4")}):
        assert video_checks.look({"v": loop}, only)[1] == {"v": f"missing: {loop}"}
    assert video_checks.look({"v": loop}, {"other"}) == ({}, {})
