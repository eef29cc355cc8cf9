"""MAVERIX's data file: what is collected per item, what stops, and where the file's parts are."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix import schema
from lmms_eval_tasks.maverix.labels import SPLITS
from tests.maverix.entries import entry, write

CASES = json.loads(
    (Path(__file__).parent.parent / "cases" / "maverix_items.json").read_text(encoding="utf-8")
)


def read(folder: Path, *entries: dict[str, Any], columns: str = "") -> schema.Release:
    return schema.read(write(folder, list(entries), columns=columns))


def one(folder: Path, **changes: Any) -> schema.Item:
    release = read(folder, entry(**changes))
    assert release.problems == {}
    return release.items[0]


class TestItems:
    """One bad item is told in one line, by its id, and the others are kept."""

    @pytest.mark.parametrize("case", CASES["bad"], ids=lambda case: case["says"][:40])
    def test_what_is_wrong_is_said_in_one_line(self, case: dict[str, Any], tmp_path: Path) -> None:
        release = read(tmp_path, entry(1, **case["change"]), entry(2))
        assert [item.id for item in release.items] == ["item-2"]
        assert list(release.problems) == ["item-1"]
        said = release.problems["item-1"]
        assert re.search(case["says"], said), said
        assert "\n" not in said
        assert len(said) < 250

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400])
    @pytest.mark.parametrize("name", ["start", "end"])
    def test_times_that_are_no_numbers(self, value: Any, name: str, tmp_path: Path) -> None:
        release = read(tmp_path, entry(1, **{name: value}), entry(2))
        assert f"{name}: expected seconds" in release.problems["item-1"]

    @pytest.mark.parametrize("name", CASES["absent"])
    def test_a_field_that_must_be_there(self, name: str, tmp_path: Path) -> None:
        release = read(tmp_path, entry(1, **{name: ...}), entry(2))
        assert release.problems == {"item-1": f"{name}: the field is missing"}

    def test_several_errors_of_one_item_and_no_dump_of_it(self, tmp_path: Path) -> None:
        long = "x" * 5000
        release = read(tmp_path, entry(1, question="", start=-1, video="a/b", topic=long), entry(2))
        said = release.problems["item-1"]
        assert said.count("; ") == 2
        assert said.startswith("video: ")
        release = read(tmp_path / "b", entry(1, topic=long, reference=""), entry(2))
        assert "xxx..." in release.problems["item-1"]
        assert len(release.problems["item-1"]) < 500

    def test_a_good_item(self, tmp_path: Path) -> None:
        item = one(tmp_path)
        assert (item.id, item.video, item.start, item.end) == ("item-1", "clip", 3.4, 9.7)
        assert item.options[2] == "Person M1"
        assert item.answer == 2
        assert item.difficulty == "hard"
        assert item.shuffled is False

    def test_what_may_be_absent_or_null(self, tmp_path: Path) -> None:
        names = (*SPLITS, "answer", "reference")
        for folder, nothing in (("absent", ...), ("null", None)):
            item = one(
                tmp_path / folder,
                start=None,
                end=None,
                shuffled=...,
                **dict.fromkeys(names, nothing),
            )
            assert all(getattr(item, name) is None for name in (*names, "start", "end"))
            assert item.shuffled is False

    @pytest.mark.parametrize(("split", "given", "slug"), CASES["labels"])
    def test_labels(self, split: str, given: str, slug: str, tmp_path: Path) -> None:
        assert getattr(one(tmp_path, **{split: given}), split) == slug

    def test_every_label_of_the_paper_is_known_by_slug_and_by_title(self, tmp_path: Path) -> None:
        known = [
            (s, slug, form) for s in SPLITS for slug, t in SPLITS[s].items() for form in (slug, t)
        ]
        release = read(tmp_path, *(entry(n, **{s: form}) for n, (s, _, form) in enumerate(known)))
        assert release.problems == {}
        found = [getattr(i, s) for i, (s, _, _) in zip(release.items, known, strict=True)]
        assert found == [slug for _, slug, _ in known]

    @pytest.mark.parametrize(("given", "expected"), CASES["seconds"])
    def test_times(self, given: Any, expected: float, tmp_path: Path) -> None:
        assert one(tmp_path, start=given, end=9999).start == expected

    @pytest.mark.parametrize(("given", "index"), CASES["answers"])
    def test_answers(self, given: Any, index: int | None, tmp_path: Path) -> None:
        assert one(tmp_path, answer=given).answer == index

    def test_a_letter_that_is_its_own_option_is_no_doubt(self, tmp_path: Path) -> None:
        notes = ["A", "B", "C", "F", "E", "D", "G", "H"]
        assert one(tmp_path / "1", options=notes, answer="C").answer == 2
        assert one(tmp_path / "2", options=notes, answer=3).answer == 3

    def test_letters_in_front_of_all_options_are_taken_off(self, tmp_path: Path) -> None:
        texts = entry()["options"]
        for folder, form in (("dot", "{}. {}"), ("brackets", "({}) {}"), ("bracket", "{}) {}")):
            lettered = [form.format(x, text) for x, text in zip("ABCDEFGH", texts, strict=True)]
            item = one(tmp_path / folder, options=lettered, answer=lettered[4])
            assert list(item.options) == texts
            assert item.answer == 4
        some = ["A. Rossi", *texts[1:]]
        assert one(tmp_path / "some", options=some).options[0] == "A. Rossi"

    def test_texts_are_stripped_and_otherwise_as_they_are(self, tmp_path: Path) -> None:
        item = one(tmp_path, question=" Chi è?\nLui? ", reference="  sì ")
        assert item.question == "Chi è?\nLui?"
        assert item.reference == "sì"

    def test_whole_numbers_as_ids(self, tmp_path: Path) -> None:
        assert one(tmp_path, id=17).id == "17"


class TestFiles:
    """What stops the whole file, with its place."""

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            ("oops", "expected .*items"),
            ({"questions": []}, "expected .*items"),
            ({"items": {}}, "expected .*items"),
            ([], "holds no items"),
            ({"version": 1, "items": [entry()]}, "version: expected a text, found 1"),
            ([entry(1), "x"], "entry 2: expected an object, found 'x'"),
            ([entry(1), entry(2, id=...)], "entry 2: id: the field is missing"),
            ([entry(1), entry(2, id=" ")], "entry 2: id: is empty"),
            ([entry(1), entry(2, id=None)], "entry 2: id: expected a text"),
            ([entry(1), entry(2, id=True)], "entry 2: id: expected a text"),
            ([entry(1), entry(2, id="a\nb")], "entry 2: id: holds a line end"),
            ([entry(1), entry(2), entry(1)], "entry 3: id 'item-1' is also that of entry 1"),
            ([entry(1), entry(1, options=[])], "entry 2: id 'item-1' is also that of entry 1"),
            ([entry(7, id=7), entry(8, id="7")], "entry 2: id '7' is also that of entry 1"),
            (
                [entry(1, question=...), entry(2, question=...)],
                "not one of 2 items fits the schema; 'item-1': question: the field is missing",
            ),
        ],
    )
    def test_not_of_the_schema(self, content: Any, says: str, tmp_path: Path) -> None:
        file = write(tmp_path, content)
        with pytest.raises(DataError, match=says) as error:
            schema.read(file)
        assert str(file) in str(error.value)
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (b'[{"id": "1",\n  oops}]', "line 2, column 3"),
            (b"\xff\xfe[\x00]\x00", "not UTF-8 text"),
            (b"[" * 100_000, "cannot be read as JSON"),
            (b"[" + b"9" * 5000 + b"]", "cannot be read as JSON|expected an object"),
            (b"", "line 1, column 1"),
        ],
    )
    def test_not_json(self, content: bytes, says: str, tmp_path: Path) -> None:
        file = tmp_path / "data.json"
        file.write_bytes(content)
        with pytest.raises(DataError, match=says):
            schema.read(file)

    def test_no_such_file(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"data\.json: No such file"):
            schema.read(tmp_path / "data.json")

    def test_list_or_object_with_a_version(self, tmp_path: Path) -> None:
        assert read(tmp_path / "a", entry()).version == ""
        file = write(tmp_path / "b", {"version": "1.0", "items": [entry()]})
        assert schema.read(file).version == "1.0"

    def test_a_byte_order_mark(self, tmp_path: Path) -> None:
        file = write(tmp_path, [entry()])
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
        assert len(schema.read(file).items) == 1

    def test_file_names(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="no data file"):
            schema.find_file(tmp_path)
        write(tmp_path, [entry()], "test.json")
        write(tmp_path, {}, "key.json")
        assert schema.find_file(tmp_path).name == "test.json"
        assert len(schema.read(tmp_path).items) == 1
        write(tmp_path, [entry()], "other.json")
        with pytest.raises(DataError, match="more than one JSON file"):
            schema.find_file(tmp_path)
        write(tmp_path, [entry()], "MAVERIX_v1.0.json")
        assert schema.find_file(tmp_path).name == "MAVERIX_v1.0.json"
        write(tmp_path, [entry()])
        assert schema.find_file(tmp_path).name == "data.json"

    def test_the_hash_is_that_of_content_and_map(self, tmp_path: Path) -> None:
        first = read(tmp_path / "a", entry()).digest
        (tmp_path / "b").mkdir()
        (tmp_path / "b" / "data.json").write_text(json.dumps([entry()], indent=3, sort_keys=True))
        assert schema.read(tmp_path / "b" / "data.json").digest == first
        assert read(tmp_path / "c", entry(reference="Another")).digest != first
        mapped = read(tmp_path / "d", entry(), columns="values: {difficulty: {hard: easy}}")
        assert mapped.digest != first

    def test_a_changed_file_or_map_is_read_again(self, tmp_path: Path) -> None:
        assert read(tmp_path, entry(1)).items[0].id == "item-1"
        assert read(tmp_path, entry(11)).items[0].id == "item-11"
        assert (
            read(tmp_path, entry(11), columns="values: {difficulty: {hard: easy}}")
            .items[0]
            .difficulty
            == "easy"
        )

    def test_counts(self, tmp_path: Path) -> None:
        release = read(
            tmp_path,
            entry(1),
            entry(2, video="other", answer=None),
            entry(3, reference=None, answer=None),
            entry(4, question=""),
        )
        assert release.counts == {"videos": 2, "questions": 3, "asked": 9, "bad_items": 1}
        assert release.withheld == {"answers": 2, "references": 1}

    def test_the_papers_counts_agree_with_each_other(self) -> None:
        counts = schema.PAPER_COUNTS
        assert counts["asked"] == counts["questions"] * schema.ASKED_EACH

    def test_unknown_names_are_told(self, tmp_path: Path) -> None:
        release = read(tmp_path, entry(1, dificulty="hard"), entry(2, source="web"))
        assert release.ignored == ("dificulty", "source")


class TestColumnMap:
    """Another file's names and words."""

    def test_names_paths_and_values(self, tmp_path: Path) -> None:
        theirs = entry(
            id=...,
            qid="Q7",
            start=...,
            end=...,
            span=[1.5, "00:03"],
            options=...,
            choices={letter: f"Person {letter}" for letter in "ABCDEFGH"},
            answer=1,
            difficulty=...,
            **{"meta": {"level": "E"}, "audio": ..., "audio.type": 4},
        )
        columns = """
columns:
  id: qid
  start: span.0
  end: span.1
  options: [choices.A, choices.B, choices.C, choices.D, choices.E, choices.F, choices.G, choices.H]
  difficulty: meta.level
  audio: audio.type
values:
  difficulty: {E: easy}
  audio: {4: Music}
  answer: {1: A, 2: B}
"""
        release = read(tmp_path, theirs, columns=columns)
        item = release.items[0]
        assert (item.id, item.start, item.end) == ("Q7", 1.5, 3.0)
        assert item.options[7] == "Person H"
        assert (item.difficulty, item.audio, item.answer) == ("easy", "music", 0)
        assert item.question == entry()["question"]
        assert release.ignored == ()

    def test_values_that_the_map_does_not_name_stay(self, tmp_path: Path) -> None:
        release = read(tmp_path, entry(), columns="values: {difficulty: {E: easy}}")
        assert release.items[0].difficulty == "hard"

    def test_a_value_that_one_entry_lacks_is_its_own_problem(self, tmp_path: Path) -> None:
        theirs = [entry(1, start=..., t0=1), entry(2, start=...)]
        release = read(tmp_path, *theirs, columns="columns: {start: t0}")
        assert release.problems == {"item-2": "start: the field is missing"}

    def test_options_of_which_one_is_missing(self, tmp_path: Path) -> None:
        columns = "columns: {options: [a, b, c, d, e, f, g, h]}"
        good = {name: f"Person {name}" for name in "abcdefgh"}
        theirs = [entry(1, options=..., **good), entry(2, options=..., **{**good, "h": ...})]
        release = read(tmp_path, *theirs, columns=columns)
        assert release.items[0].options[1] == "Person b"
        assert release.problems == {"item-2": "options: expected 8 texts, found 7"}

    @pytest.mark.parametrize(
        ("columns", "says"),
        [
            (
                "columns: {quesiton: q}",
                "columns: 'quesiton' is no field of ours, which are id, vid",
            ),
            ("values: {level: {E: easy}}", "values: 'level' is no field of ours"),
            ("columns: {question: query}", "question: no entry of data.json has 'query'"),
            ("columns: {question: 3}", "question: expected their name"),
            ("columns: {question: [a, b]}", "question: expected their name"),
            ("columns: {options: []}", "options: expected their name"),
            ("columns: {question: ''}", "question: expected their name"),
            ("columns: [a]", "columns: expected an object"),
            ("values: {difficulty: easy}", "values, difficulty: expected an object"),
            ("fields: {}", "expected nothing but `columns` and `values`"),
            ("- a", "expected nothing but `columns` and `values`"),
            ("a: [", "not YAML in UTF-8"),
        ],
    )
    def test_a_map_of_another_form(self, columns: str, says: str, tmp_path: Path) -> None:
        file = write(tmp_path, [entry()], columns=columns)
        with pytest.raises(DataError, match=says) as error:
            schema.read(file)
        assert "columns.yml" in str(error.value)
        assert "\n" not in str(error.value)

    def test_an_empty_map_and_one_with_another_ending(self, tmp_path: Path) -> None:
        assert read(tmp_path, entry(), columns="# nothing\n").problems == {}
        (tmp_path / "columns.yml").rename(tmp_path / "columns.yaml")
        with pytest.raises(DataError, match=r"columns\.yaml: is not read; rename it"):
            schema.read(tmp_path / "data.json")


class TestPlaces:
    """Where videos and subtitles are found."""

    @pytest.fixture
    def release(self, tmp_path: Path) -> schema.Release:
        for name in ("videos", "subtitles"):
            (tmp_path / name).mkdir()
        return read(tmp_path, entry())

    @pytest.mark.parametrize(
        ("files", "video", "found"),
        [
            (["clip.mp4"], "clip", "clip.mp4"),
            (["clip.mp4"], "clip.mp4", "clip.mp4"),
            (["clip.mkv", "clip.webm", "clip.wav"], "clip", "clip.mkv"),
            (["clip.mkv"], "clip.mp4", "clip.mkv"),
            (["clip.ogv"], "clip", "clip.ogv"),
            (["clip.v2.mp4", "clip.mp4"], "clip.v2", "clip.v2.mp4"),
            (["clip"], "clip", "clip"),
            (["[1] a*.mp4"], "[1] a*", "[1] a*.mp4"),
            ([], "clip", "clip.mp4"),
            ([], "clip.webm", "clip.webm"),
            (["clipper.mp4"], "clip", "clip.mp4"),
            (["clip.ogv", "clip.txt"], "clip", "clip.mp4"),
        ],
    )
    def test_videos(
        self, files: list[str], video: str, found: str, release: schema.Release
    ) -> None:
        folder = release.file.parent / "videos"
        for name in files:
            (folder / name).touch()
        assert release.path_of(video) == folder / found

    def test_subtitles(self, release: schema.Release) -> None:
        folder = release.file.parent / "subtitles"
        assert release.subtitles_of("clip") is None
        (folder / "clip.json").touch()
        assert release.subtitles_of("clip") == folder / "clip.json"
        (folder / "clip.srt").touch()
        assert release.subtitles_of("clip.mkv") == folder / "clip.srt"
        (folder / "clip.mkv.vtt").touch()
        assert release.subtitles_of("clip.mkv") == folder / "clip.mkv.vtt"
        assert release.subtitles_of("clip.v2") is None
