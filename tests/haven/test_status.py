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


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """180 frames: what `write(frames=12)` is of."""
    return write_video(tmp_path_factory.mktemp("haven") / "v.mp4", 180, codec="mpeg4")


def put(video: Path, folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copyfile(video, folder / name)


class TestStatus:
    def test_all_there(self, root: Path, video: Path) -> None:
        write(root / "haven", frames=12)
        put(video, root / "haven" / "videos" / "tvsum", "video_1.mp4", "tvsum clip 2.mp4")
        status = data.status(root)
        assert (status.found, status.videos, status.missing, status.unreadable) == (True, 2, {}, {})
        assert status.version == released.read(root / "haven", Options()).digest
        assert status.counts["shots"] == 8
        assert status.notes == (
            "0 of 25 summe, 2 of 50 tvsum, 0 of 50 ovp, 0 of 40 youtube, 0 of 5,300 videoxum, "
            "0 of 5,590 mrhisum of the paper's full set",
            "summe (SumMe): not there",
            "tvsum (TVSum): 2 videos, 2 with a file that fits, 2 with HDF5",
            "ovp (OVP): not there",
            "youtube (YouTube): not there",
            "videoxum (VideoXum): not there",
            "mrhisum (MR.HiSum): not there",
        )

    def test_what_is_wrong(self, root: Path, video: Path) -> None:
        def change(data: dict[str, Any], arrays: dict[str, Any]) -> None:
            data["video_1"]["frames"][2]["description"] = None
            arrays["video_1"]["gtscore"][4] = float("nan")
            data["video_2"]["clips"] = []
            arrays["video_3"]["n_frames"] = 300

        write(root / "haven", videos=5, frames=12, change=change)
        place = root / "haven" / "videos" / "tvsum"
        put(video, place, "video_1.mp4", "video_3.mp4")
        (place / "video_4.mp4").write_bytes(b"none")
        status = data.status(root)
        assert status.videos == 1
        assert status.missing == {"tvsum/video_5": f"missing: {place.resolve() / 'video_5.mp4'}"}
        assert list(status.unreadable) == ["tvsum/video_4"]
        assert "tvsum (TVSum): 4 videos, 1 with a file that fits, 4 with HDF5" in status.notes
        assert status.notes[7:] == (
            "tvsum/video_2: tvsum_data.json, clips: there are none, so the video has no shot",
            f"tvsum/video_3: unfit: {place / 'video_3.mp4'}: re-encoded with another frame count: "
            "it has 180 frames, the original 300 (n_frames)",
            "haven_saliency: leaves out 1 videos",
            "haven_saliency_doc: leaves out 1 videos",
            "haven_saliency_text: leaves out 1 videos",
            "haven_v2t_text: leaves out 1 videos",
            "haven_v2v_text: leaves out 1 videos",
            "haven_v2vt_text: leaves out 1 videos",
            "tvsum/video_1: tvsum.h5, gtscore, entry 5: nan, no finite number "
            "(saliency, saliency_doc, saliency_text)",
            "tvsum/video_1: tvsum_data.json, frames, entry 3, description: there is none "
            "(v2t_text, v2v_text, v2vt_text)",
        )

    def test_one_reason_of_many_videos_is_one_line(self, root: Path) -> None:
        write(root / "haven", videos=30, hdf5=False)
        assert data.status(root).notes[-1] == (
            "tvsum/video_1 and 29 more videos: tvsum.h5: no such file, so no importance "
            "(saliency, saliency_doc, saliency_text)"
        )

    def test_many_reasons_are_cut(self, root: Path) -> None:
        def change(data: dict[str, Any], arrays: dict[str, Any]) -> None:
            for place, entry in enumerate(data.values()):
                entry["frames"][place]["description"] = ""

        write(root / "haven", videos=23, frames=23, change=change)
        notes = data.status(root).notes
        assert notes[-1] == "and 3 more reasons"
        assert sum(note.startswith("tvsum/") for note in notes) == 20

    def test_the_whole_subset_is_printed(self, root: Path) -> None:
        videos = [f"video_{number}" for number in range(1, 121)]
        chosen = released.chosen("mrhisum", videos, Options())

        def change(data: dict[str, Any], arrays: dict[str, Any]) -> None:
            data[chosen[3]]["frames"] = []  # a bad one is one of the 100

        write(root / "haven", "mrhisum", 120, 6, 2, change=change)
        notes = data.status(root).notes
        start = notes.index(
            "mrhisum: 100 videos are evaluated (subset=100, seed=0; any others are not validated):"
        )
        lines = []
        for note in notes[start + 1 :]:
            if not note.startswith("  "):
                break
            lines.append(note)
        assert " ".join(lines).split() == chosen
        assert max(map(len, lines)) <= 112

    def test_it_does_not_raise(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(root / "haven")
        monkeypatch.setenv(settings.HAVEN, "nonsense=1")
        assert "nonsense" in data.status(root).problem
        monkeypatch.delenv(settings.HAVEN)
        file = root / "haven" / "processed" / "tvsum_data.json"
        file.write_text("[]", encoding="utf-8")
        status = data.status(root)
        assert (status.found, status.problem) == (
            False,
            f'{file}: expected {{"video_1": {{...}}, ...}}',
        )
