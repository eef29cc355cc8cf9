"""Corrections of lmms-eval's classes for servers: media in requests, event loops, threads."""

from __future__ import annotations

import asyncio
import base64
import contextvars
import functools
import io
import json
import os
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from unittest import mock

from lmms_eval_tasks import settings
from lmms_eval_tasks.models.files import Files, known_as
from lmms_eval_tasks.models.host_types import Function, ModelInstance
from lmms_eval_tasks.utils.conditions import Condition, Kind
from lmms_eval_tasks.utils.json_files import JsonObject

if TYPE_CHECKING:
    from lmms_eval.protocol import ChatContent, ChatMessage, ChatMessages
    from openai import AsyncOpenAI
    from PIL.Image import Image

P = ParamSpec("P")
T = TypeVar("T")

# lmms-eval's variables for the format and the quality of encoded pictures.
_PICTURES = ("LMMS_IMAGE_ENCODE_FORMAT", "LMMS_IMAGE_JPEG_QUALITY")
_KEPT = 2**28  # characters of encoded media in the cache: about 30 clips of 32 frames as PNG

_MARK = "lmms-eval-tasks: an encoded frame"  # stands for a frame while JSON is made

Parts = list[JsonObject]  # parts of a message


class PlainText(str):
    """A text that JSON writes without escapes and without a character beyond ASCII."""

    __slots__ = ()


@contextmanager
def right_media() -> Iterator[None]:
    """Make lmms-eval's chat classes send the right frames and sounds while the context lasts.

    lmms-eval caches the encoded frames of a request by `id(picture)` and drops the pictures. A
    later frame may get an earlier frame's id, and then its bytes. For a sound, lmms-eval sends the
    path, which no server reads: OpenAI's, vLLM and SGLang take the sound itself. lmms-eval also
    reads and encodes a video anew for each question; here, its frames are kept for the next
    questions.
    """
    from lmms_eval.protocol import ChatMessages

    # At most one for each processor; otherwise the first would end only with the last.
    turn = threading.Semaphore(os.cpu_count() or 1)
    formed = functools.partial(_formed, Files(_KEPT, _length), turn)
    mended: dict[str, Function] = {"encode_image": _encoded}
    mended |= dict.fromkeys(("to_openai_messages", "to_qwen3_vl_openai_messages"), formed)
    with ExitStack() as stack:
        if chosen := settings.value(settings.MODEL_PICTURES):
            stack.enter_context(mock.patch.dict(os.environ, zip(_PICTURES, chosen, strict=True)))
        for name, own in mended.items():
            if original := vars(ChatMessages).get(name):
                setattr(ChatMessages, name, _method(own, original))
                stack.callback(setattr, ChatMessages, name, original)
        yield


def _method(replacement: Function, original: Function) -> Function:
    @functools.wraps(original)
    def method(self: ChatMessages, *args: object, **kwargs: object) -> object:
        return replacement(original, self, *args, **kwargs)

    return method


def _encoded(
    encode: Callable[..., str],
    messages: ChatMessages,
    image: Image | str,
    cache: object = None,
    *how: object,
) -> str:
    """Return a picture in base64; `how` is its format, PNG by default, and its quality."""
    if isinstance(image, str):  # a path always means the same picture
        return encode(messages, image, cache, *how)
    if how and how[0] != "PNG":
        return encode(messages, image, None, *how)
    coded = io.BytesIO()
    image.save(coded, "PNG", compress_level=1)  # a third of the time for a tenth more bytes
    return base64.b64encode(coded.getvalue()).decode()


def _length(parts: Parts) -> int:
    return sum(len(part["image_url"]["url"]) for part in parts if part["type"] == "image_url")


def _formed(
    encoded: Files[Parts],
    turn: AbstractContextManager[object],
    form: Callable[..., list[JsonObject]],
    messages: ChatMessages,
    *args: object,
    **kwargs: object,
) -> list[JsonObject]:
    """Return lmms-eval's messages, with each part encoded alone and a video's frames only once."""

    def alone(message: ChatMessage, content: ChatContent) -> Parts:
        single = type(message)(role=message.role, content=[content])
        (formed,) = form(type(messages)(messages=[single]), *args, **kwargs)
        return list(formed["content"])

    def in_turn(message: ChatMessage, content: ChatContent, _: str) -> Parts:
        with turn:
            return [_as_plain(part) for part in alone(message, content)]

    formed_messages: list[JsonObject] = []
    for message in messages.messages:
        parts: Parts = []
        for content in message.content:
            sound = _sound(content.url) if content.type == "audio" else None
            key = _key(content, form.__name__, args, kwargs) if content.type == "video" else ""
            if sound is not None:
                parts.append(sound)
            elif key:
                parts += encoded.get(key, functools.partial(in_turn, message, content))
            else:
                parts += alone(message, content)
        formed_messages.append({"role": message.role, "content": parts})
    return formed_messages


def _as_plain(part: JsonObject) -> JsonObject:
    """Return a part of a message with its picture as a PlainText, if it is one."""
    image = part.get("image_url") or {}
    url = image.get("url")
    if not isinstance(url, str) or json.dumps(url) != f'"{url}"':
        return part
    return {**part, "image_url": {**image, "url": PlainText(url)}}


@contextmanager
def quick_bodies() -> Iterator[None]:
    """Make openai's clients join bodies from encoded frames while the context lasts.

    json.dumps reads and copies each character of a body several times: 9 MB for each question on
    the same clip. The bytes of all bodies stay the same, and those without frames of ours are
    made by openai alone. Versions of openai without this function are left as they are.
    """
    module = sys.modules.get("openai._base_client")
    dumps: Callable[[object], bytes] | None = getattr(module, "openapi_dumps", None)
    if module is None or dumps is None:
        yield
        return
    with mock.patch.object(module, "openapi_dumps", functools.partial(_joined_json, dumps)):
        yield


def _joined_json(dumps: Callable[[object], bytes], value: object) -> bytes:
    """Return `dumps(value)`, without showing `dumps` the PlainTexts in `value`."""
    texts: list[PlainText] = []

    def marked(node: object) -> object:
        if isinstance(node, dict):
            return {name: marked(one) for name, one in node.items()}
        if isinstance(node, list):
            return [marked(one) for one in node]
        if isinstance(node, PlainText):
            texts.append(node)
            return _MARK
        return node

    pieces = dumps(marked(value)).split(_MARK.encode())
    if len(pieces) != len(texts) + 1:  # another text holds the mark
        return dumps(value)
    encoded = [
        one for pair in zip(pieces, (text.encode() for text in texts), strict=False) for one in pair
    ]
    return b"".join([*encoded, pieces[-1]])


def _key(content: ChatContent, *how: object) -> str:
    """Return the key of a video's encoded frames, from everything that they depend on.

    The key is "" if the content is no file.
    """
    try:
        return known_as(content.url, content.model_dump(), picture_format(), how)
    except (OSError, TypeError, ValueError):
        return ""


def picture_format() -> tuple[str, str]:
    """Return the format in which lmms-eval encodes pictures, and its quality; "" for no quality."""
    name, quality = (os.environ.get(variable, "") for variable in _PICTURES)
    name = name.upper() or "PNG"
    return name, (quality or "85") if name in {"JPEG", "JPG", "WEBP"} else ""


def conditions(lm: ModelInstance) -> list[Condition]:
    """Return the condition that an endpoint gets frames and pictures in a lossy format; else []."""
    name, quality = picture_format()
    if not quality or not hasattr(lm, "client"):
        return []
    option = settings.MODEL_PICTURES.option
    told = f"frames are sent as {name} of quality {quality}; for exact pixels: {option} png"
    return [Condition(Kind.OPTION, told)]


def _sound(url: object) -> JsonObject | None:
    """Return the message part with a sound's bytes instead of its path; None if it is no file."""
    if not isinstance(url, str) or not (path := Path(url)).is_file():
        return None
    sound = {"data": base64.b64encode(path.read_bytes()).decode(), "format": path.suffix[1:]}
    return {"type": "input_audio", "input_audio": sound}


@contextmanager
def own_loops(lm: ModelInstance) -> Iterator[None]:
    """Give each thread that calls an asynchronous class its own event loop while the context lasts.

    Such a class runs each call of `generate_until` on a new loop. Its client keeps connections
    open, but these end with their loop, and the requests of the next call fail with "Event loop is
    closed". Also, reading and encoding for one request blocks all other requests of its loop.
    """
    openai = sys.modules.get("openai")
    client = getattr(lm, "client", None)
    if openai is None or not isinstance(client, openai.AsyncOpenAI):
        yield
        return
    clients: dict[asyncio.AbstractEventLoop, AsyncOpenAI] = {}
    mine, run = threading.local(), asyncio.run

    class OfThisLoop:
        def __getattr__(self, name: str) -> object:
            return getattr(clients[asyncio.get_running_loop()], name)

    def on_own(main: Coroutine[object, None, T], **kwargs: bool | None) -> T:
        if asyncio._get_running_loop() is not None:
            return run(main, **kwargs)  # raises asyncio's own error
        if not hasattr(mine, "loop"):
            mine.loop = asyncio.new_event_loop()
            new = openai.DefaultAsyncHttpxClient()
            clients[mine.loop] = client.with_options(http_client=new)
        result: T = mine.loop.run_until_complete(main)
        return result

    lm.client, asyncio.run = OfThisLoop(), on_own
    try:
        yield
    finally:
        asyncio.run, lm.client = run, client
        for loop, one in clients.items():
            if not loop.is_running():  # still runs for a request that was given up
                loop.run_until_complete(one.close())
                loop.close()


@contextmanager
def in_context() -> Iterator[None]:
    """Make thread pools run a function in its submitter's context while this context lasts.

    So the request of a class's thread is known, like that of an event loop's task.
    """
    submit = ThreadPoolExecutor.submit

    def with_context(
        self: Executor, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        run = contextvars.copy_context().run
        return submit(self, functools.partial(run, function, *args, **kwargs))

    ThreadPoolExecutor.submit = with_context  # type: ignore[method-assign]
    try:
        yield
    finally:
        ThreadPoolExecutor.submit = submit  # type: ignore[method-assign]
