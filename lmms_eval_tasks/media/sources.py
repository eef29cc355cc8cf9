"""Checks of the files that a benchmark's records need, and of each record's window in its video.

A benchmark lists the files that its tasks need beside the data file (`Source`), such as a video for
each record, or its subtitles. Missing or unreadable files and records that do not fit their video
are found, reported and left out here, in the same way for all benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.media import video_checks
from lmms_eval_tasks.media.video_checks import VideoInfo
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.released_files import listed

# A window may end this many seconds after the end of its video, since times in files are rounded.
ROUNDED = 1.0
# A window that begins less than this many seconds before the end of its video shows nothing.
LEAST = 0.02
LEAVE_OUT = (
    "Correct them, or skip them with --allow-bad-items (or "
    f"{settings.ALLOW_BAD_ITEMS}=1); the results count them"
)


class Window(NamedTuple):
    """The stretch of a video that a record is about.

    start, end: seconds after the video's first frame; both are None for the whole file.
    """

    video: str  # the video's name in the release
    path: Path  # path of the file, which may be missing
    folder: str  # the file's folder, below the benchmark's
    start: float | None = None
    end: float | None = None


@dataclass(frozen=True, kw_only=True)
class Source:
    """A kind of file that records need beside the data file.

    Attributes:
        tasks: names of the tasks that leave out a record without a usable file.
        noun: plural noun for the files, in messages.
        windows: the window of each record that names a video, by the record's id.
        absent: the reason for each other record, which has no file, by id.
        unfit: returns the reason why a readable video does not fit the record of an id; "" if it
            fits.
        cure: advice to the user about missing files.
        hint: text behind a count in messages, such as the tasks that need the files.
        is_video: False for files that an estimate needs, too; an estimate needs no videos.
    """

    tasks: Collection[str]
    noun: str = "videos"
    windows: Mapping[str, Window] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    unfit: Callable[[str, VideoInfo], str] = lambda record, info: ""  # noqa: ARG005
    cure: str = "Put them there"
    hint: str = ""
    is_video: bool = True


@dataclass(frozen=True)
class CheckedSource:
    """A source after its check, with its usable and unusable records.

    Attributes:
        source: the source.
        windows: windows of the usable records, by id, with resolved paths. A rounded end beyond the
            video is replaced by the video's end.
        infos: facts about the checked videos, by name.
        missing: the problem of each unusable file, "missing: ..." or "unreadable: ...", by the
            video's name.
        bad: the reason why a record does not fit its video, by the record's id.
    """

    source: Source
    windows: Mapping[str, Window]
    infos: Mapping[str, VideoInfo]
    missing: Mapping[str, str]
    bad: Mapping[str, str]

    @property
    def left_out(self) -> dict[str, str]:
        """The reason for each record that cannot be shown, by id."""
        videos = {name: window.video for name, window in self.source.windows.items()}
        lost = {name: self.missing[v] for name, v in videos.items() if v in self.missing}
        return {**self.source.absent, **lost, **self.bad}

    def summary(self, records: str) -> str:
        """Return one line with the number of usable records; `records` is their plural noun."""
        source = self.source
        total, usable = len(source.windows) + len(source.absent), len(self.windows)
        line = f"{source.noun}{source.hint}: of {total:,} {records}, {usable:,} can be used"
        return line if usable else f"{line}. {source.cure}"

    def complaints(self, records: str) -> list[str]:
        """Return a message about missing files and one about unfit records.

        A message is left out if there is no such problem, or if the user allowed it.

        Args:
            records: title and plural noun of the records, such as "MAVERIX items".
        """
        source, total = self.source, len(self.source.windows) + len(self.source.absent)
        title, _, plural = records.rpartition(" ")
        files = len({window.video for window in source.windows.values()}) + len(source.absent)
        lost = f"of {files:,} {title} {source.noun} cannot be used{source.hint}"
        if plural != source.noun:
            lost += f", and with them {len(self.left_out) - len(self.bad):,} of {total:,} {plural}"
        unfit = f"of {total:,} {records} do not fit their {source.noun}{source.hint}"
        missing = {**self.missing, **source.absent}
        return [*missing_files(missing, lost, source.cure), *bad_items(self.bad, unfit)]


def check_source(source: Source, only: Collection[str] | None = None) -> CheckedSource:
    """Check the videos of a source, and each record's window in them.

    Args:
        source: the source.
        only: resolved paths of the videos to check; others count as good. None checks all.
    """
    paths = {one.video: released_files.real(one.path) for one in source.windows.values()}
    infos, missing = video_checks.look(paths, only)
    windows: dict[str, Window] = {}
    bad: dict[str, str] = {}
    for record, window in source.windows.items():
        if window.video in missing:
            continue
        shown, info = window._replace(path=paths[window.video]), infos.get(window.video)
        if info is not None:
            why = outside(window.start, window.end, info.end) or source.unfit(record, info)
            if why:
                bad[record] = why
                continue
            if window.end is not None:
                shown = shown._replace(end=min(window.end, info.end))
        windows[record] = shown
    return CheckedSource(source, windows, infos, missing, bad)


def outside(start: float | None, end: float | None, seconds: float) -> str:
    """Return the reason why a window is not inside its video, or "".

    Args:
        start: start of the window in seconds; None is the video's start.
        end: end of the window in seconds; None is the video's end.
        seconds: the video's end: the later end of its picture and its sound.
    """
    if start is not None and start > seconds - LEAST:
        return f"starts at {start:g} s; its video ends at {seconds:.3f} s"
    if end is not None and end > seconds + ROUNDED:
        return f"ends at {end:g} s; its video ends at {seconds:.3f} s"
    return ""


# --- messages -------------------------------------------------------------------------------------


def bad_items(problems: Mapping[str, str], count: str) -> list[str]:
    """Return the complaint about unusable records; [] if there are none or the user allows them.

    Args:
        problems: the reason for each record, by name.
        count: text behind their number, such as "of 20 MAVERIX items cannot be used".
    """
    if not problems or settings.value(settings.ALLOW_BAD_ITEMS):
        return []
    return [f"{len(problems):,} {count}:\n{listed(problems)}\n{LEAVE_OUT}"]


def missing_files(
    problems: Mapping[str, str], count: str, cure: str = "Put them there"
) -> list[str]:
    """Return the complaint about missing or unreadable files, in the form of `bad_items`."""
    if not problems or settings.value(settings.ALLOW_MISSING):
        return []
    return [
        f"{len(problems):,} {count}:\n{listed(problems)}\n{cure}, or skip their "
        f"items with --allow-missing-videos (or {settings.ALLOW_MISSING}=1); "
        "the results count them"
    ]


def stop(place: Path | str, complaints: Sequence[str]) -> None:
    """Raise all complaints about a folder's data as one error.

    Raises:
        DataError: there are complaints.
    """
    if complaints:
        raise DataError(f"{place}: " + "\n".join(complaints))
