"""Putting HAVEN's files, and the videos of theirs, in place (`lmms-eval-tasks data prepare`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven import options
from lmms_eval_tasks.haven.options import SOURCES
from lmms_eval_tasks.haven.records import release as released
from lmms_eval_tasks.haven.records.release import Files, Release
from lmms_eval_tasks.utils import released_files


def prepare(source: Path, root: Path, link: bool) -> str:
    """Validate files of the release and put them, and the videos of theirs, under the data root.

    What is there already of a source stays, so JSON and HDF5 may come one after the other. Of the
    large sources only the videos of the subset are taken along.

    Args:
        source: the release's `data` folder, the folder that holds it, a clone of the hub copy, one
            SOURCE_data.json or one SOURCE.h5.

    Raises:
        DataError: there is no such file, it does not fit the schema or other data is in the way.
        TasksError: an option has no value of its range.
    """
    source = source.expanduser().resolve()
    base, given = _given(source)
    target = root / "haven"
    whole = [_with_placed(files, released.find(target, files.source)) for files in given]
    release = released.read_files(base, whole, options.current())
    places = dict(_places(given, release))
    fixed = [name for name in places if not name.lower().endswith(released_files.VIDEO_ENDINGS)]
    done = released_files.place(target, places, link, fixed)
    # Read again from their place: nothing that lies there may change what they say.
    sources = tuple(files.source for files in given)
    placed = released.read(target, replace(options.current(), sources=sources))
    if placed.digest != release.digest:
        raise DataError(f"{target}: is read as other data than {source}; remove it first")
    records = zip(placed.records, release.records, strict=True)
    released_files.check_placed((there.path, own.path) for there, own in records)
    return (
        f"{done}: {len(release.records):,} videos of "
        f"{', '.join(sources)}; "
        f"{len(release.problems):,} videos with problems"
    )


def _given(source: Path) -> tuple[Path, list[Files]]:
    """The folder in which the files that the user names are laid out, and these files."""
    if source.is_file():
        slug = source.name.removesuffix("_data.json").removesuffix(".h5")
        if slug not in SOURCES or slug == source.name:
            raise DataError(
                f"{source}: expected SOURCE_data.json or SOURCE.h5, SOURCE one of "
                f"{', '.join(SOURCES)}"
            )
        base = source.parent
        if source.suffix == ".h5":
            base = base.parent.parent if base.name == "h5" else base
            return base, [Files(slug, (), source)]
        base = base.parent if base.name == "processed" else base
        return base, [Files(slug, (source,), released.hdf5_path(base, slug))]
    if not source.is_dir():
        raise DataError(f"{source}: no such file or folder")
    for base in (source, source / "data", source / "HAVEN"):
        found = [released.find(base, slug) for slug in SOURCES]
        if there := [files for files in found if files.texts or files.hdf5.is_file()]:
            return base, there
    raise DataError(
        f"{source}: no file of HAVEN (expected processed/SOURCE_data.json and SOURCE/h5/SOURCE.h5 "
        "in it, or in its folder `data`)"
    )


def _with_placed(given: Files, placed: Files) -> Files:
    """A source's files, each of the given ones or else the one that is in its place already."""
    if not (given.texts or placed.texts):
        raise DataError(f"{given.hdf5}: is of no use without {given.source}_data.json; give both")
    hdf5 = given.hdf5 if given.hdf5.is_file() else placed.hdf5
    return Files(given.source, given.texts or placed.texts, hdf5)


def _places(given: list[Files], release: Release) -> Iterator[tuple[str, Path]]:
    """Place below ROOT/haven and file, of everything that is taken along."""
    for files in given:
        for path in files.texts:
            folder = "processed" if path.suffix == ".json" else files.source
            yield f"{folder}/{path.name}", path
        if files.hdf5.is_file():
            yield f"{files.source}/h5/{files.source}.h5", files.hdf5
    for record in release.records:
        if record.path is not None and record.path.is_file():
            yield f"videos/{record.source}/{record.path.name}", record.path
