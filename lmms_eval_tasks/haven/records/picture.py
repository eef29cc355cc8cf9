"""One record as an HTML page: frames, shots, keyframes, key shots, sentences and their alignment.

A box for each shot with its pictures, their importance, and what is said of it; above, summary and
document with the shots that each sentence tells about. The page loads nothing and needs no script.
"""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path

from lmms_eval_tasks.haven.options import SOURCES
from lmms_eval_tasks.haven.records.record import Record
from lmms_eval_tasks.report.pages import filled

_GOLDEN = 137.508  # degrees of hue from one sentence to the next: neighbours never look alike
THUMBNAIL = 112  # longest side in pixels
_QUALITY = 80  # of a picture as JPEG


def html(record: Record, images: Mapping[int, str]) -> str:
    """The page of a record; images that are missing (`taken`) are shown as empty boxes."""
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
    """Data URIs of its sampled frames by number, from 1; none if its video is not there.

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
