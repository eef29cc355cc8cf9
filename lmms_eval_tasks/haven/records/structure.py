"""All of a record except its texts: sampled frames, shots, importance, keyframes and key shots.

    video -> frames at 1-2 fps -> colours -> shots (KTS) -> importance -> top 15 % of the frames
                                                                       -> knapsack of the shots

Source: paper, 3.2. Three points that the paper leaves open are decided here. Frame k is the one
shown at k / fps seconds (by the file's mean rate). Among equally important frames, the earlier ones
are keyframes. A shot's value is the mean importance of its frames, as in TVSum's protocol.
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

FRAMES_PER_SHOT = 10  # round(F / 10) shots, halves up, as in Table 1
SIZE = 512  # longest side in pixels of the pictures that shots and texts are made from
_WHOLE = 1_000_000  # the largest value of a shot, when values become whole numbers
_ROUNDING = 1e-6  # tolerance in frames: 14.999999999 counts as 15
_LARGEST = 1e100  # the largest score; sums of much larger ones exceed the range of floats


@dataclass(frozen=True)
class Structure:
    """A record without its texts. Frames and shots count from 0."""

    video: Path
    n_frames: int
    picks: list[int]  # indices of the sampled frames, below `n_frames`
    importance: list[float]  # importance of each sampled frame, 0 or more
    starts: list[int]  # first sampled frame of each shot
    keyframes: list[int]  # keyframes, ascending
    key_shots: list[int]  # key shots, ascending

    @property
    def shots(self) -> list[range]:
        """The range of sampled frames of each shot."""
        return [range(a, b) for a, b in pairwise([*self.starts, len(self.picks)])]


def read_scores(scores_file: Path, video: Path, picks: Sequence[int], n_frames: int) -> list[float]:
    """Return the importance of each sampled frame.

    Args:
        scores_file: a file, .npy or .json, with numbers of 0 or more, one for each sampled frame or
            for each original frame; or a folder of such files, where `holiday.npy` belongs to
            `holiday.mp4`.
        video: the video file.
        picks: indices of the sampled frames.
        n_frames: number of frames of the video.

    Raises:
        DataError: the file is missing or has another form.
    """
    from tokenize import TokenError

    import numpy as np

    file = scores_file
    if scores_file.is_dir():
        names = [scores_file / f"{video.stem}{ending}" for ending in (".npy", ".json")]
        file = next((one for one in names if one.is_file()), names[0])
    if not file.exists():
        raise DataError(f"--scores {file}: no such file")
    try:
        if file.suffix == ".npy":
            json_files.check_input(file)
            with file.open("rb") as content:  # not `load`, which also accepts archives
                array = np.lib.format.read_array(content, allow_pickle=False)
        else:
            array = np.asarray(released_files.read_json(file))
    # Errors of a damaged header: no tuple, no Python, a shape larger than memory.
    except (OSError, ValueError, TypeError, SyntaxError, TokenError, MemoryError) as error:
        raise DataError(
            f"{file}: not an array of numbers ({' '.join(str(error).split())})"
        ) from None
    if array.dtype.kind not in "fiu":  # texts ("3") and booleans are no scores
        raise DataError(f"{file}: not an array of numbers")
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
    """Return the indices of frames at `fps` a second, from 0; all frames if the rate is lower."""
    step = max(1.0, rate / fps)
    count = max(1, math.ceil((n_frames - _ROUNDING) / step))
    found = (math.floor(place * step + _ROUNDING) for place in range(count))
    return [frame for frame in found if frame < n_frames]


def structure(
    video: Path, scores: Path, fps: float = 2.0, n_shots: int | None = None
) -> tuple[Structure, FrameArchive]:
    """Return a video's shots and keyframes, and the pictures of its sampled frames.

    Args:
        video: the video file.
        scores: the file or folder of importance scores (`read_scores`).
        fps: sampled frames a second.
        n_shots: number of shots; None is round(F / 10) for F sampled frames.

    Raises:
        TasksError: the video or the scores cannot be used, or there are too few frames.
    """
    info = video_checks.probe(video)
    picks = indices(info.n_frames, info.fps, fps)
    n = len(picks)
    if (n_shots or 1) > n:
        raise DataError(f"--shots {n_shots}: {video} has {n} sampled frames only")
    importance = read_scores(scores, video, picks, info.n_frames)
    frames = indexed_frames.load_frames(video, picks, SIZE)
    tenth = max(1, (2 * n + FRAMES_PER_SHOT) // (2 * FRAMES_PER_SHOT))
    # One picture at a time, since the pictures of an hour do not fit into memory.
    pictures = (frames.images([number])[0] for number in range(1, n + 1))
    starts = segmentation.segment(segmentation.histograms(pictures), n_shots or tenth)
    keyframes = top(importance, max(1, capacity(n)))
    key = key_shots(importance, starts)
    return Structure(video, info.n_frames, picks, importance, starts, keyframes, key), frames


def top(importance: Sequence[float], number: int) -> list[int]:
    """Return the indices of the most important frames, ascending.

    Of equally important frames, the earlier ones are taken.
    """
    order = sorted(range(len(importance)), key=lambda place: (-importance[place], place))
    return sorted(order[:number])


def key_shots(importance: Sequence[float], starts: Sequence[int]) -> list[int]:
    """Return the shots, ascending, with the greatest total value within 15 % of all frames.

    The list is empty if even the shortest shot has more frames. A shot's value is the mean, not the
    sum, of its frames' importance.

    Args:
        importance: importance of each frame, 0 or more.
        starts: first frame of each shot, from 0.
    """
    borders = list(pairwise([*starts, len(importance)]))
    lengths = [b - a for a, b in borders]
    values = [math.fsum(importance[a:b]) / (b - a) for a, b in borders]
    largest = max(values)
    # Whole numbers, so that sums are exact and ties are ties.
    whole = [round(_WHOLE * value / largest) if largest else 0 for value in values]
    return segmentation.knapsack(whole, lengths, capacity(len(importance)))
