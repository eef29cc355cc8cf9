"""What is mended in the host's classes that ask a server."""

from __future__ import annotations

import base64
import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def right_media() -> Iterator[None]:
    """Within it the host's chat classes send each frame they mean, and sound that can be heard.

    By itself the host keeps the encoded frames of a request by `id(picture)` and drops the
    pictures, so that a later frame may get an earlier one's id, and its bytes. Of a sound it sends
    the path, which no server reads: OpenAI's, vLLM and SGLang take the sound itself.
    """
    from lmms_eval.protocol import ChatMessages

    with ExitStack() as stack:
        for name, mended in _MENDED.items():
            if original := vars(ChatMessages).get(name):
                setattr(ChatMessages, name, functools.partialmethod(mended, original))
                stack.callback(setattr, ChatMessages, name, original)
        yield


def _each_encoded(
    self: Any, encode: Callable[..., Any], image: Any, cache: Any = None, *args: Any, **kwargs: Any
) -> str:
    kept = cache if isinstance(image, str) else None  # a path names its picture for good
    return str(encode(self, image, kept, *args, **kwargs))


def _with_sound(
    self: Any, form: Callable[..., Any], *args: Any, **kwargs: Any
) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = form(self, *args, **kwargs)
    for message in made:
        for place, part in enumerate(message["content"]):
            url = part["audio_url"]["url"] if part["type"] == "audio_url" else None
            if isinstance(url, str) and (path := Path(url)).is_file():
                data = base64.b64encode(path.read_bytes()).decode()
                sound = {"data": data, "format": path.suffix[1:]}
                message["content"][place] = {"type": "input_audio", "input_audio": sound}
    return made


_MENDED = {
    "encode_image": _each_encoded,
    "to_openai_messages": _with_sound,
    "to_qwen3_vl_openai_messages": _with_sound,
}


def callable_again(lm: Any, generate: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    """A class's `generate_until` that can be called more than once, and replies with texts.

    An asynchronous client keeps its connections open, and they end with the event loop of the call
    that opened them: the next call's requests fail with "Event loop is closed". Of a reply without
    content some classes return None, which the host reads as the text "None".
    """
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    def generate_until(requests: list[Any]) -> list[Any]:
        if isinstance(client := getattr(lm, "client", None), AsyncOpenAI):
            lm.client = client.with_options(http_client=DefaultAsyncHttpxClient())
        return ["" if reply is None else reply for reply in generate(requests)]

    return generate_until
