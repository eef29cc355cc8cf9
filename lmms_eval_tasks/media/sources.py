"""Are the files there that a benchmark's records need, and does each record fit its own?

A benchmark says which files its tasks need beside the data file (`Source`): a video of each record,
or its subtitles. Files that are missing or unreadable and records that do not fit their video are
found, reported and left out here, in the same way for all benchmarks.
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

# A window may end this much after its video, in seconds: times in files are rounded.
ROUNDED = 1.0
# A window that begins less than this before its video's end, in seconds, has nothing to show.
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
    path: Path  # where its file is, or would be
    folder: str  # the place of its folder below the benchmark's
    start: float | None = None
    end: float | None = None


@dataclass(frozen=True, kw_only=True)
class Source:
    """A kind of file that records need beside the data file.

    Attributes:
        tasks: names of the tasks that leave out a record without a usable file.
        noun: plural of the files, for messages.
        windows: the video of each record that names one, by the record's id.
        absent: why other records have no file, by id.
        unfit: returns why a readable video cannot serve a record (by id); "" if it can.
        cure: what the user can do about missing files.
        hint: what stands behind a count in messages, such as the tasks that need the files.
        is_video: False for files that are looked for where videos are not, as for an estimate.
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
    """A source, and what of it can be used.

    Attributes:
        windows: of the records that can be shown, by id, with resolved paths; an end that was
            rounded up is the video's own.
        infos: facts about the videos that were looked at, by name.
        missing: by name of a video, "missing: ..." or "unreadable: ...".
        bad: by id of a record, why it does not fit its video.
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
        """One line on how many records (the plural) can be shown."""
        source = self.source
        total, usable = len(source.windows) + len(source.absent), len(self.windows)
        line = f"{source.noun}{source.hint}: of {total:,} {records}, {usable:,} can be used"
        return line if usable else f"{line}. {source.cure}"

    def complaints(self, records: str) -> list[str]:
        """One message on missing files and one on records that do not fit; what the user allowed
        is not complained about.

        Args:
            records: title and plural of the records, such as "MAVERIX items".
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


def check(source: Source, only: Collection[str] | None = None) -> CheckedSource:
    """Look at the videos of a source and at each record's window in them.

    Args:
        only: resolved paths of the videos to look at; others are taken for good. None is all.
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
    """Return why a window is not inside its video, or "".

    Args:
        start, end: of the window in seconds; None is the video's own.
        seconds: the video's end: that of its picture or of its sound, whichever is later.
    """
    if start is not None and start > seconds - LEAST:
        return f"starts at {start:g} s; its video ends at {seconds:.3f} s"
    if end is not None and end > seconds + ROUNDED:
        return f"ends at {end:g} s; its video ends at {seconds:.3f} s"
    return ""


# --- messages -------------------------------------------------------------------------------------


def bad_items(problems: Mapping[str, str], count: str) -> list[str]:
    """The complaint about records that cannot be used; [] without any, or where they are allowed.

    Args:
        problems: by name, with the reason.
        count: the text behind their number, such as "of 20 MAVERIX items cannot be used".
    """
    if not problems or settings.value(settings.ALLOW_BAD_ITEMS):
        return []
    return [f"{len(problems):,} {count}:\n{listed(problems)}\n{LEAVE_OUT}"]


def missing_files(
    problems: Mapping[str, str], count: str, cure: str = "Put them there"
) -> list[str]:
    """The complaint about missing or unreadable files, as `bad_items` returns it."""
    if not problems or settings.value(settings.ALLOW_MISSING):
        return []
    return [
        f"{len(problems):,} {count}:\n{listed(problems)}\n{cure}, or skip their "
        f"items with --allow-missing-videos (or {settings.ALLOW_MISSING}=1); "
        "the results count them"
    ]


def stop(place: Path | str, complaints: Sequence[str]) -> None:
    """Raise all complaints about the data of a place as one error.

    Raises:
        DataError: there are complaints.
    """
    if complaints:
        raise DataError(f"{place}: " + "\n".join(complaints))
