"""A local server that speaks several vendors' APIs, and says which text and media arrived.

OpenAI's chat completions, Anthropic's messages, Gemini's generateContent and DashScope's multimodal
generation, each with its own upload of files. What is a video, a picture or a sound is handed on as
it was decoded; an address is read as a server with native video reads it.

with VendorApis(lambda parts: "A") as server: server.root; server.asked
"""

from __future__ import annotations

import base64
import email
import email.policy
import io
import json
import re
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from PIL import Image

from tests.local_endpoint import Fault, Handler, Json, LocalEndpoint, Recorded

HTML = Fault(body=b"<html><body>Bad gateway</body></html>", content_type="text/html")
OTHER_SHAPE = Fault(body=b'{"result": "fine", "items": []}')
NO_CONTENT = Fault(content=None)


class Part(NamedTuple):
    """One part of a request, in its order.

    value: the text; the decoded picture; the bytes of a video or a sound; or an address that no
        server can read.
    """

    kind: str  # text | image | video | audio | unreadable
    value: Any


Reply = Callable[[Sequence[Part]], "str | Fault"]


class VendorApis(LocalEndpoint):
    """Replies to the parts of a request; a request that cannot be read is refused with 400.

    Attributes:
        asked: the parts of each request that could be read.
        files: what was uploaded, by its address.
    """

    def __init__(self, reply: Reply) -> None:
        super().__init__(self._reply, handler=_Vendors)
        self.answer = reply
        self.asked: list[list[Part]] = []
        self.files: dict[str, bytes] = {}

    @property
    def root(self) -> str:
        """The address without a path."""
        return self.url.removesuffix("/v1")

    def _reply(self, request: Json) -> str | Fault:
        try:
            parts = list(FORMS[request["_form"]].parts(request, self.files))
        except (ValueError, OSError, KeyError) as error:
            return Fault(status=400, message=f"cannot read this: {error!r}"[:300])
        self.asked.append(parts)
        return self.answer(parts)


def text_of(parts: Sequence[Part]) -> str:
    """All texts of a request."""
    return "\n".join(part.value for part in parts if part.kind == "text")


def order_of(parts: Sequence[Part]) -> str:
    """The kinds of a request's parts: `32 image, text`."""
    found: list[list[Any]] = []
    for part in parts:
        if found and found[-1][1] == part.kind:
            found[-1][0] += 1
        else:
            found.append([1, part.kind])
    return ", ".join(kind if kind == "text" else f"{number} {kind}" for number, kind in found)


# --- the forms ------------------------------------------------------------------------------------


class Form(NamedTuple):
    """One vendor's API: where it is asked, how a request is read, a reply and an error written."""

    path: str  # the end of the path, as an expression
    parts: Callable[[Json, dict[str, bytes]], Iterator[Part]]
    said: Callable[[str | None], Json]
    error: Callable[[Fault], Json]


def _openai(request: Json, files: dict[str, bytes]) -> Iterator[Part]:
    for message in request["messages"]:
        content = message["content"]
        for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            kind = part["type"]
            if kind == "text":
                yield Part("text", part["text"])
            elif kind == "input_audio":
                yield Part("audio", base64.b64decode(part["input_audio"]["data"], validate=True))
            else:
                url = part[kind]["url"]
                data = read_address(url)
                found = _media(kind.removesuffix("_url"), data) if data is not None else None
                yield found or Part("unreadable", url)


def _anthropic(request: Json, files: dict[str, bytes]) -> Iterator[Part]:
    for message in request["messages"]:
        for part in message["content"]:
            if part["type"] == "text":
                yield Part("text", part["text"])
            else:
                yield _media(part["type"], base64.b64decode(part["source"]["data"], validate=True))


def _gemini(request: Json, files: dict[str, bytes]) -> Iterator[Part]:
    for content in request["contents"]:
        for part in content["parts"]:
            if "text" in part:
                yield Part("text", part["text"])
                continue
            sent = part.get("inlineData") or part["fileData"]
            # Both spellings are read, as everywhere in JSON of protocol buffers.
            sent = {name.lower().replace("_", ""): value for name, value in sent.items()}
            coded = sent.get("data")
            data = base64.urlsafe_b64decode(coded) if coded else files[sent["fileuri"]]
            yield _media(sent["mimetype"].partition("/")[0], data)


def _dashscope(request: Json, files: dict[str, bytes]) -> Iterator[Part]:
    for message in request["input"]["messages"]:
        for part in message["content"]:
            ((kind, value),) = part.items()
            yield Part("text", value) if kind == "text" else _media(kind, files[value])


def _media(kind: str, data: bytes) -> Part:
    return Part(kind, Image.open(io.BytesIO(data)).convert("RGB") if kind == "image" else data)


def read_address(url: str) -> bytes | None:
    """What stands at an address, as vLLM reads one; a bare path is nothing."""
    scheme = urlsplit(url).scheme
    if scheme == "data":
        return base64.b64decode(url.partition("base64,")[2], validate=True)
    if scheme == "file":
        with open(unquote(urlsplit(url).path), "rb") as file:
            return file.read()
    if scheme in ("http", "https"):
        with urllib.request.urlopen(url) as found:
            return bytes(found.read())
    return None


FORMS = {
    "openai": Form(r"/chat/completions", _openai, lambda text: {}, lambda fault: {}),  # Handler's
    "anthropic": Form(
        r"/v1/messages",
        _anthropic,
        lambda text: {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "local",
            "content": [] if text is None else [{"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
        lambda fault: {"type": "error", "error": {"type": "test", "message": fault.message}},
    ),
    "gemini": Form(
        r":generateContent",
        _gemini,
        lambda text: {
            "candidates": [
                {
                    "content": {"role": "model", **({"parts": [{"text": text}]} if text else {})},
                    "finishReason": "STOP",
                }
            ],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1},
        },
        lambda fault: {"error": {"code": fault.status, "message": fault.message, "status": "TEST"}},
    ),
    "dashscope": Form(
        r"/multimodal-generation/generation",
        _dashscope,
        lambda text: {
            "request_id": "1",
            "output": {
                "choices": [
                    {
                        "finish_reason": "stop",
                        "message": {
                            "role": "assistant",
                            "content": [] if text is None else [{"text": text}],
                        },
                    }
                ]
            },
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
        lambda fault: {"request_id": "1", "code": "test", "message": fault.message},
    ),
}


class _Vendors(Handler):
    """Requests of every form, and uploads of files."""

    def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        server: Any = self.server.endpoint
        path = self.path.partition("?")[0]
        for name, form in FORMS.items():
            if re.search(f"{form.path}$", path):
                request = {**json.loads(body), "_form": name}
                server.record(Recorded(self.path, dict(self.headers.items()), request))
                reply = server.reply(request)
                made = reply if isinstance(reply, Fault) else Fault(content=reply)
                # The clients' own retries would only take time.
                headers = {"x-should-retry": "false", **made.headers}
                self._form = name
                return self._answer(replace(made, headers=headers), request)
        if re.match(r"/upload/\w+/files", path):  # Gemini: where to send it
            address = f"{server.root}/v1beta/files/f{len(server.files)}"
            self.send_response(200)
            self.send_header("X-Goog-Upload-URL", address)
            self.send_header("X-Goog-Upload-Status", "active")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if path.startswith("/v1beta/files/"):
            address = f"{server.root}{path}"
            server.files[address] = body
            file = {"name": path.removeprefix("/v1beta/"), "uri": address, "state": "ACTIVE"}
            told = {"file": {**file, "mimeType": "video/mp4"}}
            return self._send(200, told, {"X-Goog-Upload-Status": "final"})
        if path == "/oss":  # DashScope: a form with a key and a file
            given = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode() + body
            fields = {
                part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
                for part in email.message_from_bytes(given, policy=email.policy.HTTP).iter_parts()
            }
            server.files[f"oss://{fields['key'].decode()}"] = fields["file"]
            return self._send(200, {})
        return self._send(404, {"error": {"message": f"unknown path {path}"}})

    def do_GET(self) -> None:  # noqa: N802 - as http.server calls it
        if "/uploads" not in self.path:
            return super().do_GET()
        names = ("oss_access_key_id", "signature", "policy", "x_oss_object_acl")
        server: Any = self.server.endpoint
        policy = {
            **dict.fromkeys((*names, "x_oss_forbid_overwrite"), "x"),
            "upload_dir": f"d{len(server.files)}",
            "upload_host": f"{server.root}/oss",
        }
        return self._send(200, {"request_id": "1", "data": policy})

    def do_DELETE(self) -> None:  # noqa: N802 - as http.server calls it
        self._send(200, {})

    def error(self, reply: Fault) -> Json:
        return FORMS[self._form].error(reply) or super().error(reply)

    def said(self, reply: Fault, request: Json) -> bytes:
        made = FORMS[self._form].said(reply.content)
        return json.dumps(made).encode() if made else super().said(reply, request)
