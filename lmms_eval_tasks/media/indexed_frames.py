"""Frames of a video at given indices as pictures, decoded once and kept.

    >>> taken = frames("videos/5.mp4", range(0, 900, 15), size=512)
    >>> taken.images([1, 60])  # the first and the last of them
    [<PIL.Image.Image image mode=RGB size=512x288 ...>, <PIL.Image.Image ...>]

All frames are taken in one pass through the file, turned upright, resized once, and kept in the
cache as one uncompressed zip of JPEG pictures, from which each task opens those that it needs.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.media import cache
from lmms_eval_tasks.utils.media import video

if TYPE_CHECKING:
    from av.video.frame import VideoFrame
    from PIL.Image import Image

# Raise when a made file can change for the same source, indices and size.
_VERSION = 3


@dataclass(frozen=True)
class FrameArchive:
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
            MediaError: there is no picture of that number, or the file in the cache is gone or was
                changed; names it and its source.
        """
        import PIL.Image

        try:
            with zipfile.ZipFile(self.path) as archive:
                files = [io.BytesIO(archive.read(f"{number}.jpg")) for number in numbers]
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise MediaError(
                f"{self.path}, made of {self.source}: cannot be read: {error}; "
                "delete the file, and it is made again"
            ) from error
        found = [PIL.Image.open(file).convert("RGB") for file in files]
        for image in found:
            image.info.clear()  # what PIL notes about a JPEG file stays behind
        return found


def frames(source: str | Path, indices: Sequence[int], size: int) -> FrameArchive:
    """The frames of `source` at `indices`, from the cache if they are there.

    Args:
        source: a video file.
        indices: positions among all frames in the order shown, from 0; ascending and unique.
            They count the frames that video_checks.probe counts.
        size: longest side of a picture in pixels at most; smaller ones are not enlarged.

    Raises:
        MediaError: the source cannot be read, or has no frame of an index, or the result cannot be
            written; one line, which names the source.
        ValueError: no index, a negative one, or they do not ascend; size below 1.
    """
    asked = tuple(int(index) for index in indices)
    if not asked or asked[0] < 0 or any(b <= a for a, b in pairwise(asked)) or size < 1:
        raise ValueError("expected ascending indices of frames from 0, and a size of 1 or more")
    name, work = f"frames-{len(asked)}-{size}", (__name__, "write")
    entry = cache.kept(source, name, _VERSION, work, indices=asked, size=size)
    return FrameArchive(path=entry.paths[".zip"], source=entry.source, indices=asked, **entry.facts)


def fitted(width: int, height: int, longest: int) -> tuple[int, int]:
    """The size of a picture whose longest side may have `longest` pixels; it is never enlarged."""
    scale = min(1.0, longest / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))


# --- in the child process -----------------------------------------------------------------------


def write(source: str, out: str, indices: Sequence[int], size: int) -> dict[str, object]:
    """Write the frames at `indices` to the archive `out`.zip.

    Raises:
        MediaError: what is wrong with the file, or that it has no such frame; without its name.
    """
    from PIL import Image

    def choose(total: int) -> Sequence[int]:
        if indices[-1] >= total:
            beyond = next(index for index in indices if index >= total)
            raise MediaError(
                f"has no frame {beyond}: it has {total} frames, counted from 0 "
                f"to {total - 1}; the frame numbers may belong to another copy "
                "of the video"
            )
        return indices

    names = (f"{out}-{number}.jpg" for number in count())

    def take(frame: VideoFrame) -> tuple[tuple[int, int], Path]:
        picture = Image.fromarray(video.turn(frame)(video.rgb(frame)))
        fit = fitted(*picture.size, size)
        if picture.size != fit:
            picture = picture.resize(fit, Image.Resampling.LANCZOS)
        file = Path(next(names))  # hours of them would not fit into memory
        picture.save(file, "JPEG", quality=95, subsampling=0)  # PIL's number for 4:4:4
        return fit, file

    table, made = video.pick(source, choose, take)
    with zipfile.ZipFile(f"{out}.zip", "w", zipfile.ZIP_STORED) as archive:
        for number, (_, file) in enumerate(made, 1):
            # An entry made from its name alone has no time of day in it: equal files, equal bytes.
            archive.writestr(zipfile.ZipInfo(f"{number}.jpg"), file.read_bytes())
    (width, height), _ = made[0]
    return {"files": [".zip"], "n_frames": len(table.times), "width": width, "height": height}
