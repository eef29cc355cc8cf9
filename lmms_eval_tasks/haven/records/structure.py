"""Everything of a record but its texts: sampled frames, shots, importance, keyframes, key shots.

    video -> frames at 1-2 fps -> colours -> shots (KTS) -> importance -> top 15 % of the frames
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
from typing import TYPE_CHECKING

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.options import capacity
from lmms_eval_tasks.media import indexed_frames, video_checks
from lmms_eval_tasks.utils import json_files, released_files
from lmms_eval_tasks.utils.media import segmentation

if TYPE_CHECKING:
    from lmms_eval_tasks.media.indexed_frames import FrameArchive

FRAMES_PER_SHOT = 10  # round(F / 10) shots, halves up: what Table 1 shows
SIZE = 512  # longest side in pixels of the pictures that shots and texts are made from
_WHOLE = 1_000_000  # values of shots as whole numbers, relative to the largest score
_ROUNDING = 1e-6  # frames: 14.999999999 of them are 15
_LARGEST = 1e100  # of a score: sums of much larger ones leave the range of floats


@dataclass(frozen=True)
class Structure:
    """A record without its texts. Frames and shots count from 0."""

    video: Path
    n_frames: int
    picks: list[int]  # indices of the sampled frames among these
    importance: list[float]  # of each sampled frame
    starts: list[int]  # first sampled frame of each shot
    keyframes: list[int]  # ascending
    key_shots: list[int]  # ascending

    @property
    def shots(self) -> list[range]:
        """Sampled frames of each shot."""
        return [range(a, b) for a, b in pairwise([*self.starts, len(self.picks)])]


def read_scores(given: Path, video: Path, picks: Sequence[int], n_frames: int) -> list[float]:
    """Importance of each sampled frame.

    Args:
        given: numbers of 0 or more, one for each sampled or each original frame, .npy or .json; or
            a folder of such files, where `holiday.npy` goes with `holiday.mp4`.

    Raises:
        DataError: anything else.
    """
    from tokenize import TokenError

    import numpy as np

    file = given
    if given.is_dir():
        names = [given / f"{video.stem}{ending}" for ending in (".npy", ".json")]
        file = next((one for one in names if one.is_file()), names[0])
    if not file.exists():
        raise DataError(f"--scores {file}: no such file")
    try:
        if file.suffix == ".npy":
            json_files.check_input(file)
            with file.open("rb") as content:  # not `load`, which takes archives too
                array = np.lib.format.read_array(content, allow_pickle=False)
        else:
            array = np.asarray(released_files.read_json(file))
    # Of a damaged header: no tuple, no Python, a shape that no memory holds.
    except (OSError, ValueError, TypeError, SyntaxError, TokenError, MemoryError) as error:
        raise DataError(
            f"{file}: not an array of numbers ({' '.join(str(error).split())})"
        ) from None
    if array.dtype.kind not in "fiu":  # "3" and true are no numbers of a frame
        raise DataError(f"{file}: no array of numbers")
    if array.shape == (n_frames,):
        array = array[list(picks)]
    if array.shape != (len(picks),):
        raise DataError(
            f"{file}: an array of shape {array.shape}, but {video} has {len(picks)} sampled and "
            f"{n_frames} original frames: expected one number for each of either"
        )
    if not ((array >= 0) & (array <= _LARGEST)).all():
        raise DataError(f"{file}: expected finite numbers from 0 to {_LARGEST:g}")
    return [float(value) for value in array]


def indices(n_frames: int, rate: float, fps: float) -> list[int]:
    """Frames at `fps` a second, from the first one; all of a video of a mean `rate` below that."""
    step = max(1.0, rate / fps)
    count = max(1, math.ceil((n_frames - _ROUNDING) / step))
    found = (math.floor(place * step + _ROUNDING) for place in range(count))
    return [frame for frame in found if frame < n_frames]


def structure(
    video: Path, scores: Path, fps: float = 2.0, n_shots: int | None = None
) -> tuple[Structure, FrameArchive]:
    """Shots (None: round(F / 10)) and keyframes of a video, and pictures of its sampled frames.

    Raises:
        TasksError: the video or the scores cannot be used, or there are too few frames.
    """
    info = video_checks.probe(video)
    picks = indices(info.n_frames, info.fps, fps)
    n = len(picks)
    if (n_shots or 1) > n:
        raise DataError(f"--shots {n_shots}: {video} has {n} sampled frames only")
    importance = read_scores(scores, video, picks, info.n_frames)
    frames = indexed_frames.frames(video, picks, SIZE)
    tenth = max(1, (2 * n + FRAMES_PER_SHOT) // (2 * FRAMES_PER_SHOT))
    # One picture at a time: hours of them would not fit.
    pictures = (frames.images([number])[0] for number in range(1, n + 1))
    starts = segmentation.segment(segmentation.histograms(pictures), n_shots or tenth)
    keyframes = top(importance, max(1, capacity(n)))
    key = key_shots(importance, starts)
    return Structure(video, info.n_frames, picks, importance, starts, keyframes, key), frames


def top(importance: Sequence[float], number: int) -> list[int]:
    """Places of the most important frames in ascending order, the earlier ones of equals."""
    order = sorted(range(len(importance)), key=lambda place: (-importance[place], place))
    return sorted(order[:number])


def key_shots(importance: Sequence[float], starts: Sequence[int]) -> list[int]:
    """Shots of the greatest value together whose frames are within 15 % of all; ascending.

    None where even the shortest one is longer than that. A shot is worth the mean, not the sum, of
    its frames' importance, which is 0 or more; `starts` are the shots' first frames, from 0.
    """
    borders = list(pairwise([*starts, len(importance)]))
    lengths = [b - a for a, b in borders]
    values = [math.fsum(importance[a:b]) / (b - a) for a, b in borders]
    largest = max(values)
    # Whole numbers, so that sums are exact and ties are ties.
    whole = [round(_WHOLE * value / largest) if largest else 0 for value in values]
    return segmentation.knapsack(whole, lengths, capacity(len(importance)))
