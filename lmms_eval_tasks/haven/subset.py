"""Which videos of a large source are evaluated: a subset that is the same for everyone (4.1).

The paper draws 100 at random and does not name them. Ours are the videos with the smallest SHA-256
of the UTF-8 text

    SEED:SOURCE/VIDEO        as in 0:mrhisum/video_1020

over all videos of the source's JSON file, good or bad, whatever their order in it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from lmms_eval_tasks.haven.labels import LARGE_SOURCES
from lmms_eval_tasks.haven.options import Options


def chosen(source: str, videos: Iterable[str], options: Options) -> list[str]:
    """The videos of a source that are evaluated, in natural order.

    Args:
        source: a slug of labels.SOURCES; only the two large ones have a subset.
        videos: all keys of its JSON file.
        options: `seed` and `subset`; a subset of 0 is all.
    """
    found = list(videos)
    if source in LARGE_SOURCES and options.subset:
        found = sorted(found, key=lambda video: _hash(options.seed, source, video))
        del found[options.subset :]
    return sorted(found, key=natural)


def natural(video: str) -> tuple[list[tuple[str, int]], str]:
    """For sorting: video_2 before video_10."""
    parts = re.findall(r"([^0-9]*)([0-9]*)", video)
    return [(text, int(digits or -1)) for text, digits in parts], video


def _hash(seed: int, source: str, video: str) -> bytes:
    return hashlib.sha256(f"{seed}:{source}/{video}".encode("utf-8", "replace")).digest()
