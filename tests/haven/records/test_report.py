"""What `haven build` advises where a record was kept back: only what helps."""

from __future__ import annotations

from typing import Any

import pytest

from lmms_eval_tasks import settings
from tests.haven.records.desk import Change, Desk
from tests.local_endpoint import choice, completion, refused

AGAIN = "run the same command again to go on, or add --keep-gaps"
USAGE = {"prompt_tokens": 9, "completion_tokens": 3}


def only(step: str, reply: Any) -> Change:
    """Another reply to one step, whatever is asked."""
    return lambda asked, usual, request: reply if asked == step else usual


UNREADABLE = only("document", {"sentences": []})


def advice(output: str) -> str:
    """What is advised, without the line's beginning."""
    (line,) = [line for line in output.splitlines() if ": not written: " in line]
    return line.partition(": not written: ")[2]


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ({"sentences": []}, "parse_failure"),
        (refused(), "refused"),
        (completion([choice("{", finish_reason="length")], USAGE), "truncated"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_reply_that_cannot_be_used_is_read_again(desk: Desk, reply: Any, status: str) -> None:
    """So the same command is not advised; what is advised asks for the missing text alone."""
    desk.writer.change = only("document", reply)
    first = desk.run(*desk.judge)
    assert f"failed: document: {status}: " in first.output
    told = advice(first.output)
    for option in ("another --judge", f"{settings.JUDGE_CACHE}=off", "--keep-gaps"):
        assert option in told
    assert AGAIN not in told
    desk.writer.change = None
    calls = desk.writer.asked.copy()
    assert desk.run(*desk.judge).exit_code == 1  # as was told
    assert desk.run(*desk.judge, "--keep-gaps").exit_code == 1
    assert desk.writer.asked == calls
    uncached = desk.run(*desk.judge, **{settings.JUDGE_CACHE: "off"})
    assert uncached.exit_code == 0, uncached.output
    assert desk.writer.asked - calls == {"document": 1}
    assert desk.written()["video_1"]["build"]["missing"] == []


def test_without_a_cache_a_second_run_asks_again(desk: Desk) -> None:
    desk.writer.change = UNREADABLE
    done = desk.run(*desk.judge, **{settings.JUDGE_CACHE: "off"})
    assert "failed: document: parse_failure: " in done.output
    assert advice(done.output) == AGAIN
