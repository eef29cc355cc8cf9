"""One source's HDF5 file: the checked arrays of single videos.

Read are `picks`, `change_points` and `n_frames`, which a video must have, and `gtscore`, `gtframe`
and `video_name` where they are. `n_steps` and `n_frame_per_seg` follow from these, and
`shot_level_gt` is the JSON's. Features, which make up the gigabytes, are never touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import DataError

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Arrays:
    """One video's arrays, checked, in plain types.

    Attributes:
        picks: (F,) ascending indices of the sampled frames among the original video's, from 0.
        change_points: (S, 2) first and last original frame of each shot, ascending; shots do not
            overlap, and frames between two of them belong to none.
        n_frames: number of frames of the original video; above the last pick.
        gtscore: (F,) importance of the sampled frames, possibly NaN or infinite; None without.
        gtframe: (F,) whether a sampled frame is a true keyframe; None without.
        video_name: the original video's, "" without.
    """

    picks: tuple[int, ...]
    change_points: tuple[tuple[int, int], ...]
    n_frames: int
    gtscore: tuple[float, ...] | None
    gtframe: tuple[bool, ...] | None
    video_name: str


class _WrongError(Exception):
    """What is wrong with a video, in one line."""


def read(file: Path, videos: Sequence[str]) -> dict[str, Arrays | str]:
    """The arrays of some videos, or in one line what is wrong with them.

    Raises:
        DataError: the file is no HDF5 file or is cut off.
    """
    import h5py

    try:
        with h5py.File(file, "r") as store:
            return {video: _video(store[video]) for video in videos if video in store}
    except OSError as error:
        raise DataError(f"{file}: not a readable HDF5 file: {error}") from None


def _video(group: Any) -> Arrays | str:
    import h5py

    if not isinstance(group, h5py.Group):
        return "expected a group of datasets, found a dataset"
    try:
        return _arrays(group)
    except _WrongError as wrong:
        return str(wrong)
    except OSError as error:  # a damaged block inside a file that opens
        return f"cannot be read: {error}"


def _arrays(group: Any) -> Arrays:
    picks = [int(value) for value in _whole(group, "picks", 1)]
    if not picks:
        raise _WrongError("picks: there are none")
    for place, (before, pick) in enumerate(pairwise(picks), 2):
        if pick <= before:
            raise _WrongError(
                f"picks, entry {place}: {pick} comes after {before}; expected ascending"
            )
    n_frames = int(_whole(group, "n_frames", 0)[0])
    if picks[-1] >= n_frames:
        place = next(i for i, pick in enumerate(picks, 1) if pick >= n_frames)
        raise _WrongError(
            f"picks, entry {place}: frame {picks[place - 1]} is beyond the end; n_frames is "
            f"{n_frames}, counted from 0"
        )
    shots = [(int(first), int(last)) for first, last in _whole(group, "change_points", 2)]
    _in_order(shots)
    gtscore = gtframe = None
    if "gtscore" in group:
        gtscore = tuple(float(score) for score in _numbers(group, "gtscore", 1))
    if "gtframe" in group:
        gtframe = tuple(_flags(_whole(group, "gtframe", 1)))
    for name, values in (("gtscore", gtscore), ("gtframe", gtframe)):
        if values is not None and len(values) != len(picks):
            raise _WrongError(f"{name}: {len(values)} values, but picks has {len(picks)}")
    return Arrays(tuple(picks), tuple(shots), n_frames, gtscore, gtframe, _name(group))


def _numbers(group: Any, name: str, ndim: int) -> np.ndarray[Any, Any]:
    """A dataset of numbers: (n,), or (n, 2), or for `ndim` 0 a single one as (1,)."""
    import h5py
    import numpy as np

    held = group.get(name)
    if held is None:
        raise _WrongError(f"{name}: the dataset is missing")
    if not isinstance(held, h5py.Dataset):
        raise _WrongError(f"{name}: expected a dataset, found a group")
    shape, dtype = held.shape, held.dtype
    if dtype.kind not in "biuf":  # bool, whole, unsigned, real
        raise _WrongError(f"{name}: expected numbers, found {dtype}")
    fits = shape is not None and (
        shape in ((), (1,)) if ndim == 0 else len(shape) == ndim and shape[1:] in ((), (2,))
    )
    if not fits:
        expected = ("one number", "a shape of (n,)", "a shape of (n, 2)")[ndim]
        raise _WrongError(f"{name}: expected {expected}, found {shape or 'a single value'}")
    return np.atleast_1d(np.asarray(held[()]))


def _whole(group: Any, name: str, ndim: int) -> np.ndarray[Any, Any]:
    """A dataset of whole numbers from 0 on, of any numeric type."""
    import numpy as np

    values = _numbers(group, name, ndim)
    good = np.isfinite(values) & (values >= 0) & (values == np.floor(values))
    if not good.all():
        place = tuple(int(i) for i in np.argwhere(~good)[0])
        where = f"{name}, entry {place[0] + 1}" if ndim else name
        raise _WrongError(f"{where}: expected a whole number from 0 on, found {values[place]:g}")
    return values


def _in_order(shots: Sequence[tuple[int, int]]) -> None:
    if not shots:
        raise _WrongError("change_points: there are none, so the video has no shot")
    end = -1
    for number, (first, last) in enumerate(shots, 1):
        if last < first:
            raise _WrongError(
                f"change_points, entry {number}: ends at {last}, before it begins at {first}"
            )
        if first <= end:
            raise _WrongError(
                f"change_points, entry {number}: begins at {first}, but the shot before it ends "
                f"at {end}"
            )
        end = last


def _flags(values: Iterable[Any]) -> list[bool]:
    for place, value in enumerate(values, 1):
        if value not in (0, 1):
            raise _WrongError(f"gtframe, entry {place}: expected 0 or 1, found {value:g}")
    return [bool(value) for value in values]


def _name(group: Any) -> str:
    """The original video's name; some files hold it as bytes, some not at all."""
    import h5py

    held = group.get("video_name")
    value = held[()] if isinstance(held, h5py.Dataset) and held.shape == () else ""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return text.strip() if isinstance(text, str) else ""
