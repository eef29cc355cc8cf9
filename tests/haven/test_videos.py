"""Where a record's video is, and whether the file there fits the record."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven import data
from lmms_eval_tasks.haven.options import Options
from lmms_eval_tasks.haven.records import release as released
from lmms_eval_tasks.haven.records.record import Record
from lmms_eval_tasks.utils.probes import VideoInfo
from tests.haven.release_files import write
from tests.utils.media_files import write_video


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One video of TVSum, 12 picks of 180 frames, called "tvsum clip 1"."""
    (tmp_path / "videos" / "tvsum").mkdir(parents=True)
    return write(tmp_path, videos=1, frames=12)


def found(folder: Path) -> Path:
    """Where the video is, below its folder."""
    (record,) = released.read(folder, Options()).records
    assert record.path is not None
    return record.path.relative_to(folder)


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


class TestPlace:
    def test_where_it_would_be(self, folder: Path) -> None:
        assert found(folder) == Path("videos/tvsum/video_1.mp4")

    @pytest.mark.parametrize(
        "name",
        ["videos/tvsum/video_1.mkv", "videos/tvsum/tvsum clip 1.webm", "tvsum/videos/video_1.mp4"],
    )
    def test_the_key_or_the_videos_own_name(self, folder: Path, name: str) -> None:
        put(folder, name)
        assert found(folder) == Path(name)

    def test_the_key_comes_first(self, folder: Path) -> None:
        put(folder, "videos/tvsum/tvsum clip 1.mp4", "videos/tvsum/video_1.avi")
        assert found(folder) == Path("videos/tvsum/video_1.avi")

    def test_names_json_decides(self, folder: Path) -> None:
        put(folder, "videos/tvsum/video_1.mp4", "videos/tvsum/other.mov")
        names = folder / "videos" / "tvsum" / "names.json"
        names.write_text(json.dumps({"video_1": "other.mov"}), encoding="utf-8")
        assert found(folder) == Path("videos/tvsum/other.mov")
        names.write_text(json.dumps({"video_1": "gone.mov"}), encoding="utf-8")
        assert found(folder) == Path("videos/tvsum/gone.mov")
        names.write_text(json.dumps({"video_9": "other.mov"}), encoding="utf-8")
        assert found(folder) == Path("videos/tvsum/video_1.mp4")

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            (["a"], """: expected {"video_7": "file.mp4"}, found ['a']"""),
            ({"video_1": 3}, ", video_1: expected the name of a file, found 3"),
            ({"video_1": "../x"}, ", video_1: expected the name of a file, found '../x'"),
            ({"video_1": ""}, ", video_1: expected the name of a file, found ''"),
        ],
    )
    def test_names_that_are_none(self, folder: Path, content: Any, told: str) -> None:
        file = folder / "videos" / "tvsum" / "names.json"
        file.write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(DataError) as error:
            released.read(folder, Options())
        assert str(error.value) == f"{file}{told}"

    def test_a_name_that_leads_elsewhere_is_no_file_name(self, folder: Path) -> None:
        (folder / "outside.mp4").touch()
        (record,) = released.read(folder, Options()).records
        (placed,) = released.placed(folder, [replace(record, name="../../outside")])
        assert placed.path == folder / "videos" / "tvsum" / "video_1.mp4"


def info(n_frames: int) -> VideoInfo:
    return VideoInfo(n_frames, 96, 64, 1.0, 1.0, 25.0, False)


@pytest.fixture
def record(folder: Path) -> Record:
    """Picks 0, 15, ... 165 of 180 frames."""
    return released.read(folder, Options()).records[0]


class TestMatch:
    @pytest.mark.parametrize("n_frames", [179, 180, 181])
    def test_readers_may_count_one_frame_more_or_less(self, record: Record, n_frames: int) -> None:
        assert data.misfit(record, info(n_frames)) == ""

    @pytest.mark.parametrize("n_frames", [90, 178, 182, 360])
    def test_another_frame_count(self, record: Record, n_frames: int) -> None:
        assert data.misfit(record, info(n_frames)) == (
            f"re-encoded with another frame count: it has {n_frames} frames, the original 180 "
            "(n_frames)"
        )

    def test_picks_beyond_the_end(self, record: Record) -> None:
        alone = replace(record, n_frames=None)  # without HDF5
        assert data.misfit(alone, info(166)) == ""
        assert data.misfit(alone, info(165)) == (
            "picks, entry 12: frame 165 is beyond the video's end; it has 165 frames, counted "
            "from 0"
        )
        assert data.misfit(alone, info(20)).startswith("picks, entry 3: frame 30 is beyond")

    def test_the_last_frame_that_a_reader_does_not_count(self, record: Record) -> None:
        short = replace(record, n_frames=166)  # its last pick is its last frame
        assert data.misfit(short, info(166)) == ""
        assert data.misfit(short, info(165)).startswith("picks, entry 12: frame 165 is")

    def test_files(self, folder: Path) -> None:
        write(folder, videos=4, frames=12)
        place = folder / "videos" / "tvsum"
        write_video(place / "video_1.mp4", 180, codec="mpeg4")
        write_video(place / "video_2.mp4", 100, codec="mpeg4")
        (place / "video_3.mp4").write_bytes(b"no video")
        troubles = data.troubles(released.read(folder, Options()).records)
        assert list(troubles) == ["tvsum/video_2", "tvsum/video_3", "tvsum/video_4"]
        assert troubles["tvsum/video_2"] == (
            f"unfit: {place / 'video_2.mp4'}: re-encoded with another frame count: it has 100 "
            "frames, the original 180 (n_frames)"
        )
        assert troubles["tvsum/video_3"].startswith("unreadable: ")
        assert troubles["tvsum/video_4"] == f"missing: {place.resolve() / 'video_4.mp4'}"
