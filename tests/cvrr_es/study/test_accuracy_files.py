"""Judges' own accuracy from files."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_tasks.cvrr_es.study.leniency import read_accuracies as read
from lmms_eval_tasks.errors import DataError


def file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"GPT-4o": 70.8, "Video-LLaVA": 16}'),
        ("a.csv", "judge,accuracy\nGPT-4o, 70.8\n\nVideo-LLaVA,16\n"),
        ("a.CSV", '"GPT-4o",70.8\nVideo-LLaVA,16'),
        ("a.json", '\ufeff{"GPT-4o": 70.8, "Video-LLaVA": 16}'),
    ],
)
def test_both_forms(tmp_path: Path, name: str, text: str) -> None:
    assert read(file(tmp_path, name, text)) == {"GPT-4o": 70.8, "Video-LLaVA": 16.0}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.json", "[1, 2]", "expected JSON like"),
        ("a.json", "{", "not valid JSON"),
        ("a.json", "{}", "no accuracies"),
        ("a.json", '{"J": "70"}', "J: '70' is no number"),
        ("a.json", '{"J": true}', "J: True is no number"),
        ("a.json", '{"J": 1, "J": 2}', "J is named twice"),
        ("a.csv", "J,70\nJ,71", "J is named twice"),
        ("a.csv", "J,seventy", "line 1: 'J,seventy'"),
        ("a.csv", "J,70\nK", "line 2: 'K'"),
        ("a.csv", "judge,accuracy\n", "no accuracies"),
    ],
)
def test_refused(tmp_path: Path, name: str, text: str, expected: str) -> None:
    with pytest.raises(DataError, match=expected):
        read(file(tmp_path, name, text))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.json: No such file"):
        read(tmp_path / "none.json")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="not UTF-8"):
        read(tmp_path / "bytes.csv")
