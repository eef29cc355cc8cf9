"""What is mended in the host's classes that ask a server."""

from __future__ import annotations

import base64
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lmms_eval_tasks.host import needs


@contextmanager
def right_media() -> Iterator[None]:
    """Within it the host's chat classes send each frame they mean, and sound that can be heard.

    By itself the host keeps the encoded frames of a request by `id(picture)` and drops the
    pictures, so that a later frame may get an earlier one's id, and its bytes. Of a sound it sends
    the path, which no server reads: OpenAI's, vLLM and SGLang take the sound itself.
    """
    if not needs.on("frames"):
        yield
        return
    from lmms_eval.protocol import ChatMessages

    mended = {
        "encode_image": _each_encoded,
        "to_openai_messages": _with_sound,
        "to_qwen3_vl_openai_messages": _with_sound,
    }
    methods = {name: found for name, found in vars(ChatMessages).items() if name in mended}
    for name, method in methods.items():
        setattr(ChatMessages, name, mended[name](method))
    try:
        yield
    finally:
        for name, method in methods.items():
            setattr(ChatMessages, name, method)


def _each_encoded(encode: Callable[..., Any]) -> Callable[..., str]:
    @functools.wraps(encode)
    def encode_image(
        self: Any, image: Any, cache: dict[Any, str] | None = None, *args: Any, **kwargs: Any
    ) -> str:
        # A path names its picture for good.
        kept = cache if isinstance(image, str) else None
        return str(encode(self, image, kept, *args, **kwargs))

    return encode_image


def _with_sound(form: Callable[..., Any]) -> Callable[..., list[dict[str, Any]]]:
    @functools.wraps(form)
    def messages(*args: Any, **kwargs: Any) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = form(*args, **kwargs)
        for message in made:
            message["content"] = [_heard(part) for part in message["content"]]
        return made

    return messages


def _heard(part: dict[str, Any]) -> dict[str, Any]:
    url = part["audio_url"]["url"] if part["type"] == "audio_url" else None
    if not isinstance(url, str) or not (path := Path(url)).is_file():
        return part
    data = base64.b64encode(path.read_bytes()).decode()
    return {"type": "input_audio", "input_audio": {"data": data, "format": path.suffix[1:]}}


def callable_again(lm: Any, generate: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """A class's `generate_until` that can be called more than once, and replies with texts.

    An asynchronous client keeps its connections open, and they end with the event loop of the call
    that opened them: the next call's requests fail with "Event loop is closed". Of a reply without
    content some classes return None, which the host reads as the text "None".
    """
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    @functools.wraps(generate)
    def generate_until(requests: list[Any]) -> list[Any]:
        if isinstance(client := getattr(lm, "client", None), AsyncOpenAI):
            lm.client = client.with_options(http_client=DefaultAsyncHttpxClient())
        return ["" if reply is None else reply for reply in generate(requests)]

    return generate_until
