"""What benchmarks share: files of a release, saved items, numbers of a results file."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import released_files, saved_runs, validation
from tests.checks import refused, table

NAMES = ("data.json", "release.json")


def test_the_data_file_among_others(tmp_path: Path) -> None:
    find = released_files.find_file
    (tmp_path / "x.json").touch()
    words = r"no data file \(expected data.json or release.json\)"
    refused(DataError, words, find, tmp_path, NAMES)
    assert find(tmp_path / "x.json", NAMES) == tmp_path / "x.json"
    for name in reversed(NAMES):
        (tmp_path / name).touch()
        assert find(tmp_path, NAMES) == tmp_path / name


@table(
    "content, says",
    [
        ("id,answer,answer\n1,x,y\n", "the column 'answer' occurs twice in its first line"),
        ("id;answer\n1;x\n", "semicolons between its columns: save it with commas"),
        ("id\tanswer\n1\tx\n", "tabs between its columns"),
        ("id,answer\n1,x\n2,a, b\n", "line 3: not readable as CSV: more than the 2 values"),
        ('id,answer\n1,"x\n2,y\n', "not readable as CSV: unexpected end of data"),
    ],
)
def test_no_csv(content: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text(content, encoding="utf-8")
    refused(DataError, f"data.csv.*{says}", released_files.read_table, file)


def test_what_is_left_off_at_the_end_of_a_row_is_none(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_bytes(b"\xef\xbb\xbfid,answer\r\n1\r\n")
    assert released_files.read_table(file) == [{"id": "1", "answer": None}]


@table(
    "content, says",
    [
        (b"[1,\n oops]", "line 2 column 2"),
        (b'["\xff"]', "not UTF-8 text"),
        (b"[" * 100_000, "not valid JSON"),
        (b"9" * 5000, "not valid JSON"),
        (None, "No such file"),
    ],
)
def test_no_json(content: bytes | None, says: str, tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    if content is not None:
        file.write_bytes(content)
    assert str(file) in refused(DataError, says, released_files.read_json, file)
    file.write_bytes(b"\xef\xbb\xbf[1]")
    assert released_files.read_json(file) == [1]


def test_lines(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + '{"a": "one\u2028line"}\n\n[2]\n{\n'.encode())
    lines = released_files.read_lines(file)
    assert [next(lines), next(lines)] == [(1, {"a": "one\u2028line"}), (3, [2])]
    refused(DataError, r"x\.jsonl, line 4: not valid JSON", next, lines)
    file.write_bytes(b"\xff")
    refused(DataError, r"not UTF-8 text \(byte 0\)", list, released_files.read_lines(file))
    refused(DataError, "No such file", list, released_files.read_lines(tmp_path / "nothing"))


@table(
    "content, says",
    [
        ("a: 2026-13-01", "not YAML"),
        ("a: " + "[" * 10_000, "not YAML"),
        ("a: !!python/object/apply:os.system [x]", "not YAML .*could not determine a constructor"),
        ("[a]", "expected a form"),
    ],
)
def test_no_yaml(content: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "x.yml"
    file.write_text(content, encoding="utf-8")
    said = refused(DataError, says, released_files.read_yaml, file, "a form")
    assert said.startswith(str(file))
    assert "\n" not in said


def test_a_value_of_a_billion_words_is_not_written_out() -> None:
    told: list[int] = []

    class Word:
        def __repr__(self) -> str:
            told.append(1)
            return "word"

    value: Any = Word()
    for _ in range(5):
        value = [value] * 10  # as aliases in a file of YAML make it
    assert len(validation.quoted(value)) <= 60
    assert len(told) < 1000
    assert validation.quoted([1, {"a": "b"}]) == "[1, {'a': 'b'}]"


# --- saved runs -------------------------------------------------------------------------------


OK = {"id": "c", "reply": "", "status": "ok"}


def saved(*samples: Any) -> list[dict[str, Any]]:
    return saved_runs.saved_items(
        saved_runs.SavedRun("t", Path("x.jsonl"), list(samples), None, {})
    )


@table(
    "second, says",
    [
        ({"other": {}}, "no `failed` item of lmms-eval-tasks"),
        ({"failed": 0.5}, "no `failed` item"),
        ({"failed": {"id": "c"}}, "no `failed` item"),
        ({"failed": {"id": "c", "reply": ""}}, "the item has no text `status`; delete its"),
        ({"failed": {"id": "a", "reply": "", "status": "ok"}}, "a occurs twice"),
        ({"failed": OK | {"right": "1"}}, "the item has no number `right`; delete its"),
        ({"failed": OK | {"verdicts": []}}, "the item has no object `verdicts`"),
        ({"failed": OK | {"video": None}}, "the item has no text `video`"),
        ({"failed": OK | {"points": math.nan}}, "t, doc c: `points` is NaN or infinite"),
        ({"failed": OK | {"scores": {"f1": [1.0, math.inf]}}}, "t, doc c: `scores.f1.1` is NaN"),
    ],
)
def test_bad_samples(second: Any, says: str) -> None:
    first = {"failed": {"id": "a", "reply": "", "status": "ok"}}
    refused(DataError, f"^x.jsonl, line 2: {says}", saved, first, second)
    items = saved({"failed": {"id": "b", "reply": "", "status": "ok"}}, first)
    assert [item["id"] for item in items] == ["a", "b"]  # in the order of their ids


@table(
    "line, says",
    [
        (b"[" * 100_000, "not JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"a": "\xff"}', "not JSON"),
        (b"[1]", "expected an object"),
    ],
)
def test_lines_of_samples(line: bytes, says: str, tmp_path: Path) -> None:
    file = tmp_path / "1_samples_t.jsonl"
    good = b'\xef\xbb\xbf{"a": 1}\r\n'  # as an editor leaves it
    file.write_bytes(good + line)
    said = refused(DataError, says, list, saved_runs.Lines(file))
    assert said.startswith(f"{file}, line 2: ")
    file.write_bytes(good)
    assert list(saved_runs.Lines(file)) == [{"a": 1}]


@table(
    "results, says",
    [
        ([], "expected an object"),
        ({"config": []}, "config: expected an object"),
        ({"config": {"offset": "4"}}, "config, offset: expected a whole number"),
        ({"n-samples": {"t": "4"}}, "n-samples, t: expected an object"),
        ({"n-samples": {"t": {"original": "4"}}}, "n-samples, t, original: expected a whole"),
        ({"results": {"t": 5}}, "results, t: expected an object"),
        ({"group_subtasks": {"g": "t"}}, "group_subtasks, g: expected a list"),
        ({"lmms_eval_tasks": {"maia": {"warnings": "x"}}}, "maia.*warnings: expected a list"),
        ({"lmms_eval_tasks": {"maia": 5}}, "lmms_eval_tasks, maia.*expected an object"),
        ({"lmms_eval_tasks": {"invalid": []}}, "invalid: expected an object"),
    ],
)
def test_results_of_another_form(results: Any, says: str, tmp_path: Path) -> None:
    samples, file = tmp_path / "1_samples_t.jsonl", tmp_path / "1_results.json"
    samples.write_text("{}\n")
    file.write_text(json.dumps(results))
    said = refused(DataError, says, saved_runs.read_saved_run, samples)
    assert said.startswith(f"{file}: not a results file of lmms-eval: ")
    known = {"results": {"t": {"a,none": 1}}, "x": [], "lmms_eval_tasks": {"version": "1"}}
    file.write_text(json.dumps(known))
    assert saved_runs.read_saved_run(samples).saved == {"a": 1}


def test_our_numbers_outrank_the_hosts() -> None:
    results = {
        "results": {"maia_b": {"acc,none": 1.0, "acc_stderr,none": 0.1}, "other": {"x,none": 2}},
        "lmms_eval_tasks": {
            "version": "1",
            "maia": {"numbers": {"maia_b": {"acc": 1.0, "acc_valid": 0.5}}},
        },
    }
    found = saved_runs.numbers(results)
    assert found == {"maia_b": {"acc": 1.0, "acc_valid": 0.5}, "other": {"x": 2}}


def test_links_in_a_circle_are_a_missing_file(tmp_path: Path) -> None:
    first, second, link = (tmp_path.resolve() / name for name in ("a.mp4", "b.mp4", "c.mp4"))
    first.symlink_to(second)
    second.symlink_to(first)
    assert not released_files.real(first).is_file()
    (tmp_path / "d.mp4").touch()
    link.symlink_to("d.mp4")
    assert released_files.real(link) == tmp_path.resolve() / "d.mp4"


# --- names of files ---------------------------------------------------------------------------


NFC, NFD = "caf\u00e9", "cafe\u0301"


@table(
    "there, asked, found",
    [
        ("a.mp4", "a", True),
        ("a.MP4", "a", True),
        ("a.Mkv", "a", True),
        ("a.MP4", "a.mp4", True),
        ("a.WMV", "a.mp4", True),
        *((f"a{ending}", "a", True) for ending in (".wmv", ".flv", ".m2ts", ".3gp", ".mpeg")),
        *((f"a{ending}", "a", True) for ending in (".mpg", ".ts", ".ogv", ".m4v", ".avi", ".mov")),
        ("A.mp4", "a", False),  # another video
        ("a.mp4.part", "a", False),
        (f"{NFD}.mp4", NFC, True),  # as macOS stores it
        (f"{NFC}.MP4", NFD, True),
        (f"{NFD}/{NFD}.MOV", f"{NFC}/{NFC}", True),
        (f"{NFD}/a.mp4", "cafe/a", False),
    ],
)
def test_videos_by_name(there: str, asked: str, found: bool, tmp_path: Path) -> None:
    file = tmp_path / there
    file.parent.mkdir(exist_ok=True)
    file.touch()
    empty = tmp_path / "empty"
    path = released_files.video_path([empty, tmp_path], asked)
    assert path == (file if found else empty / f"{released_files.stem(asked)}.mp4")


def test_a_video_that_is_put_there_later_is_found(tmp_path: Path) -> None:
    os.utime(tmp_path, (1, 1))  # long ago
    assert released_files.find_named_file(tmp_path, "a.mp4") is None
    (tmp_path / "a.MP4").touch()
    assert released_files.find_named_file(tmp_path, "a.mp4") == tmp_path / "a.MP4"
    (tmp_path / "b.mp4").mkdir()
    os.mkfifo(tmp_path / "c.mp4")
    assert released_files.find_named_file(tmp_path, "b.mp4") is None
    assert released_files.find_named_file(tmp_path, "c.mp4") is None
