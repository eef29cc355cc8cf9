"""MAVERIX's rows and docs: which items are asked, their letters, and what the host sees of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix import data, files
from lmms_eval_tasks.maverix.item import Item
from lmms_eval_tasks.maverix.labels import LETTERS, SPLITS
from lmms_eval_tasks.maverix.tasks import BENCHMARK
from tests.maverix import runs
from tests.maverix.entries import entry, write
from tests.maverix.runs import edit, without_sound


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
        items = self.items(tmp_path, *(entry(n, id=f"Q{n:04}") for n in range(4000)))
        found = Counter(data.shown_order(item).index(item.answer or 0) for item in items)
        # 500 each on average, with a standard deviation of 21.
        assert sorted(found) == list(range(8))
        assert all(400 < count < 600 for count in found.values()), found
        orders = {tuple(data.shown_order(item)) for item in items[:300]}
        assert len(orders) > 290  # of 40,320; only eight would be rotations
        assert all(sorted(order) == list(range(8)) for order in orders)

    def test_depends_on_the_id_only(self, tmp_path: Path) -> None:
        """A changed rule would silently change every published number: it must show here."""
        changes: dict[str, Any] = {"options": list("abcdefgh"), "answer": 0, "start": 0.5}
        for own in ({}, changes):
            (item,) = self.items(tmp_path, entry(7, **own))
            assert "".join(LETTERS[place] for place in data.shown_order(item)) == "GHCEAFBD"
        (kept,) = self.items(tmp_path, entry(7, shuffled=True))
        assert data.shown_order(kept) == list(range(8))


class TestRows:
    """One row per item."""

    def test_duration_and_end_follow_from_the_video(self, user: Path) -> None:
        nothing: dict[str, Any] = {"duration": None, "start": 20, "end": 30.9}  # a rounded end
        write(user, [entry(1, **nothing), entry(2, duration="long", start=20, end=30)])
        assert [row["duration"] for row in rows()] == ["short", "long"]
        assert [row["end"] for row in rows()] == [pytest.approx(30, abs=1e-3), 30.0]
        lengths = (59.99, 60, 599.9, 600)
        assert [data.duration_class(s) for s in lengths] == ["short", "middle", "middle", "long"]


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

    def test_segments_and_subtitles(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (user / "videos" / "told.mp4").symlink_to(user / "videos" / "clip.mp4")
        (user / "subtitles" / "told.srt").write_text("1\n00:00:05,000 --> 00:00:02\nreversed\n")
        outside = entry(2, start="01:00:00", end="01:00:10")
        write(user, [entry(1), outside, entry(3, video="told")])
        said = self.stopped()
        assert "item-2: starts at 3600 s; its video ends at 30.000 s" in said
        assert "item-3: subtitles: " in said
        assert self.left(monkeypatch, settings.ALLOW_BAD_ITEMS)[0] == ["item-1"]

    def test_a_video_ends_with_its_sound(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from lmms_eval_tasks.utils.media.video_checks import VideoInfo

        info = VideoInfo(200, 64, 48, duration=8, end=12, fps=25, has_audio=True)
        monkeypatch.setattr(data, "look_at_videos", lambda *_: ({"clip": info}, {}))
        write(user, [entry(1, start=4, end=10), entry(2, start=9, end=12.4)])
        assert [row["end"] for row in rows()] == [10, 12]
        write(user, [entry(1), entry(3, start=4, end=13.5)])
        assert "item-3: ends at 13.5 s; its video ends at 12.000 s" in self.stopped()

    def test_missing_and_unreadable_videos(
        self, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One permission is not the other."""
        (user / "videos" / "broken.mp4").write_bytes(b"no video")
        write(user, [entry(1), entry(2, video="gone"), entry(3, video="broken")])
        said = self.stopped()
        assert "2 of 3 MAVERIX videos cannot be used:\n  gone: missing: " in said
        assert "\n  broken: unreadable: " in said
        assert f"--allow-missing-videos or {settings.ALLOW_MISSING}=1" in said
        assert "--allow-bad-items" not in said
        write(user, [entry(1), entry(2, video="gone"), entry(3, question="")])
        said = self.stopped()
        assert "items cannot be used" in said
        assert "videos cannot be used" in said
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        assert "items cannot be used" not in self.stopped()
        kept, left_out = self.left(monkeypatch, settings.ALLOW_MISSING)
        assert (kept, set(left_out)) == (["item-1"], {"item-2", "item-3"})
        assert left_out["item-2"].startswith("its video is missing: ")
        write(user, [entry(1, video="gone"), entry(2, question="")])
        assert "none of 2 MAVERIX items can be used" in self.stopped()

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
    write(user, [entry(1, **nothing), entry(2, reference=None)])
    assert [bool(doc["answer"]) for doc in runs.docs("maverix_a")] == [False, True]
    assert rows()[1]["reference"] == ""  # never the right option
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

    @pytest.fixture
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

    def test_who_made_them_and_the_hash_of_what_is_said(self, placed: Path) -> None:
        made_by = {"name": "stub", "version": "1", "model": "tiny", "language": None}
        srt = placed / "subtitles" / "lights-1.srt"
        text, hashes = srt.read_text(encoding="utf-8"), []
        for changed in (text, f"\n\n{text}\n\n", text.replace("Word", "Wort", 1)):
            srt.write_text(changed, encoding="utf-8")
            hashes.append(self.told()["hash"])
        content = {
            "transcriber": {**made_by, "date": "2026-01-01"},
            "segments": [{"start": 0.5, "end": 1.5, "text": "hello"}],
        }
        (placed / "subtitles" / "lights-3.json").write_text(json.dumps(content))
        found = self.told()
        assert found["videos"] == {"json": 2, "srt": 1, "vtt": 1}
        assert found["made_by"] == [{**made_by, "videos": 1}]
        assert hashes[0] == hashes[1]
        assert len({*hashes, found["hash"]}) == 3
