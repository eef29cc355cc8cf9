"""Every reply that was paid for, on disk before anything is made of it; nothing is paid for twice.

One SQLite file in WAL mode for all threads, processes and ranks of a machine. With synchronous=
NORMAL a commit does not wait for the disk: what a killed process wrote is the system's to keep; a
machine that loses its power can lose its last commits, and the file stays whole.

One connection per process, behind a lock: with one per thread, 64 threads took 1.5 to 3 times as
long for a hit. SQLite must not be carried across a fork (the child would think that it holds the
parent's file locks), so the connection is closed before one.
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
BUSY_SECONDS = 60.0  # others hold the file for milliseconds, a load for seconds
_POLL = 0.02  # seconds between two looks at whether another process has its reply
# `rest` is what a hit does not need: request, criterion, judge, task, stored. `copy` is always 0.
_TABLE = """CREATE TABLE replies (key TEXT NOT NULL, copy INTEGER NOT NULL, reply BLOB NOT NULL,
    rest BLOB NOT NULL, PRIMARY KEY (key, copy))"""
_INDEX = "sqlite_autoindex_replies_1"
_INTO = "INTO replies (key, copy, reply, rest)"
_INSERT, _REPLACE = f"INSERT OR IGNORE {_INTO}", f"INSERT OR REPLACE {_INTO}"
_USED = "SELECT reply FROM replies WHERE key = ? AND copy = 0"


def file_of(folder: Path, env: Mapping[str, str]) -> Path:
    """The file that this process writes: WAL does not work between machines, so that each of
    several nodes (torchrun's variables, a Slurm job array) has one of its own.
    """
    world = int(env.get("WORLD_SIZE", "1"))
    several = world > int(env.get("LOCAL_WORLD_SIZE", world)) or "SLURM_ARRAY_TASK_ID" in env
    return folder / (f"replies-{platform.node()}.sqlite3" if several else COMMON)


class Cache:
    """The replies of one file. Calls come from many threads and from forked processes.

    Raises:
        JudgeError: the file is not ours, damaged, of another format, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._file: sqlite3.Connection | None = None
        self._places: list[tuple[int, int] | None] = []  # of the file that is open, and of its logs
        self._warned = False
        self._unwritten: dict[str, tuple[str, bytes, bytes]] = {}  # rows by key, of a full disk
        self._asked, self._under_way = -1, set[str]()  # the file of `alone`, and keys locked in it
        # Held during a fork: no thread is inside SQLite then, and the child finds it free.
        if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
            os.register_at_fork(
                before=self._before_fork,
                after_in_parent=self._lock.release,
                after_in_child=self._after_fork,
            )
        atexit.register(self.close)  # the last one to close empties the WAL
        with _explained(path), self._lock:
            self._open()

    def get(self, key: str) -> JudgeReply | None:
        """The reply for `key`; None if there is none, or if the file fails (said once)."""
        reply = None
        with _explained(self.path, self._warn):
            with self._lock:
                unwritten = self._unwritten.get(key)
                row = unwritten[1:] if unwritten else self._open().execute(_USED, (key,)).fetchone()
            reply = None if row is None else reply_of(unpack(row[0]))
        return reply  # noqa: RET504 - None where the file failed

    def put(
        self, key: str, reply: JudgeReply, request: Request, about: Mapping[str, str]
    ) -> JudgeReply:
        """Keep a reply for good; `about` is `criterion`, `judge` and `task`, for people and tables.

        Returns:
            The reply to go on with, as every later `get` gives it: `reply`, or that of another
            process which was first and can be read. If the file fails now (a full disk), that is
            said once, it is `reply`, and it is written with a later one, or at the end.
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
        """Write a row; the reply that the file has then. The lock is held."""
        file, (key, packed, _) = self._open(), row
        if file.execute(f"{_INSERT} VALUES (?, 0, ?, ?)", row).rowcount == 0:
            (packed,) = file.execute(_USED, (key,)).fetchone()
        try:
            kept = reply_of(unpack(packed))
        except _UNREADABLE:  # damaged: it would be paid for again in every run
            file.execute(f"{_REPLACE} VALUES (?, 0, ?, ?)", row)
            kept = reply_of(unpack(row[1]))
        self._unwritten.pop(key, None)
        return kept

    def _write_rest(self) -> None:
        for row in list(self._unwritten.values()):
            self._write(row)

    @contextmanager
    def alone(self, key: str, wait: Callable[[float], bool]) -> Iterator[None]:
        """Around the asking of a question: other threads and processes with the same one wait.

        It ends with the block or the process. After BUSY_SECONDS of another process, or once
        `wait(seconds)` is False, it goes on without: both may pay then, and none waits for ever.
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
        """Begin a question, unless a thread is at it; with `others`, unless a process is."""
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
        """Lock or free a question's own byte of a file; nothing where the system has no such locks.

        They are the open file's, not the process's: of these no deadlock is suspected, and none is
        let go when another file is closed. One open file for all: a process has few descriptors.
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
        """Take over another cache's replies, all or none (JudgeError); the number of new ones."""
        with _explained(other), self._lock:
            _connect(other, create=False).close()  # of this format, a killed process's log read
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
        """This process's connection; the lock is held."""
        self._check()
        if self._file is None:
            self._file = _connect(self.path, create=True)
            self._places = list(map(_place, _files(self.path)))
        return self._file

    def _check(self) -> None:
        """Write the replies again if the file was removed or replaced.

        What is open can still be read. It is never closed: that would remove the log of the new
        file, whose name it has.
        """
        old = self._file
        if old is None or (place := _place(self.path)) == self._places[0]:
            return
        self._places[0] = place  # if this fails, it is told once
        with _alone_at(self.path):  # whoever is first: to a new file the old logs are poison
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
        self._asked = -1  # gone too; threads that hold a lock in it end it there
        notify.say(
            f"{self.path} was removed or replaced while the run used it; it is "
            f"written again with {count:,} replies, so none is paid for twice"
        )

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None

    def _before_fork(self) -> None:
        self._lock.acquire()
        with suppress(Exception):  # nothing may come between a fork and its child
            self._check()
        self._close()

    def _after_fork(self) -> None:
        """In the child, whose locks would be the parent's in the same open file."""
        if self._asked >= 0:
            os.close(self._asked)
        self._asked, self._under_way = -1, set()
        self._lock.release()

    def _warn(self, error: JudgeError) -> None:
        with self._lock:
            first, self._warned = not self._warned, True
        if first:
            notify.say(
                f"{error} (printed once; the run goes on, but replies may be paid for again)"
            )


# Of a row, or of the file.
_UNREADABLE = (zlib.error, ValueError, TypeError, KeyError, RecursionError)


def _files(path: Path) -> list[Path]:
    """A database file and its logs."""
    return [path.with_name(f"{path.name}{suffix}") for suffix in ("", "-wal", "-shm")]


def _alone_at(path: Path) -> FileLock:
    """A lock for steps that SQLite has none for."""
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(f"{path}.lock", timeout=BUSY_SECONDS)


def _place(path: Path) -> tuple[int, int] | None:
    """Return the disk and the number of a file on it; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def _explained(path: Path, tell: Callable[[JudgeError], None] | None = None) -> Iterator[None]:
    """Trouble with a file as one line for the user: raised, or told."""
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
                for log in _files(path)[1:]:  # of a file that was removed
                    log.unlink(missing_ok=True)
                path.touch()
    file = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,  # a statement commits by itself
        check_same_thread=False,  # a lock of ours sees to it
    )
    try:
        if create and _kind(file)[0] == 0:
            # A file becomes WAL in steps that do not wait for each other: one process takes them.
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
    """The number of a file's tables and indices, and the format that it says."""
    tables = "SELECT (SELECT count(*) FROM sqlite_master), * FROM pragma_user_version"
    count, version = file.execute(tables).fetchone()
    return count, version


def _is_ours(file: sqlite3.Connection) -> bool:
    """Return whether a file holds our table alone: a view in its place could run for ever, a
    trigger do anything.
    """
    found = file.execute("SELECT type, name, substr(sql, 1, 999) FROM sqlite_master LIMIT 9")
    own = {("table", "replies", " ".join(_TABLE.split())), ("index", _INDEX, "")}
    return {(kind, name, " ".join((sql or "").split())) for kind, name, sql in found} == own


def lines(path: Path) -> Iterator[JsonObject]:
    """All replies of a file in the order of keys.

    A line has `key`, `reply`, `request` (images as `sha256:...`), `criterion`, `judge`, `task`,
    `stored` (UTC).

    Raises:
        JudgeError: the file cannot be used.
    """
    query = "SELECT key, reply, rest FROM replies WHERE copy = 0 ORDER BY key"
    with _explained(path), closing(_connect(path, create=False)) as file:
        for key, reply, rest in file.execute(query):
            yield {"key": key, "reply": unpack(reply), **unpack(rest)}
