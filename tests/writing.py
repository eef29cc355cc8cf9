"""A scripted model that writes data in place of verdicts, and a folder where a command has it."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.local_endpoint import Fault, Json, LocalEndpoint

Change = Callable[[str, Any, Json], Any]


class Writer:
    """Replies to every step by `written`; `change` may put another reply in place of one.

    Args:
        change: called with the step, the reply that would be sent, and the request; returns a reply
            (plain types, or a `Fault`).
    """

    def __init__(self, change: Change | None = None) -> None:
        self.change = change
        self.asked: Counter[str] = Counter()
        self.requests: list[tuple[str, Json]] = []
        self._lock = threading.Lock()

    def __call__(self, request: Json) -> str | Fault:
        name = request["response_format"]["json_schema"]["name"]
        step = name.partition("_")[2]  # behind the benchmark's
        with self._lock:
            self.asked[step] += 1
            self.requests.append((step, request))
        reply = self.written(step, request)
        if self.change is not None:
            reply = self.change(step, reply, request)
        return reply if isinstance(reply, Fault) else json.dumps(reply)

    def written(self, step: str, request: Json) -> Any:
        raise NotImplementedError


class Folder:
    """A folder, and an endpoint whose model writes."""

    def __init__(self, folder: Path, endpoint: LocalEndpoint, writer: Writer) -> None:
        self.folder, self.endpoint, self.writer = folder, endpoint, writer

    def write(self, name: str, content: Any) -> Path:
        file = self.folder / name
        text = content if isinstance(content, str) else json.dumps(content)
        file.write_text(text, encoding="utf-8")
        return file
