"""The injection texts of tests/cases/judge_injections.json, and the two kinds of verdict."""

import json
from pathlib import Path

from pydantic import BaseModel, Field

_CASES = json.loads(
    (Path(__file__).parents[1] / "cases" / "judge_injections.json").read_text(encoding="utf-8")
)


def _text(entry):
    return entry if isinstance(entry, str) else entry["text"] * entry["times"]


TEXTS = {family: [_text(entry) for entry in texts] for family, texts in _CASES["texts"].items()}
INJECTIONS = [(family, text) for family, texts in TEXTS.items() for text in texts]
QUOTES = _CASES["quotes"]


class Decision(BaseModel):
    reason: str
    correct: bool


class Rating(BaseModel):
    reason: str
    score: int = Field(ge=1, le=5)
