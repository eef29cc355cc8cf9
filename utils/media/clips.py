"""A clip that a doc shows: as a muted file, or as uniform frames in order (`--frames N`).

A clip travels as a muted file, from which the model's class takes as many frames as it does; or as
N images. A doc says which: `video_path`, `start` and `end` in seconds (None and None is the whole
file), `n_frames` (0 is the file). No sound leaves this module.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import recipes, segments, video, video_checks

if TYPE_CHECKING:
    from PIL.Image import Image

Doc = Mapping[str, Any]

# Seconds for taking frames: the packets of a whole movie are read, which may come over a network.
_PATIENCE = 1800.0


@dataclass(frozen=True)
class Shown:
    """A clip that is handed over, as a file or as frames; seconds of the source, size in pixels.

    path: a muted mp4 file, to hand over; "" where frames are.
    frames: the clip of uniform frames that `images` takes apart, else None.
    n_frames: in the file, or how many images there are: a shorter clip gives all it has.
    """

    path: str
    frames: recipes.Media | None
    start: float
    end: float
    duration: float
    n_frames: int
    width: int
    height: int


def shown_of(doc: Doc) -> Shown:
    """What is shown of the doc's source, made once for all questions and conditions.

    Raises:
        MediaError: the video cannot be read or has no such window; the message names it.
    """
    try:
        return make(doc["video_path"], doc["start"], doc["end"], doc["n_frames"])
    except MediaError as error:
        # The host cannot pass over an item, so the run ends here; before it, the check has cut it.
        raise MediaError(
            f"{doc['id']}: its clip cannot be made any more, so the run ends ({error}); all clips "
            "that are made are kept: start it again, with --allow-bad-items to leave it out"
        ) from None


@functools.lru_cache(maxsize=4096)
def make(path: str, start: float | None, end: float | None, n_frames: int) -> Shown:
    """The clip of a window, from the cache if it is there; None and None is the whole file.

    Args:
        path: a video file.
        start, end: in seconds.
        n_frames: uniform frames instead of the file; 0 is the file.

    Raises:
        MediaError: it cannot be read or has no such window.
    """
    if n_frames and start is None and end is None:
        # Of a whole movie no copy is needed to take frames from it.
        return _of_frames(_taken(path, n_frames), 0.0, video_checks.probe(path).duration)
    cut = segments.segment(path, start, end, sound=False)
    if n_frames:
        return _of_frames(_taken(cut.video, n_frames), cut.start, cut.end)
    return Shown(
        cut.video, None, cut.start, cut.end, cut.duration, cut.n_frames, cut.width, cut.height
    )


def _taken(path: str, n_frames: int) -> recipes.Media:
    return recipes.make(path, recipes.Recipe("uniform", n_frames), time_limit=_PATIENCE)


def _of_frames(taken: recipes.Media, start: float, end: float) -> Shown:
    return Shown("", taken, start, end, end - start, taken.n_frames, taken.width, taken.height)


def visuals(doc: Doc) -> list[str] | list[Image]:
    """The muted file's path alone, or the frames in order; needs a doc that shows something.

    Raises:
        MediaError: as `shown_of`.
    """
    shown = shown_of(doc)
    return [shown.path] if shown.frames is None else images(shown.frames)


def images(made: recipes.Media) -> list[Image]:
    """All frames in order, RGB, of the medium's size, with the colours that readers of it see.

    Decoded in this process: the file is one of ours, not the user's.

    Args:
        made: a clip or an image of recipes.make.

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
    return [Image.fromarray(video.rgb(frame)) for frame in frames]


def log(doc: Doc) -> dict[str, Any]:
    """What was handed over, in plain types.

    `kind` is video (a file: the model's class takes frames from its `n_frames`) or frames (that
    many images, of `asked` for). Times are seconds of the source, the size is in pixels.

    Raises:
        MediaError: as `shown_of`.
    """
    shown = shown_of(doc)
    return {
        "kind": "video" if shown.frames is None else "frames",
        "start": shown.start,
        "end": shown.end,
        "duration": shown.duration,
        "n_frames": shown.n_frames,
        "asked": doc["n_frames"],
        "size": [shown.width, shown.height],
    }
