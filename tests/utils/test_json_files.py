"""The one way in for files of users: each reader of text, and whatever stands in a file's place.

Each case runs in a process of its own with little memory, as a reader that hangs or fills it would.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval_tasks import prompts
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.haven.records import record
from lmms_eval_tasks.judges.config import resolve
from lmms_eval_tasks.utils import json_files, released_files, results_file, saved_runs
from lmms_eval_tasks.utils.media import subtitles
from tests.checks import refused, table

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
PAGE = b"\n<!DOCTYPE html>\n<html><body>Sign in</body></html>"
GIGABYTES = 5 * 2**30

READERS: dict[str, Callable[[Path], object]] = {
    "data.json": released_files.read_json,
    "data.jsonl": lambda file: list(released_files.read_lines(file)),
    "data.csv": released_files.read_table,
    "data.parquet": released_files.read_table,
    "prices.yml": lambda file: released_files.read_yaml(file, "a mapping"),
    "judge.yml": lambda file: resolve(str(file), {}, default_model="m"),
    "1_results.json": results_file.read_results,
    "1_samples_t.jsonl": saved_runs.read_saved_run,
    "talk.srt": subtitles.read_cues,
    "video_1.h5": lambda file: record.read_arrays(file, ["video_1"]),
    "maia/judge.yml": lambda file: prompts.load_prompt("maia", "judge", {}, file.parents[1]),
}


def lfs(file: Path) -> None:
    file.write_bytes(LFS)


def page(file: Path) -> None:
    file.write_bytes(PAGE)


def zeros(file: Path) -> None:
    file.write_bytes(bytes(2000))


def huge(file: Path) -> None:
    with file.open("wb") as opened:
        opened.write(b'[{"a": 1}, ')
        opened.truncate(GIGABYTES)  # sparse: it takes no room


def folder(file: Path) -> None:
    file.mkdir()


PLACED = {
    lfs: "a pointer of Git LFS, not the file itself: run `git lfs pull`",
    page: "a web page, not the file itself: download the raw file",
    zeros: "full of zeros at its beginning: download or copy it again",
    huge: "bytes",
    os.mkfifo: "a pipe or a device, not a file",
    folder: "a folder, not a file",
}


@table("name", READERS)
@pytest.mark.parametrize("place", PLACED, ids=lambda place: place.__name__)
def test_what_stands_in_the_place_of_a_file(name: str, place: Callable[[Path], None], tmp_path):
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    place(file)
    said: list[object] = []

    def read() -> None:
        try:
            said.append(READERS[name](file))
        except TasksError as error:
            said.append(str(error))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(20)
    assert said, "it hangs"
    if name == "video_1.h5" and place is huge:
        return  # of any size: it is not read as a whole
    (line,) = said
    assert isinstance(line, str)
    assert line.startswith(str(file))
    assert PLACED[place] in line
    assert "\n" not in line


def test_a_line_of_gigabytes_takes_little_memory(tmp_path: Path) -> None:
    file = tmp_path / "1_samples_t.jsonl"
    huge(file)
    code = f"""
import resource, sys
from pathlib import Path
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import saved_runs
resource.setrlimit(resource.RLIMIT_AS, (2 * 2**30, 2 * 2**30))
try:
    saved_runs.read_saved_run(Path({str(file)!r}))
except DataError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{file}, line 1: more than {json_files.LONGEST:,} bytes\n"


def test_small_files_that_unpack_to_gigabytes(tmp_path: Path) -> None:
    import h5py
    import pyarrow as pa
    from pyarrow import parquet

    rows, arrays = tmp_path / "data.parquet", tmp_path / "tvsum.h5"
    part = pa.table({"a": np.zeros(2**23, np.int64)})
    packed: Any = {"use_dictionary": False, "compression": "zstd"}
    with parquet.ParquetWriter(rows, part.schema, **packed) as writer:
        for _ in range(17):
            writer.write_table(part)
    with h5py.File(arrays, "w") as store:
        video = store.create_group("video_1")
        video.create_dataset("picks", (2**30,), "i8", chunks=(2**20,), compression="gzip")
    assert max(rows.stat().st_size, arrays.stat().st_size) < 2**20
    refused(
        DataError,
        "bytes when unpacked; more than 1,073,741,824",
        released_files.read_table,
        rows,
    )
    assert record.read_arrays(arrays, ["video_1"]) == {
        "video_1": "arrays of more than 1,073,741,824 bytes"
    }


@table("inside, says", [("xl/workbook.xml", "save it as CSV"), ("data.json", "unpack it first")])
def test_workbooks_are_told_from_archives(inside: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    with zipfile.ZipFile(file, "w") as made:
        made.writestr(inside, "<x/>")
    refused(DataError, says, released_files.read_table, file)


DEVICES = ("/dev/zero", "/dev/null")


@table("device", DEVICES)
def test_devices(device: str, tmp_path: Path) -> None:
    for read in READERS.values():
        link = tmp_path / "link.yml"
        link.unlink(missing_ok=True)
        link.symlink_to(device)
        if read not in (READERS["1_samples_t.jsonl"], READERS["maia/judge.yml"]):
            refused(TasksError, "a pipe or a device, not a file", read, link)


@table(
    "text, says",
    [
        ('{"a": [1, 2', "it ends there, so it may be cut short"),
        ('{"a": "b', "it ends there, so it may be cut short"),
        ("[1, 2", "it ends there, so it may be cut short"),
        ('{"a": oops}', "line 1 column 7 .char 6.$"),
        ("", "line 1 column 1 .char 0.$"),
        ("[" * 200_000, "nested too deeply"),
        ("9" * 5000, "Exceeds the limit .4300.* .*5000 digits$"),
        ('"a\0b"', "Invalid control character"),
        ("\0" * 9, "Expecting value"),
        ('[{"answer": "A", "id": 1, "answer": "B"}]', "the key 'answer' occurs twice in one obj"),
    ],
)
def test_no_json(text: str, says: str) -> None:
    refused(ValueError, says, json_files.parsed, text)
    refused(ValueError, says, json_files.parsed, text.encode())


def test_utf_16_is_named(tmp_path: Path) -> None:
    file = tmp_path / "data.json"  # as PowerShell's `>` writes it
    file.write_bytes(json.dumps([1]).encode("utf-16"))
    refused(
        DataError, "not UTF-8 text but UTF-16: save it as UTF-8", released_files.read_json, file
    )


BOMB = "\n".join(
    ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 10}]" for n in range(1, 12))]
)
MERGED = "\n".join(
    ["m0: &m0 {k: v}", *(f"m{n}: &m{n} {{<<: [{f'*m{n - 1}, ' * 10}]}}" for n in range(1, 12))]
)


@table(
    "text, says",
    [
        (BOMB, "its aliases expand to too many values"),
        (MERGED, "its aliases expand to too many values"),
        ("a: &a [*a]", "its aliases expand to too many values"),
        ("a: " + "[" * 10_000, "nested too deeply"),
        ("a: 2026-13-01", "month must be in 1..12"),
        ("a: " + "9" * 5000, "Exceeds the limit"),
        ("a: !!python/object/apply:os.system [x]", "could not determine a constructor"),
        ("a: 1\n---\nb: 2", "expected a single document"),
        ("a: [{b: 1, c: 2, b: 3}]", "the key 'b' occurs twice in one mapping"),
        ("a: " + "x" * 2**18, "262,147 characters; more than 262,144 are not read"),
    ],
)
def test_no_yaml(text: str, says: str) -> None:
    assert "\n" not in refused(ValueError, says, json_files.parsed_yaml, text)


def test_aliases_that_mean_no_harm() -> None:
    assert json_files.parsed_yaml("a: &a {x: 1}\nb: {<<: *a, y: [*a, *a]}") == {
        "a": {"x": 1},
        "b": {"x": 1, "y": [{"x": 1}, {"x": 1}]},
    }
    assert json_files.parsed_yaml("") is None
