"""Whole releases: which videos are read, what is told of bad ones, and when they are read again."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven import schema
from lmms_eval_tasks.haven.options import PAPER_COUNTS
from lmms_eval_tasks.haven.options import Options
from tests.haven.release_files import write

Change = Callable[[dict[str, Any], dict[str, Any]], object]


def test_a_release(tmp_path: Path) -> None:
    write(write(tmp_path, "tvsum", 11), "summe", 2, 30, 5)
    release = schema.read(tmp_path, Options())
    assert [record.id for record in release.records] == [
        "summe/video_1",
        "summe/video_2",
        *(f"tvsum/video_{number}" for number in range(1, 12)),
    ]
    assert release.counts == {
        "videos": 13,
        **dict.fromkeys(PAPER_COUNTS, 0),
        "summe": 2,
        "tvsum": 11,
        "frames": 2 * 30 + 11 * 20,
        "shots": 2 * 5 + 11 * 4,
        "videos_without_hdf5": 0,
        "bad_videos": 0,
    }
    assert (release.folder, release.problems) == (tmp_path, {})
    assert not any(record.gaps for record in release.records)


def test_importance_has_ties(tmp_path: Path) -> None:
    """The builder's promise: what is scored with ties is tested with ties."""
    for record in schema.read(write(tmp_path), Options()).records:
        importance = record.importance
        assert importance is not None
        assert importance[0] == importance[3]
        assert len(set(importance)) == 3


@pytest.mark.parametrize("source", list(PAPER_COUNTS))
@pytest.mark.parametrize(("frames", "shots"), [(1, 1), (7, 3), (40, 40), (165, 16)])
def test_the_builder_makes_valid_releases(
    tmp_path: Path, source: str, frames: int, shots: int
) -> None:
    release = schema.read(write(tmp_path, source, 2, frames, shots), Options())
    assert (release.counts["videos"], release.problems) == (2, {})
    assert release.counts["shots"] == 2 * shots


def test_sources_are_chosen(tmp_path: Path) -> None:
    write(write(write(tmp_path, "tvsum"), "summe"), "ovp")
    release = schema.read(tmp_path, Options(sources=("summe", "ovp")))
    assert {record.source for record in release.records} == {"summe", "ovp"}
    with pytest.raises(DataError) as error:
        schema.read(tmp_path, Options(sources=("tvsum", "youtube")))
    assert str(error.value) == (
        f"{tmp_path}: no file of youtube (expected processed/youtube_data.json)"
    )


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        schema.read(tmp_path, Options())
    assert str(error.value) == (f"{tmp_path}: no data file (expected processed/SOURCE_data.json)")


def test_all_but_saliency_without_hdf5(tmp_path: Path) -> None:
    release = schema.read(write(tmp_path, hdf5=False), Options())
    why = "tvsum.h5: no such file, so no importance"
    assert [record.gaps for record in release.records] == [
        dict.fromkeys(("saliency", "saliency_doc", "saliency_text"), why)
    ] * 2
    assert release.counts["videos_without_hdf5"] == 2
    whole = schema.read(write(tmp_path), Options())
    assert [record.shots for record in whole.records] == [
        record.shots for record in release.records
    ]


def test_a_video_that_hdf5_lacks(tmp_path: Path) -> None:
    write(tmp_path, change=lambda data, arrays: arrays.pop("video_2"))
    release = schema.read(tmp_path, Options())
    assert release.counts["videos_without_hdf5"] == 1
    assert release.records[1].gaps["saliency"] == "tvsum.h5: no group video_2, so no importance"


def in_json(field: str, value: Any) -> Change:
    return lambda data, arrays: data["video_2"].update({field: value})


def in_hdf5(name: str, place: Any, value: Any) -> Change:
    return lambda data, arrays: arrays["video_2"][name].__setitem__(place, value)


def frame(place: int, **fields: Any) -> Change:
    return lambda data, arrays: data["video_2"]["frames"][place].update(fields)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (in_json("frames", []), "tvsum_data.json, frames: there are none"),
        (
            frame(3, frame_id=7),
            "tvsum_data.json, frames, entry 4, frame_id: 7 comes after 30; expected ascending",
        ),
        (
            lambda data, arrays: data.update(video_2=None),
            "tvsum_data.json, expected an object, found None",
        ),
        (
            frame(4, is_gt=True),
            "tvsum_data.json, frames, entry 5, is_gt: 1, but tvsum.h5, gtframe, entry 5: 0",
        ),
        (
            in_hdf5("picks", 2, 31),
            "tvsum_data.json, frames, entry 3, frame_id: 30, but tvsum.h5, picks, entry 3: 31",
        ),
        (
            in_hdf5("picks", 2, 9),
            "tvsum.h5, picks, entry 3: 9 comes after 15; expected ascending",
        ),
        (
            in_hdf5("change_points", (1, 0), 70),
            "tvsum.h5, change_points, entry 2: begins at 70, but the shot before it ends at 74",
        ),
        (
            lambda data, arrays: arrays["video_2"].update(n_frames=280),
            "tvsum.h5, picks, entry 20: frame 285 is beyond the end; n_frames is 280, counted "
            "from 0",
        ),
        (
            lambda data, arrays: arrays["video_2"].update(gtscore=np.ones(19)),
            "tvsum.h5, gtscore: 19 values, but picks has 20",
        ),
    ],
)
def test_a_bad_video_is_one_line_and_the_others_are_read(
    tmp_path: Path, change: Change, told: str
) -> None:
    release = schema.read(write(tmp_path, videos=3, change=change), Options())
    assert release.problems == {"tvsum/video_2": told}
    assert [record.id for record in release.records] == ["tvsum/video_1", "tvsum/video_3"]
    assert release.counts["bad_videos"] == 1


@pytest.mark.parametrize(
    ("change", "task", "told"),
    [
        (
            in_json("aligned_text_summary", {}),
            "v2t",
            "tvsum_data.json, aligned_text_summary: there is none",
        ),
        (
            in_hdf5("gtscore", 6, math.nan),
            "saliency",
            "tvsum.h5, gtscore, entry 7: nan, no finite number",
        ),
        (
            frame(8, description=""),
            "v2t_text",
            "tvsum_data.json, frames, entry 9, description: there is none",
        ),
    ],
)
def test_what_only_some_tasks_need_is_no_problem(
    tmp_path: Path, change: Change, task: str, told: str
) -> None:
    release = schema.read(write(tmp_path, change=change), Options())
    assert release.problems == {}
    assert release.records[0].gaps == {}
    assert release.records[1].gaps[task] == told


def test_a_key_that_is_no_name(tmp_path: Path) -> None:
    write(
        tmp_path,
        change=lambda data, arrays: data.update({"../video_3": data["video_1"]}),
    )
    assert schema.read(tmp_path, Options()).problems == {
        "tvsum/../video_3": "tvsum_data.json: the video's key is no name on one line, without a "
        "folder"
    }


def test_not_one_good_video(tmp_path: Path) -> None:
    def change(data: dict[str, Any], arrays: dict[str, Any]) -> None:
        for video in data.values():
            del video["clips"]

    with pytest.raises(DataError) as error:
        schema.read(write(tmp_path, change=change), Options())
    assert str(error.value) == (
        f"{tmp_path}: not one of 2 videos fits the schema; tvsum/video_1: tvsum_data.json, clips: "
        "the field is missing"
    )


def test_whole_files_that_are_none(tmp_path: Path) -> None:
    write(tmp_path)
    hdf5 = tmp_path / "tvsum" / "h5" / "tvsum.h5"
    hdf5.write_bytes(b"no hdf5")
    with pytest.raises(DataError) as error:
        schema.read(tmp_path, Options())
    assert str(error.value).startswith(f"{hdf5}: not a readable HDF5 file: ")
    file = tmp_path / "processed" / "tvsum_data.json"
    file.write_text('{"video_1": {},\n  oops}', encoding="utf-8")
    with pytest.raises(DataError) as error:
        schema.read(tmp_path, Options())
    assert str(error.value) == (f"{file}: not valid JSON at line 2, column 3: Expecting value")


def test_h5py_is_not_imported_with_the_module() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from lmms_eval_tasks.haven import files; "
        "print({'h5py', 'numpy', 'av', 'decord', 'torch', 'scipy'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"
