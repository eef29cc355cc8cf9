"""MAVERIX's files: what is collected per item, what stops, where parts are; placing a release."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.maverix import files
from lmms_eval_tasks.maverix.item import Item
from lmms_eval_tasks.maverix.labels import SPLITS
from lmms_eval_tasks.utils.media import segments, video_checks
from lmms_eval_tasks.utils.media.segments import samples
from tests.maverix import runs
from tests.maverix.entries import CASES, entry, lines, write, write_lines
from tests.maverix.runs import edit, without_sound


def read(folder: Path, *entries: dict[str, Any], columns: str = "") -> files.Release:
    return files.read(write(folder, list(entries), columns=columns))


def one(folder: Path, **changes: Any) -> Item:
    release = read(folder, entry(**changes))
    assert release.problems == {}
    return release.items[0]


class TestItems:
    """One bad item is told in one line, by its id, and the others are kept."""

    def test_what_is_wrong_is_said_in_one_line(self, tmp_path: Path) -> None:
        for number, case in enumerate(CASES["bad"]):
            release = read(tmp_path / str(number), entry(1, **case["change"]), entry(2))
            assert [item.id for item in release.items] == ["item-2"]
            assert list(release.problems) == ["item-1"]
            said = release.problems["item-1"]
            assert re.search(case["says"], said), said
            assert "\n" not in said
            assert len(said) < 250

    def test_fields_that_are_no_numbers_or_not_there(self, tmp_path: Path) -> None:
        odd = [(n, v) for n in ("start", "end") for v in (math.nan, math.inf, -math.inf, 10**400)]
        for number, (name, value) in enumerate(odd):
            release = read(tmp_path / f"odd{number}", entry(1, **{name: value}), entry(2))
            assert f"{name}: expected seconds" in release.problems["item-1"]
        for name in CASES["absent"]:
            release = read(tmp_path / name, entry(1, **{name: ...}), entry(2))
            assert release.problems == {"item-1": f"{name}: the field is missing"}

    def test_several_errors_of_one_item_and_no_dump_of_it(self, tmp_path: Path) -> None:
        bad = entry(1, question="", start=-1, video="a/b", topic="x" * 5000)
        said = read(tmp_path, bad, entry(2)).problems["item-1"]
        assert said.count("; ") == 2
        assert len(said) < 300

    def test_what_may_be_absent_or_null(self, tmp_path: Path) -> None:
        names = (*SPLITS, "answer", "reference")
        for nothing in (..., None):
            item = one(
                tmp_path, start=None, end=None, shuffled=..., **dict.fromkeys(names, nothing)
            )
            assert all(getattr(item, name) is None for name in (*names, "start", "end"))
            assert item.shuffled is False

    def test_labels_times_and_answers(self, tmp_path: Path) -> None:
        """Every label of the paper is known by slug and by title."""
        known = [
            (s, form, slug) for s in SPLITS for slug, t in SPLITS[s].items() for form in (slug, t)
        ]
        forms = [
            *((split, {split: form}, slug) for split, form, slug in [*known, *CASES["labels"]]),
            *(("start", {"start": form, "end": 9999}, found) for form, found in CASES["seconds"]),
            *(("answer", {"answer": form}, found) for form, found in CASES["answers"]),
        ]
        release = read(
            tmp_path,
            *(entry(1, **{"id": f"item-{n}", **change}) for n, (_, change, _) in enumerate(forms)),
        )
        assert release.problems == {}
        for item, (name, change, expected) in zip(release.items, forms, strict=True):
            assert getattr(item, name) == expected, change

    def test_letters_and_options(self, tmp_path: Path) -> None:
        """A letter that is its own option is no doubt; letters in front of all are taken off."""
        notes = ["A", "B", "C", "F", "E", "D", "G", "H"]
        assert one(tmp_path, options=notes, answer="C").answer == 2
        assert one(tmp_path, options=notes, answer=3).answer == 3
        texts = entry()["options"]
        for form in ("{}. {}", "({}) {}", "{}) {}"):
            lettered = [form.format(x, text) for x, text in zip("ABCDEFGH", texts, strict=True)]
            item = one(tmp_path, options=lettered, answer=lettered[4])
            assert (list(item.options), item.answer) == (texts, 4)
        some = ["A. Rossi", *texts[1:]]
        assert one(tmp_path, options=some).options[0] == "A. Rossi"

    def test_texts_are_stripped_and_otherwise_as_they_are(self, tmp_path: Path) -> None:
        item = one(tmp_path, id=17, question=" Chi è?\nLui? ", reference="  sì ")
        assert (item.id, item.question, item.reference) == ("17", "Chi è?\nLui?", "sì")


class TestFiles:
    """What stops the whole file, with its place."""

    def test_not_of_the_schema(self, tmp_path: Path) -> None:
        cases: list[tuple[Any, str]] = [
            ("oops", "expected .*items"),
            ({"questions": []}, "expected .*items"),
            ({"items": {}}, "expected .*items"),
            ([], "holds no entries"),
            ({"version": 1, "items": [entry()]}, "version: expected a text, found 1"),
            ([entry(1), "x"], "entry 2: expected an object, found 'x'"),
            ([entry(1), entry(2, id=...)], "entry 2: id: the field is missing"),
            ([entry(1), entry(2, id=" ")], "entry 2: id: expected a text, found an empty one"),
            ([entry(1), entry(2, id=None)], "entry 2: id: expected a text"),
            ([entry(1), entry(2, id=True)], "entry 2: id: expected a text"),
            ([entry(1), entry(2, id="a\nb")], "entry 2: id: holds a line end"),
            ([entry(1), entry(2), entry(1)], "entry 3: id 'item-1' is also that of entry 1"),
            ([entry(1), entry(1, options=[])], "entry 2: id 'item-1' is also that of entry 1"),
            ([entry(7, id=7), entry(8, id="7")], "entry 2: id '7' is also that of entry 1"),
            (
                [entry(1, question=...), entry(2, question=...)],
                "not one of 2 entries fits the schema; 'item-1': question: the field is missing",
            ),
        ]
        for number, (content, says) in enumerate(cases):
            file = write(tmp_path / str(number), content)
            with pytest.raises(DataError, match=says) as error:
                files.read(file)
            assert str(file) in str(error.value)
            assert "\n" not in str(error.value)

    def test_list_or_object_with_a_version(self, tmp_path: Path) -> None:
        assert read(tmp_path, entry()).version == ""
        file = write(tmp_path, {"version": "1.0", "items": [entry()]})
        assert (files.read(file).version, len(files.read(tmp_path).items)) == ("1.0", 1)

    def test_the_hash_is_that_of_content_and_map(self, tmp_path: Path) -> None:
        """A changed file or map is read again."""
        first = read(tmp_path, entry()).digest
        (tmp_path / "data.json").write_text(json.dumps([entry()], indent=3, sort_keys=True))
        assert files.read(tmp_path).digest == first
        other = read(tmp_path, entry(reference="Another"))
        mapped = read(tmp_path, entry(), columns="values: {difficulty: {hard: easy}}")
        assert len({first, other.digest, mapped.digest}) == 3
        assert (other.items[0].difficulty, mapped.items[0].difficulty) == ("hard", "easy")


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

    def test_what_one_entry_lacks_is_its_own_problem(self, tmp_path: Path) -> None:
        theirs = [entry(1, start=..., t0=1), entry(2, start=...)]
        release = read(tmp_path, *theirs, columns="columns: {start: t0}")
        assert release.problems == {"item-2": "start: the field is missing"}
        columns = "columns: {options: [a, b, c, d, e, f, g, h]}"
        good = {name: f"Person {name}" for name in "abcdefgh"}
        theirs = [entry(1, options=..., **good), entry(2, options=..., **{**good, "h": ...})]
        release = read(tmp_path, *theirs, columns=columns)
        assert release.items[0].options[1] == "Person b"
        assert release.problems == {"item-2": "options: expected 8 texts, found 7"}

    def test_a_map_of_another_form(self, tmp_path: Path) -> None:
        for number, (columns, says) in enumerate(CASES["maps"]):
            file = write(tmp_path / str(number), [entry()], columns=columns)
            with pytest.raises(DataError, match=says) as error:
                files.read(file)
            assert "columns.yml" in str(error.value)
            assert "\n" not in str(error.value)

    def test_an_empty_map_and_one_with_another_ending(self, tmp_path: Path) -> None:
        assert read(tmp_path, entry(), columns="# nothing\n").problems == {}
        (tmp_path / "columns.yml").rename(tmp_path / "columns.yaml")
        with pytest.raises(DataError, match=r"columns\.yaml: is not read; rename it"):
            files.read(tmp_path / "data.json")


class TestReleasedLines:
    """The authors' lines, three to a question."""

    def read(self, folder: Path, *rows: dict[str, Any]) -> files.Release:
        return files.read(write_lines(folder / "test_full.jsonl", rows))

    def test_three_lines_are_one_item(self, tmp_path: Path) -> None:
        release = self.read(tmp_path, *lines(7))
        assert (release.released, release.problems, release.ignored) == (True, {}, ())
        first, second = release.items
        assert (first.id, first.video, first.start, first.shuffled) == (
            "0007_1",
            "clip",
            None,
            True,
        )
        assert (first.question, first.opened) == ("Which lamp 7.1 is lit?",) * 2
        assert (first.paraphrase, first.reference) == ("Lit is which lamp 7.1?", "The lamp 1")
        assert first.options == (*(f"Colour {x}71" for x in "ABCDEFG"), "Unsure.")
        assert (first.answer, first.agentic, first.more_agentic) == (2, "egocentric", ("social",))
        labels = (first.difficulty, first.audio, first.topic, first.ability, first.duration)
        assert labels == ("easy", "natural", "pets", "causal", "middle")
        # The second one's first wording asks for the first one's lamp.
        assert (second.question, second.opened) == (
            "Which lamp 7.2 is lit?",
            "Which lamp 7.1 is lit?",
        )
        assert (first.borrowed, second.borrowed, second.topic) == (False, True, None)
        assert release.borrowed == ["0007_2"]
        (mended,) = [row for row in lines(7) if row["question_id"] == "0007_2-2"]
        rows = [row for row in lines(7) if row["question_id"] != "0007_2-2"]
        own = self.read(tmp_path, *rows, {**mended, "question": "Which lamp, 7.2, is lit?"})
        assert own.borrowed == []

    def test_what_does_not_fit(self, tmp_path: Path) -> None:
        fillers = ["C. Unsure.", "Unsure.", "E. nan", "F. nan", "G. nan", "H. nan"]
        row, *rest = lines(1, questions=1)
        (item,) = self.read(tmp_path, {**row, "options": ["A. x", "B. y", *fillers]}, *rest).items
        assert item.options == ("x", "y", "Unsure.", "Unsure.", *["nan"] * 4)
        for changed, says in (
            ({"options": ["A. x", "B. x", *fillers]}, "A and B are the same"),
            ({"options": None}, "options: expected a list of 8 texts"),
            ({"answer": "J"}, "answer: is none of the options"),
        ):
            first, *others = lines(1, questions=1)
            release = self.read(tmp_path, {**first, **changed}, *others, *lines(2))
            assert says in release.problems["0001_1"]
        for left, says in ((0, "options"), (1, "opened"), (2, "paraphrase")):
            rows = lines(1, questions=1)
            rows.pop(left)
            assert says in self.read(tmp_path, *rows, *lines(2)).problems["0001_1"]
        first, *_ = lines(1)
        for more, says in (
            ({"question_id": "1-1"}, "line 2: question_id '1-1': expected NNNN_q-k"),
            ({}, "line 2: question_id '0001_1-1': is another line's too"),
        ):
            with pytest.raises(DataError, match=says):
                self.read(tmp_path, first, {**first, **more})

    def test_what_is_told_and_kept(self, tmp_path: Path) -> None:
        """An unknown label takes no item away; a column map's words are ours."""
        rows = lines(1, questions=1)
        rows[0] |= {"domain": ["cooking", "gaming"], "audio_category": "buzz", "extra": 1}
        rows[2] |= {"answer": "Another"}
        release = self.read(tmp_path, *rows)
        (item,) = release.items
        assert (item.agentic, item.more_agentic, item.audio) == ("gaming", (), None)
        assert release.ignored == ("extra",)
        assert release.notes == (
            "1 items have the unknown label agentic 'cooking'",
            "1 items have the unknown label audio 'buzz'",
            "questions whose two open wordings have different answers, of which the first one's is "
            "the reference: 0001_1",
        )
        (tmp_path / "columns.yml").write_text("values: {audio: {buzz: music}}", encoding="utf-8")
        assert self.read(tmp_path, *rows).items[0].audio == "music"

    def test_the_released_folders(self, root: Path, source: Path, tmp_path: Path) -> None:
        """Cut and full files have folders of their own; a task takes those of its length."""
        release = tmp_path / "released"
        for theirs, ours in (
            ("vid/clip.mp4", "videos/lights-1.mp4"),
            ("vid_full/clip.mp4", "videos/lights-2.mp4"),
            ("vid_only/clip.mp4", "videos/lights-2.mp4"),  # there is a whole one
            ("subtitle/clip.srt", "subtitles/lights-1.srt"),
        ):
            (release / theirs).parent.mkdir(parents=True)
            (release / theirs).write_bytes((source / ours).read_bytes())
        write_lines(release / "test_full.jsonl", lines(3))
        said = files.prepare(release, root, link=False)
        assert said.startswith(
            f"copied 4 files to {root}/maverix: 2 items, 0 with problems; the au"
        )
        assert "1 of 1 full videos have no subtitles: put them into" in said
        place = root / "maverix"
        for task, folder, shown in (
            ("maverix_vs", "videos", True),
            ("maverix_long_vs", "videos_full", False),
        ):
            doc, _ = runs.docs(task)
            assert doc["video_path"] == str(place / folder / "clip.mp4")
            assert (bool(doc["subtitle_path"]), doc["start"]) == (shown, None)
            assert (doc["file_letters"], doc["answer"]) == ("ABCDEFGH", "C")
        wordings = [(doc["question"], doc["borrowed"]) for doc in runs.docs("maverix_av_oe")]
        assert wordings == [
            ("Which lamp 3.1 is lit?", False),
            ("Lit is which lamp 3.1?", False),
            ("Which lamp 3.1 is lit?", True),
            ("Lit is which lamp 3.2?", True),
        ]
        (place / "videos_full" / "clip.mp4").unlink()
        assert len(runs.docs("maverix_vs")) == 2
        with pytest.raises(DataError, match=r"clip: missing: .*videos_full"):
            runs.docs("maverix_long_vs")
        notes = files.status(root).notes
        assert "full videos, of the long tasks: 0 of 1" in notes
        borrowed = "1 questions whose first open wording is that of their video's first question"
        assert f"{borrowed}: 0003_2" in notes
        with pytest.raises(DataError, match=r"data\.jsonl: is in the way of .*data\.json"):
            files.prepare(source, root, link=False)

    @pytest.mark.parametrize("sound", [True, False])
    def test_picture_and_sound_apart(
        self, root: Path, source: Path, tmp_path: Path, sound: bool
    ) -> None:
        """Of who fetched `vid_only` and `audio_only` alone."""
        release, whole = tmp_path / "released", source / "videos" / "lights-1.mp4"
        for folder in ("vid_only", "audio_only"):
            (release / folder).mkdir(parents=True)
        without_sound(whole, release / "vid_only" / "clip.mp4")
        if sound:
            (release / "audio_only" / "clip.mp3").write_bytes(whole.read_bytes())
        write_lines(release / "test_full.jsonl", lines(3))
        for _ in range(2):
            said = files.prepare(release, root, link=True)
        assert ("1 videos were joined of vid_only and audio_only" in said) == sound
        assert ("1 videos are vid_only alone" in said) != sound
        placed = video_checks.probe(root / "maverix" / "videos" / "clip.mp4")
        assert placed == dataclasses.replace(
            video_checks.probe(whole), has_audio=sound, end=placed.end
        )
        assert len(runs.docs("maverix_v")) == 2
        if sound:
            heard = [
                Path(str(segments.segment(one).sound))
                for one in (whole, root / "maverix" / "videos" / "clip.mp4")
            ]
            assert abs(len(samples(heard[0])) - len(samples(heard[1]))) < 100
        else:
            with pytest.raises(DataError, match="its video has no audio stream"):
                runs.docs("maverix_a")

    def test_picture_and_sound_that_cannot_be_joined(
        self, root: Path, source: Path, tmp_path: Path
    ) -> None:
        for folder in ("vid_only", "audio_only"):
            (tmp_path / folder).mkdir()
        without_sound(source / "videos" / "lights-1.mp4", tmp_path / "vid_only" / "clip.mp4")
        (tmp_path / "audio_only" / "clip.mp3").write_bytes(b"no sound")
        write_lines(tmp_path / "test_full.jsonl", lines(3))
        with pytest.raises(MediaError, match=r"clip.mp4 and .*clip.mp3: cannot be joined \("):
            files.prepare(tmp_path, root, link=False)
        assert not list((root / "maverix" / "videos").glob("*"))


class TestPrepare:
    """A user's release under the data root."""

    def test_the_sample_as_a_release(self, root: Path, source: Path) -> None:
        for given, link in ((source, True), (source / "data.json", False)):
            place = root / str(link)
            said = files.prepare(given, place, link)
            assert said.startswith(f"{'linked' if link else 'copied'} 8 files to {place}/maverix")
            assert "20 items, 0 with problems" in said
            placed = [path for path in (place / "maverix").rglob("*") if path.is_file()]
            assert [path.is_symlink() for path in placed] == [link] * 8
            assert files.status(place).version == files.read(source).digest
            assert files.prepare(given, place, link) == said  # again: nothing is in the way

    def test_the_layout_that_the_paper_announces(
        self, root: Path, source: Path, tmp_path: Path
    ) -> None:
        """data/ beside vid/ and subtitles/ (A)."""
        release = tmp_path / "announced"
        (release / "data").mkdir(parents=True)
        (source / "data.json").rename(release / "data" / "MAVERIX_v1.0.json")
        (source / "videos").rename(release / "vid")
        (source / "subtitles").rename(release / "subtitles")
        for given in ("", "data", "data/MAVERIX_v1.0.json"):
            said = files.prepare(release / given, root, link=True)
            assert said.startswith(f"linked 8 files to {root}/maverix: 20 items, 0 with problems")
            assert "1 of 4 videos have no subtitles" in said
            assert files.status(root).videos == 4
        (release / "vid" / "lights-2.mp4").unlink()
        (root / "maverix" / "videos" / "lights-2.mp4").unlink()
        said = files.prepare(release, root, link=True)
        assert f"1 of 4 videos are not there: lights-2; put them into {root}" in said

    def test_a_map_that_the_source_does_not_have(self, root: Path, source: Path) -> None:
        """Another release's map, or an older one of this release, would change what is read."""
        (source / "columns.yml").write_text("values: {answer: {C: D}}\n", encoding="utf-8")
        files.prepare(source, root, link=False)
        mapped = files.read(root / "maverix").digest
        (source / "columns.yml").unlink()
        files.prepare(source, root, link=False)
        assert not (root / "maverix" / "columns.yml").exists()
        placed = files.read(root / "maverix")
        assert placed.digest == files.read(source / "data.json").digest != mapped

    def test_files_of_another_release_are_in_the_way(self, root: Path, source: Path) -> None:
        """lights-2 has WebVTT here; an srt of the same name would go before it."""
        for name in ("subtitles/lights-2.srt", "videos/lights-1"):
            there = root / "maverix" / name
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_text("1\n00:00:01,000 --> 00:00:02,000\nno\n", encoding="utf-8")
            with pytest.raises(DataError, match=r"is in the way of .*; remove it first"):
                files.prepare(source, root, link=False)
            there.unlink()
            files.prepare(source, root, link=False)
        edit(source / "data.json", lambda items: items.pop())
        with pytest.raises(DataError, match=r"data\.json: is another file than .*remove it first"):
            files.prepare(source, root, link=False)
        assert len(files.read(root / "maverix").items) == 20


class TestStatus:
    """A look that never raises."""

    def test_what_the_data_lack(self, root: Path, source: Path) -> None:
        without_sound(source / "videos" / "lights-2.mp4", source / "mute.mp4")
        (source / "mute.mp4").rename(source / "videos" / "lights-2.mp4")

        def change(items: list[dict[str, Any]]) -> None:
            items[0]["agentc"] = "social"
            items[1]["end"] = 2000
            items[2]["answer"] = None
            items[3]["options"].pop()

        edit(source / "data.json", change)
        files.prepare(source, root, link=False)
        (root / "maverix" / "videos" / "lights-4.mp4").unlink()
        (root / "maverix" / "videos" / "lights-3.mp4").write_bytes(b"no video")
        found = files.status(root)
        assert (found.videos, *found.missing, *found.unreadable) == (2, "lights-4", "lights-3")
        for told in (
            "4 of 700 videos, 19 of 852 questions, 57 of 2,556 asked of the paper's full set",
            "withheld, so without a score: 1 answers, 0 references",
            "fields that are not read: agentc (columns.yml gives them our names)",
            "videos without sound, which A and V+A need: lights-2",
            "lights-1-q04: options: expected 8 texts, found 7",
        ):
            assert told in found.notes
        (late,) = [note for note in found.notes if note.startswith("lights-1-q02")]
        assert "ends at 2000 s; its video ends at" in late
        assert not [note for note in found.notes if note.startswith("lights-1-q01")]
