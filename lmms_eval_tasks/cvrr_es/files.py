"""The user's data: a look at what is there (`data status`), and putting it in place (`prepare`)."""

from __future__ import annotations

import filecmp
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from lmms_eval_tasks.cvrr_es import annotation_files, schema
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, PAPER_COUNTS
from lmms_eval_tasks.cvrr_es.schema import HOW_TO_GET, Release
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import released_files, video_checks
from lmms_eval_tasks.utils.released_files import DataStatus


def status(root: Path) -> DataStatus:
    """Look at CVRR-ES's data under a data root, without raising."""
    release = released_files.release_or_status("cvrr_es", root, HOW_TO_GET, schema.read)
    if isinstance(release, DataStatus):
        return release
    found, problems = video_checks.look(videos(release))
    missing, unreadable = released_files.by_trouble(problems)
    return DataStatus(
        benchmark="cvrr_es",
        where=release.folder,
        found=True,
        version=release.digest,
        counts=release.counts,
        videos=len(found),
        missing=missing,
        unreadable=unreadable,
        notes=tuple(_notes(release)),
    )


def videos(release: Release) -> dict[str, Path]:
    """The videos of all good questions by `DIMENSION/NAME`, where they are or would be."""
    return {
        question.video_id: release.video_path(question).resolve() for question in release.questions
    }


def _notes(release: Release) -> Iterator[str]:
    yield released_files.compared(release.counts, PAPER_COUNTS)
    for dimension in DIMENSIONS:
        own = [one for one in release.questions if one.dimension == dimension]
        if not own:
            yield f"{dimension}: not there"
            continue
        asked = Counter(" ".join(one.question.split()) for one in own)
        repeated = sum(often for often in asked.values() if often > 1)
        told = f"; {repeated:,} repeat another's text" if repeated else ""
        n_videos = len({one.video for one in own})
        yield f"{dimension}: {len(own):,} questions on {n_videos:,} videos{told}"
    yield from release.problems.values()


def prepare(source: Path, root: Path, link: bool) -> str:
    """Validate a release and put it, and those of its videos that are there, under the data root.

    Dimensions that are there already and not in the source stay.

    Args:
        source: the folder with the dimensions, or the folder that holds CVRR-ES.
        root: the data root.
        link: link instead of copying.

    Raises:
        DataError: the source is not there, does not fit, or other data is in the way.
    """
    source = source.expanduser().resolve()
    if not source.is_dir():
        raise DataError(f"{source}: no such folder")
    release = schema.read(source)
    target = root / "cvrr_es"
    places = dict(_places(release, target))
    for dimension, file in release.files.items():
        there = annotation_files.find(target, dimension)
        if there is not None and there not in places:
            raise DataError(f"{there}: is in the way of {file}; remove it first")
    for place, path in places.items():
        # Linked or copied before is no obstacle; a video is compared by its bytes as well, since
        # 2.mp4 of another copy may show something else.
        if place.exists() and not _same(place, path):
            raise DataError(f"{place}: is another file than {path}; remove it first")
    for place, path in places.items():
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            released_files.put(path, place, link)
    _check_placed(release, target)
    return "\n".join(
        [
            f"{'linked' if link else 'copied'} {len(places)} files to {target}: "
            f"{len(release.questions):,} questions of {len(release.files)} dimensions; "
            f"{len(release.problems):,} questions with problems",
            *status(root).notes,
        ]
    )


def _places(release: Release, target: Path) -> Iterator[tuple[Path, Path]]:
    """Place and file, of everything that is taken along."""
    for file in release.files.values():
        yield target / file.relative_to(release.folder), file
    for question in release.questions:
        path = release.video_path(question)
        if path.is_file():
            yield target / question.dimension / path.name, path


def _same(place: Path, path: Path) -> bool:
    """Whether two files are one, or hold the same."""
    return place.resolve() == path.resolve() or filecmp.cmp(place, path, shallow=False)


def _check_placed(release: Release, target: Path) -> None:
    """The data read again from their place: nothing that lies there may change what they say.

    Raises:
        DataError: something does.
    """
    placed = schema.read(target)
    there = {question.id: question for question in placed.questions}
    for question in release.questions:
        if there.get(question.id) != question:
            raise DataError(f"{target}: {question.id} is read otherwise than in {release.folder}")
        given, put = release.video_path(question), placed.video_path(question)
        if given.is_file() and put.name != given.name:
            raise DataError(f"{put}: is in the way of {given}; remove it first")
