"""Media recipes: what a model is given of a video, made once and kept (architecture, decision 4).

    >>> clip = make("videos/5.mp4", Recipe("uniform", 32))
    >>> clip.path, clip.n_frames, clip.fps
    ('.../media/uniform-32-3f....mp4', 32, 1.0666666666666667)

A clip has the source's size and duration, and each frame keeps the time at which the source shows
it, counted from the first frame. So "32 uniform frames" are the same 32 frames for every model, and
a question costs a reader 32 decoded frames instead of all. Video files are only opened in a child
process with a time limit (media_worker.py).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lmms_eval_tasks.utils.media import media_cache, worker_call

KINDS = ("uniform", "first_frame", "black")
# Raise when a made file can change for the same source and recipe.
_VERSION = 1


@dataclass(frozen=True)
class Recipe:
    """How to make a medium from a video.

    kind: `uniform` (n_frames frames), `first_frame`, or `black` (the uniform clip, painted black).
    n_frames: at least 1; a video with fewer frames gives all of them. Not used by first_frame.
    still: first_frame only: a clip of the repeated frame (4 frames, 2 s) instead of an image, for
        readers that take no images. Qwen's reader fails on a clip of one frame, so whatever is one
        frame is handed over as an image otherwise, be it a first frame, n_frames = 1 or a video of
        one frame.
    """

    kind: str
    n_frames: int = 32
    still: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"recipe {self.kind!r}: expected one of {', '.join(KINDS)}")
        if self.n_frames < 1:
            raise ValueError(f"recipe {self.kind}: n_frames={self.n_frames}, expected 1 or more")
        if self.still and self.kind != "first_frame":
            raise ValueError(f"recipe {self.kind}: still is for first_frame only")

    @property
    def name(self) -> str:
        """`uniform-32`, `black-32`, `first_frame` or `first_frame-still`."""
        if self.kind == "first_frame":
            return "first_frame-still" if self.still else "first_frame"
        return f"{self.kind}-{self.n_frames}"


@dataclass(frozen=True)
class Media:
    """A file for a model. Size in pixels; duration, timestamps in seconds; an image has fps 0.

    timestamps: when the file shows each frame; for uniform and black also when the source shows it,
        counted from the source's first frame.
    fps: n_frames / duration, the clip's own mean rate, which readers compute as well.
    """

    path: str
    kind: str
    n_frames: int
    width: int
    height: int
    duration: float
    fps: float
    timestamps: list[float]
    source: str
    recipe: str

    def as_dict(self) -> dict[str, Any]:
        """Plain types only, for result logs."""
        return asdict(self)


def make(
    source: str | Path, recipe: Recipe, cache: Path | None = None, time_limit: float = 120
) -> Media:
    """The file that `recipe` makes of `source`, from the cache if it is there.

    Args:
        source: a video file.
        recipe: what to make of it.
        cache: folder for results, created if absent; default `media` in the user's cache folder.
        time_limit: seconds for making it, and again at most for waiting until another process that
            makes the same file is done.

    Raises:
        MediaError: the source cannot be read or the result cannot be written; names the source.
    """
    video = worker_call.source_file(source)
    job = {"do": "make", "source": str(video), "recipe": asdict(recipe)}
    folder, _, entry = media_cache.kept(
        video,
        cache,
        recipe=recipe.name,
        version=_VERSION,
        patience=time_limit,
        make=lambda *at: media_cache.write_one(job, at, time_limit, decord=True),
    )
    return Media(
        path=str(folder / entry["file"]),
        kind=entry["kind"],
        n_frames=len(entry["timestamps"]),
        width=entry["width"],
        height=entry["height"],
        duration=entry["duration"],
        fps=entry["fps"],
        timestamps=entry["timestamps"],
        source=str(video),
        recipe=recipe.name,
    )


def uniform_indices(n_total: int, n: int) -> list[int]:
    """Positions of `n` uniform frames among `n_total`: numpy.linspace rounded down, as the host's.

    Fewer frames than asked for: all of them.

    Raises:
        ValueError: n_total or n is below 1.
    """
    import numpy as np

    if n_total < 1 or n < 1:
        raise ValueError(f"cannot take {n} of {n_total} frames")
    if n >= n_total:
        return list(range(n_total))
    indices: list[int] = np.linspace(0, n_total - 1, n).astype(int).tolist()
    return indices
