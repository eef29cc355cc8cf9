"""Video and wav files that were made here, as arrays for a model that takes no paths."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import recipes, segments, video


class Files:
    """What the last `size` files held: each is read once, whoever asks; safe in threads."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Future[Any]] = OrderedDict()

    def get(self, path: str, read: Callable[[str], Any]) -> Any:
        """What `read` makes of the file, or has made; an error is the same for all who ask."""
        with self._lock:
            known = path in self._kept
            found = self._kept.setdefault(path, Future())
            self._kept.move_to_end(path)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        if not known:
            try:
                found.set_result(read(path))
            except Exception as error:
                found.set_exception(error)
        return found.result()


def frames(path: str, most: int) -> tuple[Any, dict[str, Any]]:
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
        return recipes.uniform_indices(total, most or total)

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


def sound(path: str) -> tuple[Any, int]:
    """A wav's samples (segments.py), and how many of them are a second.

    Raises:
        MediaError: it cannot be read.
    """
    return segments.samples(path), segments.RATE
