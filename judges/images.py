"""Images for judges that see: pixels or files as parts of a chat message, frames of a video."""

from __future__ import annotations

import io
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import JudgeError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image

# How files begin that every endpoint takes as they are; (offset, bytes) -> media type.
_MAGIC = {
    (0, b"\xff\xd8\xff"): "image/jpeg",
    (0, b"\x89PNG\r\n\x1a\n"): "image/png",
    (8, b"WEBP"): "image/webp",
}
_TAIL = 4096  # bytes: some programs write a little behind the end
_KEPT_MODES = ("RGB", "RGBA", "L")
_FULL_RANGE = 2  # AVCOL_RANGE_JPEG


def image_part(image: Any, max_side: int | None = None) -> dict[str, Any]:
    """An image as OpenAI's `image_url` part with a data URL.

    Pixels become PNG. A JPEG, PNG or WebP file goes over byte for byte, unless it is larger than
    `max_side`; any other file that Pillow reads becomes PNG. The same image gives the same bytes
    with the same versions of Pillow and zlib.

    Args:
        image: a PIL image, an array of shape (height, width, 3) and type uint8 in RGB, or the path
            of an image file.
        max_side: the longer side in pixels at most; larger images are reduced, none is enlarged.

    Raises:
        JudgeError: anything else, or a file that is no readable image.
    """
    if max_side is not None and max_side < 1:
        raise JudgeError(f"max_side={max_side}: expected at least 1 pixel")
    if isinstance(image, (str, Path)):
        return _file_part(Path(image), max_side)
    return _part("image/png", _png(_pixels(image), max_side))


def video_frames(path: str | Path, n: int, cache: Path | None = None) -> list[NDArray[np.uint8]]:
    """`n` uniform frames of a video, in order, each RGB of shape (height, width, 3).

    The same frames that models get (utils/media.py): taken from the cached clip, so that only the
    first call for a video decodes it. A video with fewer frames gives all of them.

    Args:
        path: the video file.
        n: how many frames, at least 1.
        cache: media's folder for clips; None is the usual one.

    Raises:
        MediaError: the video cannot be read.
        JudgeError: n is below 1.
    """
    import numpy as np
    from PIL import Image

    from lmms_eval_tasks.utils import media
    from lmms_eval_tasks.utils.colours import to_rgb
    from lmms_eval_tasks.utils.video_source import open_video

    if n < 1:
        raise JudgeError(f"{path}: {n} frames of it: expected at least 1")
    clip = media.make(path, media.Recipe("uniform", n), cache)
    if clip.kind == "image":
        with Image.open(clip.path) as still:
            return [np.asarray(still.convert("RGB"))]
    with open_video(clip.path) as (container, stream):
        return [
            to_rgb(frame, int(frame.colorspace), full_range=int(frame.color_range) == _FULL_RANGE)
            for frame in container.decode(stream)
        ]


def _is_whole(kind: str, content: bytes) -> bool:
    """Whether a file has its end: the host tells Pillow, for the whole process, not to mind."""
    if kind == "image/webp":
        return int.from_bytes(content[4:8], "little") + 8 <= len(content)
    end = {"image/jpeg": b"\xff\xd9", "image/png": b"IEND"}.get(kind, b"")
    return end in content[-_TAIL:]


def _file_part(path: Path, max_side: int | None) -> dict[str, Any]:
    from PIL import Image

    try:
        content = path.read_bytes()
        with Image.open(io.BytesIO(content)) as image:
            kind = next(
                (k for (at, mark), k in _MAGIC.items() if content[at:].startswith(mark)), ""
            )
            if not _is_whole(kind, content):
                raise ValueError("it is cut short")
            image.load()
            if kind and (max_side is None or max(image.size) <= max_side):
                return _part(kind, content)
            return _part("image/png", _png(image, max_side))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise JudgeError(f"{path}: no readable image file ({error})") from error


def _pixels(image: Any) -> Image.Image:
    import numpy as np
    from PIL import Image

    if isinstance(image, Image.Image):
        return image
    if not isinstance(image, np.ndarray):
        raise JudgeError(
            f"{type(image).__name__} is no image: expected a PIL image, an array or a path"
        )
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or image.size == 0:
        raise JudgeError(
            f"an array of shape {image.shape} and type {image.dtype} is no image: expected "
            "(height, width, 3) and uint8"
        )
    return Image.fromarray(np.ascontiguousarray(image))


def _png(image: Image.Image, max_side: int | None) -> bytes:
    from PIL import Image

    if image.mode not in _KEPT_MODES:
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    if max_side is not None and max(image.size) > max_side:
        scale = max_side / max(image.size)
        width, height = (max(1, round(side * scale)) for side in image.size)
        image = image.resize((width, height), Image.Resampling.LANCZOS)
    plain = image.copy()
    plain.info = {}  # comments, profiles and dates are no part of the pixels
    file = io.BytesIO()
    plain.save(file, "PNG")
    return file.getvalue()


def _part(kind: str, content: bytes) -> dict[str, Any]:
    url = f"data:{kind};base64,{b64encode(content).decode('ascii')}"
    return {"type": "image_url", "image_url": {"url": url}}
