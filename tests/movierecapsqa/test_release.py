"""MovieRecapsQA's data file: what is read of odd segments, what is told of bad ones, what stops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa import release as files
from lmms_eval_tasks.movierecapsqa.release import Segment
from tests.movierecapsqa.entries import SPOKEN, SRT, entry, question, write


def read(folder: Path, *entries: dict[str, Any]) -> files.Release:
    return files.read_recaps(write(folder, list(entries)))


def one(folder: Path, **changes: Any) -> Segment:
    files._read.cache_clear()  # a file may be as long as the one before it
    release = read(folder, entry(1, **changes))
    assert release.problems == {}
    return release.segments[0]


def test_dialogue_is_whole_without_times_and_markup(tmp_path: Path) -> None:
    """It is in movie time, the segment in recap time: cutting by the other would empty it."""
    for srt, dialogue in (
        (SRT, SPOKEN),
        ("\ufeff\ufeff1\n" + SRT.replace("\n", "\r\n"), SPOKEN),
        *((nothing, "") for nothing in (" \n\n", None, ...)),
    ):
        assert one(tmp_path, srt=srt, startTime=0, endTime=1).dialogue == dialogue


def test_facts_with_numbers_and_without() -> None:
    for given, read in (
        (["0. A sits.", "1. B stands."], ["A sits.", "B stands."]),
        (["1) A sits.", " 2)  B stands. "], ["A sits.", "B stands."]),
        (["9: A sits.", "10: B stands."], ["A sits.", "B stands."]),
        (["A sits.", " B stands. "], ["A sits.", "B stands."]),
        # A number in some only is text of theirs, and so is a year.
        (["1. A sits.", "B stands."], None),
        (["2001: A Space Odyssey is on."], None),
        (["3.5 miles are run."], None),
        (["12 men sit.", "7 stand."], None),
    ):
        assert list(Segment.model_validate(entry(1, facts=given)).facts) == (read or given)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"srt": "00:00:05,000 --> 00:00:02,000\nx"}, "srt: line 1: shown from 5 s to 2 s"),
        ({"srt": "They talk."}, "srt: line 1: expected a cue's number or timing"),
        ({"facts": []}, "facts: expected at least 1, found 0"),
        ({"facts": ["1. A.", "2. "]}, "facts, entry 2: expected a text, found an empty one"),
        ({"facts": ...}, "facts: the field is missing"),
        ({"facts": ["A sits.", "\ud83d"]}, "facts, entry 2: "),
        ({"startTime": 7.4}, "startTime 7.4 is not before endTime 7.4"),
        ({"endTime": float("nan")}, "endTime: Input should be a finite number"),
        ({"movieStartTime": 20}, "movieStartTime 20 is not before movieEndTime 16"),
        ({"movieEndTime": ...}, "movieStartTime and movieEndTime are given together or not"),
        ({"movieId": ...}, "movieStartTime requires movieId"),
        ({"questions": [question(1), question(1)]}, "qid 1 occurs twice"),
        ({"questions": [question(1), question("1")]}, "qid 1 occurs twice"),  # one id in a run
        ({"questions": [question(1, question=" ")]}, "questions, entry 1, question: "),
        ({"questions": [question(1, modality="smell")]}, "expected dialogue, vision or multi"),
        ({"questions": [question(1, category="X")]}, "expected NPA, CRD, TH, STA or TEMP"),
        ({"videoId": "../talk"}, "videoId: expected a name on one line, without a folder"),
        ({"movieId": "a\nb"}, "movieId: expected a name on one line"),
    ],
)
def test_a_bad_segment_is_told_in_one_line(
    changes: dict[str, Any], says: str, tmp_path: Path
) -> None:
    """And the good one beside it is kept."""
    release = read(tmp_path, entry(1, **changes), entry(2))
    assert [segment.id for segment in release.segments] == ["talk.2"]
    assert list(release.problems) == ["talk.1"]
    said = release.problems["talk.1"]
    assert says in said
    assert "\n" not in said
    assert len(said) < 300


def test_answers_of_people_and_models(tmp_path: Path) -> None:
    answers = [{"model": "m", "answer": None, "scores": None}, {"model": "n", "answer": ""}]
    asked = question(1, modelAnswers=answers, factsUsed=None, alignedFacts=["c"])
    found = one(tmp_path, questions=[asked, question(2, humanAnswer=None)]).questions
    assert (found[0].human_answer.answer, found[1].human_answer) == ("The captain", None)
    assert [(own.model, own.answer) for own in found[0].model_answers] == [("m", ""), ("n", "")]
    assert found[0].model_answers[0].scores.factuality is None
    assert (found[0].aligned, found[1].aligned) == (("c",), None)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"segments": []}, "expected a list of segments"),
        ([], "no entries"),
        ([entry(1), entry(1)], "entry 2: id 'talk.1' is also the id of entry 1"),
        ([entry(1, facts=[])], "none of 1 entries fits the schema; 'talk.1': facts: "),
    ],
)
def test_what_is_no_list_of_segments_stops(content: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"segments\.json") as error:
        files.read_recaps(write(tmp_path, content))
    assert says in str(error.value)


def test_files_and_their_places(tmp_path: Path) -> None:
    text = json.dumps([entry(1)])
    (tmp_path / "release.json").write_text(text, encoding="utf-8-sig")
    release = files.read_recaps(tmp_path / "release.json")
    assert release.digest == read(tmp_path / "other", entry(1)).digest
    segment = release.segments[0]
    assert release.path(segment, "recaps") == tmp_path / "recaps" / "talk.mp4"  # where it would be
    (tmp_path / "talk.webm").touch()
    assert release.path(segment, "recaps") == tmp_path / "talk.webm"
    assert release.path(segment, "movies") == tmp_path / "movies" / "film.mp4"
    nothing = dict.fromkeys(("movieId", "movieStartTime", "movieEndTime"), ...)
    assert release.path(one(tmp_path, **nothing), "movies") is None
