"""Every reply that was paid for, on disk before anything is made of it; nothing is paid for twice.

One SQLite file in WAL mode for all threads, processes and ranks of a machine. With synchronous=
NORMAL a commit does not wait for the disk: what a killed process wrote is the system's to keep; a
machine that loses its power can lose its last commits, and the file stays whole.

One connection per process, behind a lock: with one per thread, 64 threads took 1.5 to 3 times as
long for a hit and 5 to 20 % longer for a `put`. SQLite must not be carried across a fork (the child
would think that it holds the parent's file locks), so the connection is closed before one.

WAL does not work between machines: of several nodes each writes a file of its own and also reads
`replies.sqlite3`, which nobody may write meanwhile; cache_files.merge unites them afterwards.
"""

from __future__ import annotations

import atexit
import os
import re
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import console, settings
from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges.cache_form import FORMAT, pack, plain, reply_of, unpack
from lmms_eval_tasks.judges.exchange import Reply, Request

if TYPE_CHECKING:
    import sqlite3

COMMON = "replies.sqlite3"
BUSY_SECONDS = 60.0  # others hold the file for milliseconds, a merge for seconds
_OURS = 0x6C6D6A72  # SQLite's application_id
_EMPTY = (0, 0, 0)  # `_kind` of a file that SQLite just made
NODE_FILE = re.compile(r"replies-node(\d+)\.sqlite3")
# Copy 0 is the reply in use; others were paid for by processes that came second. `rest` is what a
# hit does not need: request, criterion, judge, task, stored.
_TABLE = """CREATE TABLE replies (key TEXT NOT NULL, copy INTEGER NOT NULL, reply BLOB NOT NULL,
    rest BLOB NOT NULL, PRIMARY KEY (key, copy))"""
_INSERT = "INSERT OR IGNORE INTO replies (key, copy, reply, rest) VALUES (?, ?, ?, ?)"
_USED = "SELECT reply FROM replies WHERE key = ? AND copy = 0"
_KIND = """SELECT * FROM pragma_application_id, pragma_user_version,
    (SELECT count(*) FROM sqlite_master)"""
ABOUT = ("criterion", "judge", "task")


def file_of_node(folder: Path, env: Mapping[str, str]) -> Path:
    """The file that this process writes, by torchrun's variables: one for each of several nodes.

    Raises:
        JudgeError: the variables do not tell which node this is.
    """
    try:
        world = int(env.get("WORLD_SIZE", "1"))
        local = int(env.get("LOCAL_WORLD_SIZE", world))
        if world <= local:
            return folder / COMMON
        return folder / f"replies-node{int(env['GROUP_RANK'])}.sqlite3"
    except (KeyError, ValueError) as error:
        raise JudgeError(
            f"cannot tell which node this is ({error!r}): start several nodes with torchrun, which "
            "sets WORLD_SIZE, LOCAL_WORLD_SIZE and GROUP_RANK"
        ) from error


class Cache:
    """The replies of one file. Calls come from many threads and from forked processes.

    Raises:
        JudgeError: the file is not ours, damaged, of another format, or cannot be written; or it is
            a node's and `replies.sqlite3` beside it was not closed by its last writer.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._files: list[sqlite3.Connection] = []
        self._warned = False
        # Held during a fork: no thread is inside SQLite then, and the child finds it free.
        done = self._lock.release
        os.register_at_fork(before=self._before_fork, after_in_parent=done, after_in_child=done)
        atexit.register(self.close)  # the last one to close empties the WAL
        with explained(path), self._lock:
            self._open()

    def get(self, key: str) -> Reply | None:
        """The reply in use for `key`. None if there is none, or if the file fails (said once)."""
        reply = None
        with explained(self.path, self._warn):
            with self._lock:
                found = (file.execute(_USED, (key,)).fetchone() for file in self._open())
                row = next(filter(None, found), None)
            reply = None if row is None else reply_of(unpack(row[0]))
        return reply  # noqa: RET504 - `explained` ends the block early

    def put(self, key: str, reply: Reply, request: Request, about: Mapping[str, str]) -> Reply:
        """Keep a reply for good; `about` is `criterion`, `judge` and `task`, for people and tables.

        Returns:
            The reply to go on with, as every later `get` gives it: `reply`, or that of another
            process which was first (`reply` is then kept beside it). If the file fails now (a full
            disk), that is said once, and it is `reply`.
        """
        line = {"key": key, "reply": plain(reply), "request": plain(request)}
        line |= {name: about.get(name, "") for name in ABOUT}
        line["stored"] = datetime.now(timezone.utc).isoformat(timespec="microseconds")
        row = _row(line, 0)
        kept, packed = reply, row[2]
        with explained(self.path, self._warn):
            with self._lock:
                file = self._open()[0]
                if file.execute(_INSERT, row).rowcount == 0:
                    with file:
                        file.execute("BEGIN IMMEDIATE")
                        _add(file, line)
                    (packed,) = file.execute(_USED, (key,)).fetchone()
            kept = reply_of(unpack(packed))
        return kept  # noqa: RET504 - as above

    def add(self, lines: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        """Take over lines of `export`, all or none; counts of `new` and `known` replies."""
        with explained(self.path), self._lock, self._open()[0] as file:
            file.execute("BEGIN IMMEDIATE")
            counts = Counter(_add(file, line) for line in lines)
        return {"new": counts[True], "known": counts[False]}

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        with self._lock:
            self._close()

    def _open(self) -> list[sqlite3.Connection]:
        """This process's connections, its own file first; the lock is held."""
        if not self._files:
            files = [connect(self.path, "mode=rwc")]
            common = self.path.with_name(COMMON)
            if NODE_FILE.fullmatch(self.path.name) and common.exists():
                # `immutable` takes no lock and reads no WAL. What is still in one would be missed,
                # and a checkpoint that was killed half way would be read as if it were whole.
                wal = Path(f"{common}-wal")
                if wal.exists() and wal.stat().st_size:
                    raise ValueError(
                        f"{common} was not closed (a run was killed, or goes on): merge the cache "
                        "on one machine before a run on several nodes"
                    )
                files.append(connect(common, "immutable=1"))
            self._files = files
        return self._files

    def _close(self) -> None:
        while self._files:
            self._files.pop().close()

    def _before_fork(self) -> None:
        self._lock.acquire()
        self._close()

    def _warn(self, error: JudgeError) -> None:
        with self._lock:
            first, self._warned = not self._warned, True
        if first:
            console.say(f"{error} (said once; the run goes on, replies may be paid for again)")


@contextmanager
def explained(path: Path, tell: Callable[[JudgeError], None] | None = None) -> Iterator[None]:
    """Trouble with a file as one line for the user: raised, or told."""
    import sqlite3

    try:
        yield
    except (sqlite3.Error, zlib.error, OSError, ValueError, TypeError, KeyError) as error:
        problem = JudgeError(
            f"{path} cannot be used as the cache of judges' replies: {error}. Move it away, or set "
            f"{settings.JUDGE_CACHE} to another folder, or to off for a run without a cache"
        )
        if tell is None:
            raise problem from error
        tell(problem)


def connect(path: Path, option: str) -> sqlite3.Connection:
    """A connection to a file of ours; `mode=rwc` makes one. Nothing is written to any other file.

    Raises:
        sqlite3.Error, OSError, ValueError: the file cannot be used.
    """
    import sqlite3

    from filelock import FileLock

    create = option == "mode=rwc"
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
    file = sqlite3.connect(
        f"{path.absolute().as_uri()}?{option}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,  # a statement commits by itself
        check_same_thread=False,  # a lock of ours sees to it
    )
    try:
        if create and _kind(file) == _EMPTY:
            # A file becomes WAL in steps that do not wait for each other: one process takes them.
            with FileLock(f"{path}.lock", timeout=BUSY_SECONDS):
                if _kind(file) == _EMPTY:
                    _make(file)
        application, version, _ = _kind(file)
        if application != _OURS:
            raise ValueError("it is something else, and was left as it is")
        if version != FORMAT:
            raise ValueError(f"it has format {version}, and this version of the suite {FORMAT}")
        file.execute("PRAGMA synchronous = NORMAL")
        file.execute(_USED, ("",)).fetchone()
    except BaseException:
        file.close()
        raise
    return file


def _kind(file: sqlite3.Connection) -> tuple[int, int, int]:
    """Whose file it is, its format, and its number of tables and indices."""
    kind: tuple[int, int, int] = file.execute(_KIND).fetchone()
    return kind


def _make(file: sqlite3.Connection) -> None:
    (mode,) = file.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise ValueError("its file system has no shared memory, which SQLite's WAL mode needs")
    with file:
        file.execute("BEGIN IMMEDIATE")
        file.execute(_TABLE)
        file.execute(f"PRAGMA application_id = {_OURS}")
        file.execute(f"PRAGMA user_version = {FORMAT}")


def _row(line: Mapping[str, Any], copy: int) -> tuple[str, int, bytes, bytes]:
    """A line of `export` as the table has it."""
    rest = {name: value for name, value in line.items() if name not in ("key", "copy", "reply")}
    return line["key"], copy, pack(line["reply"]), pack(rest)


def _add(file: sqlite3.Connection, line: Mapping[str, Any]) -> bool:
    """Keep a reply as the next copy of its key, in a transaction; False if this very one is there.

    Contents are compared, time of storing included, not bytes: zlib's differ between versions.
    """
    query = "SELECT reply, rest FROM replies WHERE key = ?"
    kept = [
        {**unpack(rest), "reply": unpack(reply)}
        for reply, rest in file.execute(query, (line["key"],))
    ]
    if {name: value for name, value in line.items() if name not in ("key", "copy")} in kept:
        return False
    file.execute(_INSERT, _row(line, len(kept)))
    return True
