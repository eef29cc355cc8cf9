"""A clip that a doc shows: as a muted file, or as uniform frames in order (`--frames N`).

A clip travels as a muted file, from which the model's class takes as many frames as it does; or as
N images. A doc says which: `video_path`, `start` and `end` in seconds (None and None is the whole
file), `n_frames` (0 is the file). No sound leaves this module.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.media import clip_specs, segments, video_checks
from lmms_eval_tasks.utils.json_files import Json
from lmms_eval_tasks.utils.media import video

if TYPE_CHECKING:
    from PIL.Image import Image

Doc = Mapping[str, Json]


@functools.lru_cache(maxsize=4096)
def make(
    path: str, start: float | None, end: float | None, n_frames: int
) -> tuple[segments.CutSegment | clip_specs.ClipFile, dict[str, object]]:
    """The clip of a window, from the cache if it is there, and what the log tells of it.

    Args:
        path: a video file.
        start, end: in seconds; None and None is the whole file.
        n_frames: uniform frames instead of the file, all that a shorter clip has; 0 is the file.

    Raises:
        MediaError: it cannot be read or has no such window.
    """
    made: segments.CutSegment | clip_specs.ClipFile
    if n_frames and start is None and end is None:
        # Of a whole movie no copy is needed to take frames from it.
        source, first, last = path, 0.0, video_checks.probe(path).duration
    else:
        made = segments.segment(path, start, end, sound=False)
        source, first, last, duration = made.video, made.start, made.end, made.duration
    if n_frames:
        made, duration = (
            clip_specs.make(source, clip_specs.MediaSpec("uniform", n_frames)),
            last - first,
        )
    return made, {
        "kind": "frames" if n_frames else "video",
        "start": first,
        "end": last,
        "duration": duration,
        "n_frames": made.n_frames,
        "asked": n_frames,
        "size": [made.width, made.height],
    }


def visuals(doc: Doc) -> list[str] | list[Image]:
    """The muted file's path alone, or the frames in order; needs a doc that shows something.

    Raises:
        MediaError: the video cannot be read or has no such window; the message names it.
    """
    made, _ = _made(doc)
    return [made.video] if isinstance(made, segments.CutSegment) else images(made)


def log(doc: Doc) -> dict[str, object]:
    """The media that the model got, in plain types, for the log.

    `kind` is video (a file: the model's class takes frames from its `n_frames`) or frames (that
    many images, of `asked` for). Times are seconds of the source, the size is in pixels.

    Raises:
        MediaError: as `visuals`.
    """
    return dict(_made(doc)[1])


def _made(doc: Doc) -> tuple[segments.CutSegment | clip_specs.ClipFile, dict[str, object]]:
    try:
        return make(doc["video_path"], doc["start"], doc["end"], doc["n_frames"])
    except MediaError as error:
        # The host cannot pass over an item, so the run ends here; before it, the check has cut it.
        raise MediaError(
            f"{doc['id']}: its clip can no longer be made, so the run ends "
            f"({error}); finished clips are kept: run the same command again "
            "with --allow-bad-items to skip this item"
        ) from None


def images(made: clip_specs.ClipFile) -> list[Image]:
    """All frames of a clip or an image in order, RGB, with the colours that readers of it see.

    Decoded in this process: the file is one of ours, not the user's.

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
        if len(frames) != made.n_frames:
            raise OSError(f"has {len(frames)} frames, not {made.n_frames}")
    except (OSError, av.error.FFmpegError) as error:
        raise MediaError(
            f"{made.path}, made of {made.source}: cannot be read: {error}; "
            "start the run again, which makes it again"
        ) from error
    return [Image.fromarray(video.rgb(frame)) for frame in frames]
