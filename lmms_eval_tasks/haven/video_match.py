"""Does the user's copy of a video fit its record? Only then do `picks` name the frames meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lmms_eval_tasks.haven.record import Record
from lmms_eval_tasks.utils import video_checks

if TYPE_CHECKING:
    from lmms_eval_tasks.utils.probes import VideoInfo

# Readers count frames differently by one (decord and PyAV, at the end of some files), and who made
# `n_frames` used a third one, OpenCV. More than that is another encoding of the video.
TOLERANCE = 1


def troubles(records: Iterable[Record]) -> dict[str, str]:
    """Why videos cannot be used, by the record's id.

    Args:
        records: with paths (videos.placed).

    Returns:
        Reasons; they begin with "missing", "unreadable" or, of a file that is not the video that
        the record is of, "unfit".
    """
    known = {record.id: record for record in records}
    infos, found = video_checks.look(
        {name: record.path.resolve() for name, record in known.items() if record.path is not None}
    )
    found |= {name: "missing: no path" for name, record in known.items() if record.path is None}
    for name, info in infos.items():
        if why := misfit(known[name], info):
            found[name] = f"unfit: {known[name].path}: {why}"
    return {name: found[name] for name in known if name in found}


def misfit(record: Record, info: VideoInfo) -> str:
    """Why a video file is not the one that the record is of, or "".

    Args:
        record: its picks count frames from 0; `n_frames` is None without HDF5.
        info: facts about the file.
    """
    n_frames = record.n_frames
    if n_frames is not None and abs(info.n_frames - n_frames) > TOLERANCE:
        return (
            f"re-encoded with another frame count: it has {info.n_frames} frames, the original "
            f"{n_frames} (n_frames)"
        )
    for number, frame in enumerate(record.frames, 1):
        if frame.pick >= info.n_frames:
            return (
                f"picks, entry {number}: frame {frame.pick} is beyond the video's end; it has "
                f"{info.n_frames} frames, counted from 0"
            )
    return ""
