"""The file of segments: added to, kept, and refused before anybody is asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa import schema
from tests.movierecapsqa.facts.desk import RECAP, Desk


def test_append_adds_to_other_recaps(desk: Desk) -> None:
    released = {"id": "zzz.1", "videoId": "zzz", "startTime": 0, "endTime": 1, "facts": ["1. X."]}
    others = [{**released, "questions": []}, {**released, "id": "zzz.2", "questions": []}]
    desk.write("segments.json", others)
    done = desk.run()
    assert isinstance(done.exception, DataError)
    assert "holds other segments (zzz.1): add to them with --append" in str(done.exception)
    assert not desk.endpoint.chats
    assert desk.written() == others
    done = desk.run("--append")
    assert done.exit_code == 0
    ids = ["zzz.1", "zzz.2", "abc.1", "abc.2", "abc.3"]
    assert [entry["id"] for entry in desk.written()] == ids
    assert desk.written()[:2] == others
    assert not schema.read(desk.out).problems


def test_a_segment_that_is_there_otherwise_is_refused_before_anybody_is_asked(desk: Desk) -> None:
    assert desk.run().exit_code == 0
    before, calls = desk.out.read_bytes(), len(desk.endpoint.chats)

    def refusal(*options: str, **changes: Any) -> str:
        done = desk.run(*options, **changes)
        assert isinstance(done.exception, DataError)
        assert len(desk.endpoint.chats) == calls
        assert desk.out.read_bytes() == before
        return str(done.exception)

    other = json.loads(json.dumps(RECAP))
    other["segments"][1]["transcript"] += " Cid leaves."
    changed = desk.write("changed.json", other)
    told = refusal("--append", recap=changed)
    assert "has a segment abc.2 already, made from another narration, dialogue or time" in told
    assert "made by m@http" in refusal("--append", model="n")
    entries = desk.written()
    del entries[0]["generated"]
    before = desk.write("segments.json", entries).read_bytes()
    assert "abc.1 already, which this command did not make" in refusal("--append")


def test_hand_corrections_are_kept(desk: Desk) -> None:
    desk.run()
    entries = desk.written()
    entries[1]["questions"][0]["modality"] = "dialogue"
    desk.write("segments.json", entries)
    done = desk.run()
    assert done.exit_code == 0
    assert desk.written() == entries
    assert "unlabelled" not in done.output
    entries[1]["questions"][0]["modality"] = "smell"
    desk.write("segments.json", entries)
    told = str(desk.run().exception)
    assert "segment abc.2: questions, entry 1, modality: expected dialogue" in told


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{", "not valid JSON"),
        ({"id": "x"}, "expected a list of segments with ids"),
        ([{"videoId": "x"}], "expected a list of segments with ids"),
        ([{"id": "x.1"}, {"id": "x.1"}], "the id x.1 occurs twice"),
    ],
)
def test_a_file_that_holds_no_segments_is_not_touched(desk: Desk, content: Any, why: str) -> None:
    file = desk.write("segments.json", content)
    before = file.read_bytes()
    done = desk.run("--append")
    assert isinstance(done.exception, DataError)
    assert why in str(done.exception)
    assert file.read_bytes() == before
