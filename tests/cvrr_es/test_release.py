"""The release: every form, ids by place, what is wrong with file, entry and field; its placing."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es.release import CvrrQuestion, read_cvrr
from lmms_eval_tasks.cvrr_es.tasks import BENCHMARK
from lmms_eval_tasks.errors import DataError
from tests.checks import refused
from tests.cvrr_es.release_files import row, write
from tests.cvrr_es.scored import PART, TIME
from tests.local_hub import get_released

ROWS = (row(" What happens? \n", "A man\u2028runs.", "1.mp4"), row("Why?", "So.", "2.mp4"))


def place(folder: Path, form: str) -> None:
    """ROWS in one of the forms: the original release, or the hub copy's."""
    if form != "hub":
        write(folder / ("CVRR-ES" if form == "unpacked" else ""), PART, list(ROWS))
        return
    import pyarrow
    from pyarrow import parquet

    rows = [{"DimensionName": "Partial actions", **one} for one in ROWS]
    (folder / PART).mkdir(exist_ok=True)
    name = f"{PART}/test-00000-of-00001.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / name)


def test_every_form_is_read_alike(tmp_path: Path) -> None:
    digests = set()
    for form in ("release", "unpacked", "hub"):
        (tmp_path / form).mkdir()
        place(tmp_path / form, form)
        found = read_cvrr(tmp_path / form)
        assert found.questions == (
            CvrrQuestion(f"{PART}/001", PART, "1.mp4", "What happens?", "A man\u2028runs."),
            CvrrQuestion(f"{PART}/002", PART, "2.mp4", "Why?", "So."),
        )
        assert (dict(found.problems), len(found.digest)) == ({}, 12)
        counts = {"videos": 2, "questions": 2, "dimensions": 1, "bad_questions": 0}
        assert found.counts == counts
        digests.add(found.digest)
    assert len(digests) == 1
    place(tmp_path / "release", "hub")
    with pytest.raises(DataError, match=r"partial_actions: several annotation files .*keep"):
        read_cvrr(tmp_path / "release")


def test_a_new_file_is_read_again(tmp_path: Path) -> None:
    file = write(tmp_path, PART, [row("Why?")])
    first = read_cvrr(tmp_path)
    assert read_cvrr(tmp_path) is first
    file.write_text(json.dumps([row("Why, oh why?")]))
    assert read_cvrr(tmp_path).questions[0].question == "Why, oh why?"
    assert read_cvrr(tmp_path).digest != first.digest


def test_ids_are_places_even_behind_bad_rows(tmp_path: Path) -> None:
    write(tmp_path, TIME, [row("Q1"), row("Q1"), row("Q2", ""), row("Q3")])
    write(tmp_path, PART, [row(f"Q{n}") for n in range(1001)])
    found = read_cvrr(tmp_path)
    assert [one.id for one in found.questions[-3:]] == [f"{TIME}/00{n}" for n in (1, 2, 4)]
    assert found.questions[1000].id == f"{PART}/1001"
    assert list(found.places[TIME].items())[2] == (f"{TIME}/003", "Q2")


def test_videos(tmp_path: Path) -> None:
    names = ["a.mp4", "b", "c.mp4", "d.mkv"]
    write(tmp_path, PART, [row(f"Q{n}", video=name) for n, name in enumerate(names)])
    (tmp_path / PART / "b.mkv").touch()
    unpacked = tmp_path / "CVRR-ES" / PART
    unpacked.mkdir(parents=True)
    (unpacked / "c.mp4").touch()
    found = read_cvrr(tmp_path)
    assert [found.video_path(one) for one in found.questions] == [
        tmp_path / PART / "a.mp4",
        tmp_path / PART / "b.mkv",
        unpacked / "c.mp4",
        tmp_path / PART / "d.mkv",
    ]


def test_a_bad_row_is_told_in_one_line_and_the_others_stay(tmp_path: Path) -> None:
    folders = "VideoID: expected a name on one line, without a folder"
    bad: list[tuple[Any, str]] = [
        ("text", ""),
        (row("Why?", Q=...), "Q: the field is missing"),
        (row("Why?", A=None), "A: expected a text, found None"),
        (row(" \n"), "Q: expected a text, found an empty one"),
        (row("Why?", VideoID=3), "VideoID: expected a text, found 3"),
        (row("Why?", VideoID="../1.mp4"), folders),
        (row("Why?", VideoID="a\\1.mp4"), folders),
        (row("Why?", VideoID=".."), folders),
    ]
    file = write(tmp_path, PART, [row("Good?"), *(one for one, _ in bad)])
    found = read_cvrr(tmp_path)
    assert [one.id for one in found.questions] == [f"{PART}/001"]
    assert found.counts["bad_questions"] == len(bad)
    for number, (problem, (_, told)) in enumerate(
        zip(found.problems.values(), bad, strict=True), 2
    ):
        assert problem.startswith(f"{file}, entry {number}: {told}")
        assert "\n" not in problem


def no_text() -> bytes:
    """A table whose column of texts holds bytes that are none."""
    import pyarrow
    from pyarrow import parquet

    table, made = pyarrow.table({"Q": pyarrow.array([b"\xb9"]).view("string")}), io.BytesIO()
    parquet.write_table(table, made)
    return made.getvalue()


def test_what_is_no_list_of_rows_stops(tmp_path: Path) -> None:
    annotations = f"{PART}/annotations_{PART}.json"
    for name, content, told in (
        (annotations, b"{}", "expected a list of rows"),
        (annotations, b"[]", "none of 0 rows can be used"),
        (annotations, b'[{"Q": "a"}, 3]', "none of 2 rows can be used; .*entry 1: A: the"),
        (f"{PART}/test-0.parquet", b"nothing", "not a readable parquet file"),
        (f"{PART}/test-1.parquet", no_text(), "not a readable parquet file: 'utf-8' codec"),
    ):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
        with pytest.raises(DataError, match=told) as error:
            read_cvrr(tmp_path)
        assert str(error.value).startswith(str(file))
        file.unlink()
    refused(DataError, "no annotations of CVRR-ES", read_cvrr, tmp_path)


def test_data_get(tmp_path: Path, sample_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub's tables, and its archive of videos with the folder CVRR-ES."""
    (tmp_path / "hub" / PART).mkdir(parents=True)
    place(tmp_path / "hub", "hub")
    videos = tmp_path / "videos" / "CVRR-ES" / PART
    videos.mkdir(parents=True)
    for name in ("1.mp4", "2.mp4"):
        shutil.copy(sample_folder / PART / "box.mp4", videos / name)
    shutil.make_archive(str(tmp_path / "hub" / "videos"), "zip", tmp_path / "videos")
    get_released(BENCHMARK, [tmp_path / "hub"], tmp_path / "root", monkeypatch)
    found = BENCHMARK.status(tmp_path / "root")
    assert (found.counts["questions"], found.videos) == (len(ROWS), 2)


def test_a_download_in_its_place(tmp_path: Path, sample_folder: Path) -> None:
    """As the archive is unpacked; of its files those that are ours."""
    folder, root = tmp_path / "download" / "CVRR-ES", tmp_path / "root"
    write(folder, PART, [row("Why?", video="1.mp4"), row("Why?", video="gone.mp4")])
    write(folder, TIME, [row("When?", video="1.mp4"), row("What?", "")])
    shutil.copy(sample_folder / PART / "box.mp4", folder / PART / "1.mp4")
    (folder / TIME / "1.mp4").write_bytes(b"no video")
    (folder / PART / "holiday.mp4").write_bytes(b"not ours")
    told = BENCHMARK.prepare(folder.parent, root, link=False)
    assert told.startswith(f"copied 4 files to {root / 'cvrr_es'}\n")
    found = BENCHMARK.status(root)
    assert (found.videos, found.where) == (1, root / "cvrr_es")
    reasons = {name: why.partition(":")[0] for name, why in found.bad.items()}
    assert reasons == {f"{PART}/gone.mp4": "missing", f"{TIME}/1.mp4": "unreadable"}
    assert found.version == read_cvrr(folder).digest
    first, *notes = found.notes
    assert first == "3 of 217 videos, 3 of 2,400 questions of the paper's full set"
    assert "fine_grained_action_understanding: missing" in notes
    assert notes[-1].endswith("entry 2: A: expected a text, found an empty one")
    refused(DataError, "no annotations of CVRR-ES", BENCHMARK.prepare, tmp_path, root, link=True)
    write(root / "cvrr_es", PART, [])
    assert "none of 0 rows can be used" in BENCHMARK.status(root).problem
