"""Replies that cannot be used: one repair, then the segment fails alone."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local_endpoint import refused
from tests.movierecapsqa.facts.desk import RECAP, Desk, is_for


@pytest.mark.parametrize(
    ("step", "broken", "why"),
    [
        ("facts", {"facts": ["One.", "  "]}, "an empty text"),
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
    assert done.exit_code == 1
    assert desk.writer.asked[step] == 2
    assert f"failed: abc.1 at {step}: parse_failure: " in done.output
    assert why in done.output
    assert not desk.out.exists()
    # The second reply is good: the repair is what was asked again.
    seen: list[str] = []
    desk.writer.change = lambda asked, reply, _: (
        broken if asked == step and not (seen.append(asked) or len(seen) > 1) else reply
    )
    done = desk.run(recap=recap, model="other")
    assert done.exit_code == 0, done.output
    assert len(desk.written()) == 1
    assert "1 repair" in done.output


def test_a_failed_segment_leaves_the_others(desk: Desk) -> None:
    desk.writer.change = lambda step, reply, request: (
        refused() if is_for(step, request, "facts", "Cid") else reply
    )
    done = desk.run()
    assert done.exit_code == 1
    assert [entry["id"] for entry in desk.written()] == ["abc.1", "abc.3"]
    assert "failed: abc.2 at facts: refused: " in done.output
    # It takes its place between the others once it can be made.
    desk.writer.change = None
    desk.run(cache="off")
    assert [entry["id"] for entry in desk.written()] == ["abc.1", "abc.2", "abc.3"]
