"""`data status` and `data prepare`: what is there, and files in their places."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from lmms_eval_tasks.cvrr_es import release
from lmms_eval_tasks.errors import DataError
from tests.cvrr_es.release_files import real_data, release_from_judgements, row, write

PART, TIME = "partial_actions", "time_order_understanding"


@pytest.fixture
def clip(sample_folder: Path) -> Path:
    return sample_folder / PART / "box.mp4"


@pytest.fixture
def source(tmp_path: Path, clip: Path) -> Path:
    """The folder that holds CVRR-ES, as the archive is unpacked."""
    folder = tmp_path / "download" / "CVRR-ES"
    write(folder, PART, [row("Why?", video="1.mp4"), row("Why?", video="gone.mp4")])
    write(folder, TIME, [row("When?", video="1.mp4"), row("What?", "")])
    for dimension in (PART, TIME):
        shutil.copy(clip, folder / dimension / "1.mp4")
    (folder / PART / "holiday.mp4").write_bytes(b"not ours")
    return folder.parent


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


class TestStatus:
    """Every dimension, missing and unreadable videos, bad rows."""

    def test_what_is_there(self, source: Path, root: Path) -> None:
        folder = source / "CVRR-ES"
        (folder / TIME / "1.mp4").write_bytes(b"no video")
        shutil.copytree(folder, root / "cvrr_es")
        status = release.status(root)
        assert (status.found, status.videos, status.where) == (True, 1, root / "cvrr_es")
        assert set(status.missing) == {f"{PART}/gone.mp4"}
        assert set(status.unreadable) == {f"{TIME}/1.mp4"}
        assert status.version == release.read(folder).digest
        first, *notes = status.notes
        assert first == "3 of 217 videos, 3 of 2,400 questions of the paper's full set"
        assert f"{PART}: 2 questions on 2 videos; 2 repeat another's text" in notes
        assert f"{TIME}: 1 questions on 1 videos" in notes
        assert "fine_grained_action_understanding: not there" in notes
        assert notes[-1].endswith("entry 2: A: expected a text, found an empty one")

    def test_no_data_and_bad_data(self, root: Path) -> None:
        assert release.status(root).problem == release.HOW_TO_GET
        for word in ("MIT", "CC BY,", "CC BY-NC-SA", "non-commercial"):
            assert word in release.HOW_TO_GET
        write(root / "cvrr_es", PART, [])
        status = release.status(root)
        assert not status.found
        assert "holds no questions" in status.problem


class TestPrepare:
    """A release to where it is read, whole and as it is."""

    @pytest.mark.parametrize("link", [True, False])
    @pytest.mark.parametrize("below", ["", "CVRR-ES"])
    def test_placed(self, below: str, link: bool, source: Path, root: Path) -> None:
        for _ in range(2):  # it may be run again
            told = release.prepare(source / below, root, link)
        place = root / "cvrr_es"
        there = {str(p.relative_to(place)): p for p in place.rglob("*") if p.is_file()}
        assert set(there) == {
            f"{PART}/annotations_{PART}.json",
            f"{PART}/1.mp4",
            f"{TIME}/annotations_{TIME}.json",
            f"{TIME}/1.mp4",
        }
        assert {path.is_symlink() for path in there.values()} == {link}
        first, *lines = told.splitlines()
        verb = "linked" if link else "copied"
        assert first == (
            f"{verb} 4 files to {place}: 3 questions of 2 dimensions; 1 questions with problems"
        )
        assert f"{PART}: 2 questions on 2 videos; 2 repeat another's text" in lines
        assert release.read(place).digest == release.read(source).digest

    def test_the_hub_copy(self, source: Path, root: Path) -> None:
        """Exported rows beside the unpacked archive, which has no annotations there."""
        file = source / "CVRR-ES" / PART / f"annotations_{PART}.json"
        (source / f"{PART}.json").write_bytes(file.read_bytes())
        for one in (source / "CVRR-ES").rglob("annotations_*.json"):
            one.unlink()
        release.prepare(source, root, link=True)
        place = root / "cvrr_es"
        assert (place / f"{PART}.json").is_symlink()
        assert (place / PART / "1.mp4").is_symlink()
        assert list(release.status(root).missing) == [f"{PART}/gone.mp4"]

    def test_one_dimension_after_the_other(self, source: Path, root: Path) -> None:
        aside = source.parent / "aside"
        shutil.move(source / "CVRR-ES" / TIME, aside / TIME)
        release.prepare(source, root, link=True)
        release.prepare(aside, root, link=True)
        assert release.status(root).counts["dimensions"] == 2

    def test_other_annotations_in_the_way(self, source: Path, root: Path) -> None:
        write(root / "cvrr_es", PART, [row("Another?")])
        with pytest.raises(DataError, match=r"annotations_partial_actions\.json: is another file"):
            release.prepare(source, root, link=True)

    def test_another_form_in_the_way(self, source: Path, root: Path) -> None:
        place = root / "cvrr_es"
        place.mkdir(parents=True)
        (place / f"{PART}.json").write_text(json.dumps([row("Another?")]))
        with pytest.raises(DataError, match=r"partial_actions\.json: is in the way of"):
            release.prepare(source, root, link=True)
        assert not (place / PART).exists()

    def test_another_video_in_the_way(self, source: Path, root: Path) -> None:
        place = root / "cvrr_es" / PART
        place.mkdir(parents=True)
        video = source / "CVRR-ES" / PART / "1.mp4"
        # Of the same size and age: the bytes decide.
        (place / "1.mp4").write_bytes(bytes(video.stat().st_size))
        os.utime(place / "1.mp4", ns=(video.stat().st_atime_ns, video.stat().st_mtime_ns))
        with pytest.raises(DataError, match=r"1\.mp4: is another file than .*remove it first"):
            release.prepare(source, root, link=True)

    def test_a_video_of_another_container_in_the_way(self, source: Path, root: Path) -> None:
        folder = source / "CVRR-ES"
        write(folder, PART, [row("Why?", video="2")])
        shutil.move(folder / PART / "1.mp4", folder / PART / "2.mkv")
        place = root / "cvrr_es" / PART
        place.mkdir(parents=True)
        (place / "2.mp4").write_bytes(b"another cut")
        with pytest.raises(DataError, match=r"2\.mp4: is in the way of .*2\.mkv; remove it first"):
            release.prepare(source, root, link=True)

    def test_bad_sources(self, source: Path, root: Path) -> None:
        with pytest.raises(DataError, match="nowhere: no such folder"):
            release.prepare(source / "nowhere", root, link=True)
        with pytest.raises(DataError, match="no annotations of CVRR-ES"):
            release.prepare(source.parent, root, link=True)
        assert not (root / "cvrr_es").exists()


def test_the_stand_in_release(tmp_path: Path, clip: Path) -> None:
    """As the real check uses it: the judgements' questions, one clip in every dimension."""
    folder = tmp_path / "cvrr_es"
    results = real_data() / "judge_results"
    assert release_from_judgements(results, folder, clip, dimensions=[PART, TIME]) == folder
    status = release.status(tmp_path)
    assert (status.videos, status.missing) == (2, {})
    assert status.notes[0] == "2 of 217 videos, 358 of 2,400 questions of the paper's full set"
