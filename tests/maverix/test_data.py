"""MAVERIX's items and docs: which are asked, their letters, and what the host sees of them."""

from __future__ import annotations

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
from lmms_eval_tasks.utils.media.video_checks import VideoInfo
from tests.maverix.entries import entry, write
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


def order(folder: Path, **changes: Any) -> list[int]:
    (item,) = release.read(write(folder, [entry(7, **changes)])).items
    return data.shown_order(item)


def test_where_options_are_shown(tmp_path: Path) -> None:
    """By the item's id alone; a changed rule would silently change every published number."""
    for own in ({}, {"options": list("abcdefgh"), "answer": "A", "start": 0.5}):
        assert "".join(LETTERS[place] for place in order(tmp_path, **own)) == "GHCEAFBD"
    assert order(tmp_path, shuffled=True) == list(range(8))
    items = release.read(write(tmp_path, [entry(n, id=f"Q{n:04}") for n in range(4000)])).items
    right = LETTERS.index("C")
    found = Counter(data.shown_order(item).index(right) for item in items)
    # 500 each on average, with a standard deviation of 21.
    assert sorted(found) == list(range(8))
    assert all(400 < count < 600 for count in found.values()), found
    orders = {tuple(data.shown_order(item)) for item in items[:300]}
    assert len(orders) > 290  # of 40,320; only eight would be rotations


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
    info = VideoInfo(200, 64, 48, duration=8, end=12, fps=25, has_audio=True)
    monkeypatch.setattr(data, "look_at", lambda *_: ({"clip": info}, {}))
    write(user, [entry(1, start=4, end=10), entry(2, start=9, end=12.4)])
    assert [doc["end"] for doc in docs()] == [10, 12]
    write(user, [entry(1), entry(3, start=4, end=13.5)])
    assert "item-3: ends at 13.5 s; its video ends at 12.000 s" in stopped()


# --- what cannot be used stops a run, all of it listed, unless the user leaves it out -------------


def stopped(task: str = "maverix_s") -> str:
    with pytest.raises(DataError) as error:
        data.look([task])
    return str(error.value)


def left() -> tuple[list[str], Any]:
    found = data.look(["maverix_s"])
    assert found.left_out("maverix_s") == found.bad
    return [item.id for item in found.items], found.bad


def test_bad_items(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (user / "videos" / "told.mp4").symlink_to(user / "videos" / "clip.mp4")
    (user / "subtitles" / "told.srt").write_text("1\n00:00:05,000 --> 00:00:02\nreversed\n")
    outside = entry(4, start=3600, end=3610)
    bad = [entry(2, paraphrase=None), entry(3, options=[]), outside, entry(5, video="told")]
    write(user, [entry(1), *bad])
    said = stopped()
    assert "data.json: 4 of 5 MAVERIX items cannot be used:\n  item-2: paraphrase:" in said
    assert "\n  item-3: options: expected at least 8, found 0\n" in said
    assert "item-4: starts at 3600 s; its video ends at 30.000 s" in said
    assert "item-5: subtitles: " in said
    assert "--allow-bad-items or LMMS_EVAL_TASKS_ALLOW_BAD_ITEMS=1" in said
    assert "--allow-missing-videos" not in said
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
    kept, bad_ones = left()
    assert (kept, len(bad_ones)) == (["item-1"], 4)
    assert bad_ones["item-3"] == "options: expected at least 8, found 0"


def test_missing_videos(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (user / "videos" / "broken.mp4").write_bytes(b"no video")
    write(user, [entry(1), entry(2, video="gone"), entry(3, video="broken")])
    said = stopped()
    assert "2 of 3 MAVERIX videos cannot be used:\n  gone: missing: " in said
    assert "\n  broken: unreadable: " in said
    assert f"--allow-missing-videos or {settings.ALLOW_MISSING}=1" in said
    assert "--allow-bad-items" not in said
    write(user, [entry(1), entry(2, video="gone"), entry(3, question="")])
    said = stopped()
    assert "items cannot be used" in said
    assert "videos cannot be used" in said
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
    assert "items cannot be used" not in stopped()
    monkeypatch.setenv(settings.ALLOW_MISSING, "1")
    kept, left_out = left()
    assert (kept, set(left_out)) == (["item-1"], {"item-2", "item-3"})
    assert left_out["item-2"].startswith("its video is missing: ")
    write(user, [entry(1, video="gone"), entry(2, question="x", video="gone")])
    assert "none of 2 MAVERIX items can be used" in stopped()


def test_videos_without_sound(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run with A or V+A asks all its modes without them, where the user allows it."""
    write(user, [entry(1), entry(2, video="mute")])
    for mode in ("s", "v", "vs"):
        assert len(docs(f"maverix_{mode}")) == 2
    for task in ("maverix_a", "maverix_long_av_oe"):
        said = stopped(task)
        assert "1 of 2 MAVERIX items cannot be used:\n  item-2: its video has no audio" in said
        assert "--allow-bad-items" in said
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
    found = data.look(["maverix_a", "maverix_s"])
    assert [len(data.docs(found, f"maverix_{one}")) for one in ("a", "s", "av_circular")] == [
        1,
        1,
        8,
    ]
    write(user, [entry(2, video="mute")])
    assert "none of 1 MAVERIX items can be used" in stopped("maverix_a")


# --- docs ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("sample")
def test_circular_docs() -> None:
    every = docs("maverix_s_circular")
    for number, doc in enumerate(docs()):
        turned = every[8 * number : 8 * number + 8]
        right = doc["options"][LETTERS.index(doc["answer"])]
        assert [one["id"] for one in turned] == [f"{doc['id']}/r{n}" for n in range(8)]
        assert [one["rotation"] for one in turned] == list(range(8))
        assert {one["question_id"] for one in turned} == {doc["id"]}
        assert sorted(one["answer"] for one in turned) == list(LETTERS)
        for one in turned:
            assert one["options"][LETTERS.index(one["answer"])] == right
        for place in range(8):  # each option stands once at each letter
            assert len({one["options"][place] for one in turned}) == 8
        assert turned[0]["options"] == doc["options"]
        assert turned[1]["options"] == [*doc["options"][1:], doc["options"][0]]


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
    data.prepare(source, root, link=False)

    def told(*names: str) -> Any:
        return data.look(names).subtitles

    found = told("maverix_s", "maverix_long_vs")
    assert found == {"items": 20, "without": {"localized": 5, "long": 5}}
    assert [line.split(" have ")[0] for line in data.subtitle_warnings(found)] == [
        f"5 of 20 items ({length})" for length in ("localized", "long")
    ]
    assert told("maverix_av", "maverix_long_a_oe") is None
    # Words are shown from 0.1 to 0.9 of a second: a segment between two cues has none either.
    file = root / "maverix" / "data.json"
    edit(file, lambda items: items[0].update(start=3.92, end=4.08))
    assert told("maverix_s")["without"] == {"localized": 6}
