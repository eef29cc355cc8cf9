"""The clip that a doc shows: a muted file, or uniform frames in order (`--frames N`).

From a muted file, the model's class takes frames by its own rule. A doc's fields describe the clip:
`video_path`, `start` and `end` in seconds (both None for the whole file), and `n_frames` (0 for the
file). This module returns no sound.
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
def make_clip(
    path: str, start: float | None, end: float | None, n_frames: int
) -> tuple[segments.CutSegment | clip_specs.ClipFile, dict[str, object]]:
    """Return the clip of a window, from the cache if it exists, and its description for the log.

    Args:
        path: a video file.
        start: seconds; None for `start` and `end` means the whole file.
        end: seconds.
        n_frames: number of uniform frames in place of the file; a shorter clip gives all its
            frames. 0 means the file.

    Raises:
        MediaError: the file cannot be read or has no such window.
    """
    clip: segments.CutSegment | clip_specs.ClipFile
    if n_frames and start is None and end is None:
        # Frames of a whole movie need no copy of the movie.
        source, first, last = path, 0.0, video_checks.probe(path).duration
    else:
        clip = segments.segment(path, start, end, sound=False)
        source, first, last, duration = clip.video, clip.start, clip.end, clip.duration
    if n_frames:
        clip, duration = (
            clip_specs.make_clip_file(source, clip_specs.MediaSpec("uniform", n_frames)),
            last - first,
        )
    return clip, {
        "kind": "frames" if n_frames else "video",
        "start": first,
        "end": last,
        "duration": duration,
        "n_frames": clip.n_frames,
        "asked": n_frames,
        "size": [clip.width, clip.height],
    }


def visuals(doc: Doc) -> list[str] | list[Image]:
    """Return the muted file's path in a list, or the frames in order.

    Args:
        doc: a doc that shows a video.

    Raises:
        MediaError: the video cannot be read or has no such window; the message names it.
    """
    made, _ = _made(doc)
    return [made.video] if isinstance(made, segments.CutSegment) else images(made)


def log(doc: Doc) -> dict[str, object]:
    """Return the description of the media in a doc's prompt, in plain types, for the log.

    `kind` is video (a file with `n_frames`, from which the model's class takes frames) or frames
    (that many images, of `asked` ones). Times are seconds of the source; the size is in pixels.

    Raises:
        MediaError: as in `visuals`.
    """
    return dict(_made(doc)[1])


def _made(doc: Doc) -> tuple[segments.CutSegment | clip_specs.ClipFile, dict[str, object]]:
    try:
        return make_clip(doc["video_path"], doc["start"], doc["end"], doc["n_frames"])
    except MediaError as error:
        # lmms-eval cannot skip an item, so the run ends here; the check before the run did cut this
        # clip.
        raise MediaError(
            f"{doc['id']}: its clip can no longer be made, so the run ends "
            f"({error}); finished clips are kept: run the same command again "
            "with --allow-bad-items to skip this item"
        ) from None


def images(clip_file: clip_specs.ClipFile) -> list[Image]:
    """Return all frames of a clip or an image in order, as RGB with the colours that readers see.

    They are decoded in this process, since the file is ours and not the user's.

    Raises:
        MediaError: the file is missing or was changed; the message names it and its source.
    """
    import av
    from PIL import Image

    try:
        if clip_file.kind == "image":
            with Image.open(clip_file.path) as image:
                return [image.convert("RGB")]
        with av.open(clip_file.path) as clip:
            frames = list(clip.decode(video=0))
        if len(frames) != clip_file.n_frames:
            raise OSError(f"has {len(frames)} frames, not {clip_file.n_frames}")
    except (OSError, av.error.FFmpegError) as error:
        raise MediaError(
            f"{clip_file.path}, made of {clip_file.source}: cannot be read: {error}; "
            "start the run again, which makes it again"
        ) from error
    return [Image.fromarray(video.rgb(frame)) for frame in frames]
