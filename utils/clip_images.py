"""The frames of a made clip as images, for models that take pictures in order and no video."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.colours import to_rgb
from lmms_eval_tasks.utils.video_frames import FULL_RANGE

if TYPE_CHECKING:
    from PIL.Image import Image

    from lmms_eval_tasks.utils.media import Media


def images(made: Media) -> list[Image]:
    """All frames in order, RGB, of the medium's size, with the colours that readers of it see.

    Decoded in this process: the file is one of ours, which its maker has decoded before
    (video_clip.py), and not the user's.

    Args:
        made: a clip or an image of media.make.

    Raises:
        MediaError: the file is gone or was changed; names it and its source.
    """
    import av
    from PIL import Image

    try:
        if made.kind == "image":
            with Image.open(made.path) as image:
                return [image.convert("RGB")]
        with av.open(made.path) as clip:
            frames = list(clip.decode(video=0))
    except (OSError, av.error.FFmpegError) as error:
        raise MediaError(f"{made.path}, made of {made.source}: cannot be read: {error}") from error
    if len(frames) != made.n_frames:
        raise MediaError(
            f"{made.path}, made of {made.source}: has {len(frames)} frames, not {made.n_frames}"
        )
    return [
        Image.fromarray(to_rgb(frame, int(frame.colorspace), frame.color_range == FULL_RANGE))
        for frame in frames
    ]
