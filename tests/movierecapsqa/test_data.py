"""MovieRecapsQA's data: which questions are asked, what each task shows, the `data` commands."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import av
import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.media import clips
from lmms_eval_tasks.movierecapsqa import data
from lmms_eval_tasks.movierecapsqa import release as files
from lmms_eval_tasks.movierecapsqa.data import SOURCES, TASKS, shows
from lmms_eval_tasks.movierecapsqa.tasks import BENCHMARK
from lmms_eval_tasks.runs import prepare
from tests.movierecapsqa.entries import (
    MOVIE,
    RATE,
    RECAP,
    SECRET,
    SPOKEN,
    entry,
    second_of,
    seconds_of,
    write,
)

PICTURED = [task for task in TASKS if shows(task)]


def docs(task: str) -> list[Any]:
    """The docs of a task, checked now."""
    return prepare.usable_docs(BENCHMARK, task)


def stopped(*tasks: str) -> str:
    with pytest.raises(DataError) as error:
        prepare.load_data(BENCHMARK, tasks)
    return str(error.value)


# --- docs ---------------------------------------------------------------------------------------


WINDOWS = {
    "segment": ("recaps/talk.mp4", [(3.2, 7.4), (8, 11)]),
    "recap": ("recaps/talk.mp4", [(None, None)] * 2),
    "scenes": ("movies/film.mp4", [(10.5, 16), (2, 4)]),
    "movie": ("movies/film.mp4", [(None, None)] * 2),
}


def test_what_every_task_shows(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for task, (source, condition) in TASKS.items():
        found = docs(task)
        assert [doc["id"] for doc in found] == [f"talk.{n // 10}/{n}" for n in (10, 11, 20, 21)]
        told = {(d["source"], d["condition"], d["n_frames"]) for d in found}
        assert told == {(source, condition, 0)}
        place, windows = WINDOWS[source]
        path = str((user / place).resolve())
        if not shows(task):
            path, windows = "", [(None, None)] * 2
        assert {doc["video_path"] for doc in found} == {path}
        assert [(doc["start"], doc["end"]) for doc in found[::2]] == windows
        # Windows are those of the source, so that a clip is made once for all conditions.
        cuts = {cut and cut.key for cut in map(data.cut, found)}
        assert cuts == ({(path, *window, 0) for window in windows} if path else {None})
        # The dialogue is the segment's own and whole, whatever is shown beside it.
        assert [doc["dialogue"] for doc in found[::2]] == [SPOKEN, ""]
    assert found[0]["references"] == [found[0]["reference"]] == [f"The {SECRET} captain 10 waits."]
    assert found[0]["lure"] == f"The {SECRET} captain 20 waits."
    for given, frames in (("8", 8), ("8,talk=3", 3), ("talk=3", 3), ("other=3", 0)):
        monkeypatch.setenv(settings.FRAMES, given)
        assert {doc["n_frames"] for doc in docs("movierecapsqa_scenes_frames")} == {frames}
        assert {doc["n_frames"] for doc in docs("movierecapsqa_scenes_dialogue")} == {0}


def test_the_real_sample(real: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The part of the project's sample that is at hand: one of its eight recap videos."""
    counts = {"videos": 8, "segments": 8, "questions": 52, "facts": 113, "bad_segments": 0}
    assert files.read_recaps(real / "movierecapsqa").counts == counts
    found = docs("movierecapsqa_movie_dialogue")
    assert len({doc["id"] for doc in found}) == 52
    for doc in found:
        assert not any(re.match(r"\d+[.)]", fact) for fact in doc["facts"])
        assert doc["dialogue"]
        assert not re.search(r"-->|</?[ib]>|^\d+$", doc["dialogue"], re.M)
    assert "7 of 8 MovieRecapsQA videos cannot be used" in stopped("movierecapsqa_segment")
    monkeypatch.setenv(settings.ALLOW_MISSING, "1")
    assert len(docs("movierecapsqa_segment")) == 10
    assert "none of 8 MovieRecapsQA segments can be run" in stopped("movierecapsqa_movie")


# --- only what a task shows has to be there ------------------------------------------------------


def test_data_that_cannot_be_asked_about(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"no MovieRecapsQA data at .*data prepare movierecaps"):
        BENCHMARK.load([])
    folder = root / "movierecapsqa"
    write(folder, [entry(1, questions=[])])
    assert stopped().endswith("segments.json: its segments have no questions")
    write(folder, [entry(1), entry(2, endTime=1)])
    with pytest.raises(DataError, match=r"1 of 2 .*\n  talk.2: .*\n.*--allow-bad-items"):
        BENCHMARK.load([])
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
    assert {doc["segment"] for doc in docs("movierecapsqa_segment_dialogue")} == {"talk.1"}


NO_MOVIE = dict.fromkeys(("movieId", "movieStartTime", "movieEndTime"), ...)
NO_WINDOW = dict.fromkeys(("movieStartTime", "movieEndTime"), ...)


@pytest.mark.parametrize(
    ("changes", "sources", "says"),
    [
        ({"videoId": "broken"}, ("segment", "recap"), "unreadable: "),
        ({"movieId": "gone"}, ("scenes", "movie"), "missing: .*movies/gone.mp4"),
        (NO_MOVIE, ("scenes", "movie"), r"names no movie \(movieId\)"),
        (NO_WINDOW, ("scenes",), r"has no window in the movie \(movieStartTime, movieEndTime\)"),
        ({"startTime": 12.5, "endTime": 13}, ("segment",), "starts at 12.5 s; its video ends"),
        ({"endTime": 13.5}, ("segment",), "ends at 13.5 s; its video ends at 12."),
        ({"movieStartTime": 50, "movieEndTime": 60}, ("scenes",), "starts at 50 s; its video"),
    ],
)
def test_what_one_segment_lacks(
    changes: dict[str, Any],
    sources: tuple[str, ...],
    says: str,
    user: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It stops the tasks that show it, and is left out where the user says so."""
    (user / "recaps" / "broken.mp4").write_bytes(b"no video")
    write(user, [entry(1, **changes), entry(2)])
    fine = [task for task in PICTURED if TASKS[task][0] not in sources]
    BENCHMARK.load(fine)
    is_bad = "its video" in says
    allow = settings.ALLOW_BAD_ITEMS if is_bad else settings.ALLOW_MISSING
    for source in sources:
        task = f"movierecapsqa_{source}"
        said = stopped(*fine, task, f"{task}_frames")
        of = "segments do not fit their videos" if is_bad else "videos cannot be used"
        assert f"{of} as the {SOURCES[source]} ({task}, {task}_frames)" in said
        name = (
            r"broken" if "unread" in says else r"gone .movie." if "missing" in says else r"talk\.1"
        )
        assert re.search(rf"\n  {name}: {says}.*\n", said), said
        assert f"{allow}=1" in said
    monkeypatch.setenv(allow, "1")
    found = BENCHMARK.load(PICTURED)
    for source in SOURCES:
        left = ["talk.2"] if source in sources else ["talk.1", "talk.2"]
        held = found.source(f"movierecapsqa_{source}")
        assert held is not None
        assert list(held.windows) == left
        assert {doc["segment"] for doc in docs(f"movierecapsqa_{source}")} == {*left}
    assert set(found.left_out(f"movierecapsqa_{sources[0]}")) == {"talk.1"}
    assert found.left_out(f"movierecapsqa_{sources[0]}_dialogue") == {}


def test_a_rounded_end_is_the_videos(user: Path) -> None:
    """And segments without questions need no video."""
    write(user, [entry(1, startTime=9, endTime=12.9), entry(2, questions=[], videoId="gone")])
    held = BENCHMARK.load(["movierecapsqa_segment"]).source("movierecapsqa_segment")
    assert held is not None
    assert held.windows["talk.1"].end == pytest.approx(12, abs=0.1)
    assert (list(held.windows), held.left_out) == (["talk.1"], {})


# --- clips before the model is loaded ------------------------------------------------------------


def test_clips_and_frames_are_of_their_window_and_muted(
    user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window and nothing else, and no sound, which tells the answers."""
    prepare.check_tasks(PICTURED)
    prepare.make_media(PICTURED, None)
    spans = {"segment": (3.2, 7.4), "recap": (0, RECAP), "scenes": (10.5, 16), "movie": (0, MOVIE)}
    for source, (start, end) in spans.items():
        all_of_it = [n // RATE for n in range(round(start * RATE), round(end * RATE))]
        monkeypatch.delenv(settings.FRAMES, raising=False)
        (path,) = clips.visuals(docs(f"movierecapsqa_{source}")[0])
        with av.open(str(path)) as clip:
            assert [stream.type for stream in clip.streams] == ["video"]
        assert seconds_of(str(path)) == all_of_it
        # As numpy.linspace has them, rounded down: the first and the last are among them.
        monkeypatch.setenv(settings.FRAMES, "5")
        images = clips.visuals(docs(f"movierecapsqa_{source}")[0])
        places = [n * (len(all_of_it) - 1) // 4 for n in range(5)]
        assert [second_of(image) for image in images] == [all_of_it[one] for one in places]


# --- the `data` commands ------------------------------------------------------------------------


def test_status(root: Path, user: Path) -> None:
    (user / "recaps" / "bad.mp4").write_bytes(b"no video")
    broken = entry(4, videoId="bad", movieId="lost", srt="")
    some = [entry(1), entry(2, **NO_MOVIE), entry(3, videoId="gone", **NO_WINDOW), broken]
    write(user, [*some, entry(5, endTime=99), entry(6, facts=[])])
    status = BENCHMARK.status(root)
    assert (status.problem, status.videos, status.counts["questions"]) == ("", 2, 10)
    reasons = {name: why.partition(":")[0] for name, why in status.bad.items()}
    assert reasons == {"gone": "missing", "lost (movie)": "missing", "bad": "unreadable"}
    told = "\n".join(status.notes)
    for source, number in (("segment", 2), ("recap", 3), ("scenes", 2), ("movie", 3)):
        assert f"videos as the {SOURCES[source]} (movierecapsqa_{source}, " in told
        assert f"_{source}_frames): of 5 segments, {number} can be used" in told
    assert "talk.6: facts: " in told


def test_a_release_as_on_the_projects_site(root: Path, videos: Path, tmp_path: Path) -> None:
    """The recap beside the data file, which may be named alone; movies in a folder."""
    source = tmp_path / "release"
    write(source, [entry(1), entry(2, videoId="gone")])
    shutil.copy(videos / "talk.mp4", source)
    (source / "movies").mkdir()
    shutil.copy(videos / "film.mp4", source / "movies" / "film.mkv")
    (source / "holiday.mp4").write_bytes(b"not ours")
    assert "\n  gone: missing: " in BENCHMARK.prepare(source / "segments.json", root, link=True)
    place = root / "movierecapsqa"
    there = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
    assert there == {"segments.json", "recaps/talk.mp4", "movies/film.mkv"}
