"""Everything of a record but its texts: sampled frames, shots, importance, keyframes, key shots.

    video -> frames at 1-2 fps -> features -> shots (KTS) -> importance -> top 15 % of the frames
                                                                        -> knapsack of the shots

Paper, 3.2. What it leaves open is decided here: frame k is the one shown at k / fps seconds (by the
file's mean rate); of equally important frames the earlier ones are keyframes; a shot is worth the
mean importance of its frames, as in TVSum's protocol.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.haven.options import capacity
from lmms_eval_tasks.haven.records import given
from lmms_eval_tasks.utils.media import segmentation, video_checks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lmms_eval_tasks.utils.media.indexed_frames import Frames

MIN_FPS, MAX_FPS = 1.0, 2.0  # paper, 3.2
FRAMES_PER_SHOT = 10  # the target is round(F / 10) shots: Table 1
AUTO, TARGET = "auto", "target"  # values of --shots beside a number
# `auto` looks at up to F / 5 shots: shorter ones than 2.5 s at 2 fps on average are no shots.
LEAST_FRAMES_PER_SHOT = 5
_WHOLE = 1_000_000  # values of shots as whole numbers, relative to the largest score
_ROUNDING = 1e-6  # frames: 14.999999999 of them are 15


@dataclass(frozen=True)
class Choices:
    """How a record is made: the options of the command.

    Attributes:
        fps: sampled frames a second.
        shots: `target` (round(F / 10)), `auto` (the penalty of KTS) or a number.
        size: longest side in pixels of the pictures that features and texts are made from.
        importance: the option of given.IMPORTANCE that was given.
        importance_file: its value.
        features: a file or folder of the user's; None is colour histograms.
    """

    importance: str
    importance_file: Path
    fps: float = MAX_FPS
    shots: str = TARGET
    size: int = 512
    features: Path | None = None

    def __post_init__(self) -> None:
        if not MIN_FPS <= self.fps <= MAX_FPS:
            raise TasksError(f"--fps {self.fps:g}: expected {MIN_FPS:g} to {MAX_FPS:g} (paper)")
        if self.shots not in (AUTO, TARGET) and not (
            self.shots.isdecimal() and int(self.shots) >= 1
        ):
            raise TasksError(
                f"--shots {self.shots}: expected {TARGET}, {AUTO} or a whole number of 1 or more"
            )
        if self.size < 16:
            raise TasksError(f"--size {self.size}: expected 16 pixels or more")


@dataclass(frozen=True)
class Sampled:
    """A video's sampled frames with their importance; nothing was decoded for it.

    made_from: what decides the structure, in words and digests, for the written record.
    """

    video: Path
    n_frames: int
    picks: tuple[int, ...]
    importance: tuple[float, ...]
    features: Path | None
    made_from: dict[str, Any]


@dataclass(frozen=True)
class Structure:
    """A record without its texts. Frames and shots count from 0.

    Attributes:
        starts: first sampled frame of each shot.
        keyframes, key_shots: ascending.
        ties: frames as important as the last keyframe that are none, being later.
    """

    sampled: Sampled
    starts: tuple[int, ...]
    keyframes: tuple[int, ...]
    key_shots: tuple[int, ...]
    ties: int

    @property
    def shots(self) -> list[range]:
        """Sampled frames of each shot."""
        ends = [*self.starts[1:], len(self.sampled.picks)]
        return [range(a, b) for a, b in zip(self.starts, ends, strict=True)]


def indices(n_frames: int, rate: float, fps: float) -> list[int]:
    """Frames at `fps` a second, from the first one; all frames of a video that has fewer a second.

    Args:
        n_frames: of the video, at least 1.
        rate: frames a second, on average.
        fps: above 0.
    """
    step = max(1.0, rate / fps)
    count = max(1, math.ceil((n_frames - _ROUNDING) / step))
    found = (math.floor(place * step + _ROUNDING) for place in range(count))
    return [frame for frame in found if frame < n_frames]


def sample(video: Path, choices: Choices) -> Sampled:
    """The sampled frames of a video and how important they are.

    Raises:
        TasksError: the video or a given file cannot be used, or has too few frames.
    """
    info = video_checks.probe(video)
    picks = indices(info.n_frames, info.fps, choices.fps)
    endings, read = given.IMPORTANCE[choices.importance]
    file = given.file_of(choices.importance_file, video, endings, choices.importance)
    own = choices.features and given.file_of(choices.features, video, given.FEATURES, "--features")
    if choices.shots not in (AUTO, TARGET) and int(choices.shots) > len(picks):
        raise TasksError(f"--shots {choices.shots}: {video} has {len(picks)} sampled frames only")
    made_from = {
        "video": f"{video.stat().st_size} bytes, {info.n_frames} frames",
        "fps": choices.fps,
        "shots": choices.shots,
        # Pictures of another size have other histograms.
        "features": f"file {given.digest(own)}"
        if own
        else f"{segmentation.FEATURES}, {choices.size} px",
        "importance": f"{choices.importance.removeprefix('--')} {given.digest(file)}",
    }
    importance = tuple(read(file, picks, info.n_frames))
    return Sampled(video, info.n_frames, tuple(picks), importance, own, made_from)


def structure(sampled: Sampled, frames: Frames, choices: Choices) -> Structure:
    """Shots, keyframes and key shots.

    Args:
        sampled: of the video.
        frames: their pictures.
        choices: how many shots.

    Raises:
        TasksError: a picture cannot be decoded, or the features do not fit.
    """
    n = len(sampled.picks)
    rows = features_of(sampled)
    if rows is None:
        # One picture at a time: hours of them would not fit.
        rows = segmentation.histograms(frames.images([number])[0] for number in range(1, n + 1))
    starts = cut(rows, choices.shots)
    chosen, ties = top(sampled.importance, max(1, capacity(n)))
    key = key_shots(sampled.importance, starts)
    return Structure(sampled, tuple(starts), tuple(chosen), tuple(key), ties)


def features_of(sampled: Sampled) -> NDArray[np.floating[Any]] | None:
    """The user's features (F, d), checked; None if there are none.

    Raises:
        DataError: they do not fit.
    """
    if sampled.features is None:
        return None
    return given.features(sampled.features, len(sampled.picks))


def cut(features: NDArray[np.floating[Any]], shots: str) -> list[int]:
    """First frames of the shots.

    Args:
        features: (F, d).
        shots: as in `Choices`.
    """
    n = len(features)
    if shots == AUTO:
        return segmentation.automatic(features, max(1, n // LEAST_FRAMES_PER_SHOT))
    number = target(n) if shots == TARGET else int(shots)
    return segmentation.segment(features, number)


def target(n_frames: int) -> int:
    """round(F / 10), halves up, at least 1: the number of shots that the paper's Table 1 shows."""
    return max(1, (2 * n_frames + FRAMES_PER_SHOT) // (2 * FRAMES_PER_SHOT))


def top(importance: Sequence[float], number: int) -> tuple[list[int], int]:
    """The most important frames in ascending order, the earlier ones of equals.

    Returns:
        Their places, and how many others are as important as the last of them.
    """
    order = sorted(range(len(importance)), key=lambda place: (-importance[place], place))
    chosen = order[:number]
    least = importance[chosen[-1]]
    return sorted(chosen), sum(importance[place] == least for place in order[number:])


def key_shots(importance: Sequence[float], starts: Sequence[int]) -> list[int]:
    """Shots of the greatest value together whose frames are within 15 % of all; ascending.

    None where even the shortest one is longer than that. A shot is worth the mean, not the sum, of
    its frames' importance.

    Args:
        importance: of each sampled frame, 0 or more.
        starts: first frames of the shots, ascending from 0.
    """
    borders = list(pairwise([*starts, len(importance)]))
    lengths = [b - a for a, b in borders]
    values = [math.fsum(importance[a:b]) / (b - a) for a, b in borders]
    largest = max(values)
    # Whole numbers, so that sums are exact and ties are ties.
    whole = [round(_WHOLE * value / largest) if largest else 0 for value in values]
    return segmentation.knapsack(whole, lengths, capacity(len(importance)))
