"""A user's recap and its dialogue as they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa.facts import recap_file

PART = {"startTime": 0, "endTime": 9.5, "transcript": "Ann opens doors."}


def read(folder: Path, content: Any, *options: Path) -> list[recap_file.Narrated]:
    file = folder / "recap.json"
    text = content if isinstance(content, str) else json.dumps(content)
    file.write_text(text, encoding="utf-8-sig")
    return recap_file.read_recap(file, *options)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"transcript": "  "}, "segments, entry 2, transcript"),
        ({"text": "x"}, "segments, entry 2, text: no such field"),
        ({"endTime": "1:30"}, "segments, entry 2, endTime: Input should"),
        ({"endTime": 0}, "segment 2: startTime 0 is"),
        ({"srt": "Who?"}, "segment 2: srt: line 1"),
        ({"movieStartTime": 5}, "movieStartTime and movieEndTime are given together"),
    ],
)
def test_a_bad_segment_is_one_line(changes: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        read(tmp_path, {"videoId": "v", "segments": [PART, {**PART, **changes}]})
    told = str(raised.value)
    assert told.startswith(str(tmp_path / "recap.json"))
    assert why in told
    assert "\n" not in told


def test_dialogue_is_cut_to_windows_in_movie_time(tmp_path: Path) -> None:
    movie = tmp_path / "movie.srt"
    movie.write_text(
        "1\n01:00:00,000 --> 01:00:02,000\n<i>Before.</i>\n\n"
        "2\n01:00:04,000 --> 01:00:06,250\n- Who?\n- Me. --\n\n"
        "3\n01:00:08,000 --> 01:00:09,000\n7\n",
        encoding="utf-8",
    )
    window = {"movieId": "m", "movieStartTime": 3603.0, "movieEndTime": 3610}
    own = {**PART, **window, "srt": "00:00:01,000 --> 00:00:02,000\nOwn.\n"}
    segments = [{**PART, **window}, own, PART]
    found = read(tmp_path, {"videoId": "v", "movie": 1917, "segments": segments}, movie)
    assert [one.dialogue for one in found] == ["- Who? - Me. --\n7", "Own.", ""]
    assert found[2].released == {
        "id": "v.3", "movie": "1917", "videoId": "v", "startTime": 0, "endTime": 9.5, "srt": "",
    }  # fmt: skip
    assert (found[0].released["movieId"], found[0].narration) == ("m", "Ann opens doors.")
    with pytest.raises(DataError, match="no segment has times in the movie"):
        read(tmp_path, {"videoId": "v", "segments": [PART]}, movie)
