"""Small pictures of a record's frames, to be put into a page as they are."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.haven.rating_sheet import Drawn
from lmms_eval_tasks.haven.record import Record

if TYPE_CHECKING:
    from PIL.Image import Image

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
