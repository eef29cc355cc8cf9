"""A folder of finished media files, found by what they were made from.

An entry is a media file and a JSON file beside it; the JSON file is written last, so that an entry
is there as a whole or not at all. Files are written under a temporary name in the same folder and
then renamed.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import worker_call

_CHUNK = 2**20
_WHOLE = 2**25  # bytes up to which a file is hashed in whole
_PIECES, _PIECE = 64, 2**16  # of a larger one: how many, and bytes of each
_PAUSE = 0.02  # seconds between two looks at a lock


def content_id(path: Path) -> str:
    """Hash that tells a file's content; taken once as long as path, size and times stay.

    Up to 32 MiB a hash of all that is in it. Of larger files, whose hours would take longer to read
    than a minute of them to cut: of the size, the times of the last change, and 4 MiB that are
    spread evenly. The second time (ctime) is the system's own: it changes with each write, also
    where the first (mtime) is put back. So a changed file has another hash; a large file that was
    only copied or touched may have one too, and what was made of it is made again.

    Raises:
        OSError: the file cannot be read.
    """
    status = path.stat()
    return _content_id(str(path), status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@lru_cache(maxsize=65536)
def _content_id(path: str, size: int, modified: int, changed: int) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with Path(path).open("rb") as file:
        if size <= _WHOLE:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
        else:
            digest.update(f"{size} {modified} {changed}".encode())
            for number in range(_PIECES):
                file.seek((size - _PIECE) * number // (_PIECES - 1))
                digest.update(file.read(_PIECE))
    return digest.hexdigest()


def entry_name(content: str, recipe: str, version: int) -> str:
    """Name of an entry: the recipe, for people, and a hash of everything the result depends on."""
    digest = hashlib.blake2b(f"{content} {recipe} {version}".encode(), digest_size=12)
    return f"{recipe}-{digest.hexdigest()}"


def load(folder: Path, name: str) -> dict[str, Any] | None:
    """The metadata of a complete entry, or None.

    The media file must have the size that was noted: a file that somebody cut or deleted is made
    again.
    """
    try:
        text = (folder / f"{name}.json").read_text(encoding="utf-8")
        entry: dict[str, Any] = json.loads(text)
        if (folder / entry["file"]).stat().st_size == entry["bytes"]:
            return entry
    except (OSError, ValueError, KeyError, TypeError):
        pass  # absent, or not written by us: the caller makes it
    return None


def kept(
    video: Path,
    cache: Path | None,
    *,
    recipe: str,
    version: int,
    asked: str = "",
    patience: float,
    make: Callable[[Path, str], dict[str, Any]],
    find: Callable[[Path, str], dict[str, Any] | None] = load,
) -> tuple[Path, str, dict[str, Any]]:
    """What is there of a video, or what `make` makes of it, once for all threads and processes.

    Args:
        video: the source.
        cache: the folder, created if absent; None is `media` in the user's cache folder.
        recipe: what is made, for people; part of the entry's name.
        version: of what makes it.
        asked: what the result depends on besides.
        patience: seconds to wait for another maker.
        make: given the folder and the entry's name, publishes the entry and returns it.
        find: a complete entry, or None.

    Returns:
        The folder, the entry's name, and the entry.

    Raises:
        MediaError: the video cannot be read or the folder not be written to; names the video.
    """
    folder = Path(cache or settings.cache_dir() / "media").absolute()
    try:
        name = entry_name(content_id(video) + asked, recipe, version)
        entry = find(folder, name)
        if entry is None:
            folder.mkdir(parents=True, exist_ok=True)
            with only_one(folder, name, patience):
                entry = find(folder, name)
                if entry is None:
                    _remove_leftovers(folder, name, older_than=2 * patience)
                    entry = make(folder, name)
    except OSError as error:
        raise MediaError(
            f"{video}: cannot be read, or what is made of it not be written: {error}"
        ) from error
    return folder, name, entry


def write_one(
    job: dict[str, Any], at: tuple[Path, str], time_limit: float, *, decord: bool = False
) -> dict[str, Any]:
    """Have a worker do a job that writes one file to its `out`, and publish that.

    Args:
        job, time_limit, decord: as in worker_call.call; the answer's `suffix` is the file's ending.
        at: the folder and the entry's name.
    """
    folder, name = at
    part = temporary(folder, name, ".part")
    try:
        facts = worker_call.call({**job, "out": str(part)}, time_limit, decord=decord)
        return publish(folder, name, part, facts.pop("suffix"), facts)
    finally:
        part.unlink(missing_ok=True)


def temporary(folder: Path, name: str, suffix: str) -> Path:
    """A new name for a file in the making; hidden, and never the same twice."""
    return folder / f".{name}.{os.getpid()}.{time.monotonic_ns()}{suffix}"


def publish(
    folder: Path, name: str, made: Path, suffix: str, facts: dict[str, Any]
) -> dict[str, Any]:
    """Rename a finished file into the cache and write its metadata; replaces what was there.

    Returns:
        The entry as `load` gives it.

    Raises:
        OSError: the folder cannot be written to.
    """
    entry = {**facts, "file": f"{name}{suffix}", "bytes": made.stat().st_size}
    note = temporary(folder, name, ".json")
    try:
        note.write_text(json.dumps(entry), encoding="utf-8")
        made.replace(folder / entry["file"])
        note.replace(folder / f"{name}.json")
    finally:
        note.unlink(missing_ok=True)
    return entry


def _remove_leftovers(folder: Path, name: str, older_than: float) -> None:
    """Delete temporary files of an entry that a killed maker left `older_than` seconds ago."""
    for file in folder.glob(f".{name}.*"):
        with suppress(OSError):
            if time.time() - file.stat().st_mtime > older_than:
                file.unlink()


@contextmanager
def only_one(folder: Path, name: str, patience: float) -> Iterator[None]:
    """Let one thread of one process at a time work on an entry; the others wait for it.

    The lock belongs to an open file, so it ends with a process that dies. It only saves work: after
    `patience` seconds, or where the file system has no locks, the work is done without it, and the
    last one to rename wins with equal content.
    """
    import fcntl

    # 256 lock files for all entries instead of one each: they can never be deleted safely.
    locks = folder / ".locks"
    locks.mkdir(exist_ok=True)
    shard = hashlib.blake2b(name.encode(), digest_size=1).hexdigest()
    with (locks / shard).open("a") as file:
        end = time.monotonic() + patience
        held = False
        while not held and time.monotonic() < end:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = True
            except BlockingIOError:
                time.sleep(_PAUSE)
            except OSError:
                break
        try:
            yield
        finally:
            if held:
                # Explicitly: a forked child may hold the same open file longer than we do.
                fcntl.flock(file, fcntl.LOCK_UN)
