"""The user's data: a look at what each source can be run for, and putting a release in place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa import data, schema, usability
from lmms_eval_tasks.movierecapsqa.labels import SOURCES, SPLITS
from lmms_eval_tasks.movierecapsqa.schema import PAPER_COUNTS, Release
from lmms_eval_tasks.utils import released_files, video_checks
from lmms_eval_tasks.utils.released_files import DataStatus

_FILE = schema.FILE_NAMES[0]


def status(root: Path) -> DataStatus:
    """Look at MovieRecapsQA's data under a data root, without raising."""
    release = released_files.release_or_status("movierecapsqa", root, data.HOW_TO_GET, schema.read)
    if isinstance(release, DataStatus):
        return release
    videos = {name: path.resolve() for name, path in _videos(release).items()}
    found, problems = video_checks.look(videos)
    missing, unreadable = released_files.by_trouble(problems)
    return DataStatus(
        benchmark="movierecapsqa",
        where=release.file,
        found=True,
        version=release.digest,
        counts=release.counts,
        videos=len(found),
        missing=missing,
        unreadable=unreadable,
        notes=tuple(_notes(release)),
    )


def _videos(release: Release) -> dict[str, Path]:
    """Recap videos by their id, and movies by "ID (movie)", where they are or would be."""
    paths = {segment.video: release.recap_path(segment) for segment in release.segments}
    for segment in release.segments:
        if (path := release.movie_path(segment)) is not None:
            paths[f"{segment.movie_id} (movie)"] = path
    return paths


def _notes(release: Release) -> Iterator[str]:
    yield released_files.compared(release.counts, PAPER_COUNTS)
    questions = {segment.id: len(segment.questions) for segment in usability.asked(release)}
    total = f"of {len(questions):,} segments, {{:,}} of {sum(questions.values()):,} questions"
    for source, title in SOURCES.items():
        held = usability.held(release, source)
        shown = total.format(sum(questions[name] for name in held.windows))
        line = f"movierecapsqa_{source} ({title}): can be run for {len(held.windows):,} {shown}"
        if not held.windows:
            line += f"; not held, it needs {usability.NEEDS[source]}"
        yield line
        for name, why in held.bad.items():
            yield f"{name}: {title}: {why}"
    yield "tasks that end in _dialogue need no video"
    if silent := sum(not segment.dialogue for segment in release.segments):
        yield f"segments without dialogue: {silent:,} (the prompt says so)"
    for split in SPLITS:
        unlabelled = sum(not getattr(question, split) for _, question in release.questions())
        if unlabelled:
            yield f"questions without a {split}: {unlabelled:,} (a row of their own)"
    for name, why in release.problems.items():
        yield f"{name}: {why}"


def prepare(source: Path, root: Path, link: bool) -> str:
    """Validate a data file and put it, and those of its videos that are there, under the data root.

    Args:
        source: the data file, or its folder; recap videos beside it or in recaps/, movies in
            movies/. Other files there are left alone.
        root: the data root.
        link: link instead of copying.

    Raises:
        DataError: the source is not there, does not fit the schema, or other data is in the way.
    """
    source = source.expanduser().resolve()
    if not source.exists():
        raise DataError(f"{source}: no such file or folder")
    release = schema.read(source)
    target = root / "movierecapsqa"
    there = target / _FILE
    if there.exists() and there.read_bytes() != release.file.read_bytes():
        raise DataError(f"{target}: holds another {_FILE} already; remove it first")
    places = {_FILE: release.file, **_found(release)}
    for name, path in places.items():
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        released_files.put(path, place, link)
    placed = _check_placed(release, target)
    return "\n".join(
        [
            f"{'linked' if link else 'copied'} {len(places)} files to {target}: "
            f"{len(release.segments)} segments, {release.counts['questions']} questions; "
            f"{len(release.problems)} segments with problems",
            *_notes(placed),
        ]
    )


def _found(release: Release) -> dict[str, Path]:
    """Place under the data root -> file, of the videos named by the release that are there."""
    places: dict[str, Path] = {}
    for segment in release.segments:
        for folder, path in (
            ("recaps", release.recap_path(segment)),
            ("movies", release.movie_path(segment)),
        ):
            if path is not None and path.is_file():
                places[f"{folder}/{path.name}"] = path
    return places


def _check_placed(release: Release, target: Path) -> Release:
    """The data read again from their place: nothing that lies there may change what they say.

    Raises:
        DataError: something does.
    """
    placed = schema.read(target)
    if placed.digest != release.digest:
        raise DataError(
            f"{placed.file}: is read as other data than {release.file}; remove {target} first"
        )
    there = _videos(placed)
    for name, given in _videos(release).items():
        if given.is_file() and there[name].name != given.name:
            raise DataError(f"{there[name]}: is in the way of {given}; remove it first")
    return placed
