"""Recorded replies, by item, for `--model tasks_recorded`.

One JSON object a line; `task` only where a reply belongs to one task alone:

    {"id": "partial_actions/012", "reply": "He opens it."}
    {"id": "partial_actions/012", "task": "cvrr_judge", "reply": "{\\"rating\\": 4}"}

`id` is the `id` of the benchmark's docs, which the sample log of a run shows. The judges' side of
this is `replay` (judges/providers/replay.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.utils.released_files import read_lines
from lmms_eval_tasks.utils.validation import told


class Line(BaseModel, extra="forbid"):
    """One line of a file."""

    id: str
    reply: str
    task: str = ""  # of every task with such an item


@dataclass(frozen=True)
class Replies:
    """The replies of a file."""

    file: Path
    replies: Mapping[tuple[str, str], str]  # by item and task

    @classmethod
    def load(cls, path: str | Path) -> Replies:
        """Read a file; blank lines are skipped, equal lines count once.

        Raises:
            TasksError: it cannot be read, a line is of another form, or two lines give different
                replies to one item; names the file and the line.
        """
        path = Path(path).expanduser()
        found: dict[tuple[str, str], str] = {}
        for number, entry in read_lines(path):
            try:
                line = Line.model_validate(entry)
            except ValidationError as error:
                raise TasksError(f"{path}, line {number}: {told(error)}") from None
            if found.setdefault((line.id, line.task), line.reply) != line.reply:
                raise TasksError(f"{path}, line {number}: another reply to {line.id} stands before")
        if not found:
            raise TasksError(f"{path}: no replies; expected one JSON object a line")
        return cls(path, found)

    def find(self, task: str, item: str) -> str:
        """The reply to an item: that of its task before that of every task.

        Raises:
            TasksError: there is none.
        """
        for key in ((item, task), (item, "")):
            if key in self.replies:
                return self.replies[key]
        raise TasksError(f"{self.file}: no reply to {item} of {task}")
