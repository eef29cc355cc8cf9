"""The players as models of the host: `--model tasks_oracle`, `tasks_coin` and `tasks_scripted`.

    lmms_eval --model tasks_oracle --model_args key=key.json --tasks maia
    lmms_eval --model tasks_coin --model_args key=key.json,seed=3 --tasks maia
    lmms_eval --model tasks_scripted --tasks maia

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
from PIL.Image import Image

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.sample import answer_key, pictures, players
from lmms_eval_tasks.sample.host_model import HostModel

Parts = list[str | Image]  # a request's texts and images in their order; other media are left out


class Player(HostModel):
    """A player behind the host's interface; `reply` is what makes the difference."""

    def reply(self, parts: Parts, doc: Mapping[str, Any]) -> str:
        """Answer one request from its texts and images (or, scripted only, its doc)."""
        raise NotImplementedError

    def requests_of(self, requests: list[Any]) -> Iterator[tuple[Any, Parts, Mapping[str, Any]]]:
        """(request, texts and images, doc) of each request, its media made."""
        raise NotImplementedError

    def generate_until(self, requests: list[Any]) -> list[str]:
        """One reply per request, in order.

        Raises:
            TasksError: a request's media are missing, or a doc lacks what `tasks_scripted` needs.
        """
        replies = []
        for request, parts, doc in self.requests_of(requests):
            reply = self.reply(parts, doc)
            self.note(request, reply)
            replies.append(reply)
        return replies

    def note(self, request: Any, reply: str) -> None:
        """Keep a reply in the host's cache (`--use_cache`)."""
        kwargs = request.args[1] if self.is_simple else request.args[2]
        self.cache_hook.add_partial("generate_until", (request.args[0], kwargs), reply)


class Simple(Player):
    """Takes a text and visuals."""

    is_simple = True

    def requests_of(self, requests: list[Any]) -> Iterator[tuple[Any, Parts, Mapping[str, Any]]]:
        """All images come before the text, whose placeholders say where they belong."""
        for request in requests:
            context, _, doc_to_visual, doc_id, task, split = request.args
            doc = self.doc(task, split, doc_id)
            visuals = list(doc_to_visual(doc) or [])
            for visual in visuals:
                _check_media(visual, task)
            yield request, [*(v for v in visuals if isinstance(v, Image)), context], doc


class Chat(Player):
    """Takes messages."""

    is_simple = False

    def requests_of(self, requests: list[Any]) -> Iterator[tuple[Any, Parts, Mapping[str, Any]]]:
        """Texts and images in the order of the messages."""
        for request in requests:
            _, doc_to_messages, _, doc_id, task, split = request.args
            doc = self.doc(task, split, doc_id)
            messages = ChatMessages(messages=doc_to_messages(doc))
            parts: Parts = []
            for part in (part for message in messages.messages for part in message.content):
                content = part.text if part.type == "text" else part.url
                if part.type != "text":
                    _check_media(content, task)
                if part.type == "text" or isinstance(content, Image):
                    parts.append(content)
            yield request, parts, doc


class _Keyed(Player):
    def __init__(self, key: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.key = None if key is None else answer_key.AnswerKey.load(str(key))


class _Oracle(_Keyed):
    def __init__(self, key: str | None = None, **kwargs: Any) -> None:
        if key is None:
            raise TasksError("tasks_oracle needs its key: --model_args key=PATH")
        super().__init__(key=key, **kwargs)

    def reply(self, parts: Parts, doc: Mapping[str, Any]) -> str:  # noqa: ARG002  # never the doc
        assert self.key is not None
        seen = pictures.oracle(parts, self.key.pictures)
        return players.oracle(pictures.text(parts), self.key) if seen is None else seen


class _Coin(_Keyed):
    def __init__(self, key: str | None = None, seed: int = 0, **kwargs: Any) -> None:
        super().__init__(key=key, **kwargs)
        self.seed = seed

    def reply(self, parts: Parts, doc: Mapping[str, Any]) -> str:  # noqa: ARG002  # never the doc
        seen = pictures.coin(parts, self.key.pictures, self.seed) if self.key else None
        return players.coin(pictures.text(parts), self.key, self.seed) if seen is None else seen


class _Scripted(Player):
    def reply(self, parts: Parts, doc: Mapping[str, Any]) -> str:  # noqa: ARG002  # the doc alone
        return players.scripted(doc)


class OracleSimple(_Oracle, Simple):
    """Always right, from the request and a key (`key=PATH`)."""


class OracleChat(_Oracle, Chat):
    """Always right, from the messages and a key (`key=PATH`)."""


class CoinSimple(_Coin, Simple):
    """A fair coin by hash of request and `seed`; `key=PATH` has what it chooses from, if open."""


class CoinChat(_Coin, Chat):
    """A fair coin by hash of request and `seed`; `key=PATH` has what it chooses from, if open."""


class ScriptedSimple(_Scripted, Simple):
    """Right on about 70 % of items, unreadable on 5 %, by the doc's id (players.scripted)."""


class ScriptedChat(_Scripted, Chat):
    """Right on about 70 % of items, unreadable on 5 %, by the doc's id (players.scripted)."""


def _check_media(media: Any, task: str) -> None:
    """A path must lead to a file that is not empty; images and arrays are taken as they are."""
    if media is None:
        raise TasksError(f"{task}: a request holds an empty medium")
    if not isinstance(media, str | Path) or str(media).startswith(("http:", "https:", "data:")):
        return
    path = Path(str(media).removeprefix("file://"))
    if not path.is_file() or path.stat().st_size == 0:
        raise TasksError(f"{task}: {path} is missing or empty")
