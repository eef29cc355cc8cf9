"""Frames of a video at given indices as pictures, decoded once and kept.

    >>> taken = frames("videos/5.mp4", range(0, 900, 15), size=512)
    >>> taken.images([1, 60])  # the first and the last of them
    [<PIL.Image.Image image mode=RGB size=512x288 ...>, <PIL.Image.Image ...>]

All frames are taken in one pass through the file, in a child process with a time limit
(media_worker.py), each resized once, and kept in the cache as one uncompressed zip of JPEG
pictures. Whoever asks for the same frames of the same video shares that one decoding, and opens
the pictures it needs alone.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import frame_archive, media_cache, worker_call

if TYPE_CHECKING:
    from PIL.Image import Image

# Raise when a made file can change for the same source, indices and size.
_VERSION = 1
# Seconds: ten minutes of 1080p take about three on a busy core.
_PATIENCE = 1800.0


@dataclass(frozen=True)
class Frames:
    """Pictures of a video's frames, in the cache; sizes in pixels, upright.

    path: a zip of JPEG files (quality 95, 4:4:4).
    source: the video.
    indices: of the frames among all that the video shows, from 0.
    n_frames: of the video.
    """

    path: str
    source: str
    indices: tuple[int, ...]
    n_frames: int
    width: int
    height: int

    def images(self, numbers: Iterable[int]) -> list[Image]:
        """The pictures with these numbers, in their order: 1 is the frame of the first index.

        RGB and nothing else: no file name, number or other note travels with a picture.

        Raises:
            ValueError: there is no picture of that number.
            MediaError: the file in the cache is gone or was changed; names it and its source.
        """
        wanted = list(numbers)
        if wrong := [number for number in wanted if not 1 <= number <= len(self.indices)]:
            raise ValueError(f"picture {wrong[0]} of {len(self.indices)}")
        try:
            with zipfile.ZipFile(self.path) as archive:
                return [_image(archive.read(frame_archive.member(number))) for number in wanted]
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise MediaError(
                f"{self.path}, made of {self.source}: cannot be read: {error}; delete it, and it "
                "is made again"
            ) from error


def frames(
    source: str | Path,
    indices: Sequence[int],
    size: int,
    cache: Path | None = None,
    time_limit: float = _PATIENCE,
) -> Frames:
    """The frames of `source` at `indices`, from the cache if they are there.

    Args:
        source: a video file.
        indices: positions among all frames in the order shown, from 0; ascending and unique.
            They count the frames that probes.probe counts.
        size: longest side of a picture in pixels at most; smaller ones are not enlarged.
        cache: folder for results, created if absent; default `media` in the user's cache folder.
        time_limit: seconds for making it, and again at most for waiting until another process that
            makes the same frames is done.

    Raises:
        MediaError: the source cannot be read, or has no frame of an index, or the result cannot be
            written; one line, which names the source.
        ValueError: no index, a negative one, or they do not ascend; size below 1.
    """
    asked = tuple(int(index) for index in indices)
    if not asked or asked[0] < 0 or any(b <= a for a, b in pairwise(asked)) or size < 1:
        raise ValueError("expected ascending indices of frames from 0, and a size of 1 or more")
    video = worker_call.source_file(source)
    job = {"do": "frames", "source": str(video), "indices": asked, "size": size}
    folder, _, entry = media_cache.kept(
        video,
        cache,
        recipe=f"frames-{len(asked)}-{size}",
        version=_VERSION,
        asked=f" {','.join(map(str, asked))}",
        patience=time_limit,
        make=lambda *at: media_cache.write_one(job, at, time_limit, decord=True),
    )
    return Frames(
        path=str(folder / entry["file"]),
        source=str(video),
        indices=asked,
        n_frames=entry["n_frames"],
        width=entry["width"],
        height=entry["height"],
    )


def _image(data: bytes) -> Image:
    """Pixels alone: what PIL notes about a JPEG file stays behind."""
    import PIL.Image

    with PIL.Image.open(io.BytesIO(data)) as file:
        image: Image = file.convert("RGB")
    image.info.clear()
    return image
