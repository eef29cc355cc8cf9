"""`data status` and `data prepare`: what can be run of each source, and files in their places."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa import data, files
from lmms_eval_tasks.movierecapsqa.labels import SOURCES
from tests.movierecapsqa.entries import entry, write


def runs(root: Path) -> dict[str, str]:
    """What `data status` says that each source can be run for."""
    found = {}
    for note in files.status(root).notes:
        name, told, what = note.partition(": can be run for ")
        if told:
            found[name] = what
    return found


def names(title: str, count: str) -> str:
    return f"movierecapsqa_{title} ({SOURCES[title]}): can be run for {count}"


class TestStatus:
    """Each of the four sources is told by itself."""

    def test_all_held(self, root: Path, user: Path) -> None:
        status = files.status(root)
        assert (status.found, status.videos, status.missing, status.unreadable) == (
            True,
            2,
            {},
            {},
        )
        assert status.counts["questions"] == 4
        for source in SOURCES:
            assert names(source, "2 of 2 segments, 4 of 4 questions") in status.notes
        assert "segments without dialogue: 1 (the prompt says so)" in status.notes
        assert "questions without a modality: 4 (a row of their own)" in status.notes
        assert "1 of 60 videos, 4 of 8,231 questions, 4 of 16,462 facts" in status.notes[0]

    def test_what_is_not_held(self, root: Path, user: Path) -> None:
        nothing = dict.fromkeys(("movieId", "movieStartTime", "movieEndTime"), ...)
        window = dict.fromkeys(("movieStartTime", "movieEndTime"), ...)
        (user / "recaps" / "bad.mp4").write_bytes(b"no video")
        write(
            user,
            [
                entry(1),
                entry(2, **nothing),
                entry(3, videoId="gone", **window),
                entry(4, videoId="bad", movieId="lost"),
                entry(5, endTime=99),
                entry(6, facts=[]),
            ],
        )
        status = files.status(root)
        assert runs(root) == {
            "movierecapsqa_segment (aligned recap segment)": "2 of 5 segments, 4 of 10 questions",
            "movierecapsqa_recap (full recap)": "3 of 5 segments, 6 of 10 questions",
            "movierecapsqa_scenes (aligned movie scenes)": "2 of 5 segments, 4 of 10 questions",
            "movierecapsqa_movie (full movie)": "3 of 5 segments, 6 of 10 questions",
        }
        assert set(status.missing) == {"gone", "lost (movie)"}
        assert set(status.unreadable) == {"bad"}
        assert status.videos == 2
        told = "\n".join(status.notes)
        assert "talk.5: aligned recap segment: ends at 99 s; its video ends at 12" in told
        assert "talk.6: facts: " in told

    def test_a_source_that_is_not_there_says_what_it_needs(self, root: Path, user: Path) -> None:
        shutil.rmtree(user / "movies")
        found = runs(root)
        for name, what in found.items():
            assert ("not held, it needs movieId" in what) is ("movie" in name.partition("(")[2])

    def test_no_data_and_bad_data(self, root: Path) -> None:
        assert files.status(root).problem == data.HOW_TO_GET
        write(root / "movierecapsqa", [])
        status = files.status(root)
        assert not status.found
        assert "holds no segments" in status.problem

    def test_the_real_sample(self, real: Path) -> None:
        status = files.status(real)
        assert (status.videos, len(status.missing)) == (1, 7)
        found = [what.partition(";")[0] for what in runs(real).values()]
        assert (
            found
            == ["1 of 8 segments, 10 of 52 questions"] * 2
            + ["0 of 8 segments, 0 of 52 questions"] * 2
        )


class TestPrepare:
    """A release in one of its layouts, to where it is read."""

    @pytest.fixture
    def source(self, tmp_path: Path, videos: Path) -> Path:
        """As on the project's site: the recap beside the data file; movies in a folder."""
        folder = tmp_path / "release"
        write(folder, [entry(1), entry(2, videoId="gone")])
        shutil.copy(videos / "talk.mp4", folder)
        (folder / "movies").mkdir()
        shutil.copy(videos / "film.mp4", folder / "movies" / "film.mkv")
        (folder / "holiday.mp4").write_bytes(b"not ours")
        return folder

    @pytest.mark.parametrize("link", [True, False])
    @pytest.mark.parametrize("which", ["folder", "file", "recaps"])
    def test_placed(self, which: str, link: bool, source: Path, root: Path) -> None:
        if which == "recaps":
            (source / "recaps").mkdir()
            (source / "talk.mp4").rename(source / "recaps" / "talk.mp4")
        given = source / "segments.json" if which == "file" else source
        for _ in range(2):  # it may be run again
            told = files.prepare(given, root, link)
        place = root / "movierecapsqa"
        there = {str(p.relative_to(place)): p for p in place.rglob("*") if p.is_file()}
        assert set(there) == {"segments.json", "recaps/talk.mp4", "movies/film.mkv"}
        assert {path.is_symlink() for path in there.values()} == {link}
        first, *lines = told.splitlines()
        verb = "linked" if link else "copied"
        assert first == (
            f"{verb} 3 files to {place}: 2 segments, 4 questions; 0 segments with problems"
        )
        assert names("segment", "1 of 2 segments, 2 of 4 questions") in lines
        assert names("movie", "2 of 2 segments, 4 of 4 questions") in lines
        assert files.status(root).missing == {
            "gone": f"missing: {(place / 'recaps' / 'gone.mp4').resolve()}"
        }

    def test_another_name(self, source: Path, root: Path) -> None:
        (source / "segments.json").rename(source / "sample.json")
        files.prepare(source, root, link=True)
        assert (root / "movierecapsqa" / "segments.json").is_symlink()

    def test_other_data_in_the_way(self, source: Path, root: Path) -> None:
        write(root / "movierecapsqa", [entry(7)])
        with pytest.raises(DataError, match=r"another segments\.json already; remove it first"):
            files.prepare(source, root, link=True)

    def test_another_video_in_the_way(self, source: Path, root: Path) -> None:
        place = root / "movierecapsqa" / "movies"
        place.mkdir(parents=True)
        (place / "film.mp4").write_bytes(b"another cut")
        with pytest.raises(DataError, match=r"film.mp4: is in the way of .*film.mkv; remove it"):
            files.prepare(source, root, link=True)

    def test_bad_sources(self, source: Path, root: Path, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="nowhere: no such file or folder"):
            files.prepare(tmp_path / "nowhere", root, link=True)
        write(source, {"x": 1})
        with pytest.raises(DataError, match="expected a list of segments"):
            files.prepare(source, root, link=True)
        assert not (root / "movierecapsqa").exists()
