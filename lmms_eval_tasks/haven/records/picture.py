"""One record as an HTML page: frames, shots, keyframes, key shots, sentences and alignments.

Each shot is a box with its pictures, their importance and its description. Above the boxes are the
summary and the document, with the shots of each sentence. The page loads nothing and needs no
script.
"""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

from lmms_eval_tasks.haven.options import SOURCES
from lmms_eval_tasks.haven.records.record import Record
from lmms_eval_tasks.report.pages import filled

_GOLDEN = 137.508  # degrees of hue between two sentences, so that neighbours differ in colour
THUMBNAIL = 112  # longest side in pixels
_QUALITY = 80  # JPEG quality of a picture


def html(record: Record, images: Mapping[int, str]) -> str:
    """Return a record's page.

    `images` are those of `taken`; a frame without an image is an empty box.
    """
    original = f" of {record.n_frames:,}" if record.n_frames is not None else ""
    return filled(
        Path(__file__).with_name("picture.html"),
        record=record,
        images=images,
        title=f"{record.id}{f' · {record.name}' if record.name else ''}",
        facts=f"{SOURCES.get(record.source, record.source)}: {len(record.picks)} sampled frames"
        f"{original}, {len(record.keyframes)} keyframes, {len(record.shots)} shots, "
        f"{len(record.key_shots)} key shots",
        largest=max(record.scores, default=0.0),
        hue=lambda place: f"{(20 + place * _GOLDEN) % 360:.0f}",
    )


def data_uris(record: Record) -> dict[int, str]:
    """Return data URIs of a record's sampled frames by number, from 1; {} without its video file.

    Raises:
        MediaError: the video cannot be decoded.
    """
    from lmms_eval_tasks.media import indexed_frames

    if not record.path.is_file():
        return {}
    frames = indexed_frames.load_frames(record.path, record.picks, THUMBNAIL)
    found = {}
    for number in range(1, len(record.picks) + 1):
        file = io.BytesIO()
        frames.images([number])[0].convert("RGB").save(file, "JPEG", quality=_QUALITY)
        uri = b64encode(file.getvalue()).decode("ascii")
        found[number] = f"data:image/jpeg;base64,{uri}"
    return found
