"""What every benchmark with windows in videos asks of the user's files before a run."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils.media import probes
from lmms_eval_tasks.utils.media.probes import VideoInfo

LISTED = 20  # lines of one message
# A window may end this much after its video, in seconds: times in files are rounded.
ROUNDED = 1.0
# A window that begins less than this before its video's end, in seconds, has nothing to show.
LEAST = 0.02


LEAVE_OUT = (
    "Correct them, or leave them out (they are counted in the results) with --allow-bad-items or "
    f"{settings.ALLOW_BAD_ITEMS}=1"
)


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
    # realpath, unlike Path.resolve, leaves a link that leads to itself as it is: it is missing.
    asked = {n: p for n, p in paths.items() if only is None or os.path.realpath(p) in only}
    known = probes.look(asked.values())
    found = {name: known[path] for name, path in asked.items()}
    return (
        {name: info for name, info in found.items() if not isinstance(info, str)},
        {name: why for name, why in found.items() if isinstance(why, str)},
    )


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
    if not problems or settings.value(settings.ALLOW_BAD_ITEMS):
        return []
    return [f"{len(problems):,} {what}:\n{listed(problems)}\n{LEAVE_OUT}"]


def missing_videos(
    problems: Mapping[str, str], what: str, cure: str = "Put them there"
) -> list[str]:
    """As `bad_items`, of videos that are missing or unreadable."""
    if not problems or settings.value(settings.ALLOW_MISSING):
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
