"""A small OpenAI-compatible endpoint for tests: scripted replies, faults, recorded requests.

with LocalEndpoint(lambda request: '{"correct": true}') as endpoint: endpoint.url
"""

from __future__ import annotations

import json
import math
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
ONE_OF_EACH = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


@dataclass(frozen=True)
class Fault:
    """A reply that is not simply a text."""

    status: int = 200
    message: str = "a fault of the test"  # in the error's body
    code: str | None = None  # OpenAI's error code
    param: str | None = None  # the parameter that the error names
    headers: dict[str, str] = field(default_factory=dict)
    content: str | None = None  # the message's content, for status 200
    finish_reason: str = "stop"
    refusal: str | None = None
    delay: float = 0.0  # seconds before anything is sent
    trickle: float = 0.0  # seconds between two blanks of a body without end
    drop: bool = False  # reset the connection instead of replying
    body: bytes | None = None  # sent as it is
    content_type: str = "application/json"


def error(
    status: int,
    message: str = "a fault of the test",
    code: str | None = None,
    param: str | None = None,
) -> Fault:
    """An HTTP error with OpenAI's error body."""
    return Fault(status=status, message=message, code=code, param=param)


def truncated(content: str) -> Fault:
    """A reply that hit the token limit."""
    return Fault(content=content, finish_reason="length")


def refused(text: str = "I cannot help with that.") -> Fault:
    """A refusal as structured output reports it."""
    return Fault(content=None, refusal=text)


def completion(choices: Sequence[Json], usage: Json | None, model: str = "local") -> Fault:
    """A chat completion as it is: several choices, log-probabilities, any usage or none."""
    body = {"id": "chatcmpl-test", "object": "chat.completion", "created": 0, "model": model}
    body |= {"choices": list(choices)} | ({} if usage is None else {"usage": usage})
    return Fault(body=json.dumps(body).encode())


def choice(content: str | None, **more: Any) -> Json:
    """One choice of a completion."""
    message = {"role": "assistant", "content": content}
    return {"index": 0, "message": message, "finish_reason": "stop", **more}


def stated(score: int, top: Mapping[str, float]) -> Fault:
    """A reply whose score's token has these probabilities."""

    def token(text: str, listed: Mapping[str, float]) -> Json:
        others = [{"token": one, "logprob": math.log(share)} for one, share in listed.items()]
        return {"token": text, "logprob": math.log(listed[text]), "top_logprobs": others}

    parts = ('{"score": ', str(score), "}")
    content = [token(one, top if one == str(score) else {one: 1.0}) for one in parts]
    made = choice("".join(parts), logprobs={"content": content})
    return completion([made], {"prompt_tokens": 9, "completion_tokens": 3})


def drawn(request: Json, scores: Sequence[object]) -> Fault:
    """As many choices as were asked for, without log-probabilities."""
    picked = [scores[place % len(scores)] for place in range(request.get("n", 1))]
    choices = [choice(f'{{"score": {score}}}') for score in picked]
    return completion(choices, {"prompt_tokens": 9, "completion_tokens": 3 * len(picked)})


Reply = Callable[[Json], "str | Fault"]


@dataclass(frozen=True)
class Recorded:
    """One request as it came in."""

    path: str
    headers: dict[str, str]  # lower-case names
    json: Json
    body: bytes = b""  # as it was sent; vendor_apis.py keeps none


class LocalEndpoint:
    """POST .../chat/completions and GET .../models on 127.0.0.1; `accepts` limits response_format.

    A request for another response_format is answered with 400, as servers without it do.
    """

    def __init__(
        self,
        reply: Reply,
        model: str | None = None,
        accepts: Sequence[str] = ("json_schema", "json_object", "text"),
        port: int = 0,
        handler: type[Handler] | None = None,
    ) -> None:
        self.reply = reply
        self.model = model  # the name in replies; None repeats the request's
        self.accepts = accepts
        self.requests: list[Recorded] = []
        self.in_flight = self.most_in_flight = 0  # chat requests being answered now, and at most
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), handler or Handler)
        self._server.endpoint = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )

    @property
    def url(self) -> str:
        """Base URL for an OpenAI client."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def chats(self) -> list[Recorded]:
        """The chat requests so far."""
        return [request for request in self.requests if _is_chat(request.path)]

    def __enter__(self) -> LocalEndpoint:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def record(self, request: Recorded) -> None:
        with self._lock:
            self.requests.append(request)

    @contextmanager
    def answering(self) -> Iterator[None]:
        """While a chat request is being answered."""
        with self._lock:
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            yield
        finally:
            with self._lock:
                self.in_flight -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a slow reply must not hold up the end of a test
    request_queue_size = 256
    endpoint: LocalEndpoint

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news; anything else is a fault of the endpoint."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Answers as OpenAI does; another vendor's form overrides `error` and `said`."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        if not self.path.rstrip("/").endswith("/models"):
            return self._send(404, _error("unknown path", None))
        name = self.server.endpoint.model or "local"
        entry = {"id": name, "object": "model", "created": 0, "owned_by": "tests"}
        return self._send(200, {"object": "list", "data": [entry]})

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        if len(body) < length:  # the client was killed while sending
            self.close_connection = True
            return None
        endpoint = self.server.endpoint
        request = json.loads(body)
        headers = {name.lower(): value for name, value in self.headers.items()}
        endpoint.record(Recorded(self.path, headers, request, body))
        if not _is_chat(self.path):
            return self._send(404, _error("unknown path", None))
        form = request.get("response_format", {"type": "text"})["type"]
        if form not in endpoint.accepts:
            return self._send(400, _error(f"response_format {form} is not supported", None))
        with endpoint.answering():
            reply = endpoint.reply(request)
            made = reply if isinstance(reply, Fault) else Fault(content=reply)
            return self._answer(made, request)

    def _answer(self, reply: Fault, request: Json) -> None:
        if reply.delay:
            time.sleep(reply.delay)
        if reply.drop:
            # Linger 0: the client sees a reset, not an orderly end.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
        elif reply.trickle:
            self.send_response(200)
            self.end_headers()
            while True:  # until the client leaves
                self.wfile.write(b" ")
                time.sleep(reply.trickle)
        elif reply.body is not None:
            self._send_bytes(reply.status, reply.body, reply.headers, reply.content_type)
        elif reply.status != 200:
            self._send(reply.status, self.error(reply), reply.headers)
        else:
            self._send_bytes(200, self.said(reply, request), reply.headers, "application/json")

    def error(self, reply: Fault) -> Json:
        """The body of an error."""
        return _error(reply.message, reply.code, reply.param)

    def said(self, reply: Fault, request: Json) -> bytes:
        """The body of a reply."""
        name = self.server.endpoint.model or request.get("model", "local")
        said = choice(reply.content, finish_reason=reply.finish_reason, logprobs=None)
        said["message"]["refusal"] = reply.refusal
        return completion([said], ONE_OF_EACH, name).body or b""

    def _send(self, status: int, value: Json, headers: dict[str, str] | None = None) -> None:
        self._send_bytes(status, json.dumps(value).encode(), headers or {}, "application/json")

    def _send_bytes(
        self, status: int, body: bytes, headers: dict[str, str], content_type: str
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing on stderr."""


def _is_chat(path: str) -> bool:
    return path.partition("?")[0].endswith("/chat/completions")


def _error(message: str, code: str | None, param: str | None = None) -> Json:
    return {"error": {"message": message, "type": "test", "code": code, "param": param}}


# --- as the model under test -------------------------------------------------------------------


def last_user_text(request: Json) -> str:
    """All text parts of the last user message, joined by newlines; images are left out."""
    users = [message for message in request["messages"] if message["role"] == "user"]
    content = users[-1]["content"] if users else ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part.get("type") == "text")
