"""The release: every form, ids by place, what is wrong with file, entry and field; its placing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es import release
from lmms_eval_tasks.cvrr_es.release import Question, prepare, read, status
from lmms_eval_tasks.errors import DataError
from tests.checks import refused
from tests.cvrr_es.release_files import row, write
from tests.cvrr_es.scored import PART, TIME

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
        found = read(tmp_path / form)
        assert found.questions == (
            Question(f"{PART}/001", PART, "1.mp4", "What happens?", "A man\u2028runs."),
            Question(f"{PART}/002", PART, "2.mp4", "Why?", "So."),
        )
        assert (dict(found.problems), len(found.digest)) == ({}, 12)
        counts = {"videos": 2, "questions": 2, "dimensions": 1, "bad_questions": 0}
        assert found.counts == counts
        digests.add(found.digest)
    assert len(digests) == 1
    place(tmp_path / "release", "hub")
    with pytest.raises(DataError, match=r"partial_actions: several annotation files .*keep"):
        read(tmp_path / "release")


def test_a_new_file_is_read_again(tmp_path: Path) -> None:
    file = write(tmp_path, PART, [row("Why?")])
    first = read(tmp_path)
    assert read(tmp_path) is first
    file.write_text(json.dumps([row("Why, oh why?")]))
    assert read(tmp_path).questions[0].question == "Why, oh why?"
    assert read(tmp_path).digest != first.digest


def test_ids_are_places_even_behind_bad_rows(tmp_path: Path) -> None:
    write(tmp_path, TIME, [row("Q1"), row("Q1"), row("Q2", ""), row("Q3")])
    write(tmp_path, PART, [row(f"Q{n}") for n in range(1001)])
    found = read(tmp_path)
    assert [one.id for one in found.questions[-3:]] == [f"{TIME}/00{n}" for n in (1, 2, 4)]
    assert found.questions[1000].id == f"{PART}/1001"
    assert found.places[TIME][2] == (f"{TIME}/003", "Q2")


def test_videos(tmp_path: Path) -> None:
    names = ["a.mp4", "b", "c.mp4", "d.mkv"]
    write(tmp_path, PART, [row(f"Q{n}", video=name) for n, name in enumerate(names)])
    (tmp_path / PART / "b.mkv").touch()
    unpacked = tmp_path / "CVRR-ES" / PART
    unpacked.mkdir(parents=True)
    (unpacked / "c.mp4").touch()
    found = read(tmp_path)
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
    found = read(tmp_path)
    assert [one.id for one in found.questions] == [f"{PART}/001"]
    assert found.counts["bad_questions"] == len(bad)
    for number, (problem, (_, told)) in enumerate(
        zip(found.problems.values(), bad, strict=True), 2
    ):
        assert problem.startswith(f"{file}, entry {number}: {told}")
        assert "\n" not in problem


def test_what_is_no_list_of_rows_stops(tmp_path: Path) -> None:
    annotations = f"{PART}/annotations_{PART}.json"
    for name, content, told in (
        (annotations, b"{}", "expected a list of rows"),
        (annotations, b"[]", "not one of 0 rows can be used"),
        (annotations, b'[{"Q": "a"}, 3]', "not one of 2 rows can be used; .*entry 1: A: the"),
        (f"{PART}/test-0.parquet", b"nothing", "not a readable parquet file"),
    ):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
        with pytest.raises(DataError, match=told) as error:
            read(tmp_path)
        assert str(error.value).startswith(str(file))
        file.unlink()
    refused(DataError, "no annotations of CVRR-ES", read, tmp_path)


# --- what is there, and putting it in place -------------------------------------------------------


@pytest.fixture
def source(tmp_path: Path, sample_folder: Path) -> Path:
    """The folder that holds CVRR-ES, as the archive is unpacked."""
    folder = tmp_path / "download" / "CVRR-ES"
    write(folder, PART, [row("Why?", video="1.mp4"), row("Why?", video="gone.mp4")])
    write(folder, TIME, [row("When?", video="1.mp4"), row("What?", "")])
    for dimension in (PART, TIME):
        shutil.copy(sample_folder / PART / "box.mp4", folder / dimension / "1.mp4")
    (folder / PART / "holiday.mp4").write_bytes(b"not ours")
    return folder.parent


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


class TestStatus:
    def test_what_is_there(self, source: Path, root: Path) -> None:
        folder = source / "CVRR-ES"
        (folder / TIME / "1.mp4").write_bytes(b"no video")
        shutil.copytree(folder, root / "cvrr_es")
        found = status(root)
        assert (found.found, found.videos, found.where) == (True, 1, root / "cvrr_es")
        assert set(found.missing) == {f"{PART}/gone.mp4"}
        assert set(found.unreadable) == {f"{TIME}/1.mp4"}
        assert found.version == read(folder).digest
        first, *notes = found.notes
        assert first == "3 of 217 videos, 3 of 2,400 questions of the paper's full set"
        assert "fine_grained_action_understanding: not there" in notes
        assert notes[-1].endswith("entry 2: A: expected a text, found an empty one")

    def test_no_data_and_bad_data(self, root: Path) -> None:
        assert status(root).problem == release.HOW_TO_GET
        write(root / "cvrr_es", PART, [])
        assert "not one of 0 rows can be used" in status(root).problem


class TestPrepare:
    """A release to where it is read, whole and as it is."""

    def test_placed(self, source: Path, root: Path) -> None:
        for below, link in (("", True), ("CVRR-ES", True), ("", False)):
            shutil.rmtree(root, ignore_errors=True)
            for _ in range(2):  # it may be run again
                told = prepare(source / below, root, link)
            target = root / "cvrr_es"
            there = {str(p.relative_to(target)): p for p in target.rglob("*") if p.is_file()}
            names = (f"{one}/{name}" for one in (PART, TIME) for name in ("annotations_{}", "1"))
            wanted = {name.format(name.partition("/")[0]) for name in names}
            assert {name.rpartition(".")[0] for name in there} == wanted
            assert {path.is_symlink() for path in there.values()} == {link}
            first, *lines = told.splitlines()
            assert first == (
                f"{'linked' if link else 'copied'} 4 files to {target}: 3 questions of 2 "
                "dimensions; 1 questions with problems"
            )
            assert "time_order_understanding: not there" not in lines
            assert read(target).digest == read(source).digest

    def test_what_is_in_the_way(self, source: Path, root: Path) -> None:
        own = root / "cvrr_es" / PART
        write(root / "cvrr_es", PART, [row("Another?")])
        with pytest.raises(DataError, match=r"annotations_partial_actions\.json: is another file"):
            prepare(source, root, link=True)
        # A video of another container.
        shutil.rmtree(root)
        write(source / "CVRR-ES", PART, [row("Why?", video="2")])
        video = source / "CVRR-ES" / PART / "1.mp4"
        shutil.move(video, video.with_name("2.mkv"))
        own.mkdir(parents=True)
        (own / "2.mp4").write_bytes(b"another cut")
        with pytest.raises(DataError, match=r"2\.mp4: is in the way of .*2\.mkv; remove it first"):
            prepare(source, root, link=True)
        refused(DataError, "no annotations of CVRR-ES", prepare, source.parent, root, link=True)
