"""One small video, JSON and HDF5, joined after a change to either."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from lmms_eval_tasks.haven.records import json_file
from lmms_eval_tasks.haven.records.hdf5_file import Arrays
from lmms_eval_tasks.haven.records.json_file import JsonVideo
from lmms_eval_tasks.haven.records.record import Origin, Record, join
from tests.haven.release_files import content

Change = Callable[[dict[str, Any], dict[str, Any]], object]

ORIGIN = Origin("tvsum_data.json", "tvsum.h5", "tvsum.h5: no such file, so no importance")


def put(video: dict[str, Any], place: str, value: Any) -> None:
    """Set what stands at a place such as `frames.2.frame_id`; `...` takes it out."""
    *way, last = (int(part) if part.isdigit() else part for part in place.split("."))
    within: Any = video
    for part in way:
        within = within[part]
    within[last] = value
    if value is ...:
        del within[last]


def read_json(*changes: tuple[str, Any]) -> JsonVideo | str:
    """Eight frames in three shots of 2, 3 and 3 (frame_ids 0, 15, ... 105), changed."""
    video = content("tvsum", 1, 8, 3)[0]["video_1"]
    for place, value in changes:
        put(video, place, value)
    return json_file.read(json.loads(json.dumps(video)))


def valid_json(*changes: tuple[str, Any]) -> JsonVideo:
    found = read_json(*changes)
    assert isinstance(found, JsonVideo), found
    return found


def joined(change: Change = lambda given, arrays: None, hdf5: bool = True) -> Record | str:
    """Eight frames in three shots of 2, 3 and 3 (picks 0, 15, ... 105), changed."""
    data, arrays = content("tvsum", 1, 8, 3)
    given, own = data["video_1"], arrays["video_1"]
    change(given, own)
    video = json_file.read(given)
    assert isinstance(video, JsonVideo), video
    read = Arrays(
        picks=tuple(own["picks"].tolist()),
        change_points=tuple(map(tuple, own["change_points"].tolist())),
        n_frames=int(own["n_frames"]),
        gtscore=tuple(own["gtscore"].tolist()) if "gtscore" in own else None,
        gtframe=tuple(own["gtframe"].astype(bool).tolist()) if "gtframe" in own else None,
        video_name="Their Name",
    )
    return join("tvsum", "video_1", video, read if hdf5 else None, ORIGIN)


def record(change: Change = lambda given, arrays: None, hdf5: bool = True) -> Record:
    found = joined(change, hdf5)
    assert isinstance(found, Record), found
    return found
