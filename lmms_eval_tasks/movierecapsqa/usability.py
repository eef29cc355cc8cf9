"""Which segments can be asked about: what only the files beside the data file show.

A source needs its own file and nothing else: `segment` and `recap` the recap video, `scenes` and
`movie` the user's copy of the movie, and dialogue alone no video at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa.entry import Segment
from lmms_eval_tasks.movierecapsqa.labels import SOURCES, condition_of, source_of
from lmms_eval_tasks.movierecapsqa.schema import Release
from lmms_eval_tasks.runs.cuts import Window
from lmms_eval_tasks.utils import video_checks
from lmms_eval_tasks.utils.video_checks import ALLOW_MISSING, LEAVE_OUT, listed

# What a source is read from, for messages.
NEEDS = {
    "segment": "recap videos in recaps/, or beside the data file, named by videoId",
    "recap": "recap videos in recaps/, or beside the data file, named by videoId",
    "scenes": "movieId, movieStartTime and movieEndTime in the data file (seconds in the movie; "
    "fields of this suite's own) and the movie in movies/, named by movieId",
    "movie": "movieId in the data file (a field of this suite's own) and the movie in movies/, "
    "named by movieId",
}


class Held(NamedTuple):
    """What of a source the user holds, by id of the segment; every segment is in one of the three.

    windows: what is shown: the file, start and end in seconds; None and None is all of it.
    absent: no file, or nothing that says which: the reason. `--allow-missing-videos` leaves them
        out.
    bad: a window that is not inside its video: the reason. `--allow-bad-items` leaves them out.
    """

    windows: dict[str, Window]
    absent: dict[str, str]
    bad: dict[str, str]


def asked(release: Release) -> list[Segment]:
    """The good segments that have questions."""
    return [segment for segment in release.segments if segment.questions]


def held(release: Release, source: str) -> Held:
    """Look for a visual source (labels.SOURCES) of all good segments that have questions.

    A window that ends a rounded second after its video ends with it.
    """
    wanted = {segment.id: _wanted(release, segment, source) for segment in asked(release)}
    paths = {one[0] for one in wanted.values() if not isinstance(one, str)}
    # As they are handed over (resolved), so that a whole movie is listed once in a process.
    infos, troubles = video_checks.look({str(path): path.resolve() for path in sorted(paths)})
    result = Held({}, {}, {})
    for name, one in wanted.items():
        if isinstance(one, str):
            result.absent[name] = one
            continue
        path, start, end = one
        if why := troubles.get(str(path)):
            result.absent[name] = why
        elif why := video_checks.outside(start, end, infos[str(path)].end):
            result.bad[name] = why
        else:
            last = None if end is None else min(end, infos[str(path)].end)
            result.windows[name] = (str(path.resolve()), start, last)
    return result


def _wanted(
    release: Release, segment: Segment, source: str
) -> tuple[Path, float | None, float | None] | str:
    """The file and the window that a source shows of a segment, or why there is none."""
    if source in ("segment", "recap"):
        path = release.recap_path(segment)
        return (path, None, None) if source == "recap" else (path, segment.start, segment.end)
    movie = release.movie_path(segment)
    if movie is None:
        return "names no movie (movieId)"
    if source == "movie":
        return movie, None, None
    if segment.movie_start is None:
        return "has no window in the movie (movieStartTime, movieEndTime)"
    return movie, segment.movie_start, segment.movie_end


def usable(release: Release, sources: Mapping[str, Sequence[str]]) -> dict[str, Held]:
    """What of the sources there is, where the user allowed to leave out the rest.

    Args:
        release: the user's data.
        sources: slug -> the tasks that show it, for messages.

    Raises:
        DataError: segments are bad and `--allow-bad-items` was not given, or a source is not there
            and `--allow-missing-videos` was not given, or nothing is left of one; says all of it.
    """
    told = []
    if release.problems and not settings.allow_bad_items():
        total = len(release.segments) + len(release.problems)
        told.append(
            f"{len(release.problems)} of {total} MovieRecapsQA segments cannot be used:\n"
            f"{listed(release.problems)}\n{LEAVE_OUT}"
        )
    if not asked(release):
        told.append("its segments have no questions")
    found = {source: held(release, source) for source in sources}
    for source, tasks in sources.items():
        told += _complaints(source, tasks, found[source])
    if told:
        raise DataError(f"{release.file}: " + "\n".join(told))
    return found


def _complaints(source: str, tasks: Sequence[str], found: Held) -> list[str]:
    """What the user has to mend, or to allow, before the tasks of a source can run."""
    what = f"{SOURCES[source]} ({', '.join(tasks)})"
    windows, absent, bad = found
    total = len(windows) + len(absent) + len(bad)
    if total and not windows:
        return [
            f"none of {total} segments can be shown as the {what}:\n{listed({**absent, **bad})}\n"
            f"This source needs {NEEDS[source]}. Tasks that end in _dialogue need no video"
        ]
    told = []
    if absent and not settings.allow_missing_videos():
        told.append(
            f"{len(absent)} of {total} segments cannot be shown as the {what}:\n{listed(absent)}\n"
            f"This source needs {NEEDS[source]}. Or leave their questions out (they are counted "
            f"in the results) with {ALLOW_MISSING}"
        )
    if bad and not settings.allow_bad_items():
        told.append(
            f"{len(bad)} of {total} segments are not inside the {what}:\n{listed(bad)}\n{LEAVE_OUT}"
        )
    return told


def shown_by(tasks: Sequence[str]) -> dict[str, list[str]]:
    """Slug of each source that is shown -> the tasks that do, in their order."""
    found: dict[str, list[str]] = {}
    for task in tasks:
        if condition_of(task).picture:
            found.setdefault(source_of(task), []).append(task)
    return found
