"""Where a record's video is, whether the file there fits it, and what `data status` says of all."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.haven import data
from lmms_eval_tasks.haven.options import HavenOptions
from lmms_eval_tasks.haven.records import release as released
from lmms_eval_tasks.haven.records.record import Record
from lmms_eval_tasks.haven.tasks import BENCHMARK
from lmms_eval_tasks.media import video_checks
from lmms_eval_tasks.media.video_checks import VideoInfo
from tests.haven.release_files import write
from tests.media.media_files import write_video

PLACE = "videos/tvsum"


def record(folder: Path) -> Record:
    (found,) = released.read_haven(folder, HavenOptions()).records
    return found


def test_where_a_video_is(tmp_path: Path) -> None:
    """By its key, else by its own name."""
    folder = write(tmp_path / "haven", videos=1, frames=12)
    (folder / PLACE).mkdir(parents=True)
    assert record(folder).path == folder / PLACE / "video_1.mp4"  # where it would be
    for name in ("tvsum clip 1.webm", "video_1.avi"):
        (folder / PLACE / name).touch()
        assert record(folder).path == folder / PLACE / name


def test_a_file_with_another_number_of_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers may count one frame more or less. 12 picks (0, 15, ... 165) of 180 frames."""
    whole = record(write(tmp_path, videos=1, frames=12))
    alone = replace(whole, n_frames=None)  # without HDF5
    last = "its last pick is frame 165, but it has 165 frames, counted from 0"
    for own, n_frames, told in (
        *((whole, n, "") for n in (179, 180, 181)),
        *((whole, n, "re-encoded with another frame count: it has ") for n in (90, 178, 182, 360)),
        (alone, 166, ""),
        (alone, 165, last),
        (replace(whole, n_frames=166), 165, last),
    ):
        info = VideoInfo(n_frames, 1.0, 1.0, 25.0, False)
        monkeypatch.setattr(video_checks, "look", lambda *_, seen={own.id: info}: (seen, {}))
        said = data.trouble(own)
        assert said.startswith(f"{own.path}: {told}") if told else said == ""


# --- `data status` --------------------------------------------------------------------------------


def test_what_is_there_and_what_is_wrong(tmp_path: Path) -> None:
    """What stands in `data status` of sources that are there is in tests/golden."""

    def change(data: dict[str, Any], arrays: dict[str, Any]) -> None:
        for frame in data["video_1"]["frames"]:
            frame["description"] = None
        data["video_2"]["clips"] = []
        arrays["video_3"]["n_frames"] = 300

    folder = write(tmp_path / "haven", videos=5, frames=12, change=change)
    place = folder / PLACE
    place.mkdir(parents=True)
    write_video(place / "video_1.mp4", 180, codec="mpeg4")
    shutil.copyfile(place / "video_1.mp4", place / "video_3.mp4")
    (place / "video_4.mp4").write_bytes(b"none")
    status = BENCHMARK.status(tmp_path)
    assert (status.problem, status.videos, status.counts["shots"]) == ("", 2, 16)
    assert status.version == released.read_haven(folder, HavenOptions()).digest
    assert status.bad.keys() == {"tvsum/video_4", "tvsum/video_5"}
    assert status.bad["tvsum/video_5"] == f"missing: {place.resolve() / 'video_5.mp4'}"
    unfit = "re-encoded with another frame count: it has 180 frames, the original 300 (n_frames)"
    undescribed = "tvsum/video_1: tvsum_data.json, frames: none has a description"
    assert status.notes[1:] == [
        *(
            f"haven_{task}: skips 1 videos, such as {undescribed}"
            for task in ("v2t_text", "v2v_text", "v2vt_text")
        ),
        "tvsum/video_2: tvsum_data.json, clips: expected at least 1, found 0",
        f"tvsum/video_3: {place / 'video_3.mp4'}: {unfit}",
    ]
