"""Video and wav files that this package made, as arrays for a model that takes no paths."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.media import clip_specs, segments
from lmms_eval_tasks.utils.media import sounds, video

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")


class Files(Generic[T]):
    """The contents of the last used files: each file is read once for all threads.

    Args:
        most: the largest total weight of the kept contents; the last one is kept in any case.
        weigh: returns the weight of a file's content; default 1, so that `most` counts files.
    """

    def __init__(self, most: int, weigh: Callable[[T], int] = lambda _: 1) -> None:
        self._most, self._weigh = most, weigh
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Future[T]] = OrderedDict()

    def get(self, path: str, reader: Callable[[str], T]) -> T:
        """Return the content of a file: the result of `reader`, from this call or an earlier one.

        An error of the file itself (MediaError) is kept and raised to every caller; any other error
        may be temporary, and is raised only to the callers that wait for this reading.
        """
        with self._lock:
            known = path in self._kept
            found = self._kept.setdefault(path, Future())
            self._kept.move_to_end(path)
        if not known:
            try:
                found.set_result(reader(path))
            except Exception as error:
                found.set_exception(error)
                if not isinstance(error, MediaError):
                    with self._lock:
                        self._kept.pop(path, None)
            self._drop_oldest()
        return found.result()

    def _drop_oldest(self) -> None:
        with self._lock:
            weight = sum(map(self._weight, self._kept.values()))
            while weight > self._most and len(self._kept) > 1:
                weight -= self._weight(self._kept.popitem(last=False)[1])

    def _weight(self, future: Future[T]) -> int:
        return self._weigh(future.result()) if future.done() and not future.exception() else 1


def known_as(path: str, *how: object) -> str:
    """Return the cache key of a file's content: its path, size, time of change and reading options.

    Args:
        path: a file.
        how: the options with which the file is read.

    Raises:
        OSError, TypeError, ValueError: there is no such file.
    """
    about = Path(path).stat()
    told = [str(path), about.st_size, about.st_mtime_ns, *how]
    return json.dumps(told, sort_keys=True, default=str)


def read_frames(path: str, most: int) -> tuple[NDArray[np.uint8], dict[str, object]]:
    """A video's pixels, and its metadata in the form of transformers and vLLM.

    Args:
        path: a video file.
        most: the largest number of frames; a longer video gives that many uniform frames. 0 gives
            all.

    Returns:
        uint8 (n, height, width, 3), in the colours that other readers return; and the metadata:
        indices of the frames, the video's number of frames, its mean rate (frames per second) and
        duration in seconds. `do_sample_frames` is False: no reader must sample again.

    Raises:
        MediaError: the video cannot be read; names it.
    """
    import numpy as np

    def choose(total: int) -> list[int]:
        return clip_specs.uniform_indices(total, most or total)

    try:
        table, taken = video.pick(path, choose, video.rgb)
    except MediaError as error:
        raise MediaError(f"{path}: {error}") from error
    return np.stack(taken), {
        "total_num_frames": len(table.times),
        "fps": len(table.times) / table.duration,
        "duration": table.duration,
        "frames_indices": choose(len(table.times)),
        "video_backend": "pyav",
        "do_sample_frames": False,
    }


def sound(path: str) -> tuple[NDArray[np.float32], int]:
    """A wav's samples (segments.py) and their rate in Hz.

    Raises:
        MediaError: the file cannot be read.
    """
    return segments.samples(path), sounds.RATE
