"""The fake models: classes of lmms-eval that answer without weights.

    lmms_eval --model tasks_oracle --model_args key=key.json --tasks maia
    lmms_eval --model tasks_coin --model_args key=key.json,seed=3 --tasks maia
    lmms_eval --model tasks_scripted --tasks maia
    lmms_eval --model tasks_witness --tasks maverix_table3
    lmms_eval --model tasks_recorded --model_args replies=replies.jsonl --tasks cvrr_es

Each is a chat class; the class of the same name with `Simple` is the simple class. For every
request they call the task's doc_to_visual or doc_to_messages, so that the media really are made,
and check the media as a real model class would. Batches do not matter: a reply depends on one
request alone, and replies come in the order of the requests.

Importing this module imports lmms-eval and torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval.protocol import ChatMessages
from pydantic import BaseModel, ValidationError

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.models import fake_replies, perception_probe
from lmms_eval_tasks.models.fake_replies import Contents
from lmms_eval_tasks.models.host_model import HostModel, ModelOptions
from lmms_eval_tasks.models.host_types import Doc, ModelRequest
from lmms_eval_tasks.utils.released_files import read_lines
from lmms_eval_tasks.utils.validation import validation_problems

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Player(HostModel):
    """A fake model for lmms-eval; the subclasses differ in `reply`."""

    is_simple = False

    def reply(self, parts: Contents, doc: Doc, task: str) -> str:
        """Answer one request from its texts and media (Scripted and Recorded: from its doc)."""
        raise NotImplementedError

    def generate_until(self, requests: list[ModelRequest]) -> list[str]:
        """Return one reply per request, in order.

        Raises:
            TasksError: a request's media are missing, or a doc lacks a field that a reply needs.
        """
        return list(map(self._reply, requests))

    def _reply(self, request: ModelRequest) -> str:
        *_, doc_id, task, split = request.args
        doc = self.doc(task, split, doc_id)
        if self.is_simple:
            context, kwargs, doc_to_visual, *_ = request.args
            parts = fake_replies.of_visuals(doc_to_visual(doc) or [], context)
        else:
            context, doc_to_messages, kwargs, *_ = request.args
            messages = doc_to_messages(doc)
            ChatMessages(messages=messages)  # raises if lmms-eval would not accept the messages
            parts = fake_replies.of_messages(messages)
        for part in parts:
            if part is None:
                raise TasksError(f"{task}: a request holds an empty picture, video or sound")
            if isinstance(part, Path) and not (part.is_file() and part.stat().st_size):
                raise TasksError(f"{task}: {part} is missing or empty")
        reply = self.reply(parts, doc, task)
        self.cache_hook.add_partial("generate_until", (context, kwargs), reply)  # `--use_cache`
        return reply


class Oracle(Player):
    """A model whose replies are always right: it looks requests up in a key (`key=PATH`)."""

    def __init__(self, key: str | None = None, **kwargs: Unpack[ModelOptions]) -> None:
        super().__init__(**kwargs)
        if key is None:
            raise TasksError(f"{type(self).__name__} requires its key: --model_args key=PATH")
        self.key = fake_replies.load_key(key)

    def reply(self, parts: Contents, doc: Doc, task: str) -> str:  # noqa: ARG002
        """Return the right reply by the key; UNKNOWN if the key lacks the request."""
        return fake_replies.right_reply(self.key, parts)


class Coin(Oracle):
    """A model that draws one of the key's replies (`key=PATH`), by a hash of request and `seed`."""

    def __init__(self, seed: int = 0, **kwargs: Unpack[ModelOptions]) -> None:
        super().__init__(**kwargs)
        self.seed = seed

    def reply(self, parts: Contents, doc: Doc, task: str) -> str:  # noqa: ARG002
        """Return one of the key's replies; UNKNOWN if the key lacks the request."""
        return fake_replies.random_reply(self.key, parts, self.seed)


class Scripted(Player):
    """A model that is right on about 70 % of items and unreadable on 5 %, by the doc's id.

    See fake_replies.scripted.
    """

    def reply(self, parts: Contents, doc: Doc, task: str) -> str:  # noqa: ARG002
        """Return the scripted reply to the doc."""
        return fake_replies.scripted(doc)


class Witness(Player):
    """A model that sees, hears and reads MAVERIX's packaged sample (perception_probe.py)."""

    def reply(self, parts: Contents, doc: Doc, task: str) -> str:  # noqa: ARG002
        """Return the letter of an option."""
        return perception_probe.reply(parts)


class RecordedReply(BaseModel, extra="forbid"):
    """One line of a file of recorded replies; `id` is the doc's, which a run's samples show."""

    id: str
    reply: str
    task: str = ""  # the reply's task, which wins over "", a reply for every task with such an item


class Recorded(Player):
    """A model that gives each item its recorded reply (`replies=FILE`).

    Every line of the file is a `RecordedReply`.
    """

    def __init__(self, replies: str | None = None, **kwargs: Unpack[ModelOptions]) -> None:
        if replies is None:
            raise TasksError("tasks_recorded requires its replies: --model_args replies=FILE")
        super().__init__(**kwargs)
        self.file = Path(str(replies)).expanduser()
        self.replies = recorded(self.file)

    def reply(self, parts: Contents, doc: Doc, task: str) -> str:  # noqa: ARG002
        """Return an item's recorded reply: the one for its task, else the one for every task.

        Raises:
            TasksError: the file has neither.
        """
        for key in ((doc["id"], task), (doc["id"], "")):
            if key in self.replies:
                return self.replies[key]
        raise TasksError(f"{self.file}: no reply to {doc['id']} of {task}")


def recorded(file: Path) -> dict[tuple[str, str], str]:
    """The replies of a file, by the doc's id and the task ("" for every task).

    Raises:
        TasksError: the file cannot be read, a line is of another form, or two lines give different
            replies to one item; names the file and the line.
    """
    replies: dict[tuple[str, str], str] = {}
    for number, entry in read_lines(file):
        try:
            line = RecordedReply.model_validate(entry)
        except ValidationError as error:
            raise TasksError(f"{file}, line {number}: {validation_problems(error)}") from None
        if replies.setdefault((line.id, line.task), line.reply) != line.reply:
            raise TasksError(
                f"{file}, line {number}: an earlier line has another reply to {line.id}"
            )
    return replies


OracleSimple, CoinSimple, ScriptedSimple, WitnessSimple, RecordedSimple = (
    type(f"{one.__name__}Simple", (one,), {"is_simple": True, "__doc__": one.__doc__})
    for one in (Oracle, Coin, Scripted, Witness, Recorded)
)
