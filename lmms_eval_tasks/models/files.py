"""Video and wav files that were made here, as arrays for a model that takes no paths."""

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
    """What the files that were used last held: each is read once, whoever asks; safe in threads.

    Args:
        most: files, or what they may weigh together; the last one is kept whatever it weighs.
        weigh: the weight of what a file held; 1 unless given.
    """

    def __init__(self, most: int, weigh: Callable[[T], int] = lambda _: 1) -> None:
        self._most, self._weigh = most, weigh
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Future[T]] = OrderedDict()

    def get(self, path: str, reader: Callable[[str], T]) -> T:
        """What `reader` makes of the file, or has made.

        An error of the file itself (MediaError) is the same for all who ask; another may pass, and
        is raised to those only who wait for it.
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
    """What is kept of a file is known by this: its path, what it was, and how it is read.

    Raises:
        OSError, TypeError, ValueError: it is no file.
    """
    about = Path(path).stat()
    told = [str(path), about.st_size, about.st_mtime_ns, *how]
    return json.dumps(told, sort_keys=True, default=str)


def read_frames(path: str, most: int) -> tuple[NDArray[np.uint8], dict[str, object]]:
    """A video's pixels, and what transformers and vLLM call its metadata.

    Args:
        most: frames; a longer video gives so many uniform ones. 0 is all.

    Returns:
        uint8 (n, height, width, 3), with the colours that other readers see; and which frames they
        are of how many, at which mean rate. Nobody is to sample them again.

    Raises:
        MediaError: it cannot be read; names it.
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
    """A wav's samples (segments.py), and how many of them are a second.

    Raises:
        MediaError: it cannot be read.
    """
    return segments.samples(path), sounds.RATE
