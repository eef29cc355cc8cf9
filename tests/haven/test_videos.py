"""Where a record's video is, and whether the file there fits the record."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lmms_eval_tasks.haven import data
from lmms_eval_tasks.haven.options import Options
from lmms_eval_tasks.haven.records import release as released
from lmms_eval_tasks.haven.records.record import Record
from lmms_eval_tasks.utils.media.video_checks import VideoInfo
from tests.haven.release_files import write

PLACE = "videos/tvsum"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One video of TVSum, 12 picks (0, 15, ... 165) of 180 frames, called "tvsum clip 1"."""
    (tmp_path / PLACE).mkdir(parents=True)
    return write(tmp_path, videos=1, frames=12)


def record(folder: Path) -> Record:
    (found,) = released.read(folder, Options()).records
    return found


def test_where_a_video_is(folder: Path) -> None:
    """By its key in either folder, else by its own name; each beats the one before it here."""
    assert record(folder).path == folder / PLACE / "video_1.mp4"  # where it would be
    (folder / "tvsum" / "videos").mkdir(parents=True)
    for name in (f"{PLACE}/tvsum clip 1.webm", "tvsum/videos/video_1.mp4", f"{PLACE}/video_1.avi"):
        (folder / name).touch()
        assert record(folder).path == folder / name


def test_a_name_with_a_folder_is_no_file(folder: Path) -> None:
    (folder / "outside.mp4").touch()
    (placed,) = released.placed(folder, [replace(record(folder), name="../../outside")])
    assert placed.path == folder / PLACE / "video_1.mp4"


def test_a_file_with_another_number_of_frames(folder: Path) -> None:
    """Readers may count one frame more or less."""
    whole = record(folder)
    alone = replace(whole, n_frames=None)  # without HDF5
    last = "picks, entry 12: frame 165 is beyond the video's end"
    for own, n_frames, told in (
        *((whole, n, "") for n in (179, 180, 181)),
        *((whole, n, "re-encoded with another frame count: it has ") for n in (90, 178, 182, 360)),
        (alone, 166, ""),
        (alone, 165, f"{last}; it has 165 frames, counted from 0"),
        (alone, 20, "picks, entry 3: frame 30 is beyond"),
        (replace(whole, n_frames=166), 165, last),  # its last pick is its last frame
    ):
        said = data.misfit(own, VideoInfo(n_frames, 96, 64, 1.0, 1.0, 25.0, False))
        assert said.startswith(told)
        assert bool(said) is bool(told)
