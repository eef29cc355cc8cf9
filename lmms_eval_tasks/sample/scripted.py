"""The players as models of the host.

    lmms_eval --model tasks_oracle --model_args key=key.json --tasks maia
    lmms_eval --model tasks_coin --model_args key=key.json,seed=3 --tasks maia
    lmms_eval --model tasks_scripted --tasks maia
    lmms_eval --model tasks_witness --tasks maverix_table3
    lmms_eval --model tasks_recorded --model_args replies=replies.jsonl --tasks cvrr_es

Each exists as a simple and as a chat class (the host takes the chat class unless
`--force_simple`). For every request they call the task's doc_to_visual or doc_to_messages, so the
media really are made, and check what comes back as a real model class would. Batches do not
matter: a reply depends on one request alone, and replies come in the order of the requests.

Classes of the host: importing this module imports the host and torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lmms_eval.protocol import ChatMessages

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.sample import players, witness
from lmms_eval_tasks.sample.host_model import HostModel
from lmms_eval_tasks.sample.recorded import Replies

Parts = list[Any]  # a request's texts and media in their order (players.fingerprint)


class Player(HostModel):
    """A player behind the host's interface; `reply` is what makes the difference."""

    def reply(self, parts: Parts, doc: Mapping[str, Any], task: str) -> str:
        """Answer one request from what was handed over (or, scripted and recorded, its doc)."""
        raise NotImplementedError

    def parts(self, request: Any, doc: Mapping[str, Any]) -> Parts:
        """What a request hands over, its media made."""
        raise NotImplementedError

    def generate_until(self, requests: list[Any]) -> list[str]:
        """One reply per request, in order.

        Raises:
            TasksError: a request's media are missing, or a doc lacks what `tasks_scripted` needs.
        """
        return list(self._replies(requests))

    def _replies(self, requests: list[Any]) -> Iterator[str]:
        for request in requests:
            *_, doc_id, task, split = request.args
            doc = self.doc(task, split, doc_id)
            parts = self.parts(request, doc)
            for part in parts:
                if part is None:
                    raise TasksError(f"{task}: a request holds an empty medium")
                if isinstance(part, Path) and not (part.is_file() and part.stat().st_size):
                    raise TasksError(f"{task}: {part} is missing or empty")
            reply = self.reply(parts, doc, task)
            kwargs = request.args[1] if self.is_simple else request.args[2]
            # The host's `--use_cache`.
            self.cache_hook.add_partial("generate_until", (request.args[0], kwargs), reply)
            yield reply


class Simple(Player):
    """Takes a text and visuals."""

    is_simple = True

    def parts(self, request: Any, doc: Mapping[str, Any]) -> Parts:
        """All media come before the text, whose placeholders say where they belong."""
        context, _, doc_to_visual, *_ = request.args
        return players.of_visuals(doc_to_visual(doc) or [], context)


class Chat(Player):
    """Takes messages."""

    is_simple = False

    def parts(self, request: Any, doc: Mapping[str, Any]) -> Parts:
        """In the order of the messages."""
        messages = request.args[1](doc)
        ChatMessages(messages=messages)  # of the host's form
        return players.of_messages(messages)


class _Oracle(Player):
    def __init__(self, key: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if key is None:
            raise TasksError(f"{type(self).__name__} needs its key: --model_args key=PATH")
        self.key = players.Key.load(str(key))

    def reply(self, parts: Parts, doc: Mapping[str, Any], task: str) -> str:  # noqa: ARG002
        return self.key.oracle(parts)


class _Coin(_Oracle):
    def __init__(self, seed: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seed = seed

    def reply(self, parts: Parts, doc: Mapping[str, Any], task: str) -> str:  # noqa: ARG002
        return self.key.coin(parts, self.seed)


class _Scripted(Player):
    def reply(self, parts: Parts, doc: Mapping[str, Any], task: str) -> str:  # noqa: ARG002
        return players.scripted(doc)


class _Witness(Player):
    def reply(self, parts: Parts, doc: Mapping[str, Any], task: str) -> str:  # noqa: ARG002
        return witness.reply(parts)


class _Recorded(Player):
    def __init__(self, replies: str | None = None, **kwargs: Any) -> None:
        if replies is None:
            raise TasksError("tasks_recorded needs its replies: --model_args replies=FILE")
        super().__init__(**kwargs)
        self.replies = Replies.load(str(replies))

    def generate_until(self, requests: list[Any]) -> list[str]:
        """As all players; every reply is looked up before the first medium is made."""
        for request in requests:
            *_, doc_id, task, split = request.args
            self.replies.find(task, self.doc(task, split, doc_id)["id"])
        return super().generate_until(requests)

    def reply(self, parts: Parts, doc: Mapping[str, Any], task: str) -> str:  # noqa: ARG002
        return self.replies.find(task, doc["id"])


class OracleSimple(_Oracle, Simple):
    """Always right, by a key of requests (`key=PATH`)."""


class OracleChat(_Oracle, Chat):
    """Always right, by a key of requests (`key=PATH`)."""


class CoinSimple(_Coin, Simple):
    """Any of the replies that the key (`key=PATH`) has, by a hash of request and `seed`."""


class CoinChat(_Coin, Chat):
    """Any of the replies that the key (`key=PATH`) has, by a hash of request and `seed`."""


class ScriptedSimple(_Scripted, Simple):
    """Right on about 70 % of items, unreadable on 5 %, by the doc's id (players.scripted)."""


class ScriptedChat(_Scripted, Chat):
    """Right on about 70 % of items, unreadable on 5 %, by the doc's id (players.scripted)."""


class WitnessSimple(_Witness, Simple):
    """Sees, hears and reads MAVERIX's packaged sample (witness.py)."""


class WitnessChat(_Witness, Chat):
    """Sees, hears and reads MAVERIX's packaged sample (witness.py)."""


class RecordedSimple(_Recorded, Simple):
    """The recorded reply to each item (`replies=FILE`)."""


class RecordedChat(_Recorded, Chat):
    """The recorded reply to each item (`replies=FILE`)."""
