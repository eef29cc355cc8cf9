"""One record as an HTML page: frames, shots, keyframes, key shots, sentences and their alignment.

A table with one column per shot: above its pictures with the importance of each, below one row per
sentence of summary and document, coloured under the shots it tells about. The page loads nothing,
needs no script, and follows the reader's light or dark setting.
"""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.haven.options import SOURCES
from lmms_eval_tasks.haven.records.rating_sheet import Drawn
from lmms_eval_tasks.haven.records.record import Record

if TYPE_CHECKING:
    from PIL.Image import Image


_GOLDEN = 137.508  # degrees of hue from one sentence to the next: neighbours never look alike


def html(record: Record, images: Mapping[int, str]) -> str:
    """The page of a record.

    Args:
        record: any good one; what it lacks is said in the page.
        images: data URIs of the sampled frames by number, from 1; those that are missing are shown
            as empty boxes.
    """
    key = sum(shot.key for shot in record.shots)
    original = f" of {record.n_frames:,}" if record.n_frames is not None else ""
    return filled(
        "picture.html",
        record=record,
        images=images,
        title=f"{record.id}{f' · {record.name}' if record.name else ''}",
        facts=f"{SOURCES.get(record.source, record.source)}: {len(record.frames)} sampled frames"
        f"{original}, {len(record.keyframes)} keyframes, {len(record.shots)} shots, {key} key "
        "shots",
        largest=max((frame.importance or 0.0 for frame in record.frames), default=0.0),
        hue=lambda place: f"{(20 + place * _GOLDEN) % 360:.0f}",
    )


def filled(template: str, **values: Any) -> str:
    """A page from the template of that name beside this file; every text is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = FileSystemLoader(Path(__file__).parent)
    env = Environment(loader=folder, autoescape=True, undefined=StrictUndefined)
    return env.get_template(template).render(values)


THUMBNAIL = 112  # longest side in pixels
LARGE, SMALL = 480, 200  # of a rated frame; of the frames of a shot or a video
OF_SHOT, OF_VIDEO = 8, 16  # pictures shown of each at most
_QUALITY = {THUMBNAIL: 72}


@dataclass(frozen=True)
class Evidence:
    """What a rater sees of a video: data URIs. `why` says why there are none.

    frames: of the rated frames; shot, video: uniform frames of the rated shot and of the video.
    """

    frames: Mapping[int, str]
    shot: Sequence[str]
    video: Sequence[str]
    why: str = ""


def thumbnails(record: Record) -> dict[int, str]:
    """Data URIs of all sampled frames, by number from 1; empty if the video is not there.

    Raises:
        MediaError: the video is there and cannot be decoded.
    """
    if record.path is None or not record.path.is_file():
        return {}
    return _taken(record, list(range(1, len(record.frames) + 1)), THUMBNAIL)


def evidence(drawn: Drawn) -> Evidence:
    """The pictures for rating one video; without any if its file is not there or is broken."""
    record = drawn.record
    if record.path is None or not record.path.is_file():
        return Evidence({}, (), (), f"{record.id}: its video file is not there")
    shot = uniform(record.shots[drawn.shot - 1].frames, OF_SHOT)
    whole = uniform(range(1, len(record.frames) + 1), OF_VIDEO)
    try:
        large = _taken(record, drawn.frames, LARGE)
        small = _taken(record, sorted({*shot, *whole}), SMALL)
    except MediaError as error:
        return Evidence({}, (), (), str(error))
    return Evidence(large, [small[n] for n in shot], [small[n] for n in whole])


def missing(found: Mapping[str, Evidence]) -> list[str]:
    """Videos without pictures, one line each."""
    return [
        f"{one.why}: rate it with a copy of your own beside the form"
        for one in found.values()
        if one.why
    ]


def uniform(numbers: Sequence[int], most: int) -> list[int]:
    """At most `most` of the numbers, evenly spread, the first and the last among them."""
    from lmms_eval_tasks.utils.media import uniform_indices

    return [numbers[place] for place in uniform_indices(len(numbers), most)]


def _taken(record: Record, numbers: Sequence[int], size: int) -> dict[int, str]:
    from lmms_eval_tasks.utils import indexed_frames

    if record.path is None:
        raise MediaError(f"{record.id}: its video file is not there")
    taken = indexed_frames.frames(record.path, [record.picks[n - 1] for n in numbers], size)
    made = {}
    for place, number in enumerate(numbers, 1):
        (image,) = taken.images([place])
        made[number] = data_uri(image, _QUALITY.get(size, 82))
    return made


def data_uri(image: Image, quality: int) -> str:
    """A picture as JPEG inside a URI."""
    file = io.BytesIO()
    image.convert("RGB").save(file, "JPEG", quality=quality)
    return f"data:image/jpeg;base64,{b64encode(file.getvalue()).decode('ascii')}"
