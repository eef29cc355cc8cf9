"""One record as an HTML page: frames, shots, keyframes, key shots, sentences and their alignment.

A table with one column per shot: above its pictures with the importance of each, below one row per
sentence of summary and document, coloured under the shots it tells about. The page loads nothing,
needs no script, and follows the reader's light or dark setting.
"""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.haven.options import SOURCES
from lmms_eval_tasks.haven.records.record import Record
from lmms_eval_tasks.report.pages import filled

if TYPE_CHECKING:
    from PIL.Image import Image


_GOLDEN = 137.508  # degrees of hue from one sentence to the next: neighbours never look alike


def html(record: Record, images: Mapping[int, str]) -> str:
    """The page of a record.

    Args:
        images: data URIs of the sampled frames by number, from 1; those that are missing are shown
            as empty boxes.
    """
    key = sum(shot.key for shot in record.shots)
    original = f" of {record.n_frames:,}" if record.n_frames is not None else ""
    return filled(
        Path(__file__).with_name("picture.html"),
        record=record,
        images=images,
        title=f"{record.id}{f' · {record.name}' if record.name else ''}",
        facts=f"{SOURCES.get(record.source, record.source)}: {len(record.frames)} sampled frames"
        f"{original}, {len(record.keyframes)} keyframes, {len(record.shots)} shots, {key} key "
        "shots",
        largest=max((frame.importance or 0.0 for frame in record.frames), default=0.0),
        hue=lambda place: f"{(20 + place * _GOLDEN) % 360:.0f}",
    )


THUMBNAIL = 112  # longest side in pixels
_QUALITY = 80  # of a picture as JPEG


def thumbnails(record: Record) -> dict[int, str]:
    """Data URIs of all sampled frames, by number from 1; empty if the video is not there.

    Raises:
        MediaError: the video is there and cannot be decoded.
    """
    if record.path is None or not record.path.is_file():
        return {}
    return taken(record, list(range(1, len(record.frames) + 1)), THUMBNAIL)


def taken(record: Record, numbers: Sequence[int], size: int) -> dict[int, str]:
    """Data URIs of sampled frames by number, at most `size` pixels long."""
    from lmms_eval_tasks.utils.media import indexed_frames

    if record.path is None:
        raise MediaError(f"{record.id}: its video file is not there")
    frames = indexed_frames.frames(record.path, [record.picks[n - 1] for n in numbers], size)
    images = (frames.images([place])[0] for place in range(1, len(numbers) + 1))
    return {number: data_uri(image) for number, image in zip(numbers, images, strict=True)}


def data_uri(image: Image) -> str:
    """A picture as JPEG inside a URI."""
    file = io.BytesIO()
    image.convert("RGB").save(file, "JPEG", quality=_QUALITY)
    return f"data:image/jpeg;base64,{b64encode(file.getvalue()).decode('ascii')}"
