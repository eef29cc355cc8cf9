"""Facts about the user's videos, and what is wrong with those that cannot be read.

    >>> look([Path("videos/1.mp4"), Path("videos/2.mp4")])
    {PosixPath('videos/1.mp4'): VideoInfo(n_frames=750, width=640, ...),
     PosixPath('videos/2.mp4'): 'unreadable: /data/videos/2.mp4: the file is empty'}

A file is read once, by child processes that go from file to file (worker_call.py). What they say is
kept in the cache folder for all later runs, by the file's path, size and time of change.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import media_cache, worker_call

# Raise when a probe can say something else about the same file.
_VERSION = 2
_TIME_LIMIT = 60.0  # seconds for one file
_PATIENCE = 120.0  # seconds to wait for another process that looks at videos
_FEW = 4  # files for which another child process is not worth its start


@dataclass(frozen=True)
class VideoInfo:
    """Facts about a source video: size upright, in pixels; seconds after the first frame shown.

    duration: of the picture. fps: its mean rate.
    end: of the file: `duration`, or the end of its sound where that is later. A segment may end
        there: its last frame stays on screen (segment_picture.py).
    """

    n_frames: int
    width: int
    height: int
    duration: float
    end: float
    fps: float
    has_audio: bool


def probe(source: str | Path, time_limit: float = _TIME_LIMIT) -> VideoInfo:
    """Facts about a video file, read from its packets; the first frame is decoded to be sure.

    Of the sound, what goes on after the picture is decoded.

    Raises:
        MediaError: it is not a readable video; the message names the file and the trouble.
    """
    file = _File.at(worker_call.source_file(source))
    found = _known([file], time_limit)[file]
    if isinstance(found, str):
        raise MediaError(found)
    return found


def look(paths: Iterable[Path]) -> dict[Path, VideoInfo | str]:
    """Facts about each video, or why it is no use: "missing: ..." or "unreadable: ..."."""
    found: dict[Path, VideoInfo | str] = {}
    files: dict[Path, _File] = {}
    for path in dict.fromkeys(paths):
        try:
            path.stat()
            files[path] = _File.at(worker_call.source_file(path))
        except OSError:
            found[path] = f"missing: {path}"
        except MediaError as error:
            found[path] = f"unreadable: {error}"
    known = _known(list(dict.fromkeys(files.values())), _TIME_LIMIT)
    for path, file in files.items():
        one = known[file]
        found[path] = f"unreadable: {one}" if isinstance(one, str) else one
    return found


# --- what is known ----------------------------------------------------------------------------


class _File(NamedTuple):
    """A state of a file: its path, bytes, and nanoseconds of its last change."""

    path: str
    size: int
    changed: int

    @classmethod
    def at(cls, path: Path) -> _File:
        state = path.stat()
        return cls(str(path), state.st_size, state.st_mtime_ns)


class _Memory:
    """What is known about files: in this process, and in a file that all processes add lines to."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._file = folder, folder / f"{_readers()}.jsonl"
        self._known: dict[_File, VideoInfo | str] = {}
        self._seen = 0  # bytes of the file

    def get(self, file: _File) -> VideoInfo | str | None:
        """Facts, or why it cannot be read; None if nobody has looked."""
        return self._known.get(file)

    def refresh(self) -> None:
        """Read what processes have added."""
        seen = self._seen  # other threads read as well
        with suppress(OSError), self._file.open("rb") as lines:
            lines.seek(seen)
            for line in lines:
                if not line.endswith(b"\n"):
                    break  # somebody is writing it
                seen += len(line)
                with suppress(ValueError, TypeError):  # a full disk or a kill cut a line short
                    *file, found = json.loads(line)
                    info = found if isinstance(found, str) else VideoInfo(**found)
                    self._known[_File(*file)] = info
        self._seen = seen

    def add(self, file: _File, found: VideoInfo | str, *, lasting: bool) -> None:
        """Keep what was found, on disk if it is `lasting` and the disk lets us."""
        self._known[file] = found
        if lasting:
            line = json.dumps([*file, found if isinstance(found, str) else asdict(found)])
            with suppress(OSError), self._file.open("a", encoding="utf-8") as lines:
                lines.write(f"{line}\n")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While other processes wait with looking, as the videos are most likely the same."""
        with ExitStack() as stack:
            with suppress(OSError):  # nothing can be written there, so nothing is shared
                self._folder.mkdir(parents=True, exist_ok=True)
                stack.enter_context(media_cache.only_one(self._folder, self._file.name, _PATIENCE))
            yield


@functools.cache
def _memory(folder: Path) -> _Memory:
    return _Memory(folder)


@functools.cache
def _readers() -> str:
    """Name of the memory: another probe or another version of a reader may say something else."""
    names = [str(_VERSION)]
    for name in ("av", "decord"):
        with suppress(metadata.PackageNotFoundError):
            names.append(f"{name}{metadata.version(name)}")
    return "-".join(names)


def _known(files: Sequence[_File], time_limit: float) -> dict[_File, VideoInfo | str]:
    """What the memory says about the files, after looking at those that it does not know."""
    memory = _memory(settings.cache_dir() / "probes")

    def new() -> list[_File]:
        return [file for file in files if memory.get(file) is None]

    def learn(file: _File) -> None:
        memory.refresh()
        if memory.get(file) is None:
            found, lasting = _read(file, time_limit)
            memory.add(file, found, lasting=lasting)

    if new():
        memory.refresh()
    if new():
        with memory.alone():
            _all(learn, new())
    return {file: found for file in files if (found := memory.get(file)) is not None}


def _all(learn: Callable[[_File], None], files: Sequence[_File]) -> None:
    """Look at files, with as many children as there are processors."""
    pool = ThreadPoolExecutor(min(os.cpu_count() or 1, -(-len(files) // _FEW)))
    try:
        list(pool.map(learn, files))
    finally:
        pool.shutdown(cancel_futures=True)  # who stops the run does not wait for all of them


def _read(file: _File, time_limit: float) -> tuple[VideoInfo | str, bool]:
    """What a child process says about a file, and whether it would say so again."""
    job = {"do": "probe", "source": file.path}
    try:
        answer = worker_call.call(job, time_limit, decord=True)
    except worker_call.UnfinishedError as error:
        return str(error), False
    except MediaError as error:
        return str(error), True
    return VideoInfo(**answer["info"]), answer["lasting"]
