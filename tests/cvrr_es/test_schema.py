"""The release: rows of every form, ids by place, and what is wrong told with file, entry, field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es import release
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from lmms_eval_tasks.errors import DataError
from tests.cvrr_es.release_files import (
    MODELS,
    real_data,
    release_from_judgements,
    row,
    write,
)

PART, TIME = "partial_actions", "time_order_understanding"
TITLES = {name: DIMENSIONS[name].title for name in DIMENSIONS}


class TestForms:
    """The original release and every export of the hub copy are read alike."""

    ROWS = (row(" What happens? \n", "A man\u2028runs.", "1.mp4"), row("Why?", "So.", "2.mp4"))

    def hub(self) -> list[dict[str, str]]:
        return [{"DimensionName": TITLES[PART], **one} for one in self.ROWS]

    def place(self, folder: Path, form: str) -> None:
        if form == "release":
            write(folder, PART, list(self.ROWS))
        elif form == "unpacked":
            write(folder / "CVRR-ES", PART, list(self.ROWS))
        elif form == "json":
            (folder / f"{PART}.json").write_text("\ufeff" + json.dumps(self.hub()))
        elif form == "jsonl":
            lines = [json.dumps(one, ensure_ascii=False) for one in self.hub()]
            (folder / f"{PART}.jsonl").write_text("\n\n".join(lines), encoding="utf-8")
        else:
            import pyarrow
            from pyarrow import parquet

            name = f"{PART}.parquet" if form == "parquet" else f"{PART}/test-00000-of-00001.parquet"
            (folder / PART).mkdir()
            parquet.write_table(pyarrow.Table.from_pylist(self.hub()), folder / name)

    @pytest.mark.parametrize(
        "form", ["release", "unpacked", "json", "jsonl", "parquet", "hub parquet"]
    )
    def test_read_alike(self, form: str, tmp_path: Path) -> None:
        folder = tmp_path / "given"
        folder.mkdir()
        self.place(folder, form)
        release = release.read(folder)
        assert release.questions == (
            release.Question(f"{PART}/001", PART, "1.mp4", "What happens?", "A man\u2028runs."),
            release.Question(f"{PART}/002", PART, "2.mp4", "Why?", "So."),
        )
        assert (dict(release.problems), len(release.digest)) == ({}, 12)
        other = tmp_path / "other"
        write(other, PART, list(self.ROWS))
        assert release.read(other).digest == release.digest
        assert release.counts == {
            "videos": 2,
            "questions": 2,
            "dimensions": 1,
            "bad_questions": 0,
        }

    def test_two_forms_of_one_dimension(self, tmp_path: Path) -> None:
        self.place(tmp_path, "release")
        self.place(tmp_path, "json")
        with pytest.raises(DataError, match=r"several annotation files of partial_actions .*keep"):
            release.read(tmp_path)

    @pytest.mark.parametrize("key", release.VIDEO_KEYS)
    def test_the_video_under_other_keys(self, key: str, tmp_path: Path) -> None:
        write(tmp_path, PART, [{"Q": "Why?", "A": "So.", key: "7.mp4"}])
        assert release.read(tmp_path).questions[0].video == "7.mp4"

    def test_a_new_file_is_read_again(self, tmp_path: Path) -> None:
        file = write(tmp_path, PART, [row("Why?")])
        assert release.read(tmp_path) is release.read(tmp_path)
        before = release.read(tmp_path).digest
        file.write_text(json.dumps([row("Why, oh why?")]))
        assert release.read(tmp_path).questions[0].question == "Why, oh why?"
        assert release.read(tmp_path).digest != before


class TestOrder:
    """Ids are places in a file; dimensions come in the tables' order."""

    def test_ids_are_places_even_behind_bad_rows(self, tmp_path: Path) -> None:
        write(tmp_path, TIME, [row("Q1"), row("Q1"), row("Q2", ""), row("Q3")])
        write(tmp_path, PART, [row(f"Q{n}") for n in range(1001)])
        release = release.read(tmp_path)
        assert [one.id for one in release.questions[-3:]] == [
            f"{TIME}/001",
            f"{TIME}/002",
            f"{TIME}/004",
        ]
        assert release.questions[0].id == f"{PART}/001"
        assert release.questions[1000].id == f"{PART}/1001"
        assert list(release.places) == [PART, TIME]
        assert release.places[TIME][2] == (f"{TIME}/003", "Q2", "")

    def test_videos(self, tmp_path: Path) -> None:
        names = ["a.mp4", "b", "c.mp4", "d.mkv"]
        write(tmp_path, PART, [row(f"Q{n}", video=name) for n, name in enumerate(names)])
        (tmp_path / PART / "b.mkv").touch()
        unpacked = tmp_path / "CVRR-ES" / PART
        unpacked.mkdir(parents=True)
        (unpacked / "c.mp4").touch()
        release = release.read(tmp_path)
        assert [release.video_path(one) for one in release.questions] == [
            tmp_path / PART / "a.mp4",
            tmp_path / PART / "b.mkv",
            unpacked / "c.mp4",
            tmp_path / PART / "d.mkv",
        ]


class TestBadRows:
    """A bad row is told in one line; the others stay."""

    @pytest.mark.parametrize(
        ("bad", "told"),
        [
            ("text", "expected an object with Q, A and VideoID"),
            (row("Why?", Q=...), "Q: the field is missing"),
            (row("Why?", A=...), "A: the field is missing"),
            (row("Why?", A=None), "A: expected a text, found NoneType"),
            (row("Why?", A=["a"]), "A: expected a text, found list"),
            (row(" \n"), "Q: expected a text, found an empty one"),
            (row("Why?", VideoID=...), "VideoID: the field is missing (or video_id, video, "),
            (row("Why?", VideoID=3), "VideoID: expected a text, found int"),
            (row("Why?", video_id=" "), "video_id: expected a text, found an empty one"),
            (row("Why?", video_name="2.mp4"), "VideoID and video_name: name different videos"),
            (row("Why?", VideoID="../1.mp4"), "VideoID: expected the name of a file, without fold"),
            (row("Why?", VideoID="a\\1.mp4"), "VideoID: expected the name of a file, without fold"),
            (row("Why?", VideoID=".."), "VideoID: expected the name of a file, without folders"),
            (row("Why?", DimensionName="x"), "DimensionName: expected 'Partial actions', found 'x"),
            (row("Why?", DimensionName=1), "DimensionName: expected 'Partial actions', found 1"),
        ],
    )
    def test_one_line(self, bad: Any, told: str, tmp_path: Path) -> None:
        file = write(tmp_path, PART, [row("Good?"), bad])
        release = release.read(tmp_path)
        ((name, problem),) = release.problems.items()
        assert name == f"{PART}/002"
        assert problem.startswith(f"{file}, entry 2: {told}")
        assert "\n" not in problem
        assert [one.id for one in release.questions] == [f"{PART}/001"]
        assert release.counts["bad_questions"] == 1

    @pytest.mark.parametrize("name", ["Partial actions", "partial_actions", "PARTIAL ACTIONS"])
    def test_how_dimensions_are_written(self, name: str, tmp_path: Path) -> None:
        write(tmp_path, PART, [row("Why?", DimensionName=name)])
        assert not release.read(tmp_path).problems

    def test_names_of_the_hub(self, tmp_path: Path) -> None:
        for dimension, title in TITLES.items():
            write(tmp_path, dimension, [row("Why?", DimensionName=title)])
        assert len(release.read(tmp_path).questions) == 11


class TestBadFiles:
    """What is no list of rows stops, in one line with the place."""

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            ("{}", "expected a list of {Q, A, VideoID}"),
            ("[]", "holds no questions"),
            ("[1,", "not valid JSON at line 1"),
            ('[{"Q": "a"}, 3]', "not one of 2 rows can be used; .*entry 1: A: the field"),
        ],
    )
    def test_no_rows(self, content: str, told: str, tmp_path: Path) -> None:
        file = write(tmp_path, PART, [])
        file.write_text(content)
        with pytest.raises(DataError, match=told) as error:
            release.read(tmp_path)
        assert str(error.value).startswith(str(file))

    def test_lines_and_parquet(self, tmp_path: Path) -> None:
        lines = tmp_path / f"{PART}.jsonl"
        lines.write_text(json.dumps(row("Why?")) + "\n{\n")
        with pytest.raises(DataError, match=r"partial_actions\.jsonl, line 2: not valid JSON"):
            release.read(tmp_path)
        lines.write_bytes(b"\xff")
        with pytest.raises(DataError, match="not UTF-8 text"):
            release.read(tmp_path)
        lines.unlink()
        (tmp_path / f"{PART}.parquet").write_bytes(b"nothing")
        with pytest.raises(DataError, match="not a readable parquet file"):
            release.read(tmp_path)

    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="no annotations of CVRR-ES"):
            release.read(tmp_path)


class TestJudgements:
    """Annotations built from the published judgements, as there are no real ones to read."""

    @pytest.mark.parametrize("model", MODELS)
    def test_all_questions(self, model: str, tmp_path: Path) -> None:
        folder = release_from_judgements(real_data() / "judge_results", tmp_path, model=model)
        release = release.read(folder)
        assert not release.problems
        assert release.counts["questions"] == 2400
        texts = [(one.dimension, " ".join(one.question.split())) for one in release.questions]
        repeated = sum(texts.count(text) > 1 for text in texts)
        assert repeated == 190
