"""A user's recap, its transcript and its dialogue as they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa.facts import recap_file
from tests.checks import refused

PART = {"startTime": 0, "endTime": 9.5, "transcript": "Ann opens doors."}


def recap(folder: Path, content: Any, name: str = "recap.json") -> Path:
    file = folder / name
    text = content if isinstance(content, str) else json.dumps(content)
    file.write_text(text, encoding="utf-8")
    return file


def segments(folder: Path, content: Any, **options: Any) -> list[recap_file.Narrated]:
    file = recap(folder, content)
    return recap_file.narrated(recap_file.read(file), file, **options)


def test_yaml_and_json_are_the_same(tmp_path: Path) -> None:
    text = """
    videoId: abc
    movie: 1917
    segments:
      - startTime: 0
        endTime: 9.5
        transcript: Ann opens doors.
    """
    file = recap(tmp_path, text, "recap.yml")
    from_yaml = recap_file.narrated(recap_file.read(file), file)
    with_bom = "\ufeff" + json.dumps({"videoId": "abc", "movie": "1917", "segments": [PART]})
    assert from_yaml == segments(tmp_path, with_bom)
    assert from_yaml[0].released == {
        "id": "abc.1", "movie": "1917", "videoId": "abc",
        "startTime": 0.0, "endTime": 9.5, "srt": "",
    }  # fmt: skip
    assert from_yaml[0].narration == "Ann opens doors."


def test_a_bad_recap_is_one_line(tmp_path: Path) -> None:
    for content, why in (
        ("[]", "expected an object"),
        ("{", "not valid JSON"),
        ({"segments": [PART]}, "videoId: the field is missing"),
        ({"videoId": "v", "segments": []}, "segments: "),
        *(
            ({"videoId": "v", "segments": [PART, {**PART, **changes}]}, why)
            for changes, why in (
                ({"transcript": "  "}, "segments, entry 2, transcript"),
                ({"text": "x"}, "segments, entry 2, text: no such field"),
                ({"endTime": "1:30"}, "segments, entry 2, endTime: Input should"),
                ({"endTime": 0}, "segment 2: startTime 0 is"),
                ({"srt": "Who?"}, "segment 2: srt: line 1"),
                ({"movieStartTime": 5}, "movieStartTime and movieEndTime are given together"),
            )
        ),
    ):
        with pytest.raises(DataError) as raised:
            segments(tmp_path, content)
        assert why in str(raised.value)
        assert str(tmp_path / "recap.json") in str(raised.value)
        assert "\n" not in str(raised.value)
    for text, why in (("a: [", "not YAML"), ("- a", "expected one recap")):
        refused(DataError, why, recap_file.read, recap(tmp_path, text, "recap.yaml"))


def test_dialogue_is_cut_to_windows_in_movie_time(tmp_path: Path) -> None:
    movie = recap(
        tmp_path,
        "1\n01:00:00,000 --> 01:00:02,000\n<i>Before.</i>\n\n"
        "2\n01:00:04,000 --> 01:00:06,250\n- Who?\n- Me. --\n\n"
        "3\n01:00:08,000 --> 01:00:09,000\n7\n",
        "movie.srt",
    )
    window = {"movieId": "m", "movieStartTime": 3603.0, "movieEndTime": 3610}
    own = {**PART, **window, "srt": "00:00:01,000 --> 00:00:02,000\nOwn.\n"}
    found = segments(
        tmp_path,
        {"videoId": "v", "segments": [{**PART, **window}, own, PART]},
        subtitles_of_movie=movie,
    )
    assert [one.dialogue for one in found] == ["- Who? - Me. --\n7", "Own.", ""]
    assert found[0].released["srt"] == (
        "1\n01:00:04,000 --> 01:00:06,250\n- Who? - Me. --\n\n2\n01:00:08,000 --> 01:00:09,000\n7\n"
    )
    assert found[0].released["movieId"] == "m"


# --- transcripts ----------------------------------------------------------------------------


def srt(*cues: tuple[int, int, str]) -> str:
    def clock(seconds: int) -> str:
        return f"00:{seconds // 60:02}:{seconds % 60:02},000"

    told = (f"{clock(start)} --> {clock(end)}\n{text}" for start, end, text in cues)
    return "\n\n".join(told)


def parts(folder: Path, text: str, name: str = "talk.srt") -> list[Any]:
    found = recap_file.read_transcript(recap(folder, text, name), "v", "M")
    return [(part.start, part.end, part.transcript) for part in found.segments]


def test_a_transcript_is_divided_at_cues_into_like_parts(tmp_path: Path) -> None:
    cues = [(10 * n, 10 * n + 8, f"w{n}") for n in range(15)]
    found = parts(tmp_path, srt(*cues))
    # A rest of 2 s would carry no question: 148 s are two parts of 74 s, not three.
    assert [(start, end) for start, end, _ in found] == [(0, 68), (70, 148)]
    assert " ".join(text for *_, text in found) == " ".join(f"w{n}" for n in range(15))
    # Long pauses leave no empty segment.
    assert parts(tmp_path, srt((0, 5, "a"), (300, 305, "b"))) == [(0, 5, "a"), (300, 305, "b")]
    with pytest.raises(DataError, match="nothing is said in this transcript"):
        parts(tmp_path, srt((1, 2, " ")))


def test_captions_that_roll_are_read_once(tmp_path: Path) -> None:
    """As automatic captions of videos come: each line twice, with inline times."""
    text = (
        "WEBVTT\nKind: captions\n\n"
        "00:00:00.000 --> 00:00:02.000 align:start\n \nthe<00:00:00.500><c> man</c> runs\n\n"
        "00:00:02.000 --> 00:00:02.010\nthe man runs\n \n\n"
        "00:00:02.010 --> 00:00:04.000\nthe man runs\nout of the house\n\n"
        "00:00:04.000 --> 00:00:04.010\nout of the house\n \n\n"
        "00:00:04.010 --> 00:00:06.000\nout of the house\nand falls\n"
    )
    found = parts(tmp_path, text, "talk.vtt")
    assert [text for *_, text in found] == ["the man runs out of the house and falls"]
    # Words that are said again stay.
    found = parts(tmp_path, srt((0, 2, "He says no."), (5, 6, "no. Never again")))
    assert [text for *_, text in found] == ["He says no. no. Never again"]
