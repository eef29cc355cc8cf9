"""The injection texts of tests/cases/judge_injections.json, two kinds of verdict, and a fork."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, Field

FILE = Path(__file__).parents[1] / "cases" / "judge_injections.json"
CASES = json.loads(FILE.read_text(encoding="utf-8"))
QUOTES = CASES["quotes"]
INJECTIONS = [
    (family, entry if isinstance(entry, str) else entry["text"] * entry["times"])
    for family, texts in CASES["texts"].items()
    for entry in texts
]


class Decision(BaseModel):
    reason: str
    correct: bool


class Rating(BaseModel):
    reason: str
    score: int = Field(ge=1, le=5)


def in_child(call: Callable[[], object]) -> str:
    """What `call()` gives, as text, in a forked child that has ten seconds for it; or its error."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(10)  # ends a child that waits for ever: nothing is read from it then
        try:
            said = str(call())
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with open(read, encoding="utf-8") as stream:
        said = stream.read()
    os.waitpid(pid, 0)
    return said
