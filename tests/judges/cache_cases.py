"""Requests, replies and a writer that is killed, for the tests of the cache."""

from __future__ import annotations

import io
import json
import math
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from lmms_eval_tasks.judges import cache as replies
from lmms_eval_tasks.judges.verdict import Reply, Request, Sampling, Token

ABOUT = {"criterion": "acceptance", "judge": "gpt-4o", "task": "maia_oevqa"}
IMAGE = "data:image/png;base64,iVBORw0KGgo="
SCHEMA = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "score": {"type": "integer"}},
    "required": ["reason", "score"],
}


def ask(text: str = "È una tromba?", **changes: Any) -> Request:
    messages = [{"role": "system", "content": "Giudica."}, {"role": "user", "content": text}]
    return replace(Request(messages, Sampling(0.0, 16), "verdict", SCHEMA), **changes)


def ask_image(url: str = IMAGE) -> Request:
    words = {"type": "text", "text": "data: leggi questo"}
    parts = [words, {"type": "image_url", "image_url": {"url": url}}]
    return ask(messages=[{"role": "user", "content": parts}])


TOKENS = (
    Token("4", -0.1 - 1e-17, (("4", -0.1), ("5", -2.3000000000000003), ("è", -math.inf))),
    Token("\ud83d", -5e-324, ()),
)
REPLIES = [
    Reply("{}"),
    Reply(None, "content_filter", refusal="I cannot."),
    Reply("", finish="length", cached_tokens=7),
    Reply("testo \x00 \u2028 \x85 \ud83d\ude00 e\u0300", "stop", "gpt-4o-2024-11-20"),
    Reply("4", "stop", "m", "", "json_schema", 812, 3, 512, TOKENS),
    Reply("4", tokens=(), batch=True),
]


def exported(path: Path) -> list[dict[str, Any]]:
    out = io.StringIO()
    count = replies.export(path, out)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert len(lines) == count
    return lines


WRITER = """
import sys, threading
from pathlib import Path
from lmms_eval_tasks.judges.cache import Cache
from lmms_eval_tasks.judges.verdict import Reply, Request, Sampling
cache = Cache(Path(sys.argv[1]))
request = Request([{"role": "user", "content": "x" * 3000}], Sampling())
def work(thread):
    for i in range(10**6):
        key = f"{thread}-{i}"
        cache.put(key, Reply(key), request, {"criterion": "c", "judge": "j", "task": "t"})
        sys.stdout.write(key + "\\n")
        sys.stdout.flush()
for thread in range(4):
    threading.Thread(target=work, args=(thread,)).start()
"""


def killed_writer(file: Path, count: int = 400) -> list[str]:
    """Keys that a writer had said it kept when it was killed in the middle."""
    command = [sys.executable, "-c", WRITER, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        kept = [process.stdout.readline() for _ in range(count)]
        process.kill()
        kept += process.stdout.readlines()
    assert process.returncode == -signal.SIGKILL
    # Threads may have mixed their ends of lines; a line without its end was not said.
    return [line.strip() for line in kept if line.endswith("\n") and line.strip()]


def text_file(file: Path) -> None:
    file.write_text("not a database, but a long enough text " * 100)
