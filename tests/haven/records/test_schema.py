"""What is read of a video's JSON and HDF5, and where the first error of either is."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.records import schema
from lmms_eval_tasks.haven.records.schema import Arrays, JsonVideo
from tests.checks import refused, table
from tests.haven.release_files import content, write_hdf5

SUMMARY, DOCUMENT = "aligned_text_summary", "aligned_full_document"
SENTENCES, ALIGNED = f"{DOCUMENT}.sentences", f"{DOCUMENT}.alignments"


def put(video: dict[str, Any], place: str, value: Any) -> None:
    """Put a value at a place as `clips.0.gt`; `...` takes out what is there."""
    *path, last = (int(part) if part.isdecimal() else part for part in place.split("."))
    within: Any = video
    for part in path:
        within = within[part]
    within[last] = value
    if value is ...:
        del within[last]


def read(*changes: tuple[str, Any]) -> JsonVideo:
    """Eight frames in three shots of 2, 3 and 3 (frame_ids 0, 15, ... 105), changed."""
    video = content("tvsum", 1, 8, 3)[0]["video_1"]
    for place, value in changes:
        put(video, place, value)
    return schema.read_json(json.loads(json.dumps(video)))


@table(
    "place, value, told",
    [
        ("frames", ..., "frames: the field is missing"),
        ("frames", {}, "frames: expected a list, found {}"),
        ("frames", [], "frames: expected at least 1, found 0"),
        ("frames.2", 7, "frames, entry 3: expected an object, found 7"),
        ("frames.2.frame_id", "30", "frames, entry 3, frame_id: expected a whole number"),
        ("frames.0.frame_id", -1, "frames, entry 1, frame_id: expected 0 or more"),
        ("frames.2.frame_id", 15, "frames, frame_id, entry 3: 15 comes after 15; expected asc"),
        ("frames.1.description", ["a"], "frames, entry 2, description: expected a text, found"),
        ("frames.1.is_gt", ..., "frames, entry 2, is_gt: the field is missing"),
        ("frames.1.is_gt", 2, "frames, entry 2, is_gt: "),
        ("clips", [], "clips: expected at least 1, found 0"),
        ("clips.1.frames", [30, 44], "clips, frames: 44 is no frame_id of `frames`"),
        ("clips.2.frames", [60, 75, 90], "frames of all clips, entry 6: 60 comes after 60"),
        ("clips.1.clip_id", 2, r"clips, clip_id: expected 0 to 2 or 1 to 3, found \['0', '2', '2'"),
        ("clips.1.clip_id", 1.5, "clips, entry 2, clip_id"),
        (SUMMARY, "A text.", f"{SUMMARY}: expected an object, found 'A text.'"),
        (f"{SUMMARY}.sentences", ..., f"{SUMMARY}, sentences: the field is missing"),
        (SENTENCES, ["", 7], f"{DOCUMENT}, sentences, entry 2: expected a text, found 7"),
        (f"{SENTENCES}.1", "[Shot 3] ", f"{DOCUMENT}: sentences, entry 2: expected a text"),
        (f"{ALIGNED}.1.sentence_id", 2, "entry 2, sentence_id: 2 is aligned twice, or no sent"),
        (f"{ALIGNED}.1.sentence_id", 0, "entry 2, sentence_id: 0 is aligned twice"),
        (f"{ALIGNED}.0.shot_ids", [1, 3], f"{DOCUMENT}, alignments, shot_ids: 3 is no shot"),
        (f"{ALIGNED}.0.shot_ids", [-1], "shot_ids, entry 1: expected 0 or more"),
    ],
)
def test_the_first_error_of_json(place: str, value: Any, told: str) -> None:
    refused(DataError, told, read, (place, value))


def test_what_is_taken_as_it_is() -> None:
    """Flags as numbers, clips by place whatever their ids are, and what is not of the schema."""
    for ids in ((1, 2, 3), ("0", "1", "2"), ("clip_7", "clip_2", "clip_2"), (None, 2, 3)):
        video = read(*((f"clips.{n}.clip_id", own) for n, own in enumerate(ids)))
        assert [shots for _, shots in video.aligned_full_document.told()] == [[0, 1], [2]]
    video = read(
        *((f"frames.{n}.is_gt", flag) for n, flag in enumerate((True, 1.0, 0))),
        (ALIGNED, [{"sentence_id": 1, "shot_ids": [2, 0, 2]}]),
        *(("shot_level_gt", "anything"), ("frames.0.status", {"odd": 1})),
        *(("clips.1.gt", None), ("video_name", ...)),
    )
    assert [frame.is_gt for frame in video.frames[:3]] == [True, True, False]
    assert [shots for _, shots in video.aligned_full_document.told()] == [[], [0, 2]]
    assert (video.video_name, bool(video.clips[1].gt)) == (None, False)


def test_texts_that_are_not_there() -> None:
    for nothing in (None, "", "  ", "[CONTENT_FILTERED]", ...):
        video = read(("frames.1.description", nothing), ("clips.2.summary", nothing))
        assert [bool(frame.description) for frame in video.frames] == [True, False, *[True] * 6]
        assert [bool(clip.summary) for clip in video.clips] == [True, True, False]
    blank = {"sentences": ["", "[Shots 0-2] ", "[CONTENT_FILTERED]", None]}
    told = [{"sentence_id": 0, "shot_ids": [0]}]
    for block in (None, {}, {**blank, "alignments": told}, {"sentences": None, "alignments": None}):
        assert read((SUMMARY, block)).aligned_text_summary.told() == []
    for tag in ("[Shots 0-4] ", "[Shot 3] ", " \n[Shot 3] ", "[shots 1, 2 and 5]  "):
        found = read((f"{SENTENCES}.0", f"{tag}A dog.")).aligned_full_document.told()
        assert found[0][0] == "A dog."  # a tag would tell the order


# --- HDF5 -----------------------------------------------------------------------------------------

POINTS = "change_points"


def arrays(folder: Path, place: str = "", value: Any = None) -> Arrays | str:
    """Of the same video, with another dataset, or another value in one (`picks[2]`)."""
    held = content("tvsum", 1, 8, 3)[1]["video_1"]
    name, _, within = place.rstrip("]").partition("[")
    if within:
        held[name] = held[name].astype(float)
        held[name][tuple(map(int, within.split(",")))] = value
    elif value is ...:
        del held[name]
    elif place:
        held[name] = value
    file = write_hdf5(folder / "tvsum.h5", {"video_1": held})
    return schema.read_arrays(file, ["video_1", "video_9"])["video_1"]


def test_arrays_of_any_numeric_type(tmp_path: Path) -> None:
    found = arrays(tmp_path, "n_frames", np.array([120.0]))
    assert isinstance(found, Arrays)
    assert (found.picks, found.n_frames) == (tuple(range(0, 120, 15)), 120)
    assert found.change_points == ((0, 29), (30, 74), (75, 119))
    found = arrays(tmp_path, "gtscore[3]", math.nan)
    assert isinstance(found, Arrays)
    assert [math.isnan(score) for score in found.gtscore or ()] == [n == 3 for n in range(8)]
    for name, value, plain in (("video_name", b" Boats ", "Boats"), ("video_name", 7, "")):
        found = arrays(tmp_path, name, value)
        assert isinstance(found, Arrays)
        assert found.video_name == plain
    for name in ("gtscore", "gtframe"):
        assert getattr(arrays(tmp_path, name, ...), name) is None


@table(
    "place, value, told",
    [
        *((name, ..., f"{name}: the field is missing") for name in ("picks", "n_frames", POINTS)),
        ("picks", np.array([], int), "picks: expected at least 1, found 0"),
        ("picks", np.zeros((2, 8)), "picks, entry 1: "),
        ("picks", 7, "picks: expected a list, found 7"),
        ("picks[2]", math.nan, "picks, entry 3: "),
        ("picks[2]", 30.5, "picks, entry 3: "),
        ("picks[0]", -1, "picks, entry 1: expected 0 or more, found -1"),
        ("picks[2]", 15, "picks: entry 3: 15 comes after 15; expected ascending"),
        ("n_frames", 105, "picks: frame 105 is beyond the end; n_frames is 105"),
        ("n_frames", np.array([1, 2]), "n_frames: expected a whole number, found [1, 2]"),
        (POINTS, np.zeros((0, 2)), f"{POINTS}: expected at least 1, found 0"),
        (f"{POINTS}[1, 1]", 20, f"{POINTS}: entry 2: 30 to 20 after 29"),
        (f"{POINTS}[1, 0]", 29, f"{POINTS}: entry 2: 29 to 74 after 29"),
        ("gtscore", np.ones(7), "gtscore: 7 values, but picks has 8"),
        ("gtframe", np.ones(9), "gtframe: 9 values, but picks has 8"),
        ("gtframe[4]", 2, "gtframe, entry 5: "),
    ],
)
def test_the_first_error_of_hdf5(tmp_path: Path, place: str, value: Any, told: str) -> None:
    assert str(arrays(tmp_path, place, value)).startswith(told)


def test_other_things_in_a_file_and_a_download_that_was_cut_off(tmp_path: Path) -> None:
    import h5py

    file = write_hdf5(tmp_path / "tvsum.h5", content("tvsum", 1)[1])
    with h5py.File(file, "a") as store:
        del store["video_1"]["picks"]
        store["video_1"].create_group("picks")
        store["video_2"] = 7
    found = schema.read_arrays(file, ["video_1", "video_2"])
    assert all(str(one).startswith("cannot be read: ") for one in found.values())
    file.write_bytes(file.read_bytes()[:-500])
    with pytest.raises(DataError, match=r"not a readable HDF5 file: .*truncated"):
        schema.read_arrays(file, ["video_1"])
