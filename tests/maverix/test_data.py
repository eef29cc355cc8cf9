"""MAVERIX's items, docs and files: which are asked, their letters, what a user has in place."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix import data, release
from lmms_eval_tasks.maverix.labels import LETTERS, SPLITS, duration_class
from lmms_eval_tasks.maverix.tasks import BENCHMARK
from lmms_eval_tasks.media import video_checks
from lmms_eval_tasks.media.video_checks import VideoInfo
from lmms_eval_tasks.runs import prepare
from tests.checks import refused
from tests.local_hub import get_released
from tests.maverix.entries import entry, lines, write, write_lines
from tests.maverix.runs import docs, edit, without_sound


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


def test_where_options_are_shown(tmp_path: Path) -> None:
    """By the item's id alone; a changed rule would silently change every published number."""

    def orders(*entries: dict[str, Any]) -> list[str]:
        found = map(data.shown_order, release.read_maverix(write(tmp_path, [*entries])).items)
        return ["".join(LETTERS[place] for place in order) for order in found]

    other = entry(7, options=list("abcdefgh"), answer="A", start=0.5)
    assert [*orders(entry(7)), *orders(other)] == ["GHCEAFBD"] * 2
    assert orders(entry(7, shuffled=True)) == [LETTERS]
    many = orders(*(entry(n, id=f"Q{n:04}") for n in range(4000)))
    found = Counter(order.index("C") for order in many)
    # 500 each on average, with a standard deviation of 21.
    assert all(400 < found[place] < 600 for place in range(8)), found
    assert len(set(many[:300])) > 290  # of 40,320; only eight would be rotations


def test_duration_and_end_follow_from_the_video(
    user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing: dict[str, Any] = {"duration": None, "start": 20, "end": 30.9}  # a rounded end
    write(user, [entry(1, **nothing), entry(2, duration="long", start=20, end=30)])
    assert [doc["duration"] for doc in docs()] == ["short", "long"]
    assert [doc["end"] for doc in docs()] == [pytest.approx(30, abs=1e-3), 30.0]
    lengths = (59.99, 60, 599.9, 600)
    assert [duration_class(s) for s in lengths] == ["short", "middle", "middle", "long"]
    # It ends with its sound, where that goes on after the picture.
    info = VideoInfo(200, duration=8, end=12, fps=25, has_audio=True)
    monkeypatch.setattr(video_checks, "look", lambda *_: ({"clip": info}, {}))
    write(user, [entry(1, start=4, end=10), entry(2, start=9, end=12.4)])
    assert [doc["end"] for doc in docs()] == [10, 12]
    write(user, [entry(1), entry(3, start=4, end=13.5)])
    assert "item-3: ends at 13.5 s; its video ends at 12.000 s" in stopped()


# --- what cannot be used stops a run, all of it listed, unless the user leaves it out -------------


def stopped(task: str = "maverix_s") -> str:
    with pytest.raises(DataError) as error:
        prepare.load_data(BENCHMARK, [task])
    return str(error.value)


def test_what_cannot_be_used(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several reasons at once; what all benchmarks promise is in tests/test_loading.py."""
    (user / "videos" / "told.mp4").symlink_to(user / "videos" / "clip.mp4")
    (user / "subtitles" / "told.srt").write_text("1\n00:00:05,000 --> 00:00:02\nreversed\n")
    bad = [entry(2, paraphrase=None), entry(3, options=[]), entry(4, start=3600, end=3610)]
    bad = [entry(1), *bad, entry(5, video="told"), entry(6, video="gone")]
    write(user, bad)
    said = stopped()
    for told in (
        "data.json: 2 of 6 MAVERIX items cannot be used:\n  item-2: paraphrase:",
        "\n  item-3: options: expected at least 8, found 0\n",
        "2 of 4 MAVERIX items do not fit their videos:\n  item-4: starts at 3600 s; its video ends",
        "item-5: subtitles: ",
        "1 of 3 MAVERIX videos cannot be used, and with them 1 of 4 items:\n  gone: missing: ",
    ):
        assert told in said
    found = BENCHMARK.status(user.parent)
    assert found.counts == {"videos": 3, "questions": 4, "asked": 12, "bad_items": 2}
    assert f"2 of 3 videos have no file in {user}/subtitles: clip, gone" in found.notes
    assert found.notes[0].startswith("3 of 700 videos, 4 of 852 questions, 12 of 2,556 asked of ")
    assert [note[:6] for note in found.notes[-4:]] == ["item-2", "item-3", "item-4", "item-5"]
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
    monkeypatch.setenv(settings.ALLOW_MISSING, "1")
    loaded = BENCHMARK.load(["maverix_s"])
    assert [item.id for item in data.items(loaded)] == ["item-1"]
    assert set(loaded.left_out("maverix_s")) == {f"item-{n}" for n in range(2, 7)}


def test_videos_without_sound(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with A or V+A asks all its modes without them, where the user allows it."""
    write(user, [entry(1), entry(2, video="mute")])
    for mode in ("s", "v", "vs"):
        assert len(docs(f"maverix_{mode}")) == 2
    for task in ("maverix_a", "maverix_long_av_oe"):
        said = stopped(task)
        assert "1 of 2 MAVERIX items do not fit their videos:\n  item-2: its video has no" in said
        assert "--allow-bad-items" in said
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
    found = BENCHMARK.load(["maverix_a", "maverix_s"])
    assert [len(BENCHMARK.docs(found, task)) for task in ("maverix_a", "maverix_s")] == [1, 1]
    write(user, [entry(2, video="mute")])
    assert "maverix_a: none of 1 MAVERIX items can be run" in stopped("maverix_a")


# --- docs ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("sample")
def test_circular_docs() -> None:
    """Each option stands once at each letter, the right one too."""
    every = docs("maverix_s_circular")
    for number, doc in enumerate(docs()):
        right = doc["options"][LETTERS.index(doc["answer"])]
        for turn, one in enumerate(every[8 * number : 8 * number + 8]):
            assert (one["id"], one["rotation"]) == (f"{doc['id']}/r{turn}", turn)
            assert one["question_id"] == doc["id"]
            assert one["options"] == [*doc["options"][turn:], *doc["options"][:turn]]
            assert one["options"][LETTERS.index(one["answer"])] == right


def test_docs_without_labels_and_times(user: Path) -> None:
    """They have one form all the same."""
    write(user, [entry(n, **dict.fromkeys((*SPLITS, "start", "end"))) for n in range(3)])
    for name in BENCHMARK.tasks:
        made = Dataset.from_list(docs(name))
        assert len(made) in (3, 6, 24)
        assert set(made["start"]) == {None}


# --- subtitles ------------------------------------------------------------------------------------


def test_items_without_subtitles(root: Path, source: Path) -> None:
    """lights-3 has no file; an S without cues must not pass for what subtitles are worth."""
    BENCHMARK.prepare(source, root, link=False)

    def told(*names: str) -> list[str]:
        return [line.partition(" have ")[0] for line in data.silent(BENCHMARK.load(names), names)]

    both = [f"5 of 20 items ({length})" for length in ("localized", "long")]
    assert told("maverix_s", "maverix_long_vs") == both
    assert told("maverix_av", "maverix_long_a_oe") == []
    # Words are shown from 0.1 to 0.9 of a second: a segment between two cues has none either.
    file = root / "maverix" / "data.json"
    edit(file, lambda items: items[0].update(start=3.92, end=4.08))
    assert told("maverix_s") == ["6 of 20 items (localized)"]


# --- a release in its place -----------------------------------------------------------------------


def _beside_ours(given: Path, root: Path) -> None:
    write(root / "maverix", [entry(1)])
    BENCHMARK.prepare(given, root, link=False)


def test_data_get(
    root: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines from the repository, the media from the hub; without access the lines alone."""
    git, media, hub = (tmp_path / name for name in ("git", "media", "hub"))
    write_lines(git / "lmms_eval/tasks/maverix/processing/test_full.jsonl", lines(3))
    (media / "vid").mkdir(parents=True)
    (media / "vid/clip.mp4").write_bytes((source / "videos/lights-1.mp4").read_bytes())
    shutil.make_archive(str(hub / "vid"), "zip", media)
    hub.with_name("none").mkdir()
    refused_hub = pytest.raises(DataError, match="CUBE-CMU/maverix: has no files")
    with refused_hub, monkeypatch.context() as patch:
        get_released(BENCHMARK, (git, hub.with_name("none")), root, patch)
    assert (BENCHMARK.status(root).counts["questions"], BENCHMARK.status(root).videos) == (2, 0)
    get_released(BENCHMARK, (git, hub), root, monkeypatch)
    assert (root / "maverix/videos/clip.mp4").is_file()


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
    said = BENCHMARK.prepare(given, root, link=False)
    assert said.startswith(f"copied 4 files to {root}/maverix\n")
    assert "\nthe authors' released lines: " in said
    assert "\nfull videos: of 2 items, 2 can be used" in said
    place = root / "maverix"
    assert f"1 of 1 videos have no file in {place}/subtitles_full: clip" in said
    for task, folder, shown in (
        ("maverix_vs", "videos", True),
        ("maverix_long_vs", "videos_full", False),
    ):
        doc, _ = docs(task)
        assert doc["video_path"] == str(place / folder / "clip.mp4")
        assert (bool(doc["subtitle_path"]), doc["start"]) == (shown, None)
        assert (doc["options"][0], doc["answer"]) == ("Colour A31", "C")
    assert [(doc["question"], doc["borrowed"]) for doc in docs("maverix_av_oe")] == [
        ("Which lamp 3.1 is lit?", False),
        ("Lit is which lamp 3.1?", False),
        ("Which lamp 3.1 is lit?", True),
        ("Lit is which lamp 3.2?", True),
    ]
    (place / "videos_full" / "clip.mp4").unlink()
    assert len(docs("maverix_vs")) == 2
    assert "clip (full): missing: " in stopped("maverix_long_vs")
    status = BENCHMARK.status(root)
    notes = status.notes
    assert (status.videos, [*status.bad]) == (1, ["clip (full)"])
    assert "full videos: of 2 items, 0 can be used. Put them there" in notes
    assert any(note.startswith("1 questions whose first open wording") for note in notes)
    refused(DataError, "takes precedence over data.jsonl", _beside_ours, given, root)
