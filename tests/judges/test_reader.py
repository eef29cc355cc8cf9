"""The reader of judges' replies, on a table of replies to a 1-5 rating with a reason."""

import json
from pathlib import Path

import pytest
from pydantic import BaseModel, Field

from lmms_eval_tasks.judges import reader

CASES = json.loads(
    (Path(__file__).parents[1] / "cases" / "judge_replies.json").read_text(encoding="utf-8")
)


class Rating(BaseModel):
    reason: str
    score: int = Field(ge=1, le=5)


class Decision(BaseModel):
    correct: bool


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_table(case):
    untrusted = [case["candidate"]] if "candidate" in case else []
    if "value" in case:
        assert reader.read(case["reply"], Rating, untrusted).model_dump() == case["value"]
    else:
        with pytest.raises(reader.UnreadableError) as caught:
            reader.read(case["reply"], Rating, untrusted)
        assert caught.value.status.value == case["status"]


@pytest.mark.parametrize(
    ("given", "read"), [("true", True), ("false", False), ('"true"', True), ('"false"', False)]
)
def test_booleans_and_their_two_strings(given, read):
    assert reader.read(f'{{"correct": {given}}}', Decision).correct is read


@pytest.mark.parametrize("given", ['"yes"', '"True"', "1", "0", "null", '""', "[true]"])
def test_nothing_else_is_a_boolean(given):
    with pytest.raises(reader.UnreadableError):
        reader.read(f'{{"correct": {given}}}', Decision)


@pytest.mark.parametrize(
    "reply", ["{" * 50_000, "[" * 50_000, '{"a":' * 50_000, "{}" * 50_000, "x" * 300_000]
)
def test_hostile_sizes_end_as_unreadable(reply):
    with pytest.raises(reader.UnreadableError):
        reader.read(reply, Rating)


def test_the_reason_never_repeats_the_reply():
    with pytest.raises(reader.UnreadableError) as caught:
        reader.read('{"reason": "planted-text", "score": "planted-text"}', Rating)
    assert "planted-text" not in str(caught.value)
