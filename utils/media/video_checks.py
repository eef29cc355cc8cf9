"""Facts about the user's videos, and what benchmarks with windows in them ask before a run.

    >>> look({"1": Path("videos/1.mp4"), "2": Path("videos/2.mp4")})
    ({'1': VideoInfo(n_frames=750, width=640, ...)},
     {'2': 'unreadable: /data/videos/2.mp4: the file is empty'})

A file is read once, by child processes that go from file to file (worker.py). What they say is kept
in the cache folder for all later runs, by the file's path, size and time of change.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.utils.media import cache, video, worker

# Raise when a probe can say something else about the same file.
_VERSION = 3
_TIME_LIMIT = 60.0  # seconds for one file
_PATIENCE = 120.0  # seconds to wait for another process that looks at videos
_FEW = 4  # files for which another child process is not worth its start

LISTED = 20  # lines of one message
# A window may end this much after its video, in seconds: times in files are rounded.
ROUNDED = 1.0
# A window that begins less than this before its video's end, in seconds, has nothing to show.
LEAST = 0.02
LEAVE_OUT = (
    "Correct them, or leave them out (they are counted in the results) with --allow-bad-items or "
    f"{settings.ALLOW_BAD_ITEMS}=1"
)


@dataclass(frozen=True)
class VideoInfo:
    """Facts about a source video: size upright, in pixels; seconds after the first frame shown.

    duration: of the picture. fps: its mean rate.
    end: of the file: `duration`, or the end of its sound where that is later. A segment may end
        there: its last frame stays on screen (cut.py).
    """

    n_frames: int
    width: int
    height: int
    duration: float
    end: float
    fps: float
    has_audio: bool


def probe(source: str | Path, time_limit: float = _TIME_LIMIT) -> VideoInfo:
    """Facts about a video file, read from its packets; the first frame is decoded to be sure.

    Raises:
        MediaError: it is not a readable video; the message names the file and the trouble.
    """
    path = worker.source_file(source)
    found = _facts_of([path], time_limit)[path]
    if isinstance(found, str):
        raise MediaError(found)
    return found


def look(
    paths: Mapping[str, Path], only: Collection[str] | None = None
) -> tuple[dict[str, VideoInfo], dict[str, str]]:
    """Facts about the videos that can be read, and what is wrong with the others.

    Args:
        paths: by name, of each video where it is or would be.
        only: resolved paths that are looked at; others are in neither result. None is all.

    Returns:
        Both by name; a reason starts with "missing" or "unreadable".
    """
    files: dict[str, Path] = {}
    problems: dict[str, str] = {}
    for name, path in paths.items():
        # realpath, unlike Path.resolve, leaves a link that leads to itself as it is: it is missing.
        if only is not None and os.path.realpath(path) not in only:
            continue
        try:
            path.stat()
            files[name] = worker.source_file(path)
        except OSError:
            problems[name] = f"missing: {path}"
        except MediaError as error:
            problems[name] = f"unreadable: {error}"
    known = _facts_of(files.values(), _TIME_LIMIT)
    found = {
        name: info for name, file in files.items() if isinstance(info := known[file], VideoInfo)
    }
    problems |= {
        name: f"unreadable: {known[file]}" for name, file in files.items() if name not in found
    }
    return found, {name: problems[name] for name in paths if name in problems}


def outside(start: float | None, end: float | None, seconds: float) -> str:
    """Why a window is not inside its video, or "".

    Args:
        start, end: of the window in seconds; None is the video's own.
        seconds: the video's end: that of its picture or of its sound, whichever is later.
    """
    if start is not None and start > seconds - LEAST:
        return f"starts at {start:g} s; its video ends at {seconds:.3f} s"
    if end is not None and end > seconds + ROUNDED:
        return f"ends at {end:g} s; its video ends at {seconds:.3f} s"
    return ""


def bad_items(problems: Mapping[str, str], what: str) -> list[str]:
    """The complaint about broken items; none without any, or where the user leaves them out.

    Args:
        problems: by name, with the reason.
        what: behind their number, such as "of 20 MAVERIX items cannot be used".
    """
    if not problems or settings.allow_bad_items():
        return []
    return [f"{len(problems):,} {what}:\n{listed(problems)}\n{LEAVE_OUT}"]


def missing_videos(
    problems: Mapping[str, str], what: str, cure: str = "Put them there"
) -> list[str]:
    """As `bad_items`, of videos that are missing or unreadable."""
    if not problems or settings.allow_missing_videos():
        return []
    return [
        f"{len(problems):,} {what}:\n{listed(problems)}\n{cure}, or leave their items out (they "
        f"are counted in the results) with --allow-missing-videos or {settings.ALLOW_MISSING}=1"
    ]


def stop(place: Path | str, complaints: Sequence[str]) -> None:
    """Say all complaints about the data of a place, if there are any.

    Raises:
        DataError: there are.
    """
    if complaints:
        raise DataError(f"{place}: " + "\n".join(complaints))


def listed(problems: Mapping[str, str]) -> str:
    """One line each of the first 20, and how many more there are."""
    lines = [f"  {name}: {why}" for name, why in list(problems.items())[:LISTED]]
    if len(problems) > LISTED:
        lines.append(f"  and {len(problems) - LISTED} more")
    return "\n".join(lines)


# --- what is known ------------------------------------------------------------------------------

_known: dict[str, VideoInfo | str] = {}  # by `_key`: facts, or why it cannot be read


def _facts_of(paths: Iterable[Path], time_limit: float) -> dict[Path, VideoInfo | str]:
    """What is known of files, after looking at those of which nothing is.

    As many children look as there are processors; other processes wait meanwhile, as their videos
    are most likely the same.
    """
    folder = settings.cache_dir() / "probes"
    keys = {path: _key(path) for path in paths}
    notes = {path: folder / f"{key}.json" for path, key in keys.items()}

    def kept(path: Path) -> bool:
        if keys[path] not in _known:
            with suppress(OSError, ValueError, TypeError):
                said = json.loads(notes[path].read_text(encoding="utf-8"))
                _known[keys[path]] = said if isinstance(said, str) else VideoInfo(**said)
        return keys[path] in _known

    def learn(path: Path) -> None:
        if kept(path):
            return
        found: VideoInfo | str
        try:
            found = VideoInfo(**worker.call("video_checks", "facts", path, time_limit))
        except worker.UnfinishedError as error:  # not so for ever
            _known[keys[path]] = str(error)
            return
        except MediaError as error:
            found = str(error)
        _known[keys[path]] = found
        part = notes[path].with_suffix(f".{os.getpid()}")
        with suppress(OSError):  # nothing can be written there, so nothing is kept
            part.write_text(json.dumps(found if isinstance(found, str) else asdict(found)))
            part.replace(notes[path])

    if new := [path for path in keys if not kept(path)]:
        with ExitStack() as stack:
            with suppress(OSError):
                stack.enter_context(cache.only_one(folder, "look", _PATIENCE))
            pool = ThreadPoolExecutor(min(os.cpu_count() or 1, -(-len(new) // _FEW)))
            try:
                list(pool.map(learn, new))
            finally:
                pool.shutdown(cancel_futures=True)  # who stops the run does not wait for all
    return {path: _known[key] for path, key in keys.items()}


def _key(path: Path) -> str:
    """Of a state of a file, and of what reads it: another version may say something else."""
    state = path.stat()
    told = [str(path), state.st_size, state.st_mtime_ns, _VERSION, _reader()]
    return hashlib.blake2b(json.dumps(told).encode(), digest_size=16).hexdigest()


@functools.cache
def _reader() -> str:
    return metadata.version("av")


def facts(source: str) -> dict[str, Any]:
    """Fields of VideoInfo, in the child process; the first frame is decoded to be sure it can be.

    Raises:
        MediaError: what is wrong with the file, without its name.
    """
    table, (frame,) = video.with_table(source, lambda table: list(video.decode(source, table, [0])))
    sideways = video.quarter_turns(frame) % 2
    sound_end = float((table.sound_end or 0) - table.origin)
    return {
        "n_frames": len(table.times),
        "width": frame.height if sideways else frame.width,
        "height": frame.width if sideways else frame.height,
        "duration": table.duration,
        "end": max(table.duration, sound_end) if table.sound_end is not None else table.duration,
        "fps": len(table.times) / table.duration,
        "has_audio": table.sound_end is not None,
    }
