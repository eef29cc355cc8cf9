"""Looking at videos: children that go from file to file, what is kept, and what a run needs."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import media_files as files
import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import video_checks, worker
from lmms_eval_tasks.utils.media.video_checks import VideoInfo
from tests.checks import refused, table

# worker.py, but it notes which process looks at which file, and does what a file's name says.
WORKER = """
import os, signal
from pathlib import Path
from lmms_eval_tasks.utils.media import video_checks, worker
work, done = video_checks.facts, []
def facts(source, out):
    name = Path(source).stem
    with open(os.environ["NOTES"], "a") as notes:
        notes.write(f"{os.getpid()} {name}\\n")
    if name == "crash" or (name == "later" and done):
        os.kill(os.getpid(), signal.SIGSEGV)
    done.append(source)
    return work(source, out)
video_checks.facts = facts
worker.main()
"""


def problems(paths: list[Path]) -> dict[str, str]:
    """What is wrong with those that cannot be used, by their names."""
    return video_checks.look({path.stem: path for path in paths})[1]


class Notes:
    """What the children did."""

    def __init__(self, file: Path) -> None:
        self.file, self.processes = file, set[str]()

    def names(self) -> list[str]:
        """The files that were looked at since the last call, sorted; by which `processes`."""
        lines = [line.split() for line in self.file.read_text().splitlines()]
        self.file.write_text("")
        self.processes = {process for process, _ in lines}
        return sorted(name for _, name in lines)

    def forget(self) -> None:
        """What this process knows, as a new process would not."""
        self.names()
        video_checks._looked.cache_clear()


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notes]:
    """A cache of its own, and children that note what they do."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "noting_worker.py").write_text(WORKER)
    made = Notes(tmp_path / "notes")
    made.file.touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setenv("NOTES", str(made.file))
    monkeypatch.setenv(settings.CACHE, str(tmp_path / "cache"))
    monkeypatch.setattr(worker, "WORKER", "noting_worker")
    worker.end_waiting()
    made.forget()
    yield made
    worker.end_waiting()


Videos = Callable[..., list[Path]]


@pytest.fixture
def videos(tmp_path: Path) -> Videos:
    """Makes good files of these names."""
    good = files.write_video(tmp_path / "good.mp4", 5).read_bytes()

    def make(*names: str) -> list[Path]:
        paths = [tmp_path / f"{name}.mp4" for name in names]
        for path in paths:
            path.write_bytes(good)
        return paths

    return make


def test_a_child_goes_from_file_to_file(notes: Notes, videos: Videos) -> None:
    found, bad = video_checks.look({path.stem: path for path in videos(*"abcdefgh")})
    assert (list(found), bad) == (list("abcdefgh"), {})
    assert {type(one) for one in found.values()} == {VideoInfo}
    assert notes.names() == list("abcdefgh")
    assert len(notes.processes) <= 2
    assert worker._waiting
    context = multiprocessing.get_context("fork")  # whose child has children of its own
    queue = context.Queue()
    process = context.Process(target=lambda: queue.put(len(worker._waiting)))
    process.start()
    assert queue.get(timeout=60) == 0
    process.join()


def test_crashes(notes: Notes, videos: Videos) -> None:
    """One costs its own file only, and only a new child's death says something about the file."""
    paths = videos("a", "crash", "later")
    said = f"unreadable: {paths[1]}: reading it failed (the decoder crashed: SIGSEGV)"
    assert problems(paths) == {"crash": said}
    # A child may have died for want of memory: not for ever.
    notes.forget()
    assert problems(paths) == {"crash": said}
    assert set(notes.names()) == {"crash"}


def test_later_runs_look_at_files_that_changed(notes: Notes, videos: Videos) -> None:
    paths = videos("a", "b", "bad")
    bad, good = paths[2], paths[2].read_bytes()
    bad.write_bytes(b"no video")
    first = problems(paths)
    assert notes.names() == ["a", "b", "bad"]
    assert first["bad"].startswith(f"unreadable: {bad}: ")
    notes.forget()
    assert problems(paths) == first
    assert f"unreadable: {refused(MediaError, 'bad', video_checks.probe, bad)}" == first["bad"]
    assert notes.names() == ["bad"]  # which may be readable now
    bad.write_bytes(good)
    assert problems(paths) == {}
    assert notes.names() == ["bad"]
    for note in (settings.cache_dir() / "probes").glob("probe-*.json"):
        note.write_bytes(note.read_bytes()[:20])  # a full disk
    notes.forget()
    assert problems(paths) == {}
    assert notes.names() == ["a", "b", "bad"]


def test_two_processes_look_once(notes: Notes, videos: Videos) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from lmms_eval_tasks.utils.media import video_checks, worker\n"
        "worker.WORKER = 'noting_worker'\n"
        "print(len(video_checks.look({n: Path(n) for n in sys.argv[1:]})[0]))\n"
    )
    command = [sys.executable, "-c", code, *map(str, videos(*"abcdef"))]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [one.communicate(timeout=120)[0] for one in both] == ["6\n"] * 2
    assert notes.names() == list("abcdef")


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
