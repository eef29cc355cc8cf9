"""Finding single videos in a source's text files; whole files that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven import text_files


@pytest.mark.parametrize("indent", [None, 2])
def test_a_mapping_gives_what_json_gives(tmp_path: Path, indent: int | None) -> None:
    data = {'a "b"': {"x": [1, {"y": None}]}, "video_2": {}, "é": {"z": "}{,"}}
    file = tmp_path / "tvsum_data.json"
    text = json.dumps(data, indent=indent, ensure_ascii=False)
    file.write_text(f"\ufeff \n{text}\n ", encoding="utf-8")
    texts = text_files.read([file])
    assert {video: texts.entry(video) for video in texts.videos} == data
    assert list(texts.videos) == list(data)
    assert texts.name == "tvsum_data.json"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "not valid JSON at line 1, column 1: Expecting value"),
        ("<html>", "not valid JSON at line 1, column 1: Expecting value"),
        ("[1]", 'expected {"video_1": {...}, ...}'),
        ("{}", "holds no videos"),
        ('{"a": 1,}', "not valid JSON at line 1, column 9: Expecting value"),
        ('{"a": 1 "b": 2}', "not valid JSON at line 1, column 9: Expecting ','"),
        ('{"a" 1}', "not valid JSON at line 1, column 6: Expecting ':'"),
        ("{1: 2}", "not valid JSON at line 1, column 2: Expecting a name in double quotes"),
        ('{"a": 1} x', "not valid JSON at line 1, column 10: Extra data"),
        ('{"a": 1,\n "b": [1,', "not valid JSON at line 2, column 10: Expecting value"),
        ('{"a": 1', "not valid JSON at line 1, column 8: Expecting ','"),
        ('{"a": 1, "a": 2}', "'a' occurs twice"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "x_data.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as error:
        text_files.read([file])
    assert str(error.value) == f"{file}: {told}"


def test_deep_brackets_and_other_encodings(tmp_path: Path) -> None:
    file = tmp_path / "x_data.json"
    file.write_text('{"a": ' + "[" * 200_000, encoding="utf-8")
    with pytest.raises(DataError, match="cannot be read as JSON"):
        text_files.read([file])
    file.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(DataError) as error:
        text_files.read([file])
    assert str(error.value) == f"{file}: not UTF-8 text (byte 7)"


def test_lines_of_several_files_are_merged_by_video(tmp_path: Path) -> None:
    folder = tmp_path / "tvsum"
    folder.mkdir()
    one, two = folder / "a.jsonl", folder / "b.jsonl"
    one.write_text('{"video_id": "video_1", "frames": [1], "task": "v2t"}\n\n', encoding="utf-8")
    two.write_text(
        '{"video": "video_1", "clips": [2], "frames": [1], "task": "v2v"}\n'
        '{"id": "video_2", "video": {}, "frames": []}\r\n',
        encoding="utf-8",
    )
    texts = text_files.read([one, two])
    assert texts.name == "tvsum/*.jsonl"
    assert texts.videos == ("video_1", "video_2")
    assert texts.entry("video_1") == {"frames": [1], "clips": [2]}
    assert texts.entry("video_2") == {"frames": []}
    assert texts.problems == {}


def test_lines_that_contradict_each_other(tmp_path: Path) -> None:
    file = tmp_path / "tvsum.jsonl"
    file.write_text('{"id": "v", "clips": [1]}\n{"id": "v", "clips": [2]}', encoding="utf-8")
    assert text_files.read([file]).problems == {
        "v": "tvsum.jsonl, line 2: another clips than a line before"
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ": holds no videos"),
        ('{"id": "v"}\n{', ", line 2: not valid JSON: Expecting property name enclosed in"),
        ('{"id": "v"}\n[]', ", line 2: expected an object"),
        ('{"id": 7}', ", line 1: no video (a text in video_id, video or id)"),
    ],
)
def test_lines_that_are_none(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "tvsum.jsonl"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as error:
        text_files.read([file])
    assert str(error.value).startswith(f"{file}{told}")
