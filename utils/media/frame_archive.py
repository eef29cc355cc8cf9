"""Write some frames of a video, by index, as JPEG pictures in one file; the worker's side.

Runs in the child process of media_worker.py. What it writes is read by indexed_frames.py.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import video_frames, video_source
from lmms_eval_tasks.utils.media.colours import to_rgb
from lmms_eval_tasks.utils.media.video_frames import Tally

if TYPE_CHECKING:
    from PIL.Image import Image

    from lmms_eval_tasks.utils.media.video_source import FrameTable

QUALITY = 95
_FULL_CHROMA = 0  # PIL's number for 4:4:4
Size = tuple[int, int]  # width, height in pixels


def member(number: int) -> str:
    """Name in the archive of its `number`-th picture, counted from 1."""
    return f"{number}.jpg"


def fitted(width: int, height: int, longest: int) -> Size:
    """The size of a picture whose longest side may have `longest` pixels; it is never enlarged."""
    if max(width, height) <= longest:
        return width, height
    scale = longest / max(width, height)
    return max(1, round(width * scale)), max(1, round(height * scale))


def write(
    source: str, *, indices: Sequence[int], size: int, out: str, use_decord: bool
) -> dict[str, Any]:
    """Write the frames at `indices` to `out`, an uncompressed zip, one after the other.

    One frame at a time is in memory: it is turned upright, resized once and written when it has
    been decoded.

    Args:
        source: a video file.
        indices: positions among all frames in the order shown, from 0; ascending and unique.
        size: longest side in pixels.
        out: the file to write.
        use_decord: as in video_source.frame_table.

    Returns:
        n_frames of the video, width and height of the pictures, n_decoded.

    Raises:
        MediaError: what is wrong with the file, or that it has no such frame; without its name.
    """
    tally = Tally()
    table, (width, height) = video_source.with_table(
        source,
        use_decord,
        lambda table: _write(source, table, indices, size, out, tally=tally),
    )
    listing = len(table.times) if table.decoded else 0
    return {
        "suffix": ".zip",
        "n_frames": len(table.times),
        "width": width,
        "height": height,
        "n_decoded": listing + tally.frames,
    }


def _write(
    source: str, table: FrameTable, indices: Sequence[int], size: int, out: str, *, tally: Tally
) -> Size:
    """Write the archive anew; returns the size of its pictures.

    Raises:
        MediaError: the table has no such frame, or it cannot be decoded.
        LookupError: the decoder shows other frames than the table lists.
    """
    if indices[-1] >= (total := len(table.times)):
        beyond = next(index for index in indices if index >= total)
        raise MediaError(
            f"has no frame {beyond}: it has {total} frames, counted from 0 to {total - 1}; "
            "the frames asked for may belong to another copy of the video"
        )
    fit: Size | None = None
    turns = written = 0
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for frame, _ in video_frames.decode(source, table, indices, tally):
            if fit is None:
                turns = round(frame.rotation / 90) % 4
                shown = (frame.width, frame.height)
                fit = fitted(*(shown[::-1] if turns % 2 else shown), size)
            written += 1
            # An entry made from its name alone has no time of day in it: equal files, equal bytes.
            archive.writestr(zipfile.ZipInfo(member(written)), _jpeg(frame, turns, fit))
    if fit is None or written != len(indices):
        raise LookupError(f"{written} of {len(indices)} frames found")
    return fit


def _jpeg(frame: Any, turns: int, fit: Size) -> bytes:
    """The frame upright, of size `fit`, as JPEG."""
    data = io.BytesIO()
    _picture(frame, turns, fit).save(data, "JPEG", quality=QUALITY, subsampling=_FULL_CHROMA)
    return data.getvalue()


def _picture(frame: Any, turns: int, fit: Size) -> Image:
    import numpy as np
    from PIL import Image

    rgb = to_rgb(frame, int(frame.colorspace), video_frames.is_full_range(frame))
    if turns:
        rgb = np.ascontiguousarray(np.rot90(rgb, turns))  # counterclockwise, as frame.rotation
    picture = Image.fromarray(rgb)
    if picture.size == fit:  # a later frame of another size gets that of the first
        return picture
    return picture.resize(fit, Image.Resampling.LANCZOS)
