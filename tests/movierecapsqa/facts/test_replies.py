"""Replies that cannot be used: one repair, then the segment fails alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import judges
from lmms_eval_tasks.judges import run
from lmms_eval_tasks.movierecapsqa.facts import build, steps
from lmms_eval_tasks.movierecapsqa.facts.recap_file import Narrated
from lmms_eval_tasks.settings import JudgeLimits
from tests.local_endpoint import refused, truncated
from tests.movierecapsqa.facts.desk import RECAP, Desk, is_for, open_desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with open_desk(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize(
    ("step", "broken", "why"),
    [
        ("facts", {"facts": []}, "an empty list"),
        ("facts", {"facts": ["One.", "  "]}, "an empty text"),
        ("facts", {"facts": "One."}, "valid list"),
        ("facts", ["One."], "no object with the keys"),
        ("pairs", {"pairs": []}, "an empty list"),
        ("pairs", {"pairs": [{"question": "Q?", "answer": "A.", "facts": [2]}]}, "fact 2 of 1"),
        ("pairs", {"pairs": [{"question": "Q?", "answer": "A.", "facts": [0]}]}, "fact 0 of 1"),
        ("pairs", {"pairs": [{"question": "Q?", "answer": "A.", "facts": []}]}, "an empty list"),
        ("pairs", {"pairs": [{"question": "Q?", "answer": " ", "facts": [1]}]}, "an empty text"),
        ("simplify", {"pairs": []}, "the numbers 1 to 1"),
        ("simplify", {"pairs": [{"id": 2, "question": "Q?", "answer": "A."}]}, "found [2]"),
        ("simplify", {"pairs": [{"id": 1, "question": "Q?", "answer": "A."}] * 2}, "found [1, 1]"),
        ("modality", {"labels": [{"id": 1, "label": "sound"}]}, "'dialogue', 'vision'"),
        ("modality", {"labels": [{"id": 0, "label": "vision"}]}, "found [0]"),
        ("category", {"labels": [{"id": 1, "label": "XYZ"}]}, "'NPA', 'CRD'"),
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


@pytest.mark.parametrize(
    ("fault", "status"), [(refused(), "refused"), (truncated("{"), "truncated")]
)
def test_a_failed_segment_leaves_the_others(desk: Desk, fault: Any, status: str) -> None:
    desk.writer.change = lambda step, reply, request: (
        fault if is_for(step, request, "facts", "Cid") else reply
    )
    done = desk.run()
    assert done.exit_code == 1
    assert [entry["id"] for entry in desk.written()] == ["abc.1", "abc.3"]
    assert f"failed: abc.2 at facts: {status}: " in done.output
    # It takes its place between the others once it can be made.
    desk.writer.change = None
    (desk.folder / "replies" / "replies.sqlite3").unlink()
    desk.run()
    assert [entry["id"] for entry in desk.written()] == ["abc.1", "abc.2", "abc.3"]


def test_a_segment_that_would_not_fit_fails_alone(desk: Desk) -> None:
    released = {"id": "v.1", "videoId": "v", "startTime": 5, "endTime": 1, "srt": ""}
    with run.use(run.Run(JudgeLimits())):
        judge = judges.make(build.model(f"m@{desk.endpoint.url}", {}))
        segment = Narrated("v.1", released, "Ann opens doors.", "")
        written = steps.write(judge, steps.prompt(), segment)
    assert written.entry is None
    assert written.failure == (
        "facts: not in the released form: startTime 5 is not before endTime 1"
    )


def test_facts_that_are_only_numbers_fail_alone(desk: Desk) -> None:
    desk.writer.change = lambda step, reply, request: (
        {"facts": ["1.", "2."]} if is_for(step, request, "facts", "Cid") else reply
    )
    done = desk.run()
    assert [entry["id"] for entry in desk.written()] == ["abc.1", "abc.3"]
    assert "failed: abc.2 at facts: not in the released form: facts, entry 1: " in done.output
