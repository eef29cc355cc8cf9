"""A small server in the form of the Hugging Face hub, for tests: data sets of files, and faults.

with LocalHub({"owner/name": {"data/questions.json": b"[]"}}) as hub: hub.url
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

SHA = "5" * 40  # the commit of every data set
LFS = (".zip", ".parquet")  # endings of files in Git LFS: these are redirected, with a SHA-256


@dataclass
class LocalHub:
    """The server; a test sets its faults while it runs."""

    repositories: Mapping[str, Mapping[str, bytes]]
    status: int = 0  # answers every request with this status
    file_status: int = 0  # answers requests for files with this status
    code: str = ""  # the hub's own code of such errors: GatedRepo, RepoNotFound
    broken: int = 0  # so many answers with a file end in the middle
    changed: bool = False  # files come with other content than the listing says
    requests: list[tuple[str, str, str]] = field(default_factory=list)  # method, path, range

    def __enter__(self) -> LocalHub:
        """Start the server in a thread."""
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.answer(self)

            do_HEAD = do_GET  # noqa: N815 - the name that http.server calls

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Its address, for HF_ENDPOINT."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def downloaded(self) -> list[str]:
        """The files whose content was asked for, in order."""
        return [
            path.split(f"{SHA}/")[1]
            for method, path, _ in self.requests
            if method == "GET" and path.startswith(("/cdn", "/datasets"))
            if not (path.startswith("/datasets") and path.endswith(LFS))
        ]

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """Answer a request for a listing or a file."""
        path = unquote(urlsplit(request.path).path)
        self.requests.append((request.command, path, request.headers.get("Range", "")))
        is_file = "/resolve/" in path
        if status := self.status or (self.file_status if is_file else 0):
            _send(request, status, b"{}", {"X-Error-Code": self.code} if self.code else {})
            return
        kind = "/api/datasets/" if path.startswith("/api") else f"/{path.split('/')[1]}/"
        owner, name, *rest = path.removeprefix(kind).split("/")
        files = self.repositories.get(f"{owner}/{name}")
        if files is None:
            _send(request, 401, b"{}", {"X-Error-Code": "RepoNotFound"})
        elif kind == "/api/datasets/":
            listing = {"id": f"{owner}/{name}", "sha": SHA, "siblings": _siblings(files)}
            _send(request, 200, json.dumps(listing).encode(), {"Content-Type": "application/json"})
        else:
            self._send_file(request, path, files["/".join(rest[2:])])

    def _send_file(self, request: BaseHTTPRequestHandler, path: str, content: bytes) -> None:
        about = {"ETag": f'"{_sha1(content)}"', "X-Repo-Commit": SHA, "Accept-Ranges": "bytes"}
        if path.endswith(LFS) and path.startswith("/datasets"):
            about |= {
                "X-Linked-ETag": f'"{hashlib.sha256(content).hexdigest()}"',
                "X-Linked-Size": str(len(content)),
                "Location": f"{self.url}/cdn{path.removeprefix('/datasets')}",
            }
            _send(request, 302, b"", about)
            return
        if self.changed:
            content = bytes(255 - byte for byte in content)
        begin = int(request.headers.get("Range", "bytes=0-")[6:].split("-")[0])
        if begin:
            about["Content-Range"] = f"bytes {begin}-{len(content) - 1}/{len(content)}"
        part = content[begin:]
        length = len(part)
        if request.command == "GET" and self.broken:
            self.broken -= 1
            part = part[: length // 2]
        _send(request, 206 if begin else 200, part, {**about, "Content-Length": str(length)})
        if len(part) < length:
            request.close_connection = True


def _siblings(files: Mapping[str, bytes]) -> list[dict[str, object]]:
    return [
        {"rfilename": name, "size": len(content), "blobId": _sha1(content)}
        | (
            {
                "lfs": {
                    "sha256": hashlib.sha256(content).hexdigest(),
                    "size": len(content),
                    "pointerSize": 130,
                }
            }
            if name.endswith(LFS)
            else {}
        )
        for name, content in files.items()
    ]


def _sha1(content: bytes) -> str:
    """The hash of a file in git."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()  # noqa: S324


def _send(
    request: BaseHTTPRequestHandler, status: int, content: bytes, headers: Mapping[str, str]
) -> None:
    request.send_response(status)
    for name, value in {"Content-Length": str(len(content)), **headers}.items():
        request.send_header(name, value)
    request.end_headers()
    if request.command == "GET":
        request.wfile.write(content)
