"""Looking at videos: children that go from file to file, what is kept, and what a run needs."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import media_files as files
import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import probes, video_checks, worker_call
from lmms_eval_tasks.utils.media.probes import VideoInfo
from tests.checks import refused, table

# media_worker.py, but it notes which process looks at which file, and does what a file's name says.
WORKER = """
import os, signal
from pathlib import Path
from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import media_worker
work, done = media_worker.probe, []
def probe(source, use_decord):
    name = Path(source).stem
    with open(os.environ["NOTES"], "a") as notes:
        notes.write(f"{os.getpid()} {name}\\n")
    if name == "crash" or (name == "later" and done) or (name == "decord" and use_decord):
        os.kill(os.getpid(), signal.SIGSEGV)
    if name == "refused":
        raise MediaError("not a readable video (Permission denied)") from PermissionError()
    done.append(source)
    return work(source, use_decord)
media_worker.probe = probe
media_worker.main()
"""


def problems(paths: Iterable[Path]) -> dict[Path, str]:
    """What is wrong with those that cannot be used."""
    return {path: found for path, found in probes.look(paths).items() if isinstance(found, str)}


def forget() -> None:
    """What this process knows, as a new process would not."""
    probes._memory.cache_clear()


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


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notes]:
    """A cache of its own, and children that note what they do."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "noting_worker.py").write_text(WORKER)
    file = tmp_path / "notes"
    file.touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setenv("NOTES", str(file))
    monkeypatch.setenv(settings.CACHE, str(tmp_path / "cache"))
    monkeypatch.setattr(worker_call, "WORKER", "noting_worker")
    forget()
    yield Notes(file)
    worker_call.end_waiting()
    forget()


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


# --- children: many files by few processes, and each file pays for itself ----------------------


def test_a_child_goes_from_file_to_file(notes: Notes, videos: Videos) -> None:
    paths = videos(*"abcdefgh")
    found = probes.look(paths)
    assert list(found) == paths
    assert {type(one) for one in found.values()} == {VideoInfo}
    assert notes.names() == list("abcdefgh")
    assert len(notes.processes) <= 2


def test_crashes(notes: Notes, videos: Videos) -> None:
    """One costs its own file only, and only a new child's death says something about the file."""
    paths = videos("a", "crash", "later")
    said = f"unreadable: {paths[1]}: reading it failed (the decoder crashed: SIGSEGV)"
    assert problems(paths) == {paths[1]: said}
    paths = videos("a", "later", "b")
    forget()
    assert problems(paths) == {}
    notes.names()
    forget()
    assert problems(paths) == {}
    assert notes.names() == []  # an earlier file's doing, and not decord's: it is a fact
    paths = videos("decord")
    for _ in range(2):
        assert problems(paths) == {}
        assert notes.names() != []  # decord may count other frames, so it is asked again
        forget()


def test_a_forked_process_has_children_of_its_own(notes: Notes, videos: Videos) -> None:
    probes.probe(*videos("a"))
    assert len(worker_call._waiting) == 1
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=lambda: queue.put(len(worker_call._waiting)))
    process.start()
    assert queue.get(timeout=60) == 0
    process.join()
    assert len(worker_call._waiting) == 1


# --- what was found is kept for later runs, and believed as long as it is about this very file --


def test_later_runs_look_at_files_that_changed(notes: Notes, videos: Videos) -> None:
    paths = videos("a", "b", "bad")
    bad, good = paths[2], paths[2].read_bytes()
    bad.write_bytes(b"no video")
    first = probes.look(paths)
    assert notes.names() == ["a", "b", "bad"]
    assert str(first[bad]).startswith(f"unreadable: {bad}: ")
    forget()
    assert probes.look(paths) == first
    assert f"unreadable: {refused(MediaError, 'bad', probes.probe, bad)}" == first[bad]
    assert notes.names() == []
    bad.write_bytes(good)
    assert problems(paths) == {}
    assert notes.names() == ["bad"]


def test_what_is_no_fact_about_the_file_is_not_kept(notes: Notes, videos: Videos) -> None:
    """A child may have died for want of memory; a permission may be given tomorrow."""
    paths = videos("crash", "refused")
    for _ in range(2):
        found = problems(paths)
        assert "Permission denied" in found[paths[1]]
        assert problems(paths) == found  # within a run it is
        assert {"crash", "refused"} == set(notes.names())
        forget()


def test_lines_that_were_cut_short(notes: Notes, videos: Videos, tmp_path: Path) -> None:
    a, b, c = videos("a", "b", "c")
    probes.look([a, b])
    (file,) = (tmp_path / "cache" / "probes").glob("*.jsonl")
    first, second = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(first + b"\xff\n[1]\n{}\n" + second[:20])
    kept = json.loads(first)[0]
    forget()
    notes.names()
    assert problems([a, b, c]) == {}
    lost = {"a", "b"} - {Path(kept).stem}
    assert notes.names() == sorted(lost | {"c"})
    forget()
    assert problems([a, b, c]) == {}
    assert len(notes.names()) <= 1  # the line that went on where another was cut


def test_two_processes_look_once(notes: Notes, videos: Videos, tmp_path: Path) -> None:
    paths = videos(*"abcdef")
    code = (
        "import sys; from pathlib import Path\n"
        "from lmms_eval_tasks.utils.media import probes, worker_call\n"
        "worker_call.WORKER = 'noting_worker'\n"
        "print(len(probes.look(map(Path, sys.argv[1:]))))\n"
    )
    command = [sys.executable, "-c", code, *map(str, paths)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [one.communicate(timeout=120)[0] for one in both] == ["6\n"] * 2
    assert notes.names() == list("abcdef")
    (file,) = (tmp_path / "cache" / "probes").glob("*.jsonl")
    assert len(file.read_text().splitlines()) == 6


# --- the facts --------------------------------------------------------------------------------


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
