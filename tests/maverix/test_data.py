"""MAVERIX's rows and docs: which items are asked, their letters, and what the host sees of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix import data, files
from lmms_eval_tasks.maverix.item import Item
from lmms_eval_tasks.maverix.labels import LETTERS, MODES, SPLITS
from lmms_eval_tasks.maverix.tasks import BENCHMARK
from tests.maverix import runs
from tests.maverix.entries import entry, write
from tests.maverix.runs import edit, memory, root, sample, source, without_sound

__all__ = ["memory", "root", "sample", "source"]


@pytest.fixture
def user(root: Path, sample_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder of MAVERIX with the video `clip` (30 s) and one without sound, `mute`."""
    folder = root / "maverix"
    (folder / "videos").mkdir(parents=True)
    (folder / "subtitles").mkdir()
    video = sample_root / "maverix" / "videos" / "lights-1.mp4"
    (folder / "videos" / "clip.mp4").symlink_to(video)
    without_sound(video, folder / "videos" / "mute.mp4")
    monkeypatch.setenv(settings.CACHE, str(tmp_path / "cache"))
    return folder


def rows(task: str = "maverix_s") -> list[dict[str, Any]]:
    return list(data.look([task]).rows)


class TestLetters:
    """Where the right option is shown: by the item's id alone, and back to the file's letters."""

    def items(self, folder: Path, *entries: dict[str, Any]) -> tuple[Item, ...]:
        return files.read(write(folder, list(entries))).items

    def test_options_are_spread_and_not_only_turned(self, tmp_path: Path) -> None:
        for answer in ("A", "H"):
            entries = [entry(n, answer=answer, id=f"Q{n:04}") for n in range(4000)]
            items = self.items(tmp_path / answer, *entries)
            found = Counter(data.shown_order(item).index(item.answer or 0) for item in items)
            # 500 each on average, with a standard deviation of 21.
            assert sorted(found) == list(range(8))
            assert all(400 < count < 600 for count in found.values()), found
        orders = {tuple(data.shown_order(item)) for item in items[:300]}
        assert len(orders) > 290  # of 40,320; only eight would be rotations
        assert all(sorted(order) == list(range(8)) for order in orders)

    def test_depends_on_the_id_only(self, tmp_path: Path) -> None:
        one = self.items(tmp_path / "1", entry(1), entry(2))
        changes: dict[str, Any] = {"options": list("abcdefgh"), "answer": 0, "start": 0.5}
        other = self.items(tmp_path / "2", entry(3), entry(2, question="Why?", **changes))
        assert data.shown_order(one[1]) == data.shown_order(other[1])
        assert data.shown_order(one[0]) != data.shown_order(one[1])
        (kept,) = self.items(tmp_path / "3", entry(shuffled=True))
        assert data.shown_order(kept) == list(range(8))

    def test_pinned(self, tmp_path: Path) -> None:
        """A changed rule would silently change every published number: it must show here."""
        (item,) = self.items(tmp_path, entry(7))
        assert "".join(LETTERS[place] for place in data.shown_order(item)) == "GHCEAFBD"
        code = (
            "import sys; from pathlib import Path; "
            "from lmms_eval_tasks.maverix import data, files; "
            "print(data.shown_order(files.read(Path(sys.argv[1])).items[0]))"
        )
        command = [sys.executable, "-c", code, str(tmp_path / "data.json")]
        for seed in ("0", "1"):
            env = {**os.environ, "PYTHONHASHSEED": seed}
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
            assert done.stdout.strip() == str(data.shown_order(item))


class TestRows:
    """One row per item, with everything that a task needs."""

    def test_options_answers_and_the_files_letters(self, user: Path) -> None:
        write(user, [entry(n, answer=LETTERS[n]) for n in range(8)])
        for number, row in enumerate(rows()):
            options = entry(number)["options"]
            for option, letter in zip(row["options"], row["file_letters"], strict=True):
                assert option == options[LETTERS.index(letter)]
            shown = row["options"][LETTERS.index(row["answer"])]
            assert shown == options[number]
            assert row["file_letters"][LETTERS.index(row["answer"])] == LETTERS[number]

    def test_all_fields(self, user: Path) -> None:
        (user / "subtitles" / "clip.vtt").write_text("WEBVTT\n")
        write(user, [entry(1, shuffled=True)])
        (row,) = rows()
        names = ("id", "video", "question", "paraphrase", "start", "end", "options", "answer")
        assert row == {
            **{name: entry(1)[name] for name in (*names, "reference", *SPLITS)},
            "video_path": str((user / "videos" / "clip.mp4").resolve()),
            "subtitle_path": str(user / "subtitles" / "clip.vtt"),
            "file_letters": "ABCDEFGH",
            "data": data.load().digest,
        }

    def test_what_is_withheld_or_absent_is_empty(self, user: Path) -> None:
        nothing = dict.fromkeys((*SPLITS, "answer", "reference", "start", "end"))
        write(user, [entry(1, **nothing), entry(2, reference=None)])
        row, other = rows()
        assert row["answer"] == row["reference"] == row["subtitle_path"] == row["topic"] == ""
        assert row["start"] is row["end"] is None
        assert sorted(row["file_letters"]) == list(LETTERS)
        assert (bool(other["answer"]), other["reference"]) == (True, "")  # never the right option

    def test_duration_and_end_follow_from_the_video(self, user: Path) -> None:
        nothing: dict[str, Any] = {"duration": None, "start": 20, "end": 30.9}  # a rounded end
        write(user, [entry(1, **nothing), entry(2, duration="long", start=20, end=30)])
        assert [row["duration"] for row in rows()] == ["short", "long"]
        assert [row["end"] for row in rows()] == [pytest.approx(30, abs=1e-3), 30.0]
        for seconds, name in (
            (5.57, "short"),
            (59.99, "short"),
            (60, "middle"),
            (599.9, "middle"),
            (600, "long"),
        ):
            assert data.duration_class(seconds) == name


class TestUsable:
    """Bad items and videos stop a run with all of them listed, unless the user leaves them out."""

    def stopped(self, task: str = "maverix_s") -> str:
        with pytest.raises(DataError) as error:
            data.look([task])
        return str(error.value)

    def left(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> tuple[list[str], Any]:
        for name in names:
            monkeypatch.setenv(name, "1")
        found = data.look(["maverix_s"])
        assert found.left_out("maverix_s") == found.bad
        return [row["id"] for row in found.rows], found.bad

    def test_bad_items(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(user, [entry(1), entry(2, paraphrase=None), entry(3, options=list("abcdefg"))])
        said = self.stopped()
        assert "data.json: 2 of 3 MAVERIX items cannot be used:\n  item-2: paraphrase:" in said
        assert "\n  item-3: options: expected 8 texts, found 7\n" in said
        assert "--allow-bad-items or LMMS_EVAL_TASKS_ALLOW_BAD_ITEMS=1" in said
        assert "--allow-missing-videos" not in said
        kept, left_out = self.left(monkeypatch, settings.ALLOW_BAD_ITEMS)
        assert (kept, set(left_out)) == (["item-1"], {"item-2", "item-3"})
        assert left_out["item-3"] == "options: expected 8 texts, found 7"

    def test_segments_outside_their_video(
        self, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cases: list[tuple[Any, Any, str]] = [
            (30, 31, "starts at 30 s; its video ends at 30.000 s"),
            (29, 31.5, "ends at 31.5 s; its video ends at 30.000 s"),
            ("01:00:00", "01:00:10", "starts at 3600 s"),
        ]
        bad = [entry(n, start=start, end=end) for n, (start, end, _) in enumerate(cases, 2)]
        write(user, [entry(1), *bad])
        said = self.stopped()
        for number, (_, _, says) in enumerate(cases, 2):
            assert f"item-{number}: {says}" in said
        assert self.left(monkeypatch, settings.ALLOW_BAD_ITEMS)[0] == ["item-1"]

    def test_subtitles_that_cannot_be_read(
        self, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (user / "subtitles" / "clip.srt").write_text("1\n00:00:05,000 --> 00:00:02\nreversed\n")
        write(user, [entry(1), entry(2, video="mute")])
        assert "item-1: subtitles: " in self.stopped()
        assert self.left(monkeypatch, settings.ALLOW_BAD_ITEMS)[0] == ["item-2"]

    def test_a_video_ends_with_its_sound(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from lmms_eval_tasks.utils.probes import VideoInfo

        info = VideoInfo(200, 64, 48, duration=8, end=12, fps=25, has_audio=True)
        monkeypatch.setattr(data, "look_at_videos", lambda _: ({"clip": info}, {}))
        write(user, [entry(1, start=4, end=10), entry(2, start=9, end=12.4)])
        assert [row["end"] for row in rows()] == [10, 12]
        write(user, [entry(1), entry(3, start=4, end=13.5)])
        assert "item-3: ends at 13.5 s; its video ends at 12.000 s" in self.stopped()

    def test_missing_and_unreadable_videos(
        self, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (user / "videos" / "broken.mp4").write_bytes(b"no video")
        write(user, [entry(1), entry(2, video="gone"), entry(3, video="broken")])
        _, problems = files.look_at_videos(data.load())
        assert problems["gone"].startswith("missing: ")
        assert problems["broken"].startswith("unreadable: ")
        said = self.stopped()
        assert "2 of 3 MAVERIX videos cannot be used:\n  gone: missing: " in said
        assert f"--allow-missing-videos or {settings.ALLOW_MISSING}=1" in said
        assert "--allow-bad-items" not in said
        kept, left_out = self.left(monkeypatch, settings.ALLOW_MISSING)
        assert (kept, set(left_out)) == (["item-1"], {"item-2", "item-3"})
        assert left_out["item-2"].startswith("its video is missing: ")

    def test_one_permission_is_not_the_other(
        self, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(user, [entry(1), entry(2, video="gone"), entry(3, question="")])
        assert "items cannot be used" in self.stopped()
        assert "videos cannot be used" in self.stopped()
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        assert "items cannot be used" not in self.stopped()
        assert self.left(monkeypatch, settings.ALLOW_MISSING)[0] == ["item-1"]
        write(user, [entry(1, video="gone"), entry(2, question="")])
        assert "none of 2 MAVERIX items can be used" in self.stopped()

    def test_no_data_says_what_is_read(self, root: Path) -> None:
        assert "published no data" in self.stopped()
        assert "data prepare maverix --from" in self.stopped()

    def test_videos_without_sound(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """They are asked without sound; A and V+A leave them out where the user allows it."""
        write(user, [entry(1), entry(2, video="mute")])
        for mode in ("s", "v", "vs"):
            assert len(runs.docs(f"maverix_{mode}")) == 2
        for task in ("maverix_a", "maverix_long_av_oe"):
            said = self.stopped(task)
            assert "1 of 2 MAVERIX items cannot be asked with sound (A, V+A):\n  item-2: " in said
            assert "--allow-bad-items" in said
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        found = data.look(["maverix_a", "maverix_s"])
        reason = {"item-2": "its video has no audio stream"}
        assert (found.left_out("maverix_a"), found.left_out("maverix_s")) == (reason, {})
        assert [doc["id"] for doc in data.docs(found, "maverix_a")] == ["item-1"]
        assert len(data.docs(found, "maverix_s")) == 2
        assert len(data.docs(found, "maverix_av_circular")) == 8
        write(user, [entry(2, video="mute")])
        assert "none of 1 MAVERIX items has a video with sound" in self.stopped("maverix_a")


@pytest.mark.usefixtures("sample")
class TestDocs:
    """What the host sees of each task."""

    def test_every_task(self) -> None:
        letters = set()
        for name in BENCHMARK.tasks:
            docs, own = runs.docs(name), rows(name)
            each = 2 if name.endswith("_oe") else 8 if name.endswith("_circular") else 1
            assert len(docs) == 20 * each
            assert len({doc["id"] for doc in docs}) == len(docs)
            by_id = {row["id"]: row for row in own}
            assert list(dict.fromkeys(doc["question_id"] for doc in docs)) == list(by_id)
            for doc in docs:
                row = by_id[doc["question_id"]]
                assert (
                    doc["mode"]
                    == name.removeprefix("maverix_long_").removeprefix("maverix_").partition("_")[0]
                )
                long = "_long_" in name
                assert doc["length"] == ("long" if long else "localized")
                for side in ("start", "end"):
                    assert doc[side] == (None if long else row[side])
                for same in ("video", "video_path", "subtitle_path", "data", *SPLITS):
                    assert doc[same] == row[same]
            if each == 1:
                shown = [(doc["id"], doc["options"], doc["answer"]) for doc in docs]
                letters.add(json.dumps(shown))
        assert len(letters) == 1  # in every mode and length

    def test_choice(self) -> None:
        for doc, row in zip(runs.docs("maverix_v"), rows(), strict=True):
            assert doc["id"] == doc["question_id"] == row["id"]
            for name in ("question", "options", "answer", "file_letters"):
                assert doc[name] == row[name]
            # No task may show them by accident.
            assert not {"reference", "paraphrase", "rotation"} & set(doc)

    def test_open(self) -> None:
        docs = runs.docs("maverix_av_oe")
        for row, first, second in zip(rows(), docs[::2], docs[1::2], strict=True):
            assert first["id"] == f"{row['id']}/original"
            assert second["id"] == f"{row['id']}/paraphrase"
            assert (first["version"], second["version"]) == ("original", "paraphrase")
            assert first["question"] == row["question"]
            assert second["question"] == row["paraphrase"]
            for doc in (first, second):
                assert doc["reference"] == row["reference"]
                assert doc["references"] == [row["reference"]]
                assert doc["lure"] in row["options"]
                assert doc["lure"] != row["options"][LETTERS.index(row["answer"])]
                assert not {"options", "answer", "file_letters", "paraphrase"} & set(doc)

    def test_circular(self) -> None:
        docs = runs.docs("maverix_s_circular")
        for number, row in enumerate(rows()):
            turned = docs[8 * number : 8 * number + 8]
            right = row["options"][LETTERS.index(row["answer"])]
            assert [doc["id"] for doc in turned] == [f"{row['id']}/r{n}" for n in range(8)]
            assert [doc["rotation"] for doc in turned] == list(range(8))
            assert {doc["question_id"] for doc in turned} == {row["id"]}
            assert sorted(doc["answer"] for doc in turned) == list(LETTERS)
            for doc in turned:
                assert doc["options"][LETTERS.index(doc["answer"])] == right
                letters = dict(zip(doc["options"], doc["file_letters"], strict=True))
                assert letters == dict(zip(row["options"], row["file_letters"], strict=True))
            for place in range(8):  # each option stands once at each letter
                assert len({doc["options"][place] for doc in turned}) == 8
            assert turned[0]["options"] == row["options"]
            assert turned[1]["options"] == [*row["options"][1:], row["options"][0]]


def test_docs_of_withheld_items(user: Path) -> None:
    """A file without one answer, reference or label still makes docs of one form."""
    nothing = dict.fromkeys((*SPLITS, "answer", "reference", "start", "end"))
    write(user, [entry(1, **nothing), entry(2)])
    assert [bool(doc["answer"]) for doc in runs.docs("maverix_a")] == [False, True]
    for doc in runs.docs("maverix_a_oe")[:2]:
        assert (doc["reference"], doc["references"], doc["lure"]) == ("", [], "")
    turned = runs.docs("maverix_a_circular")[:8]
    assert {doc["answer"] for doc in turned} == {""}
    assert len({doc["file_letters"] for doc in turned}) == 8
    write(user, [entry(n, **nothing) for n in range(3)])
    from datasets import Dataset

    for name in BENCHMARK.tasks:
        docs = Dataset.from_list(runs.docs(name))
        assert len(docs) in (3, 6, 24)
        assert set(docs["start"]) == {None}


class TestSubtitles:
    """Where the subtitles came from, in modes that show some."""

    @pytest.fixture(autouse=True)
    def placed(self, root: Path, source: Path) -> Path:
        files.prepare(source, root, link=False)
        return root / "maverix"

    def told(self, *names: str) -> Any:
        return data.look(names or ["maverix_vs"]).subtitles

    def test_kinds_and_items_that_have_none(self, placed: Path) -> None:
        """lights-3 has no file; an S without cues must not pass for what subtitles are worth."""
        found = self.told("maverix_s", "maverix_long_vs")
        assert found["videos"] == {"json": 1, "none": 1, "srt": 1, "vtt": 1}
        assert (found["made_by"], found["items"]) == ([], 20)
        assert found["without"] == {"localized": 5, "long": 5}
        warned = data.subtitle_warnings(found)
        assert [line.split(" have ")[0] for line in warned] == [
            f"5 of 20 items ({length})" for length in ("localized", "long")
        ]
        assert "1 of 4 videos have no file" in warned[0]
        assert self.told("maverix_av", "maverix_long_a_oe") is None
        # Words are shown from 0.1 to 0.9 of a second: a segment between two cues has none either.
        edit(placed / "data.json", lambda items: items[0].update(start=3.92, end=4.08))
        assert self.told("maverix_s")["without"] == {"localized": 6}
        edit(placed / "data.json", lambda items: items.__delitem__(slice(5, None)))
        assert sum(self.told()["videos"].values()) == 1

    def test_who_made_them(self, placed: Path) -> None:
        made_by = {"name": "stub", "version": "1", "model": "tiny", "language": None}
        before = self.told()["hash"]
        content = {
            "transcriber": {**made_by, "date": "2026-01-01"},
            "segments": [{"start": 0.5, "end": 1.5, "text": "hello"}],
        }
        (placed / "subtitles" / "lights-3.json").write_text(json.dumps(content))
        found = self.told()
        assert found["videos"] == {"json": 2, "srt": 1, "vtt": 1}
        assert found["made_by"] == [{**made_by, "videos": 1}]
        assert found["hash"] != before

    def test_the_hash_is_that_of_what_is_said_and_when(self, placed: Path) -> None:
        srt = placed / "subtitles" / "lights-1.srt"
        text = srt.read_text(encoding="utf-8")
        found = []
        for changed in (
            text,
            f"\n\n{text}\n\n",
            text.replace("Word", "Wort", 1),
            text.replace(",100", ",200", 1),
        ):
            srt.write_text(changed, encoding="utf-8")
            found.append(self.told()["hash"])
        assert found[0] == found[1]
        assert len(set(found)) == 3


def test_modes() -> None:
    """V+A has no subtitles: with them the column would not tell what the sound is worth."""
    assert {slug: (m.picture, m.sound, m.subtitles) for slug, m in MODES.items()} == {
        "a": (False, True, False),
        "s": (False, False, True),
        "v": (True, False, False),
        "vs": (True, False, True),
        "av": (True, True, False),
    }


def test_importing_is_light() -> None:
    code = (
        "import sys, lmms_eval_tasks.maverix.data, lmms_eval_tasks.maverix.sample; "
        "heavy = {'av', 'numpy', 'PIL', 'torch', 'decord', 'openai', 'yaml', 'datasets'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
