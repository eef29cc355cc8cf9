"""The pictures of frames that a reply selected, for CLIPScore: opened only when they are embedded.

An item has numbers of frames and no file: in a run they are the frames that the model saw, and in
`rescore` those of the user's own copy of the video, wherever it is now.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven import checked, data, items, options, pictures, video_match
from lmms_eval_tasks.haven.record import Record
from lmms_eval_tasks.utils.clip_encoder import Picture

if TYPE_CHECKING:
    from PIL.Image import Image


def of(video: str, fingerprint: str, frames: Sequence[int]) -> list[Picture]:
    """Pictures of a video's sampled frames.

    Args:
        video: id of its record.
        fingerprint: of the record that the numbers are of (items.row).
        frames: numbers, from 1.

    Raises:
        DataError: the data are not there any more, hold another record of this id, or the video
            file does not fit it.
        TasksError: an option has no value of its range.
    """
    found = checked.last()
    release = data.load() if found is None else found.release
    record = next((one for one in release.records if one.id == video), None)
    if record is None:
        raise DataError(f"{release.folder}: has no video {video}")
    if items.row(record, "")["record"] != fingerprint:
        raise DataError(f"{release.folder}: its {video} is not the one that the replies are about")
    if trouble := video_match.troubles([record]):
        raise DataError(f"{video}: {trouble[video]}")
    size = options.current().size
    return [
        Picture(
            f"{release.digest} {video} frame {number} {size} px",
            functools.partial(_open, record, number),
        )
        for number in frames
    ]


def _open(record: Record, number: int) -> Image:
    """The picture of a frame.

    Raises:
        MediaError: the video is not there or cannot be read.
    """
    path = "" if record.path is None else str(record.path.resolve())
    doc = {"id": record.id, "video_path": path, "picks": record.picks}
    return pictures.pictures(doc, [number])[0]
