"""MovieRecapsQA's data: which questions are asked, what each task shows, the `data` commands."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import av
import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa import data, schema
from lmms_eval_tasks.movierecapsqa.data import SOURCES, TASKS, shows
from lmms_eval_tasks.movierecapsqa.tasks import BENCHMARK
from lmms_eval_tasks.runs import before
from lmms_eval_tasks.utils.media import clips
from tests.movierecapsqa.entries import (
    MOVIE,
    RATE,
    RECAP,
    SECRET,
    SPOKEN,
    entry,
    question,
    second_of,
    seconds_of,
    write,
)

PICTURED = [task for task in TASKS if shows(task)]


def docs(task: str) -> list[Any]:
    """The docs of a task, checked now."""
    before._checked.clear()
    return before.docs(BENCHMARK, task)


def stopped(*tasks: str) -> str:
    with pytest.raises(DataError) as error:
        data.look(tasks)
    return str(error.value)


# --- docs ---------------------------------------------------------------------------------------


def test_labels_and_references(user: Path) -> None:
    first = docs("movierecapsqa_segment")[0]
    assert (first["modality"], first["category"]) == ("unlabelled", "unlabelled")
    assert first["references"] == [first["reference"]] == [f"The {SECRET} captain 10 waits."]
    assert first["lure"] == f"The {SECRET} captain 20 waits."
    write(user, [entry(1, questions=[question(1, datasetAnswer=...)], srt=...)])
    (one,) = docs("movierecapsqa_segment")
    assert (one["reference"], one["references"], one["dialogue"]) == ("", [], "")


WINDOWS = {
    "segment": ("recaps/talk.mp4", [(3.2, 7.4), (8, 11)]),
    "recap": ("recaps/talk.mp4", [(None, None)] * 2),
    "scenes": ("movies/film.mp4", [(10.5, 16), (2, 4)]),
    "movie": ("movies/film.mp4", [(None, None)] * 2),
}


def test_what_every_task_shows(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = []
    for task, (source, condition) in TASKS.items():
        found = docs(task)
        assert [doc["id"] for doc in found] == [f"talk.{n // 10}/{n}" for n in (10, 11, 20, 21)]
        assert {(d["source"], d["condition"], d["n_frames"]) for d in found} == {
            (source, condition, 0)
        }
        place, windows = WINDOWS[source]
        path = str((user / place).resolve())
        if not shows(task):
            path, windows = "", [(None, None)] * 2
            alone.append([{**doc, "source": "", "task": ""} for doc in found])
        assert {doc["video_path"] for doc in found} == {path}
        assert [(doc["start"], doc["end"]) for doc in found[::2]] == windows
        # Windows are those of the source, so that a clip is made once for all conditions.
        cuts = {cut and cut.window for cut in (data.cut(data.look([]), task, one) for one in found)}
        assert cuts == ({(path, *window, 0) for window in windows} if path else {None})
        # The dialogue is the segment's own and whole, whatever is shown beside it.
        assert [doc["dialogue"] for doc in found[::2]] == [SPOKEN, ""]
    assert len(alone) == 4
    assert all(one == alone[0] for one in alone)
    for given, frames in (("8", 8), ("8,talk=3", 3), ("talk=3", 3), ("other=3", 0)):
        monkeypatch.setenv(settings.FRAMES, given)
        assert {doc["n_frames"] for doc in docs("movierecapsqa_scenes_frames")} == {frames}
        assert {doc["n_frames"] for doc in docs("movierecapsqa_scenes_dialogue")} == {0}


def test_the_real_sample(real: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The part of the project's sample that is at hand: one of its eight recap videos."""
    release = schema.read(real / "movierecapsqa")
    assert release.problems == {}
    counts = {"videos": 8, "segments": 8, "questions": 52, "facts": 113, "bad_segments": 0}
    assert release.counts == counts
    found = docs("movierecapsqa_movie_dialogue")
    assert len({doc["id"] for doc in found}) == 52
    for doc in found:
        assert not any(re.match(r"\d+[.)]", fact) for fact in doc["facts"])
        assert doc["dialogue"]
        assert not re.search(r"-->|</?[ib]>|^\d+$", doc["dialogue"], re.M)
        assert doc["lure"] not in (doc["reference"], "")
    assert "7 of 8 segments cannot be shown" in stopped("movierecapsqa_segment")
    monkeypatch.setenv(settings.ALLOW_MISSING, "1")
    assert len(docs("movierecapsqa_segment")) == 10
    assert "none of 8 segments can be shown as the full movie" in stopped("movierecapsqa_movie")


# --- only what a task shows has to be there ------------------------------------------------------


def test_data_that_cannot_be_asked_about(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"no MovieRecapsQA data at .*data prepare movierecaps"):
        data.look([])
    folder = root / "movierecapsqa"
    write(folder, [entry(1, questions=[])])
    assert stopped().endswith("segments.json: its segments have no questions")
    write(folder, [entry(1), entry(2, endTime=1)])
    with pytest.raises(DataError, match=r"1 of 2 .*\n  talk.2: .*\n.*--allow-bad-items"):
        data.look([])
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
    assert {doc["segment"] for doc in docs("movierecapsqa_segment_dialogue")} == {"talk.1"}


def test_what_one_segment_lacks(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = dict.fromkeys(("movieId", "movieStartTime", "movieEndTime"), ...)
    window = dict.fromkeys(("movieStartTime", "movieEndTime"), ...)
    (user / "recaps" / "broken.mp4").write_bytes(b"no video")
    cases: list[tuple[dict[str, Any], tuple[str, ...], str]] = [
        ({"videoId": "broken"}, ("segment", "recap"), "unreadable: "),
        ({"movieId": "gone"}, ("scenes", "movie"), "missing: .*movies/gone.mp4"),
        (nothing, ("scenes", "movie"), r"names no movie \(movieId\)"),
        (window, ("scenes",), r"has no window in the movie \(movieStartTime, movieEndTime\)"),
    ]
    for changes, sources, says in cases:
        monkeypatch.delenv(settings.ALLOW_MISSING, raising=False)
        write(user, [entry(1, **changes), entry(2)])
        fine = [task for task in PICTURED if TASKS[task][0] not in sources]
        data.look(fine)
        for source in sources:
            task = f"movierecapsqa_{source}"
            said = stopped(*fine, task, f"{task}_frames")
            assert f"1 of 2 segments cannot be shown as the {SOURCES[source]}" in said
            assert re.search(rf"\({task}, {task}_frames\):\n  talk\.1: {says}.*\n", said), said
            assert f"--allow-missing-videos or {settings.ALLOW_MISSING}=1" in said
        monkeypatch.setenv(settings.ALLOW_MISSING, "1")
        found = data.look(PICTURED)
        for source, held in found.held.items():
            left = ["talk.2"] if source in sources else ["talk.1", "talk.2"]
            assert list(held.windows) == left
            assert {doc["segment"] for doc in docs(f"movierecapsqa_{source}")} == {*left}
        assert set(found.left_out(f"movierecapsqa_{sources[0]}")) == {"talk.1"}
        assert found.left_out(f"movierecapsqa_{sources[0]}_dialogue") == {}


def test_windows_outside_their_video(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for source, changes, says in (
        ("segment", {"startTime": 12.5, "endTime": 13}, "starts at 12.5 s; its video ends"),
        ("segment", {"endTime": 13.5}, "ends at 13.5 s; its video ends at 12."),
        ("scenes", {"movieStartTime": 50, "movieEndTime": 60}, "starts at 50 s; its video"),
    ):
        monkeypatch.delenv(settings.ALLOW_BAD_ITEMS, raising=False)
        write(user, [entry(1, **changes), entry(2)])
        said = stopped(f"movierecapsqa_{source}")
        assert f"talk.1: {says}" in said
        assert "--allow-bad-items" in said
        data.look(["movierecapsqa_recap", "movierecapsqa_movie"])
        monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
        assert {d["segment"] for d in docs(f"movierecapsqa_{source}")} == {"talk.2"}
    # A rounded end is the video's, and segments without questions need no video.
    write(user, [entry(1, startTime=9, endTime=12.9), entry(2, questions=[], videoId="gone")])
    held = data.look(["movierecapsqa_segment"]).held["segment"]
    assert held.windows["talk.1"][2] == pytest.approx(12, abs=0.1)
    assert (list(held.windows), held.absent, held.bad) == (["talk.1"], {}, {})


# --- clips before the model is loaded ------------------------------------------------------------


def prepared(names: Sequence[str]) -> None:
    before.check(names)
    before.make_media(names, None)


def test_clips_and_frames_are_of_their_window_and_muted(
    user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window and nothing else, and no sound, which tells the answers."""
    prepared(PICTURED)
    with monkeypatch.context() as patch:  # a run finds what was made
        patch.setattr(clips.segments, "segment", None)
        for name in PICTURED:
            for doc in before.docs(BENCHMARK, name):
                assert Path(str(clips.visuals(doc)[0])).is_file()
    spans = {"segment": (3.2, 7.4), "recap": (0, RECAP), "scenes": (10.5, 16), "movie": (0, MOVIE)}
    for source, (start, end) in spans.items():
        all_of_it = [n // RATE for n in range(round(start * RATE), round(end * RATE))]
        monkeypatch.delenv(settings.FRAMES, raising=False)
        (path,) = clips.visuals(docs(f"movierecapsqa_{source}")[0])
        with av.open(str(path)) as clip:
            assert [stream.type for stream in clip.streams] == ["video"]
        assert seconds_of(str(path)) == all_of_it
        for number in (1, 5):
            monkeypatch.setenv(settings.FRAMES, str(number))
            # As numpy.linspace has them, rounded down: the first and the last are among them.
            places = [n * (len(all_of_it) - 1) // max(number - 1, 1) for n in range(number)]
            images = clips.visuals(docs(f"movierecapsqa_{source}")[0])
            assert [second_of(image) for image in images] == [all_of_it[one] for one in places]


# --- the `data` commands ------------------------------------------------------------------------


def runs(root: Path) -> dict[str, str]:
    """What `data status` says that each source can be run for."""
    parts = (note.partition(": can be run for ") for note in data.status(root).notes)
    return {name.split()[0]: what for name, told, what in parts if told}


def test_status(root: Path, user: Path) -> None:
    nothing = dict.fromkeys(("movieId", "movieStartTime", "movieEndTime"), ...)
    window = dict.fromkeys(("movieStartTime", "movieEndTime"), ...)
    (user / "recaps" / "bad.mp4").write_bytes(b"no video")
    broken = entry(4, videoId="bad", movieId="lost", srt="")
    some = [entry(1), entry(2, **nothing), entry(3, videoId="gone", **window), broken]
    write(user, [*some, entry(5, endTime=99), entry(6, facts=[])])
    assert runs(root) == {
        "movierecapsqa_segment": "2 of 5 segments, 4 of 10 questions",
        "movierecapsqa_recap": "3 of 5 segments, 6 of 10 questions",
        "movierecapsqa_scenes": "2 of 5 segments, 4 of 10 questions",
        "movierecapsqa_movie": "3 of 5 segments, 6 of 10 questions",
    }
    status = data.status(root)
    assert (status.found, status.videos, status.counts["questions"]) == (True, 2, 10)
    assert (set(status.missing), set(status.unreadable)) == ({"gone", "lost (movie)"}, {"bad"})
    assert "talk.6: facts: " in "\n".join(status.notes)
    shutil.rmtree(user / "movies")
    assert "not held, it needs movieId" in runs(root)["movierecapsqa_movie"]
    write(user, [])
    status = data.status(root)
    assert (status.found, "holds no entries" in status.problem) == (False, True)
    shutil.rmtree(user)
    assert data.status(root).problem == data.HOW_TO_GET


@pytest.fixture
def source(tmp_path: Path, videos: Path) -> Path:
    """As on the project's site: the recap beside the data file; movies in a folder."""
    folder = tmp_path / "release"
    write(folder, [entry(1), entry(2, videoId="gone")])
    shutil.copy(videos / "talk.mp4", folder)
    (folder / "movies").mkdir()
    shutil.copy(videos / "film.mp4", folder / "movies" / "film.mkv")
    (folder / "holiday.mp4").write_bytes(b"not ours")
    return folder


def test_prepare(source: Path, root: Path) -> None:
    place = root / "movierecapsqa"
    for given, link in ((source, True), (source / "segments.json", False)):
        shutil.rmtree(root, ignore_errors=True)
        for _ in range(2):  # it may be run again
            told = data.prepare(given, root, link)
        there = {str(p.relative_to(place)): p for p in place.rglob("*") if p.is_file()}
        assert set(there) == {"segments.json", "recaps/talk.mp4", "movies/film.mkv"}
        assert {path.is_symlink() for path in there.values()} == {link}
        start = f"{'linked' if link else 'copied'} 3 files to {place}: 2 segments, 4 questions; "
        assert told.startswith(f"{start}0 segments with problems\n")
        assert runs(root)["movierecapsqa_segment"] == "1 of 2 segments, 2 of 4 questions"
    write(source, [entry(7)])
    with pytest.raises(DataError, match=r"segments\.json: is another file than .*remove it first"):
        data.prepare(source, root, link=True)
    # Nothing that lies there may change what the data say.
    shutil.rmtree(place)
    (place / "movies").mkdir(parents=True)
    (place / "movies" / "film.mp4").write_bytes(b"another cut")
    with pytest.raises(DataError, match=r"film.mp4: is in the way of .*film.mkv; remove it"):
        data.prepare(source, root, link=True)
