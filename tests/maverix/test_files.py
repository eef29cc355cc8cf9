"""MAVERIX's files before a run: a release in its place, and a look at it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix import data, release
from tests.checks import refused, table
from tests.maverix import runs
from tests.maverix.entries import lines, write_lines
from tests.maverix.runs import edit, without_sound


@table("link", [True, False])
def test_prepare(link: bool, root: Path, source: Path) -> None:
    place = root / str(link)
    for given in (source, source / "data.json"):  # again: nothing is in the way
        said = data.prepare(given, place, link)
        assert said.startswith(f"{'linked' if link else 'copied'} 8 files to {place}/maverix")
        assert "20 items, 0 with problems" in said
        assert said.endswith(f"1 of 4 videos have no file in {place}/maverix/subtitles: lights-3")
    placed = [path for path in (place / "maverix").rglob("*") if path.is_file()]
    assert [path.is_symlink() for path in placed] == [link] * 8
    assert data.status(place).version == release.read(source).digest


def test_files_of_another_release_are_in_the_way(root: Path, source: Path) -> None:
    """An srt goes before WebVTT, and a file without an ending before the mp4."""
    (source / "subtitles" / "lights-2.srt").rename(source / "subtitles" / "lights-2.vtt")
    for name in ("subtitles/lights-2.srt", "videos/lights-1"):
        there = root / "maverix" / name
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text("1\n00:00:01,000 --> 00:00:02,000\nno\n", encoding="utf-8")
        says = r"is in the way of .*; remove it first"
        refused(DataError, says, data.prepare, source, root, link=False)
        there.unlink()
        data.prepare(source, root, link=False)
    edit(source / "data.json", lambda items: items.pop())
    says = r"data\.json: is another file than .*remove it first"
    refused(DataError, says, data.prepare, source, root, link=False)
    assert len(release.read(root / "maverix").items) == 20


def test_the_released_folders(root: Path, source: Path, tmp_path: Path) -> None:
    """Cut and full files have folders of their own; a task takes those of its length."""
    given = tmp_path / "released"
    for theirs, ours in (
        ("vid/clip.mp4", "videos/lights-1.mp4"),
        ("vid_full/clip.mp4", "videos/lights-2.mp4"),
        ("subtitle/clip.srt", "subtitles/lights-1.srt"),
    ):
        (given / theirs).parent.mkdir(parents=True)
        (given / theirs).write_bytes((source / ours).read_bytes())
    write_lines(given / "test_full.jsonl", lines(3))
    said = data.prepare(given, root, link=False)
    assert said.startswith(f"copied 4 files to {root}/maverix: 2 items, 0 with problems; the au")
    place = root / "maverix"
    assert f"1 of 1 videos have no file in {place}/subtitles_full: clip" in said
    for task, folder, shown in (
        ("maverix_vs", "videos", True),
        ("maverix_long_vs", "videos_full", False),
    ):
        doc, _ = runs.docs(task)
        assert doc["video_path"] == str(place / folder / "clip.mp4")
        assert (bool(doc["subtitle_path"]), doc["start"]) == (shown, None)
        assert (doc["options"][0], doc["answer"]) == ("Colour A31", "C")
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
    notes = data.status(root).notes
    assert f"1 of 1 videos have no file in {place}/videos_full: clip" in notes
    borrowed = "1 questions whose first open wording is that of their video's first question"
    assert f"{borrowed}: 0003_2" in notes
    says = r"data\.jsonl: is in the way of .*data\.json"
    refused(DataError, says, data.prepare, source, root, link=False)


def test_status_tells_what_the_data_lack(root: Path, source: Path) -> None:
    without_sound(source / "videos" / "lights-2.mp4", source / "mute.mp4")
    (source / "mute.mp4").rename(source / "videos" / "lights-2.mp4")

    def change(items: list[dict[str, Any]]) -> None:
        items[1]["end"] = 2000
        items[3]["options"].pop()

    edit(source / "data.json", change)
    data.prepare(source, root, link=False)
    (root / "maverix" / "videos" / "lights-4.mp4").unlink()
    (root / "maverix" / "videos" / "lights-3.mp4").write_bytes(b"no video")
    found = data.status(root)
    assert (found.videos, *found.missing, *found.unreadable) == (2, "lights-4", "lights-3")
    for told in (
        "4 of 700 videos, 19 of 852 questions, 57 of 2,556 asked of the paper's full set",
        "lights-2-q06: its video has no audio stream, and A and V+A need sound",
        "lights-1-q04: options: expected at least 8, found 7",
    ):
        assert told in found.notes
    (late,) = [note for note in found.notes if note.startswith("lights-1-q02")]
    assert "ends at 2000 s; its video ends at" in late
    assert not [note for note in found.notes if note.startswith("lights-1-q01")]
