"""Which of MAVERIX's items can be asked: what only the files beside the data file show."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.maverix.schema import Release

if TYPE_CHECKING:
    from lmms_eval_tasks.utils.media import VideoInfo

LISTED = 20  # lines of one message
# A segment may end this much after its video, in seconds: times in files are rounded.
ROUNDED = 1.0
# A segment that begins less than this before its video's end, in seconds, has nothing to show.
LEAST = 0.02


def look(release: Release) -> tuple[dict[str, VideoInfo], dict[str, str]]:
    """Facts about the videos of good items that can be read, and what is wrong with the others.

    Both by the video's name; a reason starts with "missing" or "unreadable".
    """

    def facts(video: str) -> VideoInfo | str:
        path = release.path_of(video)
        try:
            state = path.stat()
        except OSError:
            return f"missing: {path}"
        return _facts(path, state.st_size, state.st_mtime_ns)

    videos = list(dict.fromkeys(item.video for item in release.items))
    # The first look at a file costs a child process: side by side, 700 videos take less long.
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        found = dict(zip(videos, pool.map(facts, videos), strict=True))
    return (
        {video: info for video, info in found.items() if not isinstance(info, str)},
        {video: why for video, why in found.items() if isinstance(why, str)},
    )


@functools.lru_cache(maxsize=65536)
def _facts(path: Path, _size: int, _modified: int) -> VideoInfo | str:
    """Facts about a file, or why it is no use; asked for every task, so failures are kept too."""
    from lmms_eval_tasks.utils import media

    try:
        return media.probe(path)
    except MediaError as error:
        return f"unreadable: {error}"


def late_problems(release: Release, found: Mapping[str, VideoInfo]) -> dict[str, str]:
    """Items whose segment is not inside their video, or whose subtitles cannot be read, by id.

    A video ends with its picture or with its sound, whichever is later.

    Args:
        release: its good items are looked at.
        found: facts about the videos; items of other videos are passed over.
    """
    problems: dict[str, str] = {}
    for item in release.items:
        if item.video not in found:
            continue
        seconds = found[item.video].end
        if item.start is not None and item.start > seconds - LEAST:
            problems[item.id] = f"starts at {item.start:g} s; its video ends at {seconds:.3f} s"
        elif item.end is not None and item.end > seconds + ROUNDED:
            problems[item.id] = f"ends at {item.end:g} s; its video ends at {seconds:.3f} s"
        elif why := _subtitle_problem(release.subtitles_of(item.video)):
            problems[item.id] = f"subtitles: {why}"
    return problems


def silent(heard: Iterable[tuple[str, bool]]) -> dict[str, str]:
    """Items whose video has no sound stream, with the reason.

    Args:
        heard: (id, whether its video has one) of all items.

    Raises:
        DataError: there are some and `--allow-bad-items` was not given, or no other ones.
    """
    has_sound = dict(heard)
    without = {name: "its video has no audio stream" for name, has in has_sound.items() if not has}
    if without and not settings.allow_bad_items():
        raise DataError(
            f"{len(without)} of {len(has_sound)} MAVERIX items cannot be asked with sound "
            f"(A, V+A):\n{listed(without)}\n{LEAVE_OUT}"
        )
    if without and len(without) == len(has_sound):
        raise DataError(f"none of {len(without)} MAVERIX items has a video with sound (A, V+A)")
    return without


def complain(release: Release, bad: Mapping[str, str], videos: Mapping[str, str]) -> None:
    """Say what cannot be used, unless the user allowed it.

    Raises:
        DataError: of bad items, of videos, or of both.
    """
    told = []
    if bad and not settings.allow_bad_items():
        total = len(release.items) + len(release.problems)
        told.append(
            f"{len(bad)} of {total} MAVERIX items cannot be used:\n{listed(bad)}\n{LEAVE_OUT}"
        )
    if videos and not settings.allow_missing_videos():
        total = len({item.video for item in release.items})
        told.append(
            f"{len(videos)} of {total} MAVERIX videos cannot be used:\n{listed(videos)}\n"
            "Put them there, or leave their items out (they are counted in the results) with "
            f"--allow-missing-videos or {settings.ALLOW_MISSING}=1"
        )
    if told:
        raise DataError(f"{release.file}: " + "\n".join(told))


def listed(problems: Mapping[str, str]) -> str:
    """One line each of the first 20, and how many more there are."""
    lines = [f"  {name}: {why}" for name, why in list(problems.items())[:LISTED]]
    if len(problems) > LISTED:
        lines.append(f"  and {len(problems) - LISTED} more")
    return "\n".join(lines)


LEAVE_OUT = (
    "Correct them, or leave them out (they are counted in the results) with --allow-bad-items or "
    f"{settings.ALLOW_BAD_ITEMS}=1"
)


def _subtitle_problem(path: Path | None) -> str:
    if path is None:
        return ""
    state = path.stat()
    return _read_subtitles(path, state.st_mtime_ns, state.st_size)


@functools.lru_cache(maxsize=4096)
def _read_subtitles(path: Path, _modified: int, _size: int) -> str:
    """Why a subtitle file cannot be read, or ""; asked for every task, so kept."""
    from lmms_eval_tasks.utils import subtitles

    try:
        subtitles.read(path)
    except DataError as error:
        return str(error)
    return ""
