"""Pictures of a video's frames at given indices, decoded once and cached.

    >>> taken = frames("videos/5.mp4", range(0, 900, 15), size=512)
    >>> taken.images([1, 60])  # the first and the last of them
    [<PIL.Image.Image image mode=RGB size=512x288 ...>, <PIL.Image.Image ...>]

All frames are taken in one pass through the file, turned upright and resized once. The cache keeps
them as an uncompressed zip of JPEG pictures, from which each task opens those that it needs.
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

# Increase this if a file for the same source, indices and size can change.
_VERSION = 3


@dataclass(frozen=True)
class FrameArchive:
    """The cached pictures of a video's frames, upright; sizes in pixels.

    path: a zip of JPEG files (quality 95, 4:4:4).
    source: the video.
    indices: the frames' indices among all that the video shows, from 0.
    n_frames: number of frames of the video.
    """

    path: str
    source: str
    indices: tuple[int, ...]
    n_frames: int
    width: int
    height: int

    def images(self, numbers: Iterable[int]) -> list[Image]:
        """Return the pictures with these numbers, in their order, from 1.

        Picture 1 is the frame of the first index. A picture is RGB and carries no file name, number
        or other note.

        Raises:
            MediaError: there is no picture of that number, or the file in the cache is missing or
                was changed; the message names the file and its source.
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
            image.info.clear()  # remove PIL's notes about the JPEG file
        return found


def load_frames(source: str | Path, indices: Sequence[int], size: int) -> FrameArchive:
    """Return the frames of `source` at `indices`, from the cache if they exist.

    Args:
        source: a video file.
        indices: positions among all frames in the order shown, from 0; ascending and unique. They
            count the frames that video_checks.probe counts.
        size: longest side of a picture in pixels; smaller pictures are not enlarged.

    Raises:
        MediaError: the source cannot be read or has no frame of an index, or the result cannot be
            written. The message is one line that names the source.
        ValueError: there is no index, an index is negative, or they do not ascend; size below 1.
    """
    asked = tuple(int(index) for index in indices)
    if not asked or asked[0] < 0 or any(b <= a for a, b in pairwise(asked)) or size < 1:
        raise ValueError("expected ascending indices of frames from 0, and a size of 1 or more")
    name, work = f"frames-{len(asked)}-{size}", (__name__, "write_frames")
    entry = cache.cached_files(source, name, _VERSION, work, indices=asked, size=size)
    return FrameArchive(path=entry.paths[".zip"], source=entry.source, indices=asked, **entry.facts)


def fitted(width: int, height: int, longest: int) -> tuple[int, int]:
    """Return the size of a picture whose longest side is reduced to `longest` pixels.

    A smaller picture keeps its size.
    """
    scale = min(1.0, longest / max(width, height))
    return max(1, round(width * scale)), max(1, round(height * scale))


# --- in the child process -----------------------------------------------------------------------


def write_frames(source: str, out: str, indices: Sequence[int], size: int) -> dict[str, object]:
    """Write the frames at `indices` to the archive `out`.zip.

    Raises:
        MediaError: the file cannot be used, or has no such frame; the message lacks its name.
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
        # Written at once, since an hour of pictures does not fit into memory.
        file = Path(next(names))
        picture.save(file, "JPEG", quality=95, subsampling=0)  # PIL's number for 4:4:4
        return fit, file

    table, made = video.pick(source, choose, take)
    with zipfile.ZipFile(f"{out}.zip", "w", zipfile.ZIP_STORED) as archive:
        for number, (_, file) in enumerate(made, 1):
            # An entry that is made from its name has no time of day, so equal files have equal
            # bytes.
            archive.writestr(zipfile.ZipInfo(f"{number}.jpg"), file.read_bytes())
    (width, height), _ = made[0]
    return {"files": [".zip"], "n_frames": len(table.times), "width": width, "height": height}
