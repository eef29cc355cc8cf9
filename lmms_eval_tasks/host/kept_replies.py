"""Replies on disk as they arrive, so that a run that is stopped goes on where it was."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, ClassVar

from lmms_eval_tasks import settings
from lmms_eval_tasks.console import say

_DONE = ".done"  # of a run that got its results: nothing to go on with


class Kept:
    """Replies of one model to our tasks, a line each, in a file for each task and process.

    They are of a run that was stopped. A run that got its results renames its files, so that the
    same command asks again; `reopen` takes that back where the results could not be saved.
    """

    finished: ClassVar[list[Path]] = []  # files of the last run that got its results

    def __init__(self, model: str, tasks: Sequence[str], rank: int) -> None:
        """Read what was kept of a model, and of all that decides on its replies beside."""
        name = hashlib.sha256(model.encode()).hexdigest()[:16]
        self.folder = settings.cache_dir() / "replies" / name
        self._tasks, self._rank = tuple(tasks), rank
        self._files: dict[str, IO[str]] = {}
        self._writable = True
        # By key a `reply`'s text, and what had `arrived` at the model, if it is known.
        self.found: dict[str, Mapping[str, Any]] = {}
        for file in self._there():
            if settings.value(settings.FRESH):
                file.unlink(missing_ok=True)
                continue
            for line in file.read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(ValueError):  # cut off by a kill
                    row = json.loads(line)
                    self.found[row["key"]] = row

    def _there(self) -> list[Path]:
        return [file for task in self._tasks for file in self.folder.glob(f"{task}.*.jsonl")]

    def add(self, task: str, key: str, reply: str, arrived: Mapping[str, Any] | None) -> None:
        """Keep one; a folder that cannot be written is told once and loses nothing else."""
        if not self._writable:
            return
        try:
            if task not in self._files:
                self.folder.mkdir(parents=True, exist_ok=True)
                path = self.folder / f"{task}.{self._rank}.jsonl"
                self._files[task] = path.open("a", encoding="utf-8")
            row = {"key": key, "reply": reply, "arrived": arrived}
            self._files[task].write(json.dumps(row) + "\n")
            self._files[task].flush()
        except OSError as error:
            self._writable = False
            say(f"replies cannot be kept as they arrive: {error}")

    def told(self) -> str:
        """For a run that ends early: what is there, and what to do."""
        number = sum(1 for file in self._there() for _ in file.open(encoding="utf-8"))
        if not number:
            return "No reply had come"
        return f"{number} replies are kept in {self.folder}; the same command goes on from there"

    def finish(self) -> None:
        """The run has its results."""
        for opened in self._files.values():
            opened.close()
        for file in self._there() if self._rank == 0 else ():
            file.replace(file.with_name(file.name + _DONE))
            Kept.finished.append(file)

    @staticmethod
    def reopen() -> None:
        """The results were not saved after all: the same command goes on with the replies."""
        for file in Kept.finished:
            file.with_name(file.name + _DONE).replace(file)
        Kept.finished.clear()
