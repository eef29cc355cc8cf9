"""What is mended in the host's classes that ask a server."""

from __future__ import annotations

import asyncio
import base64
import contextvars
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
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


@contextmanager
def one_loop(lm: Any) -> Iterator[None]:
    """Within it all calls of a class with an asynchronous client run on one event loop.

    By itself such a class runs each call of `generate_until` on a loop of its own, while its client
    keeps connections open, which end with the loop that opened them: the next call's requests fail
    with "Event loop is closed". On one loop calls may also be made side by side.
    """
    openai = sys.modules.get("openai")
    client = getattr(lm, "client", None)
    if openai is None or not isinstance(client, openai.AsyncOpenAI):
        yield
        return
    loop, run = asyncio.new_event_loop(), asyncio.run
    thread = threading.Thread(target=loop.run_forever, name="requests", daemon=True)
    thread.start()

    def on_it(main: Any, **kwargs: Any) -> Any:
        if threading.current_thread() is thread:
            return run(main, **kwargs)  # which says that it cannot be
        return asyncio.run_coroutine_threadsafe(main, loop).result()

    lm.client = client.with_options(http_client=openai.DefaultAsyncHttpxClient())
    asyncio.run = on_it
    try:
        yield
        on_it(lm.client.close())
    finally:
        asyncio.run, lm.client = run, client
        loop.call_soon_threadsafe(loop.stop)


@contextmanager
def in_context() -> Iterator[None]:
    """Within it a pool of threads runs what it is given in the context of who gives it.

    So it is known of a class's threads, as of tasks of an event loop, whose request they send.
    """
    submit = ThreadPoolExecutor.submit

    def with_context(self: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        return submit(self, contextvars.copy_context().run, function, *args, **kwargs)

    ThreadPoolExecutor.submit = with_context  # type: ignore[method-assign]
    try:
        yield
    finally:
        ThreadPoolExecutor.submit = submit  # type: ignore[method-assign]
