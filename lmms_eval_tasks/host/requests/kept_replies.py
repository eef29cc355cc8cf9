"""Replies written to disk as they arrive, so that a stopped run can be continued."""

from __future__ import annotations

import contextlib
import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from filelock import BaseFileLock, FileLock, Timeout

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.utils.json_files import Json

_NO_LOCKS = (OSError, NotImplementedError)  # errors of a file system without locks
_DONE = ".done"  # ending of the files of a run that has its results


class KeptReplies:
    """Replies of one model to our tasks, a line each, in a file for each task and process.

    The files of stopped runs are read. A process holds a lock on the files that it writes, so that
    no other run takes them for those of a stopped run; the lock ends with the process. A run that
    got its results renames its files, so that the same command sends all requests again.
    """

    def __init__(self, model: str, tasks: Sequence[str], rank: int) -> None:
        """Read the kept replies.

        Every process of a run has to make an object before any of them adds a reply.

        Args:
            model: the model, and everything else that its replies depend on, as a text.
            tasks: names of tasks.
            rank: rank of this process.
        """
        name = hashlib.sha256(model.encode()).hexdigest()[:16]
        self.folder = settings.cache_dir() / "replies" / name
        self._tasks, self._rank = tuple(tasks), rank
        self._run, *_ = context.gathered(uuid.uuid4().hex[:8])
        self._files: dict[str, IO[str]] = {}
        self._locks: list[BaseFileLock] = []  # locks of these files, while they are written
        self._writable = True
        # Key -> the text of the `reply`, and the media that `arrived` at the model, if known.
        self.replies: dict[str, Mapping[str, Json]] = {}
        self._stopped = [file for file in self._there("*") if not _is_held(file)]
        if settings.value(settings.FRESH):
            for file in self._stopped:
                # Unreadable files do not count, and nothing else is lost.
                with contextlib.suppress(OSError):
                    file.unlink()
            self._stopped = []
        for file in self._stopped:
            self.replies |= _read(file)

    def _there(self, run: str) -> Iterator[Path]:
        for task in self._tasks:
            yield from self.folder.glob(f"{task}.{run}.jsonl")

    def add(
        self,
        task: str,
        key: str,
        reply: str,
        arrived: Mapping[str, Json] | None,
        tokens: int | None = None,
    ) -> None:
        """Write a reply to its file, with its number of `tokens` if the class counted them.

        If the folder cannot be written, one line tells the user, and the run goes on.
        """
        if not self._writable:
            return
        try:
            if task not in self._files:
                self.folder.mkdir(parents=True, exist_ok=True)
                path = self.folder / f"{task}.{self._rank}.{self._run}.jsonl"
                self._files[task] = path.open("a", encoding="utf-8")
                with contextlib.suppress(*_NO_LOCKS):
                    (lock := _lock(path)).acquire()
                    self._locks.append(lock)
            row = {"key": key, "reply": reply, "arrived": arrived, "tokens": tokens}
            self._files[task].write(json.dumps(row) + "\n")
            self._files[task].flush()
        except OSError as error:
            self._writable = False
            notify(
                f"{self.folder}: replies cannot be saved as they arrive "
                f"({error.strerror}): the run goes on, but if it stops they "
                "have to be generated again; free space there, or set "
                f"{settings.CACHE} to another folder"
            )

    def message(self) -> str:
        """Return the message of a run that ends early: the kept replies, and how to go on."""
        there = self.summary()
        return (
            f"{there}; run the same command again to continue from there"
            if there
            else "No reply had arrived"
        )

    def summary(self) -> str:
        """Return the number of kept replies and their folder, in words; "" for none."""
        known = {key for file in self._own() for key in _read(file)}
        return f"{len(known)} replies are saved in {self.folder}" if known else ""

    def _own(self) -> list[Path]:
        """Return the files that were read, and those of this run's processes."""
        return [*self._stopped, *self._there(f"*.{self._run}")]

    def close(self) -> None:
        """Close the files and release their locks."""
        for opened in self._files.values():
            with contextlib.suppress(OSError):  # a full disk, which `add` has reported
                opened.close()
        self._files.clear()
        for lock in self._locks:
            lock.release()
            with contextlib.suppress(OSError):
                Path(lock.lock_file).unlink(missing_ok=True)
        self._locks.clear()

    def finish(self) -> None:
        """Close the files of a run that has its results; rename them once these are saved."""
        self.close()
        command = context.outside().get(Unsaved)
        if command is None:
            self.put_away()
        else:
            command.append(self)

    def put_away(self) -> None:
        """Rename the files of a run with saved results, so that the same command starts anew."""
        for file in self._own() if self._rank == 0 else ():
            try:
                file.replace(file.with_name(file.name + _DONE))
            except OSError as error:
                notify(
                    f"{file}: cannot be removed ({error.strerror}); pass --fresh in the next run"
                )


class Unsaved(list[KeptReplies]):
    """Replies of finished runs, in a command that saves their results later."""

    def put_away(self) -> None:
        """Rename the files of all these runs, whose results are saved."""
        while self:
            self.pop().put_away()


def count_replies(folder: Path, tasks: Sequence[str]) -> int:
    """Return the number of replies that a folder keeps of runs of these tasks that stopped."""
    files = (file for task in tasks for file in folder.glob(f"{task}.*.jsonl"))
    return len({key for file in files for key in _read(file)})


def _is_held(file: Path) -> bool:
    """Return True if a live process writes the file."""
    with contextlib.suppress(*_NO_LOCKS):
        try:
            with (lock := _lock(file)):
                Path(lock.lock_file).unlink(missing_ok=True)
        except Timeout:
            return True
    return False


class _Lock(FileLock):
    """A separate class, since lmms-eval makes all `FileLock`s of a path one reentrant object."""


def _lock(file: Path) -> BaseFileLock:
    """Return the lock of a file of replies, which is a file beside it.

    Acquiring a held lock fails at once.
    """
    return _Lock(f"{file}.lock", timeout=0, thread_local=False)


def _read(file: Path) -> dict[str, Mapping[str, Json]]:
    """Return the complete rows of a file, by key.

    Damaged lines, or lines that a kill cut, are skipped.
    """
    found = {}
    for line in file.read_bytes().split(b"\n"):
        with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
            row = json.loads(line)
            if isinstance(row["key"], str) and isinstance(row["reply"], str):
                found[row["key"]] = row
    return found
