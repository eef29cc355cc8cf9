"""One source's HDF5 file: the checked arrays of single videos.

Read are `picks`, `change_points` and `n_frames`, which a video must have, and `gtscore`, `gtframe`
and `video_name` where they are. `n_steps` and `n_frame_per_seg` follow from these, and
`shot_level_gt` is the JSON's. Features, which make up the gigabytes, are never touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.records.json_file import Flag
from lmms_eval_tasks.utils.validation import told


def _ascending(picks: tuple[int, ...]) -> tuple[int, ...]:
    for place, (before, pick) in enumerate(pairwise(picks), 2):
        if pick <= before:
            raise ValueError(f"entry {place}: {pick} comes after {before}; expected ascending")
    return picks


def _in_order(shots: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    end = -1
    for number, (first, last) in enumerate(shots, 1):
        if last < first or first <= end:
            raise ValueError(
                f"entry {number}: {first} to {last} after {end}; expected ascending, apart"
            )
        end = last
    return shots


def _single(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _text(value: Any) -> Any:
    """A name; some files hold it as bytes, some not at all."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return text.strip() if isinstance(text, str) else ""


Whole = Annotated[int, Field(ge=0)]  # of any numeric type


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

    picks: Annotated[tuple[Whole, ...], Field(min_length=1), AfterValidator(_ascending)]
    change_points: Annotated[
        tuple[tuple[Whole, Whole], ...], Field(min_length=1), AfterValidator(_in_order)
    ]
    n_frames: Annotated[Whole, BeforeValidator(_single)]
    gtscore: tuple[float, ...] | None = None
    gtframe: tuple[Flag, ...] | None = None
    video_name: Annotated[str, BeforeValidator(_text)] = ""

    def __post_init__(self) -> None:
        if (last := self.picks[-1]) >= self.n_frames:
            raise ValueError(f"picks: frame {last} is beyond the end; n_frames is {self.n_frames}")
        for name, own in (("gtscore", self.gtscore), ("gtframe", self.gtframe)):
            if own is not None and len(own) != len(self.picks):
                raise ValueError(f"{name}: {len(own)} values, but picks has {len(self.picks)}")


_ARRAYS = TypeAdapter(Arrays)


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
    held = {one.name: group[one.name] for one in fields(Arrays) if one.name in group}
    for name, one in held.items():
        if not isinstance(one, h5py.Dataset):
            return f"{name}: expected a dataset, found a group"
    try:
        values = {name: one[()] for name, one in held.items()}
    except OSError as error:  # a damaged block inside a file that opens
        return f"cannot be read: {error}"
    plain = {name: getattr(one, "tolist", lambda own=one: own)() for name, one in values.items()}
    try:
        return _ARRAYS.validate_python(plain)
    except ValidationError as error:
        return told(error)
