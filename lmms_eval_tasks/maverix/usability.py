"""Which of MAVERIX's items can be asked: what only the files beside the data file show."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix.schema import Release
from lmms_eval_tasks.utils import video_checks
from lmms_eval_tasks.utils.video_checks import ALLOW_MISSING, LEAVE_OUT, listed

if TYPE_CHECKING:
    from lmms_eval_tasks.utils.probes import VideoInfo


def look(release: Release) -> tuple[dict[str, VideoInfo], dict[str, str]]:
    """Facts about the videos of good items that can be read, and what is wrong with the others.

    Both by the video's name; a reason starts with "missing" or "unreadable".
    """
    videos = dict.fromkeys(item.video for item in release.items)
    return video_checks.look({video: release.path_of(video) for video in videos})


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
        if why := video_checks.outside(item.start, item.end, found[item.video].end):
            problems[item.id] = why
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
            + ALLOW_MISSING
        )
    if told:
        raise DataError(f"{release.file}: " + "\n".join(told))


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
