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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from PIL import Image

from tests.local_endpoint import Fault, Handler, Json, LocalEndpoint, Recorded


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
            told = request.get("messages") or request.get("contents") or request["input"]
            parts = list(parts_of(told, self.files))
        except (ValueError, OSError, KeyError) as error:
            return Fault(status=400, message=f"cannot read this: {error!r}"[:300])
        self.asked.append(parts)
        return self.answer(parts)


def text_of(parts: Sequence[Part]) -> str:
    """All texts of a request."""
    return "\n".join(part.value for part in parts if part.kind == "text")


def order_of(parts: Sequence[Part]) -> str:
    """The kinds of a request's parts: `32 image, text`."""
    found = [(kind, len([*own])) for kind, own in groupby(part.kind for part in parts)]
    return ", ".join(kind if kind == "text" else f"{number} {kind}" for kind, number in found)


# --- the forms ------------------------------------------------------------------------------------


class Form(NamedTuple):
    """One vendor's API: where it is asked, how a reply and an error are written."""

    path: str  # the end of the path
    said: Callable[[str | None], Json]
    error: Callable[[Fault], Json]


def parts_of(told: Any, files: dict[str, bytes]) -> Iterator[Part]:
    """Texts and media of a request in the order in which they stand, in whatever form."""
    if isinstance(told, list):
        for one in told:
            yield from parts_of(one, files)
    if not isinstance(told, dict):
        return
    kind, content = str(told.get("type", "")), told.get("content")
    if isinstance(text := told.get("text", content), str):
        yield Part("text", text)
    elif kind == "input_audio":
        yield Part("audio", decoded(told[kind]["data"]))
    elif kind.endswith("_url"):
        data = read_address(url := told[kind]["url"])
        yield Part("unreadable", url) if data is None else media(kind.removesuffix("_url"), data)
    elif "source" in told:  # Anthropic's
        yield media(kind, decoded(told["source"]["data"]))
    elif sent := told.get("inlineData") or told.get("fileData"):  # Gemini's
        # Both spellings are read, as everywhere in JSON of protocol buffers.
        sent = {name.lower().replace("_", ""): value for name, value in sent.items()}
        coded = sent.get("data")
        data = base64.urlsafe_b64decode(coded) if coded else files[sent["fileuri"]]
        yield media(sent["mimetype"].partition("/")[0], data)
    elif {*told} <= {"image", "video"}:  # DashScope's
        for kind, address in told.items():
            yield media(kind, files[address])
    else:
        for one in told.values():
            yield from parts_of(one, files)


def decoded(data: str) -> bytes:
    return base64.b64decode(data, validate=True)


def media(kind: str, data: bytes) -> Part:
    return Part(kind, Image.open(io.BytesIO(data)).convert("RGB") if kind == "image" else data)


def read_address(url: str) -> bytes | None:
    """What stands at an address, as vLLM reads one; a bare path is nothing."""
    scheme = urlsplit(url).scheme
    if scheme == "data":
        return decoded(url.partition("base64,")[2])
    return Path(unquote(urlsplit(url).path)).read_bytes() if scheme == "file" else None


def texts(text: str | None, **more: str) -> list[Json]:
    return [] if text is None else [{**more, "text": text}]


FORMS = {
    "openai": Form("/chat/completions", lambda text: {}, lambda fault: {}),  # Handler's own
    "anthropic": Form(
        "/v1/messages",
        lambda text: {
            **{"id": "msg_1", "type": "message", "role": "assistant", "model": "local"},
            **{"content": texts(text, type="text"), "stop_reason": "end_turn"},
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
        lambda fault: {"type": "error", "error": {"type": "test", "message": fault.message}},
    ),
    "gemini": Form(
        ":generateContent",
        lambda text: {
            "candidates": [
                {
                    "content": {"role": "model", **({"parts": texts(text)} if text else {})},
                    "finishReason": "STOP",
                }
            ],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1},
        },
        lambda fault: {"error": {"code": fault.status, "message": fault.message, "status": "TEST"}},
    ),
    "dashscope": Form(
        "/multimodal-generation/generation",
        lambda text: {
            "request_id": "1",
            "output": {
                "choices": [
                    {
                        "finish_reason": "stop",
                        "message": {"role": "assistant", "content": texts(text)},
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
            if path.endswith(form.path):
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
