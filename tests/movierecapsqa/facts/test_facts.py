"""`lmms-eval-tasks facts`, end to end through the command against a scripted endpoint.

What it says and writes of a good recap: tests/golden.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa import release as files
from tests.local_endpoint import refused
from tests.movierecapsqa.facts.desk import RECAP, Desk, is_for


def test_a_second_run_asks_nothing_and_changes_nothing(desk: Desk) -> None:
    desk.run()
    before, calls = desk.out.read_bytes(), len(desk.endpoint.chats)
    done = desk.run()
    assert done.exit_code == 0
    assert desk.out.read_bytes() == before
    assert "(0 made now, 3 kept)" in done.output
    # Also where only the replies are left.
    desk.out.unlink()
    done = desk.run()
    assert len(desk.endpoint.chats) == calls
    assert desk.out.read_bytes() == before
    assert "0 calls paid, 14 from the cache" in done.output


def test_a_failed_segment_leaves_the_others_and_is_named_with_what_helps(desk: Desk) -> None:
    """A reply that is kept and no use is read again: what helps is to leave the cache out once."""
    desk.writer.change = lambda step, reply, request: (
        refused() if is_for(step, request, "facts", "Cid") else reply
    )
    first = desk.run()
    assert [entry["id"] for entry in desk.written()] == ["abc.1", "abc.3"]
    desk.writer.change = None
    calls = len(desk.endpoint.chats)
    again = desk.run()
    assert len(desk.endpoint.chats) == calls
    for done in (first, again):
        assert done.exit_code == 1
        assert "failed: abc.2: facts: refused: " in done.output
        assert "fail again at abc.2: " in done.output
        assert "LMMS_EVAL_TASKS_JUDGE_CACHE=off" in done.output
    assert desk.run(cache="off").exit_code == 0
    assert len(desk.endpoint.chats) == calls + 4
    # It takes its place between the others once it can be made.
    assert [entry["id"] for entry in desk.written()] == ["abc.1", "abc.2", "abc.3"]


@pytest.mark.parametrize(
    ("step", "broken", "why"),
    [
        ("facts", {"facts": ["One.", "  "]}, "an empty text"),
        ("facts", {"facts": ["1.", "2."]}, "an empty text"),
        ("facts", ["One."], "no object with the keys"),
        ("pairs", {"pairs": []}, "an empty list"),
        ("pairs", {"pairs": [{"question": "Q?", "answer": "A.", "facts": [2]}]}, "fact 2 of 1"),
        ("simplify", {"pairs": [{"id": 1, "question": "Q?", "answer": "A."}] * 2}, "found [1, 1]"),
        ("modality", {"labels": [{"id": 1, "label": "sound"}]}, "'dialogue', 'vision'"),
        ("category", {"labels": []}, "found []"),
    ],
)
def test_a_reply_that_does_not_validate_is_repaired_once(
    desk: Desk, step: str, broken: Any, why: str
) -> None:
    recap = desk.write("one.json", {**RECAP, "segments": [RECAP["segments"][2]]})
    desk.writer.change = lambda asked, reply, _: broken if asked == step else reply
    done = desk.run(recap=recap)
    assert (done.exit_code, desk.writer.asked[step]) == (1, 2)
    assert f"failed: abc.1: {step}: parse_failure: " in done.output
    assert why in done.output
    assert not desk.out.exists()


def test_what_is_there_stays_or_is_refused_before_anybody_is_asked(desk: Desk) -> None:
    released = {"id": "zzz.1", "videoId": "zzz", "startTime": 0, "endTime": 1, "facts": ["1. X."]}
    others = [{**released, "questions": []}, {**released, "id": "zzz.2", "questions": []}]
    desk.write("segments.json", others)
    assert desk.run().exit_code == 0
    entries = desk.written()
    ids = ["zzz.1", "zzz.2", "abc.1", "abc.2", "abc.3"]
    assert [entry["id"] for entry in entries] == ids
    assert not files.read_recaps(desk.out).problems
    entries[3]["questions"][0]["modality"] = "dialogue"  # by hand
    before = desk.write("segments.json", entries).read_bytes()
    assert desk.run().exit_code == 0
    calls = len(desk.endpoint.chats)

    def refusal(**changes: Any) -> str:
        done = desk.run(**changes)
        assert isinstance(done.exception, DataError)
        assert len(desk.endpoint.chats) == calls
        assert desk.out.read_bytes() == before
        return str(done.exception)

    other = json.loads(json.dumps(RECAP))
    other["segments"][1]["transcript"] += " Cid leaves."
    told = refusal(recap=desk.write("changed.json", other))
    assert "a segment abc.2 already, made with another input: remove it there" in told
    assert "abc.1 already, made with another model" in refusal(model="n")
    del entries[2]["generated"]
    before = desk.write("segments.json", entries).read_bytes()
    assert "made with another model and prompt and input" in refusal()
