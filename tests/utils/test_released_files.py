"""What benchmarks share: files of a release, saved items, notes about prompts."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import prompt_notes, released_files
from lmms_eval_tasks.utils.prompts import Prompt

NAMES = ("data.json", "release.json")


class TestFindFile:
    """The data file among others."""

    @pytest.mark.parametrize(
        ("files", "found"),
        [
            (("data.json", "release.json", "x.json"), "data.json"),
            (("x.json", "release.json"), "release.json"),
            (("x.json", "key.json", "manifest.json"), "x.json"),
        ],
    )
    def test_found(self, files: tuple[str, ...], found: str, tmp_path: Path) -> None:
        for name in files:
            (tmp_path / name).write_text("[]")
        assert released_files.find_file(tmp_path, NAMES) == tmp_path / found

    @pytest.mark.parametrize(
        ("files", "says"),
        [
            (("x.json", "y.json"), "more than one JSON file .x.json, y.json.; rename .* data.json"),
            (("key.json",), r"no data file \(expected data.json or release.json\)"),
        ],
    )
    def test_not_found(self, files: tuple[str, ...], says: str, tmp_path: Path) -> None:
        for name in files:
            (tmp_path / name).write_text("[]")
        with pytest.raises(DataError, match=says):
            released_files.find_file(tmp_path, NAMES)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"[1,\n oops]", "line 2, column 2"),
        (b'["\xff"]', "not UTF-8 text"),
        (b"[" * 100_000, "cannot be read as JSON|not valid JSON"),
        (b"9" * 5000, "cannot be read as JSON"),
        (None, "No such file"),
    ],
)
def test_no_json(content: bytes | None, says: str, tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DataError, match=says) as error:
        released_files.read_json(file)
    assert "\n" not in str(error.value)
    assert str(file) in str(error.value)


def test_json_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"\xef\xbb\xbf[1]")
    assert released_files.read_json(tmp_path / "x.json") == [1]


@pytest.mark.parametrize("link", [True, False])
def test_put(link: bool, tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_text("new")
    target.write_text("old")
    released_files.put(source, target, link)
    assert (target.read_text(), target.is_symlink()) == ("new", link)
    before = source.stat().st_ino
    released_files.put(source, source, link)  # a file that is in its place stays itself
    assert (source.stat().st_ino, source.is_symlink()) == (before, False)
    assert not list(tmp_path.glob(".*.part"))


def test_release_or_status(tmp_path: Path) -> None:
    def read(place: Path) -> str:
        if place.name == "good":
            return "release"
        raise DataError("no good")

    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
    assert released_files.release_or_status("good", tmp_path, "ask", read) == "release"
    for name, problem in (("bad", "no good"), ("absent", "ask")):
        found = released_files.release_or_status(name, tmp_path, "ask", read)
        assert isinstance(found, released_files.DataStatus)
        assert (found.found, found.problem, found.where) == (False, problem, tmp_path / name)


def test_by_trouble_and_compared() -> None:
    problems = {"a": "missing: x", "b": "unreadable: y"}
    assert released_files.by_trouble(problems) == ({"a": "missing: x"}, {"b": "unreadable: y"})
    line = released_files.compared({"videos": 5, "n": 1000}, {"videos": 100, "n": 2400})
    assert line == "5 of 100 videos, 1,000 of 2,400 n of the paper's full set"


def test_prompt_notes() -> None:
    prompt = Prompt({"system": "x"}, "abc", "judge.yml")
    assert prompt_notes.note(prompt) == {"hash": "abc", "source": "judge.yml"}
    assert prompt_notes.name(prompt) == "judge.yml (abc)"


def test_read_lines(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + '{"a": "one\u2028line"}\n\n[2]\n{\n'.encode())
    lines = released_files.read_lines(file)
    assert [next(lines), next(lines)] == [(1, {"a": "one\u2028line"}), (3, [2])]
    with pytest.raises(DataError, match=r"x\.jsonl, line 4: not valid JSON"):
        next(lines)
    file.write_bytes(b"\xff")
    with pytest.raises(DataError, match=r"not UTF-8 text \(byte 0\)"):
        list(released_files.read_lines(file))
    with pytest.raises(DataError, match="No such file"):
        list(released_files.read_lines(tmp_path / "nothing"))
