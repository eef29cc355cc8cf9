"""Clips of a video for a model, made once and cached (docs/design.md).

    >>> clip = make("videos/5.mp4", MediaSpec("uniform", 32))
    >>> clip.path, clip.n_frames
    ('.../media/uniform-32-3f....mp4', 32)

A clip has the source's size and duration. Each frame keeps the time at which the source shows it,
counted from the first frame. So "32 uniform frames" are the same 32 frames for every model, and a
reader decodes 32 frames for a question instead of all.

Every frame is a key frame. Up to `_LOSSLESS` bytes, frames are encoded without loss: 8-bit 4:2:0
bit for bit; other formats, and odd sizes, as the RGB that readers decode. Larger clips are encoded
at 46 dB or better.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks.media import cache
from lmms_eval_tasks.utils.json_files import Json
from lmms_eval_tasks.utils.media import mp4, video

if TYPE_CHECKING:
    from av.video.frame import VideoFrame

# Increase this if a file for the same source and specification can change.
_VERSION = 4
# A clip that repeats the first frame has four frames, the minimum of Qwen's reader
# (FPS_MIN_FRAMES), at the two frames a second that this reader samples.
STILL_FRAMES, STILL_RATE = 4, 2.0
_LOSSLESS = 32 * 2**20  # bytes of samples; enough for 32 frames of 4:2:0 at up to 854 x 480


@dataclass(frozen=True)
class MediaSpec:
    """The specification of a medium that is made from a video.

    kind: `uniform` (n_frames frames), `first_frame`, or `black` (the uniform clip, painted black).
    n_frames: at least 1; a video with fewer frames gives all of them. first_frame ignores it.
    still: for first_frame only: a clip of the repeated frame (4 frames, 2 s) instead of an image,
        for readers that take no images. Without it, a single frame is an image, be it a first
        frame, n_frames = 1 or a video of one frame: Qwen's reader fails on a clip of one frame.
    """

    kind: str
    n_frames: int = 32
    still: bool = False

    @property
    def name(self) -> str:
        """The name of the specification, such as `uniform-32` or `first_frame-still`."""
        if self.kind == "first_frame":
            return f"first_frame{'-still' * self.still}"
        return f"{self.kind}-{self.n_frames}"


@dataclass(frozen=True)
class ClipFile:
    """A file for a model: `image` or `video`, with its size in pixels, source and specification."""

    path: str
    source: str
    recipe: str
    kind: str
    n_frames: int
    width: int
    height: int


def make_clip_file(source: str | Path, recipe: MediaSpec) -> ClipFile:
    """Return the file that `recipe` makes of `source`, from the cache if it exists.

    Raises:
        MediaError: the source cannot be read or the result cannot be written; the message names the
            source.
    """
    work = (__name__, "write_clip")
    entry = cache.cached_files(source, recipe.name, _VERSION, work, recipe=asdict(recipe))
    (made,) = entry.paths.values()
    facts = (entry.facts[name] for name in ("kind", "n_frames", "width", "height"))
    return ClipFile(made, entry.source, recipe.name, *facts)


def uniform_indices(n_total: int, n: int) -> list[int]:
    """Return the indices of `n` uniform frames among `n_total`: numpy.linspace rounded down.

    lmms-eval uses the same rule. If there are fewer than `n` frames, all are returned.

    Raises:
        ValueError: n_total or n is below 1.
    """
    import numpy as np

    if n_total < 1 or n < 1:
        raise ValueError(f"cannot take {n} of {n_total} frames")
    indices: list[int] = np.linspace(0, n_total - 1, min(n, n_total)).astype(int).tolist()
    return indices


# --- in the child process -----------------------------------------------------------------------


def write_clip(source: str, out: str, recipe: dict[str, Json]) -> dict[str, object]:
    """Write the recipe's result to `out` with an ending, and return the fields of ClipFile.

    Black is painted over the frames of the uniform recipe, so that both have the same times.

    Raises:
        MediaError: the file cannot be used; the message lacks the file's name.
    """
    import numpy as np
    from PIL import Image

    wanted = MediaSpec(**recipe)
    count = 1 if wanted.kind == "first_frame" else wanted.n_frames
    table, taken = video.pick(source, lambda total: uniform_indices(total, count), _upright)
    (look, _), planes = taken[0], [one for _, one in taken]
    if wanted.kind == "black":  # exactly 0 in RGB
        levels = (0, 0, 0) if look.rgb else (16, 128, 128)
        black = [np.full_like(one, level) for one, level in zip(planes[0], levels, strict=True)]
        look, planes = mp4.Look(look.width, look.height, look.rgb), [black] * len(planes)
    facts: dict[str, object] = {"width": look.width, "height": look.height}
    if len(planes) == 1 and not wanted.still:
        Image.fromarray(video.rgb(mp4.frame_of(planes[0], look))).save(f"{out}.png")
        return {**facts, "files": [".png"], "kind": "image", "n_frames": 1}
    if wanted.still:
        planes = planes * STILL_FRAMES
        times, duration = [n / STILL_RATE for n in range(STILL_FRAMES)], STILL_FRAMES / STILL_RATE
    else:
        indices = uniform_indices(len(table.times), count)
        times, duration = [table.seconds(index) for index in indices], table.duration
    size = sum(plane.size for one in planes for plane in one)
    options = mp4.LOSSLESS if wanted.kind != "black" and size <= _LOSSLESS else mp4.CLIP
    shown = zip([*times, duration], [*planes, None], repeat(True), strict=False)
    mp4.write_encoded(f"{out}.mp4", look, options, shown)
    return {**facts, "files": [".mp4"], "kind": "video", "n_frames": len(times)}


def _upright(frame: VideoFrame) -> tuple[mp4.Look, mp4.Planes]:
    """Return a frame's planes, turned upright; as RGB if 4:2:0 cannot hold the frame."""
    import numpy as np

    turn = video.turn(frame)
    size = turn.size(frame.width, frame.height)
    if frame.format.name not in video.PLAIN or frame.width % 2 or frame.height % 2:
        look = mp4.Look(*size, rgb=True)
        planes = list(np.moveaxis(video.rgb(frame)[..., [1, 2, 0]], 2, 0))
    else:
        full = video.is_full_range(frame)
        look = mp4.Look(*size, full_range=full, matrix=int(frame.colorspace))
        planes = video.planes(frame)
    return look, [turn(plane) for plane in planes]
