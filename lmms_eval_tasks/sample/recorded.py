"""A model of the host that gives recorded replies, by item: `--model tasks_recorded`.

    lmms_eval --model tasks_recorded --model_args replies=replies.jsonl --tasks cvrr_es

The file's form is in replies.py. Media are made and checked as by the other players (scripted.py).
A class of the host: importing this module imports the host and torch.
"""

from __future__ import annotations

from typing import Any

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.sample.replies import Replies
from lmms_eval_tasks.sample.scripted import Chat, Player, Simple


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
            kwargs = request.args[1] if self.is_simple else request.args[2]
            self.cache_hook.add_partial("generate_until", (request.args[0], kwargs), reply)
        return found


class RecordedSimple(_Recorded, Simple):
    """The recorded reply to each item (`replies=FILE`)."""


class RecordedChat(_Recorded, Chat):
    """The recorded reply to each item (`replies=FILE`)."""
