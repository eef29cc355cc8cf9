"""One video of HAVEN as the tasks need it: frames, shots, document and summary (paper, 3.1).

Frames are numbered as the tasks number them: sampled frame 1 is the first pick. Shots likewise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Frame:
    """A sampled frame.

    pick: its index among the frames of the original video, counted from 0.
    description: what it shows; "" only where the release has none (`Record.gaps`).
    keyframe: whether it is a true keyframe.
    importance: `gtscore` of HDF5; None without HDF5.
    """

    pick: int
    description: str
    keyframe: bool
    importance: float | None


@dataclass(frozen=True)
class Shot:
    """A shot (the release says clip) and the sampled frames inside it.

    frames: numbers of sampled frames, ascending from 1; at least one.
    description: what happens in it; "" only where the release has none.
    key: whether it is a key shot (binary; not used for ranking).
    """

    frames: tuple[int, ...]
    description: str
    key: bool


@dataclass(frozen=True)
class Sentence:
    """A sentence of the document or of the summary, and the numbers of its shots, from 1."""

    text: str
    shots: tuple[int, ...]


@dataclass(frozen=True)
class Record:
    """One video.

    Attributes:
        source: a slug of labels.SOURCES.
        video: its key in the release, as `video_7`.
        name: the original video's name, "" if the release does not tell it.
        frames: sampled frames in order.
        shots: in order; shots without a sampled frame are dropped and do not count.
        document, summary: sentences in order.
        n_frames: number of frames of the original video (HDF5); None without HDF5.
        gaps: task without `haven_` -> what it needs and the record lacks: such items are left out
            of that task and counted.
        path: where the video file is, or would be.
    """

    source: str
    video: str
    name: str
    frames: tuple[Frame, ...]
    shots: tuple[Shot, ...]
    document: tuple[Sentence, ...]
    summary: tuple[Sentence, ...]
    n_frames: int | None
    gaps: dict[str, str]
    path: Path | None = None

    @property
    def id(self) -> str:
        """`tvsum/video_7`: unique over all sources."""
        return f"{self.source}/{self.video}"

    @property
    def picks(self) -> list[int]:
        """Indices of the sampled frames among the original video's, from 0."""
        return [frame.pick for frame in self.frames]

    @property
    def keyframes(self) -> list[int]:
        """Numbers of the true keyframes, from 1."""
        return [number for number, frame in enumerate(self.frames, 1) if frame.keyframe]

    @property
    def importance(self) -> list[float] | None:
        """Each shot's importance: the mean of `gtscore` over its sampled frames; None without."""
        found = []
        for shot in self.shots:
            scores = [self.frames[number - 1].importance for number in shot.frames]
            known = [score for score in scores if score is not None]
            if len(known) < len(scores):
                return None
            # Exact sums: the same scores in another order are the same importance.
            found.append(math.fsum(known) / len(known))
        return found or None
