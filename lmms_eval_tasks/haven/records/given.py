"""What a user gives beside a video: features, importance scores, annotators' picks; all checked."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import released_files

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SCORES = (".npy", ".json")
PICKS = (".json",)
FEATURES = (".npy",)
_LARGEST = 1e100  # of a score: sums of much larger ones leave the range of floats


def file_of(given: Path, video: Path, endings: Sequence[str], option: str) -> Path:
    """The file that an option means for one video: itself, or in a folder the one named alike.

    Args:
        given: the option's value.
        video: the video's file; `holiday.mp4` goes with `holiday.json`.
        endings: in the order in which they are looked for.
        option: for messages.

    Raises:
        DataError: there is none, or it is of another kind.
    """
    kinds = " or ".join(endings)
    if given.is_dir():
        for ending in endings:
            if (found := given / f"{video.stem}{ending}").is_file():
                return found
        raise DataError(f"{option} {given}: has no {video.stem}{kinds} for {video}")
    if not given.is_file():
        raise DataError(f"{option} {given}: no such file")
    if given.suffix.lower() not in endings:
        raise DataError(f"{option} {given}: expected a file that ends in {kinds}")
    return given


def digest(file: Path) -> str:
    """The first 12 hex digits of the SHA-256 of a file's bytes."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]


def scores(file: Path, picks: Sequence[int], n_frames: int) -> list[float]:
    """Importance of each sampled frame, from one number for each sampled or each original frame.

    Args:
        file: a list of numbers as JSON, or an array (n,) as NPY; all finite and 0 or more.
        picks: the sampled frames' indices among the original ones.
        n_frames: number of original frames.

    Raises:
        DataError: anything else.
    """
    if file.suffix.lower() == ".npy":
        array = _array(file)
        if array.ndim != 1:
            raise DataError(f"{file}: an array of shape {array.shape}: expected (frames,)")
        values = array.tolist()
    else:
        values = released_files.read_json(file)
        if not isinstance(values, list) or not all(
            isinstance(value, (int, float)) and not isinstance(value, bool) for value in values
        ):
            raise DataError(f"{file}: expected a list of numbers, one for each frame")
    for place, value in enumerate(values):
        if not 0 <= value <= _LARGEST:
            raise DataError(
                f"{file}: score {place} is {value}: expected a number from 0 to {_LARGEST:g}"
            )
    if len(values) == len(picks):
        return [float(value) for value in values]
    if len(values) == n_frames:
        return [float(values[pick]) for pick in picks]
    raise DataError(
        f"{file}: {len(values)} scores, but the video has {len(picks)} sampled and {n_frames} "
        "original frames: expected one for each of either"
    )


def shares(file: Path, picks: Sequence[int], n_frames: int) -> list[float]:
    """Share of annotators who picked each sampled frame, 0 to 1.

    A pick counts for the sampled frame that is nearest to it, of two the earlier; several picks of
    one annotator count once for one frame.

    Args:
        file: JSON, one list of original frame numbers, from 0, for each annotator.
        picks, n_frames: as in `scores`.

    Raises:
        DataError: another form, a frame that is not there, or nobody picked any.
    """
    given = released_files.read_json(file)
    if not isinstance(given, list) or not all(isinstance(own, list) for own in given):
        raise DataError(f"{file}: expected a list with one list of frame numbers per annotator")
    counts = [0] * len(picks)
    for annotator, own in enumerate(given, 1):
        for pick in own:
            if type(pick) is not int or not 0 <= pick < n_frames:
                raise DataError(
                    f"{file}: annotator {annotator} picked {pick!r}: expected a frame number from "
                    f"0 to {n_frames - 1}"
                )
        for place in {nearest(picks, pick) for pick in own}:
            counts[place] += 1
    if not any(counts):
        raise DataError(f"{file}: nobody picked a frame: no importance follows from it")
    return [count / len(given) for count in counts]


def nearest(picks: Sequence[int], frame: int) -> int:
    """Place of the pick nearest to a frame; of two the earlier one's.

    Args:
        picks: ascending, at least one.
        frame: in the same counting.
    """
    after = bisect_left(picks, frame)
    near = [place for place in (after - 1, after) if 0 <= place < len(picks)]
    return min(near, key=lambda place: (abs(picks[place] - frame), place))


def features(file: Path, n: int) -> NDArray[np.floating[Any]]:
    """A user's features: (n, d), finite.

    Args:
        file: NPY.
        n: number of sampled frames.

    Raises:
        DataError: anything else.
    """
    import numpy as np

    array = _array(file)
    if array.ndim != 2 or array.shape[0] != n or not array.shape[1]:
        raise DataError(
            f"{file}: an array of shape {array.shape}: expected ({n}, d), one row for each "
            "sampled frame"
        )
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise DataError(f"{file}: row {bad[0]} holds a number that is not finite")
    return array


def _array(file: Path) -> NDArray[Any]:
    """A NPY file of real numbers as float64."""
    import numpy as np

    try:
        array = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{file}: not a readable NPY file ({reason})") from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
        raise DataError(f"{file}: expected an array of real numbers")
    return array.astype(np.float64)


# Where importance comes from: option -> endings of its file, and its reader.
Reader = Callable[[Path, Sequence[int], int], "list[float]"]
IMPORTANCE: dict[str, tuple[tuple[str, ...], Reader]] = {
    "--scores": (SCORES, scores),
    "--picks": (PICKS, shares),
}
