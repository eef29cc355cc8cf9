"""The arrays of one video: what is read of them, and the one line about the first error."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.records import hdf5_file
from lmms_eval_tasks.haven.records.hdf5_file import Arrays
from tests.checks import refused, table
from tests.haven.release_files import content, write_hdf5

Change = Callable[[dict[str, Any]], object]


def read(folder: Path, change: Change = lambda arrays: None) -> Arrays | str:
    """Eight picks (0, 15, ... 105) of 120 frames in three shots, changed."""
    arrays = content("tvsum", 1, 8, 3)[1]
    change(arrays["video_1"])
    return hdf5_file.read(write_hdf5(folder / "tvsum.h5", arrays), ["video_1"])["video_1"]


def test_a_valid_video(tmp_path: Path) -> None:
    arrays = read(tmp_path, lambda a: a.update(video_name=np.bytes_("Dog Show")))
    assert isinstance(arrays, Arrays)
    assert arrays.picks == (0, 15, 30, 45, 60, 75, 90, 105)
    assert arrays.change_points == ((0, 29), (30, 74), (75, 119))
    assert (arrays.n_frames, arrays.video_name) == (120, "Dog Show")
    expected = content("tvsum", 1, 8, 3)[1]["video_1"]
    assert arrays.gtscore == tuple(expected["gtscore"])
    assert arrays.gtframe == tuple(expected["gtframe"].astype(bool))
    assert {type(pick) for pick in arrays.picks} == {int}
    file = write_hdf5(tmp_path / "tvsum.h5", content("tvsum", 3)[1])
    assert list(hdf5_file.read(file, ["video_9", "video_2"])) == ["video_2"]


def test_other_types_gaps_and_scores_that_are_none(tmp_path: Path) -> None:
    def typed(arrays: dict[str, Any]) -> None:
        arrays["picks"] = arrays["picks"].astype(np.float32)
        arrays["change_points"] = arrays["change_points"].astype(np.uint16)
        arrays["n_frames"] = np.array([120.0])
        arrays["gtframe"] = arrays["gtframe"].astype(bool)

    assert read(tmp_path / "a", typed) == read(tmp_path / "b")

    def gaps(arrays: dict[str, Any]) -> None:
        del arrays["gtframe"]
        arrays["change_points"][1] = [40, 60]
        arrays["gtscore"][3] = math.nan

    found = read(tmp_path, gaps)
    assert isinstance(found, Arrays)
    assert (found.gtframe, found.video_name) == (None, "")
    assert found.change_points[1] == (40, 60)
    assert found.gtscore is not None
    assert [math.isnan(score) for score in found.gtscore] == [i == 3 for i in range(8)]


POINTS, SECOND = "change_points", "change_points, entry 2"


@table(
    "place, value, told",  # dataset, of `NAME[i]` one value; what is in its place
    [
        *((name, ..., f"{name}: the field is missing") for name in ("picks", "n_frames", POINTS)),
        ("picks", np.array([], int), "picks: expected at least 1, found 0"),
        ("picks", np.zeros((2, 8)), "picks, entry 1: "),
        ("picks", 7, "picks: expected a list, found 7"),
        ("picks", np.bytes_("x"), "picks: expected a list"),
        ("picks[2]", math.nan, "picks, entry 3: "),
        ("picks[2]", 30.5, "picks, entry 3: "),
        ("picks[0]", -1, "picks, entry 1: expected 0 or more, found -1"),
        ("picks[2]", 15, "picks: entry 3: 15 comes after 15; expected ascending"),
        ("n_frames", 105, "picks: frame 105 is beyond the end; n_frames is 105"),
        ("n_frames", np.array([1, 2]), "n_frames: expected a whole number, found [1, 2]"),
        (POINTS, np.zeros((3, 3)), f"{POINTS}, entry 1: expected at most 2, found 3"),
        (POINTS, np.zeros((0, 2)), f"{POINTS}: expected at least 1, found 0"),
        (f"{POINTS}[1, 0]", math.nan, f"{SECOND}, entry 1: "),
        (f"{POINTS}[1, 1]", 20, f"{POINTS}: entry 2: 30 to 20 after 29"),
        (f"{POINTS}[1, 0]", 29, f"{POINTS}: entry 2: 29 to 74 after 29"),
        ("gtscore", np.ones(7), "gtscore: 7 values, but picks has 8"),
        ("gtscore", np.ones((8, 1)), "gtscore, entry 1: "),
        ("gtframe", np.ones(9), "gtframe: 9 values, but picks has 8"),
        ("gtframe[4]", 2, "gtframe, entry 5: expected true or false, or 1 or 0, found 2"),
    ],
)
def test_the_first_error(tmp_path: Path, place: str, value: Any, told: str) -> None:
    name, _, within = place.rstrip("]").partition("[")

    def change(arrays: dict[str, Any]) -> None:
        if within:
            arrays[name] = arrays[name].astype(float)
            arrays[name][tuple(map(int, within.split(",")))] = value
        elif value is ...:
            del arrays[name]
        else:
            arrays[name] = value

    assert str(read(tmp_path, change)).startswith(told)


def test_other_things_in_a_file_and_a_download_that_was_cut_off(tmp_path: Path) -> None:
    import h5py

    file = write_hdf5(tmp_path / "tvsum.h5", content("tvsum", 1)[1])
    with h5py.File(file, "a") as store:
        del store["video_1"]["picks"]
        store["video_1"].create_group("picks")
        store["video_2"] = 7
    assert hdf5_file.read(file, ["video_1", "video_2"]) == {
        "video_1": "picks: expected a dataset, found a group",
        "video_2": "expected a group of datasets, found a dataset",
    }
    file.write_bytes(file.read_bytes()[:-500])
    refused(DataError, "not a readable HDF5 file: .*truncated", hdf5_file.read, file, ["video_1"])
