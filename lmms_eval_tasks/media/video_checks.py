"""Facts about the user's videos.

    >>> look({"1": Path("videos/1.mp4"), "2": Path("videos/2.mp4")})
    ({'1': VideoInfo(n_frames=750, ...)},
     {'2': 'unreadable: /data/videos/2.mp4: the file is empty'})

Child processes read each file once (worker.py). The cache folder keeps the facts for later runs, by
the file's path, size and time of change (cache.py).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from importlib import metadata
from pathlib import Path
from typing import Any

from lmms_eval_tasks import context, notify
from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.media import cache
from lmms_eval_tasks.utils.media import cut, video, worker
from lmms_eval_tasks.utils.released_files import listed

# Increase this if the facts about the same file can change.
_VERSION = 5
_TIME_LIMIT = 60.0  # seconds for one file
_FEW = 4  # most files for which another child process is not worth its start


class _Noted(set[Path]):
    """Files whose notes were already shown in a run."""


@dataclass(frozen=True)
class VideoInfo:
    """Facts about a source video; times in seconds after the first frame shown.

    duration: duration of the picture. fps: its mean rate.
    end: end of the file: `duration`, or the end of its sound if that is later. A segment may end
        there: its last frame stays on screen (cut.py).
    note: a line for the user about the file; "" for none.
    """

    n_frames: int
    duration: float
    end: float
    fps: float
    has_audio: bool
    note: str = ""


def probe(source: str | Path) -> VideoInfo:
    """Return facts about a video file, read from its packets; the first frame is decoded as a test.

    Raises:
        MediaError: the file is no readable video; the message names the file and the reason.
    """
    file = worker.source_file(source)
    state = file.stat()
    found = _looked(file, state.st_size, state.st_mtime_ns)
    if isinstance(found, str):
        raise MediaError(found)
    return found


def look(
    paths: Mapping[str, Path], only: Collection[str] | None = None
) -> tuple[dict[str, VideoInfo], dict[str, str]]:
    """Return facts about the readable videos, and the reasons for the others.

    Args:
        paths: by name, the path of each video, which may be missing.
        only: resolved paths to check; other videos are in neither result. None checks all.

    Returns:
        Both by name; a reason starts with "missing" or "unreadable".
    """

    def inspect_one(path: Path) -> VideoInfo | str:
        try:
            path.stat()
            return probe(path)
        except OSError:
            return f"missing: {path}"
        except MediaError as error:
            return f"unreadable: {error}"

    # Unlike Path.resolve, realpath accepts a link that leads to itself, which counts as missing.
    asked = {n: p for n, p in paths.items() if only is None or os.path.realpath(p) in only}
    different = list(dict.fromkeys(asked.values()))
    pool = ThreadPoolExecutor(min(os.cpu_count() or 1, -(-len(different) // _FEW) or 1))
    try:
        known = dict(zip(different, pool.map(inspect_one, different), strict=True))
    finally:
        pool.shutdown(cancel_futures=True)  # a user who stops the run need not wait for all files
    said = {name: known[path] for name, path in asked.items()}
    found = {name: one for name, one in said.items() if isinstance(one, VideoInfo)}
    noted = context.current().instance_of(_Noted)
    odd = {name: one.note for name, one in found.items() if one.note and asked[name] not in noted}
    if odd:
        noted.update(asked[name] for name in odd)
        notify.notify(f"videos to look at ({len(odd):,}):\n{listed(odd)}")
    return found, {name: one for name, one in said.items() if isinstance(one, str)}


def check_ends(source: str | Path) -> None:
    """Decode the first and the last frame of a video, and discard them.

    Raises:
        MediaError: as in `probe`, or one of the frames cannot be decoded.
    """
    duration = probe(source).duration
    file = worker.source_file(source)
    worker.call(__name__, "ends", file, _TIME_LIMIT, duration=duration)


@functools.lru_cache(maxsize=65536)
def _looked(file: Path, size: int, changed: int) -> VideoInfo | str:
    """Return facts about a file in this state (bytes, nanoseconds), or why it is unreadable.

    The result is cached in this process. Later processes check bad files again, which may be
    readable then.
    """
    # The identity has no hash of the content, which takes longer to read than the packets. It has
    # PyAV's version, since another version may report other facts.
    identity = f"{file} {size} {changed} {metadata.version('av')}"
    work = (__name__, "facts")
    how: dict[str, Any] = {"time_limit": _TIME_LIMIT, "identity": identity}
    try:
        kept = cache.cached_files(file, "probe", _VERSION, work, folder="probes", **how)
    except MediaError as error:
        return str(error)
    return VideoInfo(**kept.facts)


def ends(source: str, duration: float) -> dict[str, Any]:
    """Decode a video's ends like `cut`, in the child process (`check_ends`)."""
    for _ in cut.decode_frames(source, cut.head(source), Fraction(duration)):
        pass
    return {}


def facts(source: str, out: str) -> dict[str, Any]:  # noqa: ARG001
    """Return the fields of VideoInfo, in the child process.

    Raises:
        MediaError: the file cannot be used; the message lacks its name.
    """
    table, _ = video.pick(source, lambda _: [0], id)
    sound_end = table.origin if table.sound_end is None else table.sound_end
    return {
        "files": [],
        "n_frames": len(table.times),
        "duration": table.duration,
        "end": max(table.duration, float(sound_end - table.origin)),
        "fps": len(table.times) / table.duration,
        "has_audio": table.sound_end is not None,
        "note": "; ".join(table.notes),
    }
