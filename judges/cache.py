"""The judges' replies on disk: stored before any use, so that nothing is paid for twice.

One SQLite file in WAL mode for all threads and processes of a machine. With synchronous=NORMAL a
commit does not wait for the disk: the system writes the commits of a killed process; after a power
failure the last commits may be lost, but the file stays intact.

One connection per process, with a lock: with one per thread, a hit took 64 threads 1.5 to 3 times
as long. SQLite must not be carried across a fork (the child would believe that it holds the
parent's file locks), so the connection is closed before a fork.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import platform
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks import notify, settings
from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges.providers.exchange import (
    FORMAT,
    JudgeReply,
    Request,
    pack,
    plain,
    reply_of,
    unpack,
)
from lmms_eval_tasks.utils.json_files import JsonObject

if TYPE_CHECKING:
    import sqlite3

    from filelock import FileLock

COMMON = "replies.sqlite3"
BUSY_SECONDS = 60.0  # other processes lock the file for milliseconds, a load for seconds
_POLL = 0.02  # seconds between two checks for another process's reply
# `rest` has fields that a hit does not need: request, criterion, judge, task, stored. `copy` is
# always 0.
_TABLE = """CREATE TABLE replies (key TEXT NOT NULL, copy INTEGER NOT NULL, reply BLOB NOT NULL,
    rest BLOB NOT NULL, PRIMARY KEY (key, copy))"""
_INDEX = "sqlite_autoindex_replies_1"
_INTO = "INTO replies (key, copy, reply, rest)"
_INSERT, _REPLACE = f"INSERT OR IGNORE {_INTO}", f"INSERT OR REPLACE {_INTO}"
_USED = "SELECT reply FROM replies WHERE key = ? AND copy = 0"


def file_of(folder: Path, env: Mapping[str, str]) -> Path:
    """Return the file that this process writes.

    WAL does not work between machines, so each of several nodes (torchrun's variables, a Slurm job
    array) has its own file.
    """
    world = int(env.get("WORLD_SIZE", "1"))
    several = world > int(env.get("LOCAL_WORLD_SIZE", world)) or "SLURM_ARRAY_TASK_ID" in env
    return folder / (f"replies-{platform.node()}.sqlite3" if several else COMMON)


class Cache:
    """The replies in one file, for many threads and forked processes.

    Raises:
        JudgeError: the file is not ours, damaged, of another format, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._file: sqlite3.Connection | None = None
        # Disk and number of the open file and of its logs.
        self._places: list[tuple[int, int] | None] = []
        self._warned = False
        # Rows by key that a full disk did not take.
        self._unwritten: dict[str, tuple[str, bytes, bytes]] = {}
        # The file of `alone`, and the keys that are locked in it.
        self._asked, self._under_way = -1, set[str]()
        # Held during a fork: so no thread is inside SQLite, and the child gets a free lock.
        if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
            os.register_at_fork(
                before=self._before_fork,
                after_in_parent=self._lock.release,
                after_in_child=self._after_fork,
            )
        atexit.register(self.close)  # the last process that closes the file empties the WAL
        with _explained(path), self._lock:
            self._open()

    def get(self, key: str) -> JudgeReply | None:
        """Return the reply for `key`; None if there is none, or if the file fails (one warning)."""
        reply = None
        with _explained(self.path, self._warn):
            with self._lock:
                unwritten = self._unwritten.get(key)
                row = unwritten[1:] if unwritten else self._open().execute(_USED, (key,)).fetchone()
            reply = None if row is None else reply_of(unpack(row[0]))
        return reply  # noqa: RET504 - None if the file failed

    def put(
        self, key: str, reply: JudgeReply, request: Request, about: Mapping[str, str]
    ) -> JudgeReply:
        """Store a reply.

        Args:
            key: the key of the request (exchange.key).
            reply: the endpoint's reply.
            request: the request.
            about: `criterion`, `judge` and `task`, for people and tables.

        Returns:
            The reply that every later `get` returns. It is `reply`, or an earlier readable one of
            another process.

        If the file fails now (a full disk), there is one warning, the result is `reply`, and the
        reply is written with a later one or at the end.
        """
        now = datetime.now(timezone.utc).isoformat(timespec="microseconds")
        row = (key, pack(plain(reply)), pack({"request": plain(request), **about, "stored": now}))
        kept = reply
        with _explained(self.path, self._warn), self._lock:
            self._unwritten[key] = row
            kept = self._write(row)
            self._write_rest()
        return kept

    def _write(self, row: tuple[str, bytes, bytes]) -> JudgeReply:
        """Write a row, and return the reply that the file then has; the caller holds the lock."""
        file, (key, packed, _) = self._open(), row
        if file.execute(f"{_INSERT} VALUES (?, 0, ?, ?)", row).rowcount == 0:
            (packed,) = file.execute(_USED, (key,)).fetchone()
        try:
            kept = reply_of(unpack(packed))
        except _UNREADABLE:  # replace a damaged row: else every run would pay for it again
            file.execute(f"{_REPLACE} VALUES (?, 0, ?, ?)", row)
            kept = reply_of(unpack(row[1]))
        self._unwritten.pop(key, None)
        return kept

    def _write_rest(self) -> None:
        for row in list(self._unwritten.values()):
            self._write(row)

    @contextmanager
    def alone(self, key: str, wait: Callable[[float], bool]) -> Iterator[None]:
        """Context manager for a request: other threads and processes with the same one wait.

        The claim ends with the block or the process. After BUSY_SECONDS of waiting for another
        process, or once `wait(seconds)` is False, the block runs without the claim: then both may
        pay, but neither waits forever.
        """
        until = time.monotonic() + BUSY_SECONDS
        while not (is_ours := self._take(key, time.monotonic() < until)) and wait(_POLL):
            pass
        try:
            yield
        finally:
            if is_ours:
                with self._lock, suppress(OSError):
                    self._under_way.discard(key)
                    self._lock_byte(key, free=True)

    def _take(self, key: str, others: bool) -> bool:
        """Claim a request; return False if a thread, or with `others` a process, has it."""
        with self._lock:
            if key in self._under_way:
                return False
            try:
                self._lock_byte(key)
            except (BlockingIOError, PermissionError):
                if others:
                    return False
            except OSError:  # a file system without locks
                pass
            self._under_way.add(key)
            return True

    def _lock_byte(self, key: str, *, free: bool = False) -> None:
        """Lock or free the byte of a file that stands for a request, if the system has such locks.

        The locks belong to the open file, not to the process: so the system suspects no deadlock,
        and closing another file frees none. A single file is open for all, since a process has few
        descriptors.
        """
        try:
            import fcntl
        except ImportError:  # Windows
            return
        import struct

        command: int | None = getattr(fcntl, "F_OFD_SETLK", None)  # None: macOS
        if command is not None:
            kind = fcntl.F_UNLCK if free else fcntl.F_WRLCK
            asked = struct.pack("hhqqi", kind, os.SEEK_SET, int(key[:15], 16), 1, 0)
            fcntl.fcntl(self._asked_file(), command, asked)

    def _asked_file(self) -> int:
        if self._asked < 0:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            name = f"{self.path.name}.asked"
            self._asked = os.open(self.path.with_name(name), flags, 0o644)
        return self._asked

    def load(self, other: Path) -> int:
        """Copy another cache's replies, all or none; return the number of new ones.

        Raises:
            JudgeError: a file cannot be used.
        """
        with _explained(other), self._lock:
            # Checks the format, and reads a killed process's log.
            _connect(other, create=False).close()
            file = self._open()
            file.execute("ATTACH ? AS other", (f"{other.absolute().as_uri()}?mode=ro",))
            try:
                rows = "SELECT key, copy, reply, rest FROM other.replies WHERE copy = 0"
                return file.execute(f"{_INSERT} {rows}").rowcount
            finally:
                file.execute("DETACH other")

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        with _explained(self.path, self._warn), self._lock:
            self._write_rest()
            self._check()
        with self._lock:
            self._close()

    def _open(self) -> sqlite3.Connection:
        """Return this process's connection; the caller holds the lock."""
        self._check()
        if self._file is None:
            self._file = _connect(self.path, create=True)
            self._places = list(map(_place, _files(self.path)))
        return self._file

    def _check(self) -> None:
        """Write the replies again if the file was removed or replaced.

        The old connection can still be read. It is never closed: that would remove the log of the
        new file, which has the same name.
        """
        old = self._file
        if old is None or (place := _place(self.path)) == self._places[0]:
            return
        self._places[0] = place  # set first: if the next steps fail, there is only one warning
        # The first process removes the old logs, which would damage a new file.
        with _alone_at(self.path):
            for file, place in zip(_files(self.path)[1:], self._places[1:], strict=True):
                if place is not None and _place(file) == place:
                    file.unlink()
        new = _connect(self.path, create=True)
        with new:
            new.execute("BEGIN IMMEDIATE")
            rows = old.execute("SELECT key, copy, reply, rest FROM replies")
            new.executemany(f"{_INSERT} VALUES (?, ?, ?, ?)", rows)
            (count,) = new.execute("SELECT count(*) FROM replies").fetchone()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(old))
        self._file, self._places = new, list(map(_place, _files(self.path)))
        self._asked = -1  # removed too; threads that hold a lock in it release it there
        notify.notify(
            f"{self.path} was removed or replaced while the run used it; it is "
            f"written again with {count:,} replies, so none is paid for twice"
        )

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None

    def _before_fork(self) -> None:
        self._lock.acquire()
        with suppress(Exception):  # no error may come between a fork and its child
            self._check()
        self._close()

    def _after_fork(self) -> None:
        """Free the locks in the child; else they would be the parent's, in the same open file."""
        if self._asked >= 0:
            os.close(self._asked)
        self._asked, self._under_way = -1, set()
        self._lock.release()

    def _warn(self, error: JudgeError) -> None:
        with self._lock:
            first, self._warned = not self._warned, True
        if first:
            notify.notify(
                f"{error} (printed once; the run goes on, but replies may be paid for again)"
            )


# Errors of a damaged row or file.
_UNREADABLE = (zlib.error, ValueError, TypeError, KeyError, RecursionError)


def _files(path: Path) -> list[Path]:
    """Return the paths of a database file and its logs."""
    return [path.with_name(f"{path.name}{suffix}") for suffix in ("", "-wal", "-shm")]


def _alone_at(path: Path) -> FileLock:
    """Return a lock for steps for which SQLite has none."""
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(f"{path}.lock", timeout=BUSY_SECONDS)


def _place(path: Path) -> tuple[int, int] | None:
    """Return the disk and the file's number on it; None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def _explained(path: Path, tell: Callable[[JudgeError], None] | None = None) -> Iterator[None]:
    """Context manager that turns errors of a file into one line: raised, or passed to `tell`."""
    import sqlite3

    try:
        yield
    except (sqlite3.Error, OSError, *_UNREADABLE) as error:
        problem = JudgeError(
            f"{path} cannot be used as the cache of judges' replies: {error}. "
            f"Move it away, or pass {settings.JUDGE_CACHE.option} DIR for "
            f"another folder, or {settings.JUDGE_CACHE.option} off for a run "
            "without a cache"
        )
        if tell is None:
            raise problem from error
        tell(problem)


def _connect(path: Path, *, create: bool) -> sqlite3.Connection:
    import sqlite3

    if create and not path.exists():
        with _alone_at(path):
            if not path.exists():
                for log in _files(path)[1:]:  # logs of a removed file
                    log.unlink(missing_ok=True)
                path.touch()
    file = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,  # each statement commits by itself
        check_same_thread=False,  # our lock protects it
    )
    try:
        if create and _kind(file)[0] == 0:
            # A file becomes WAL in steps that do not wait for each other, so only one process takes
            # them.
            with _alone_at(path):
                if _kind(file)[0] == 0:
                    file.execute("PRAGMA journal_mode = WAL")
                    version = f"PRAGMA user_version = {FORMAT}"
                    file.executescript(f"BEGIN IMMEDIATE; {_TABLE}; {version}; COMMIT")
        if _kind(file)[1] != FORMAT or not _is_ours(file):
            raise ValueError(f"it is another kind of file, or not in format {FORMAT}")
        file.execute("PRAGMA synchronous = NORMAL")
        file.execute(_USED, ("",)).fetchone()
    except BaseException:
        file.close()
        raise
    return file


def _kind(file: sqlite3.Connection) -> tuple[int, int]:
    """Return the number of a file's tables and indices, and its stated format."""
    tables = "SELECT (SELECT count(*) FROM sqlite_master), * FROM pragma_user_version"
    count, version = file.execute(tables).fetchone()
    return count, version


def _is_ours(file: sqlite3.Connection) -> bool:
    """Return True if a file has our table and nothing else.

    A view in place of the table could run forever, and a trigger could do anything.
    """
    found = file.execute("SELECT type, name, substr(sql, 1, 999) FROM sqlite_master LIMIT 9")
    own = {("table", "replies", " ".join(_TABLE.split())), ("index", _INDEX, "")}
    return {(kind, name, " ".join((sql or "").split())) for kind, name, sql in found} == own


def cached_replies(path: Path) -> Iterator[JsonObject]:
    """Yield all replies of a file in the order of keys.

    A line has `key`, `reply`, `request` (images as `sha256:...`), `criterion`, `judge`, `task`,
    `stored` (UTC).

    Raises:
        JudgeError: the file cannot be used.
    """
    query = "SELECT key, reply, rest FROM replies WHERE copy = 0 ORDER BY key"
    with _explained(path), closing(_connect(path, create=False)) as file:
        for key, reply, rest in file.execute(query):
            yield {"key": key, "reply": unpack(reply), **unpack(rest)}
