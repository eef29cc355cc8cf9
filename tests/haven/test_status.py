"""`data status`: what is there, what is wrong with it, and what tasks leave out."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.haven import data
from lmms_eval_tasks.haven.options import Options
from lmms_eval_tasks.haven.records import release as released
from tests.haven.release_files import write
from tests.utils.media_files import write_video


def test_what_is_there_and_what_is_wrong(tmp_path: Path) -> None:
    def change(data: dict[str, Any], arrays: dict[str, Any]) -> None:
        data["video_1"]["frames"][2]["description"] = None
        arrays["video_1"]["gtscore"][4] = float("nan")
        data["video_2"]["clips"] = []
        arrays["video_3"]["n_frames"] = 300

    folder = write(tmp_path / "haven", videos=5, frames=12, change=change)
    place = folder / "videos" / "tvsum"
    place.mkdir(parents=True)
    write_video(place / "video_1.mp4", 180, codec="mpeg4")
    shutil.copyfile(place / "video_1.mp4", place / "video_3.mp4")
    (place / "video_4.mp4").write_bytes(b"none")
    status = data.status(tmp_path)
    assert (status.found, status.videos, status.counts["shots"]) == (True, 1, 16)
    assert status.version == released.read(folder, Options()).digest
    assert status.missing == {"tvsum/video_5": f"missing: {place.resolve() / 'video_5.mp4'}"}
    assert list(status.unreadable) == ["tvsum/video_4"]
    unscored = "tvsum.h5, gtscore, entry 5: nan, no finite number"
    undescribed = "tvsum_data.json, frames, entry 3, description: there is none"
    gaps = {**dict.fromkeys(("saliency", "saliency_doc", "saliency_text"), unscored)}
    gaps |= dict.fromkeys(("v2t_text", "v2v_text", "v2vt_text"), undescribed)
    assert status.notes == (
        "0 of 25 summe, 4 of 50 tvsum, 0 of 50 ovp, 0 of 40 youtube, 0 of 5,300 videoxum, "
        "0 of 5,590 mrhisum of the paper's full set",
        "summe (SumMe): not there",
        "tvsum (TVSum): 4 videos, 1 with a file that fits, 4 with HDF5",
        "ovp (OVP): not there",
        "youtube (YouTube): not there",
        "videoxum (VideoXum): not there",
        "mrhisum (MR.HiSum): not there",
        "tvsum/video_2: tvsum_data.json, clips: there are none, so the video has no shot",
        f"tvsum/video_3: unfit: {place / 'video_3.mp4'}: re-encoded with another frame count: "
        "it has 180 frames, the original 300 (n_frames)",
        *(
            f"haven_{task}: leaves out 1 videos, such as tvsum/video_1: {why}"
            for task, why in gaps.items()
        ),
    )


def test_the_whole_subset_is_printed(tmp_path: Path) -> None:
    videos = [f"video_{number}" for number in range(1, 121)]
    chosen = released.chosen("mrhisum", videos, Options())

    def change(data: dict[str, Any], arrays: dict[str, Any]) -> None:
        data[chosen[3]]["frames"] = []  # a bad one is one of the 100

    write(tmp_path / "haven", "mrhisum", 120, 6, 2, change=change)
    notes = data.status(tmp_path).notes
    start = notes.index(
        "mrhisum: 100 videos are evaluated (subset=100, seed=0; any others are not validated):"
    )
    lines = [note for note in notes[start + 1 :] if note.startswith("  ")]
    assert " ".join(lines).split() == chosen


def test_it_does_not_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert data.status(tmp_path).problem == data.HOW_TO_GET
    folder = write(tmp_path / "haven")
    monkeypatch.setenv(settings.HAVEN, "nonsense=1")
    assert "nonsense" in data.status(tmp_path).problem
    monkeypatch.delenv(settings.HAVEN)
    file = folder / "processed" / "tvsum_data.json"
    file.write_text("[]", encoding="utf-8")
    status = data.status(tmp_path)
    told = f'{file}: expected {{"video_1": {{...}}, ...}}'
    assert (status.found, status.problem) == (False, told)
