"""A model of the host that gives recorded replies, by item: `--model tasks_recorded`.

    lmms_eval --model tasks_recorded --model_args replies=replies.jsonl --tasks cvrr_es

One JSON object a line; `task` only where a reply belongs to one task alone:

    {"id": "partial_actions/012", "reply": "He opens it."}
    {"id": "partial_actions/012", "task": "cvrr_judge", "reply": "{\\"rating\\": 4}"}

`id` is the `id` of the benchmark's docs, which the sample log of a run shows. The judges' side of
this is `replay` (judges/providers/replay.py). Media are made and checked as by the other players
(scripted.py). A class of the host: importing this module imports the host and torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.sample.scripted import Chat, Player, Simple
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
                replies to one item; names the file and the lines.
        """
        path = Path(path).expanduser()
        found: dict[tuple[str, str], str] = {}
        lines: dict[tuple[str, str], int] = {}
        for number, entry in read_lines(path):
            try:
                line = Line.model_validate(entry)
            except ValidationError as error:
                raise TasksError(f"{path}, line {number}: {told(error)}") from None
            key = line.id, line.task
            if found.setdefault(key, line.reply) != line.reply:
                raise TasksError(
                    f"{path}, lines {lines[key]} and {number}: different replies to {line.id}"
                )
            lines.setdefault(key, number)
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


class _Recorded(Player):
    """Args: replies: a JSONL file; the others as of HostModel."""

    def __init__(self, replies: str | None = None, **kwargs: Any) -> None:
        if replies is None:
            raise TasksError("tasks_recorded needs its replies: --model_args replies=FILE")
        super().__init__(**kwargs)
        self.replies = Replies.load(str(replies))

    def generate_until(self, requests: list[Any]) -> list[str]:
        """One reply per request, in order; all are looked up before the first medium is made.

        Raises:
            TasksError: an item has no reply, or a request's media are missing.
        """
        found = []
        for request in requests:
            *_, doc_id, task, split = request.args
            found.append(self.replies.find(task, self.doc(task, split, doc_id)["id"]))
        for (request, _, _), reply in zip(self.requests_of(requests), found, strict=True):
            self.note(request, reply)
        return found


class RecordedSimple(_Recorded, Simple):
    """The recorded reply to each item (`replies=FILE`)."""


class RecordedChat(_Recorded, Chat):
    """The recorded reply to each item (`replies=FILE`)."""
