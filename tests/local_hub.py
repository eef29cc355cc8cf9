"""A small server in the form of the Hugging Face hub, for tests: data sets of files, and faults.

with LocalHub({"owner/name": {"data/questions.json": b"[]"}}) as hub: hub.url
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from huggingface_hub import constants

from lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_tasks.media.downloads import GitFiles, HubFiles

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
    page: str = ""  # a page that a proxy sends instead of the listing ("api") or files ("resolve")
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
        if self.page and f"/{self.page}/" in path:
            _send(request, 200, b"<html>Log in", {"Content-Type": "text/html"})
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
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _send(
    request: BaseHTTPRequestHandler, status: int, content: bytes, headers: Mapping[str, str]
) -> None:
    request.send_response(status)
    for name, value in {"Content-Length": str(len(content)), **headers}.items():
        request.send_header(name, value)
    request.end_headers()
    if request.command == "GET":
        request.wfile.write(content)


# --- a benchmark's downloads ----------------------------------------------------------------------


@contextmanager
def used(hub: LocalHub, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalHub]:
    """The hub, used by this process's huggingface_hub, which read HF_ENDPOINT when imported."""
    with hub:
        template = "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + template)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        yield hub


def git_repository(place: Path) -> str:
    """Make a folder a git repository that sends single files, as GitHub does; return its commit."""
    author = ("-c", "user.name=a", "-c", "user.email=a@b")

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(place), *author, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--allow-empty", "-m", "data")
    for name in ("allowFilter", "allowAnySHA1InWant"):
        git("config", f"uploadpack.{name}", "true")
    return git("rev-parse", "HEAD")


def get_released(
    benchmark: Benchmark, folders: Sequence[Path], root: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Return the lines of `data get` if each declared source has the files of a folder."""
    hub, sources = LocalHub({}), list[HubFiles | GitFiles]()
    for source, folder in zip(benchmark.downloads, folders, strict=True):
        if isinstance(source, HubFiles):
            files = {file for file in folder.rglob("*") if file.is_file()}
            content = {one.relative_to(folder).as_posix(): one.read_bytes() for one in files}
            hub.repositories = {**hub.repositories, source.name: content}
            sources.append(source)
        else:
            commit = git_repository(folder)
            sources.append(replace(source, url=f"file://{folder}", commit=commit))
    monkeypatch.setattr(type(benchmark), "downloads", sources)
    said: list[str] = []
    with used(hub, monkeypatch):
        benchmark.get(root, lambda text: said.extend(text.splitlines()))
    return said
