"""A cache folder of media files, which are found by their source and the work that made them.

An entry is one or more files with a JSON note. Files are made in a hidden folder and then renamed.
The note is written last, so that an entry is either complete or missing.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import CacheError, MediaError
from lmms_eval_tasks.utils.json_files import Json, JsonObject
from lmms_eval_tasks.utils.media import worker

# Seconds: encoding a whole film takes an hour, but a decoder that hangs must end some time.
PATIENCE = 7200.0
_WHOLE = 2**25  # largest file, in bytes, that is hashed completely
_PIECES, _PIECE = 64, 2**16  # pieces of a larger file that are hashed: number, and bytes of each


@dataclass(frozen=True)
class CacheEntry:
    """The files of an entry by their endings, their source, and the worker's facts about them."""

    source: str
    paths: dict[str, str]
    facts: JsonObject


def cached_files(
    source: str | Path,
    recipe: str,
    version: int,
    work: tuple[str, str],
    /,
    *,
    folder: str = "media",
    time_limit: float | None = None,
    identity: str = "",
    **arguments: Json,
) -> CacheEntry:
    """Return the files that a worker makes of a video, made once for all threads and processes.

    Args:
        source: the video.
        recipe: name of the result, with which the files' names begin.
        version: version of the worker.
        work: module and function for worker.call. The function writes files whose names are its
            argument `out` and an ending. It returns facts, with the endings as `files`.
        folder: subfolder of the user's cache folder.
        time_limit: seconds for the work, and also for waiting while another process does the same
            work; default PATIENCE.
        identity: hash of the video, in place of its content's.
        arguments: further arguments of the function, on which the result depends.

    Raises:
        MediaError: the video cannot be read; the message names the video.
        CacheError: the folder cannot be written to.
    """
    video, place = worker.source_file(source), (settings.cache_dir() / folder).absolute()
    limit = time_limit or PATIENCE
    try:
        content = identity or content_id(video)
    except OSError as error:
        raise MediaError(f"{video}: cannot be read: {error}") from error
    made_from = json.dumps([content, recipe, version, arguments])
    try:
        name = f"{recipe}-{hashlib.blake2b(made_from.encode(), digest_size=12).hexdigest()}"
        note = _load(place, name)
        if note is None:
            with only_one(place, name, limit):
                job = partial(worker.call, *work, video, limit, **arguments)
                note = _load(place, name) or _make(place, name, limit, job)
    except OSError as error:
        raise CacheError(
            f"{place}: cannot be written ({error.strerror or error}): free "
            f"space there, or set {settings.CACHE} to another folder"
        ) from error
    paths = {ending: str(place / f"{name}{ending}") for ending in note["sizes"]}
    return CacheEntry(str(video), paths, note["facts"])


def _load(folder: Path, name: str) -> JsonObject | None:
    """Return the note of an entry whose files all match it.

    None if the entry has to be made again.
    """
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        note: JsonObject = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
        known = note.get("contents", {})  # earlier versions have no such field
        for ending, size in note["sizes"].items():
            file = folder / f"{name}{ending}"
            state = file.stat()
            if state.st_size != size:
                return None
            # After a crash of the machine, a file may have its size but not its content.
            found = _made_id(file, size, state.st_mtime_ns, state.st_ctime_ns)
            if found != known.get(ending, found):
                return None
        return note
    return None


def _make(folder: Path, name: str, time_limit: float, job: Callable[..., JsonObject]) -> JsonObject:
    for left in folder.glob(f".{name}.*"):  # left by a process that was killed
        if time.time() - left.stat().st_mtime > 2 * time_limit:
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=folder) as place:
        facts = job(out=f"{place}/made")
        made = {ending: Path(f"{place}/made{ending}") for ending in facts.pop("files")}
        sizes = {ending: file.stat().st_size for ending, file in made.items()}
        contents = {ending: _digest(file, sizes[ending]) for ending, file in made.items()}
        note = {"facts": facts, "sizes": sizes, "contents": contents}
        made[".json"] = Path(place, "note")
        made[".json"].write_text(json.dumps(note), encoding="utf-8")
        for ending, file in made.items():
            file.replace(folder / f"{name}{ending}")
    return note


@contextmanager
def only_one(folder: Path, name: str, patience: float) -> Iterator[None]:
    """Let one thread of one process at a time work on an entry; others wait.

    The lock ends with its process. Its only use is to save work: after `patience` seconds, or if
    the file system has no locks, the work is done without it. The last rename then wins, with equal
    content.
    """
    from filelock import FileLock, Timeout

    # 256 lock files for all entries, since lock files can never be deleted safely.
    locks = folder / ".locks"
    locks.mkdir(parents=True, exist_ok=True)
    lock = FileLock(locks / hashlib.blake2b(name.encode(), digest_size=1).hexdigest())
    with suppress(Timeout, OSError, NotImplementedError):
        lock.acquire(timeout=patience)
    try:
        yield
    finally:
        lock.release()


def content_id(path: Path) -> str:
    """Return a hash of a file's content, cached while path, size and times stay the same.

    Up to 32 MiB, the hash covers the whole file. Reading hours of a larger video would take longer
    than cutting a minute of it. Its hash covers the size, the times of the last change, and 4 MiB
    spread evenly over the file. The time ctime changes with each write, even if mtime is reset. A
    changed file therefore has another hash. A copy of a large file may also have another hash, and
    its media are made again.

    Raises:
        OSError: the file cannot be read.
    """
    state = path.stat()
    return _content_id(path, state.st_size, state.st_mtime_ns, state.st_ctime_ns)


@lru_cache(maxsize=65536)
def _content_id(path: Path, size: int, modified: int, changed: int) -> str:
    times = f"{size} {modified} {changed}" if size > _WHOLE else ""
    return _digest(path, size, times)


@lru_cache(maxsize=65536)
def _made_id(path: Path, size: int, modified: int, changed: int) -> str:  # noqa: ARG001 - its state
    """Return the id of a file that was made here; copies elsewhere have the same id."""
    return _digest(path, size)


def _digest(path: Path, size: int, begin: str = "") -> str:
    digest = hashlib.blake2b(begin.encode(), digest_size=16)
    with path.open("rb") as file:
        if size <= _WHOLE:
            digest.update(file.read())
        else:
            for number in range(_PIECES):
                file.seek((size - _PIECE) * number // (_PIECES - 1))
                digest.update(file.read(_PIECE))
    return digest.hexdigest()
