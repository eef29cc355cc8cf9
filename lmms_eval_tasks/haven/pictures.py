"""The pictures of a doc's sampled frames: all of a video's are read in one pass, for all tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.haven import options
from lmms_eval_tasks.utils import indexed_frames
from lmms_eval_tasks.utils.indexed_frames import Frames

if TYPE_CHECKING:
    from PIL.Image import Image


def make(path: str, picks: Sequence[int], size: int) -> Frames:
    """The sampled frames of a video, decoded if they are not kept from another task or run.

    Args:
        path: the video file.
        picks: all of its sampled frames, whatever a task shows of them; ascending and unique.
        size: longest side in pixels.

    Raises:
        MediaError: the video cannot be read, or ends before a pick; names it.
    """
    return indexed_frames.frames(path, picks, size)


def pictures(doc: Mapping[str, Any], numbers: Sequence[int]) -> list[Image]:
    """The pictures of sampled frames by their numbers, from 1, in this order.

    Raises:
        MediaError: they cannot be read; the message names the item.
    """
    if not numbers:
        return []
    try:
        if not doc["video_path"]:
            raise MediaError("its video file is not there")
        return make(doc["video_path"], doc["picks"], options.current().size).images(numbers)
    except MediaError as error:
        # The host cannot pass over an item, so the run ends here; before it, the check has read it.
        raise MediaError(
            f"{doc['id']}: its frames cannot be read any more, so the run ends ({error}); all "
            "frames that are read are kept: start it again, with --allow-bad-items to leave it out"
        ) from None
