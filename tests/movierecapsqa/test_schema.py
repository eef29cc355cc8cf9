"""MovieRecapsQA's data file: what is read of odd segments, what is told of bad ones, what stops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa import schema
from lmms_eval_tasks.movierecapsqa.schema import Segment
from tests.movierecapsqa.entries import SPOKEN, SRT, entry, question, write


def read(folder: Path, *entries: dict[str, Any]) -> schema.Release:
    return schema.read(write(folder, list(entries)))


def one(folder: Path, **changes: Any) -> Segment:
    release = read(folder, entry(1, **changes))
    assert release.problems == {}
    return release.segments[0]


def problem(folder: Path, **changes: Any) -> str:
    """What is said of a bad segment; the good one beside it is kept."""
    release = read(folder, entry(1, **changes), entry(2))
    assert [segment.id for segment in release.segments] == ["talk.2"]
    assert list(release.problems) == ["talk.1"]
    said = release.problems["talk.1"]
    assert "\n" not in said
    assert len(said) < 300
    return said


class TestDialogue:
    """The srt whole, a cue a line: no times, no markup, no counters."""

    @pytest.mark.parametrize(
        ("srt", "dialogue"),
        [
            (SRT, SPOKEN),
            ("1\n" + SRT.replace("\n00:10:03", "\n\n2\n00:10:03"), SPOKEN),
            ("\ufeff" + SRT, SPOKEN),
            ("\ufeff\ufeff1\n" + SRT, SPOKEN),
            (SRT.replace("\n", "\r\n"), SPOKEN),
            (SRT.replace(",", "."), SPOKEN.replace(",", ".")),
            (
                "00:00:01,000 --> 00:00:02,000\n<b>{\\an8}Hi</b> <font color='red'>&amp; bye</font>"
                "\n00:00:02,000 --> 00:00:03,000\n<laughs>\n",
                "Hi & bye\n<laughs>",
            ),
            # Overlapping cues stay, in the order in which they begin; none is cut or merged.
            (
                "00:00:05,000 --> 00:00:09,000\nsecond\n00:00:01,000 --> 00:00:07,000\nfirst\n"
                "00:00:06,000 --> 00:00:06,500\nthird\n",
                "first\nsecond\nthird",
            ),
            # A last line that is a number is speech where cues are not counted.
            ("00:00:01,000 --> 00:00:02,000\nWe are\n7\n00:00:03,000 --> 00:00:04,000\nYes", None),
            ("00:00:01,000 --> 00:00:02,000\n<i></i>\n", ""),
            ("", ""),
            (" \n\n", ""),
            (None, ""),
            (..., ""),
        ],
    )
    def test_read(self, srt: Any, dialogue: str | None, tmp_path: Path) -> None:
        wanted = "We are 7\nYes" if dialogue is None else dialogue
        assert one(tmp_path, srt=srt).dialogue == wanted

    def test_whole_whatever_the_segments_times(self, tmp_path: Path) -> None:
        """It is in movie time, the segment in recap time: cutting by the other would empty it."""
        assert one(tmp_path, startTime=0, endTime=1).dialogue == SPOKEN

    @pytest.mark.parametrize(
        ("srt", "says"),
        [
            ("00:00:05,000 --> 00:00:02,000\nreversed", "srt: line 1: shown from 5 s to 2 s"),
            ("00:00:05 -> 00:00:08\nwhat", "line 1: expected a cue's number or timing"),
            ("00:00:01,000 --> 00:00:02,000\nx\n00:xx:02 --> 00:00:03\ny", "line 3: expected a ti"),
            ("They talk.", "expected a cue's number or timing"),
            (["00:00:01,000 --> 00:00:02,000"], "valid string"),
            (7, "valid string"),
        ],
    )
    def test_broken(self, srt: Any, says: str, tmp_path: Path) -> None:
        said = problem(tmp_path, srt=srt)
        assert said.startswith("srt: ")
        assert says in said


class TestFacts:
    """With numbers and without; an empty one is a fault."""

    @pytest.mark.parametrize(
        ("facts", "read"),
        [
            (["1. A sits.", "2. B stands."], ["A sits.", "B stands."]),
            (["0. A sits.", "1. B stands."], ["A sits.", "B stands."]),
            (["1) A sits.", " 2)  B stands. "], ["A sits.", "B stands."]),
            (["9: A sits.", "10: B stands."], ["A sits.", "B stands."]),
            (["A sits.", " B stands. "], ["A sits.", "B stands."]),
            # A number in some only is text of theirs, and so is a year.
            (["1. A sits.", "B stands."], ["1. A sits.", "B stands."]),
            (["2001: A Space Odyssey is on."], ["2001: A Space Odyssey is on."]),
            (["3.5 miles are run."], ["3.5 miles are run."]),
            (["12 men sit.", "7 stand."], ["12 men sit.", "7 stand."]),
        ],
    )
    def test_read(self, facts: list[str], read: list[str], tmp_path: Path) -> None:
        assert list(one(tmp_path, facts=facts).facts) == read

    @pytest.mark.parametrize(
        ("facts", "says"),
        [
            ([], "facts: expected at least one"),
            (["1. A sits.", "2. "], "facts, entry 2: expected a text, found an empty one"),
            (["A sits.", " "], "facts, entry 2: expected a text, found an empty one"),
            (["A sits.", None], "facts, entry 2: "),
            ("A sits.", "facts: expected a list"),
            (..., "facts: the field is missing"),
            (["A sits.", "\ud83d"], "facts, entry 2: "),
        ],
    )
    def test_bad(self, facts: Any, says: str, tmp_path: Path) -> None:
        assert problem(tmp_path, facts=facts).startswith(says)


class TestTimes:
    """Start before end, both together, in seconds."""

    @pytest.mark.parametrize(
        ("changes", "says"),
        [
            ({"startTime": 7.4}, "startTime 7.4 is not before endTime 7.4"),
            ({"startTime": 9}, "startTime 9 is not before endTime 7.4"),
            ({"startTime": -1}, "startTime: expected seconds from 0 on"),
            ({"endTime": float("nan")}, "endTime: expected seconds from 0 on"),
            ({"endTime": float("inf")}, "endTime: expected seconds from 0 on"),
            ({"endTime": "00:01:00"}, "endTime: "),
            ({"endTime": None}, "endTime: "),
            ({"endTime": ...}, "endTime: "),
            ({"movieStartTime": 20}, "movieStartTime 20 is not before movieEndTime 16"),
            ({"movieEndTime": ...}, "movieStartTime and movieEndTime are given together or not"),
            ({"movieId": ...}, "movieStartTime needs movieId"),
        ],
    )
    def test_bad(self, changes: dict[str, Any], says: str, tmp_path: Path) -> None:
        assert says in problem(tmp_path, **changes)

    def test_our_fields_are_optional(self, tmp_path: Path) -> None:
        nothing = dict.fromkeys(("movieId", "movieStartTime", "movieEndTime"), ...)
        release = read(tmp_path, entry(1, **nothing))
        (segment,) = release.segments
        assert (segment.movie_id, segment.movie_start, segment.movie_end) == ("", None, None)
        assert release.movie_path(segment) is None


class TestQuestions:
    """Ids, labels, answers of humans and models."""

    @pytest.mark.parametrize(
        ("changes", "says"),
        [
            ({"questions": [question(1), question(1)]}, "qid 1 occurs twice"),
            ({"questions": [question(1, question=" ")]}, "questions, entry 1, question: "),
            ({"questions": [question(1, qid=...)]}, "questions, entry 1, qid: "),
            ({"questions": [question(1, modality="smell")]}, "expected dialogue, vision or multi"),
            ({"questions": [question(1, category="X")]}, "expected NPA, CRD, TH, STA or TEMP"),
            ({"questions": ...}, "questions: "),
            ({"videoId": "../talk"}, "videoId: expected a name on one line, without a folder"),
            ({"videoId": ...}, "videoId: "),
            ({"movieId": "a\nb"}, "movieId: expected a name on one line"),
        ],
    )
    def test_bad(self, changes: dict[str, Any], says: str, tmp_path: Path) -> None:
        assert says in problem(tmp_path, **changes)

    def test_indexes_of_facts_are_not_read(self, tmp_path: Path) -> None:
        """The release counts from 0 and from 1 inside one segment: they judge nothing."""
        for used in ([0, 1], [1, 2], [99], None, "all", ...):
            asked = one(tmp_path, questions=[question(1, factsUsed=used)]).questions[0]
            assert not hasattr(asked, "factsUsed")

    def test_humans_and_empty_answers(self, tmp_path: Path) -> None:
        several = [{"answer": "Two", "scores": {"factuality": 5, "relevance": 5}}]
        answers = [{"model": "m", "answer": None, "scores": None}, {"model": "n", "answer": ""}]
        asked = question(1, humanAnswers=several, modelAnswers=answers)
        found = one(tmp_path, questions=[asked]).questions[0]
        assert [human.answer for human in found.human_answers] == ["The captain", "Two"]
        assert [(one.model, one.answer) for one in found.model_answers] == [("m", ""), ("n", "")]
        assert found.model_answers[0].scores.factuality is None
        long = [{"model": "m", "answer": "x" * 20_000}]
        kept = one(tmp_path, questions=[question(1, modelAnswers=long)]).questions[0]
        assert len(kept.model_answers[0].answer) == 20_000


class TestFile:
    """What is no list of segments stops, with its place."""

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            ({"segments": []}, "expected a list of segments"),
            ([], "holds no segments"),
            ([1], "expected a list of segments"),
            ([entry(1, id=...)], "segment 1: no id"),
            ([entry(1), entry(1)], "segment 2: id 'talk.1' is also that of segment 1"),
            ([entry(1, facts=[])], "not one of 1 segments fits the schema; talk.1: facts: "),
        ],
    )
    def test_stops(self, content: Any, says: str, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"segments\.json") as error:
            schema.read(write(tmp_path, content))
        assert says in str(error.value)

    def test_a_byte_order_mark_and_another_name(self, tmp_path: Path) -> None:
        text = json.dumps([entry(1)])
        (tmp_path / "release.json").write_text(text, encoding="utf-8-sig")
        release = schema.read(tmp_path)
        assert release.digest == read(tmp_path / "other", entry(1)).digest
        assert release.counts == {
            "videos": 1,
            "segments": 1,
            "questions": 2,
            "facts": 2,
            "bad_segments": 0,
        }

    @pytest.mark.parametrize(
        ("there", "found"),
        [
            (("recaps/talk.mkv", "talk.mp4"), "recaps/talk.mkv"),
            (("talk.webm",), "talk.webm"),
            (("talk", "other.mp4"), "talk"),
            ((), "recaps/talk.mp4"),
        ],
    )
    def test_recaps(self, there: tuple[str, ...], found: str, tmp_path: Path) -> None:
        release = read(tmp_path, entry(1))
        (tmp_path / "recaps").mkdir()
        for name in there:
            (tmp_path / name).touch()
        assert release.recap_path(release.segments[0]) == tmp_path / found
        assert release.movie_path(release.segments[0]) == tmp_path / "movies" / "film.mp4"

    def test_the_real_sample(self, real: Path) -> None:
        release = schema.read(real / "movierecapsqa")
        assert release.problems == {}
        assert release.counts == {
            "videos": 8,
            "segments": 8,
            "questions": 52,
            "facts": 113,
            "bad_segments": 0,
        }
