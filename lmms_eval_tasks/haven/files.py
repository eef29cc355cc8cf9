"""The user's data: a look at what is there (`data status`), and putting it in place (`prepare`)."""

from __future__ import annotations

import filecmp
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven import data, layout, options, schema, video_match, videos
from lmms_eval_tasks.haven.labels import LARGE_SOURCES, OWN, PAPER_COUNTS, SOURCES
from lmms_eval_tasks.haven.layout import Files
from lmms_eval_tasks.haven.options import Options
from lmms_eval_tasks.haven.record import Record
from lmms_eval_tasks.haven.schema import Release
from lmms_eval_tasks.haven.subset import natural
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.released_files import DataStatus
from lmms_eval_tasks.utils.video_checks import LISTED

_LARGE = 1 << 30  # bytes of a file from which linking is advised
_WIDTH = 110  # columns of the lists of a subset's videos


def status(root: Path) -> DataStatus:
    """Look at HAVEN's data under a data root, without raising; only chosen videos are validated."""

    def read(folder: Path) -> Release:
        return schema.read(folder, options.current())

    release = released_files.release_or_status("haven", root, data.HOW_TO_GET, read)
    if isinstance(release, DataStatus):
        return release
    troubles = video_match.troubles(release.records)
    missing, unreadable = released_files.by_trouble(troubles)
    unfit = {name: why for name, why in troubles.items() if name not in {*missing, *unreadable}}
    return DataStatus(
        benchmark="haven",
        where=release.folder,
        found=True,
        version=release.digest,
        counts=release.counts,
        videos=len(release.records) - len(troubles),
        missing=missing,
        unreadable=unreadable,
        notes=tuple(_notes(release, options.current(), troubles, unfit)),
    )


def _notes(
    release: Release, chosen: Options, troubles: Mapping[str, str], unfit: Mapping[str, str]
) -> Iterator[str]:
    yield released_files.compared(release.counts, PAPER_COUNTS)
    for source, title in SOURCES.items():
        own = [record for record in release.records if record.source == source]
        if own:
            there = sum(record.id not in troubles for record in own)
            without = sum(record.n_frames is None for record in own)
            yield (
                f"{source} ({title}): {len(own):,} videos, {there:,} with a file that fits, "
                f"{len(own) - without:,} with HDF5"
            )
        elif not any(name.startswith(f"{source}/") for name in release.problems):
            yield from _absent(release, source, chosen)
    for source in LARGE_SOURCES:
        yield from _subset(release, source, chosen)
    for name, why in release.problems.items():
        yield f"{name}: {why}"
    for name, why in unfit.items():
        yield f"{name}: {why}"
    yield from _gaps(release.records)


def _absent(release: Release, source: str, chosen: Options) -> Iterator[str]:
    """A line about a source that is not evaluated."""
    title = SOURCES[source]
    if source != OWN:
        asked = not chosen.sources or source in chosen.sources
        yield f"{source} ({title}): {'not there' if asked else f'not in {settings.HAVEN}'}"
    elif layout.find(release.folder, OWN).texts:
        yield f"{source} ({title}): there; evaluated with --haven sources={OWN}"


def _subset(release: Release, source: str, chosen: Options) -> Iterator[str]:
    """The videos of a large source that are evaluated, bad ones too, in lines of some length."""
    ids = [*(record.id for record in release.records), *release.problems]
    keys = sorted(
        (name.partition("/")[2] for name in ids if name.startswith(f"{source}/")), key=natural
    )
    if not keys or not chosen.subset:
        return
    yield (
        f"{source}: {len(keys):,} videos are evaluated (subset={chosen.subset}, "
        f"seed={chosen.seed}; any others are not validated):"
    )
    for line in textwrap.wrap(" ".join(keys), _WIDTH, break_long_words=False):
        yield f"  {line}"


def _gaps(records: Iterable[Record]) -> Iterator[str]:
    """What tasks leave out, and why: a line per task, then one per reason, the first 20."""
    by_task: dict[str, int] = {}
    by_reason: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for record in records:
        for task, why in record.gaps.items():
            by_task[task] = by_task.get(task, 0) + 1
            by_reason.setdefault((record.source, why), []).append((record.id, task))
    for task, n_left_out in sorted(by_task.items()):
        yield f"haven_{task}: leaves out {n_left_out:,} videos"
    for number, ((_, why), hits) in enumerate(by_reason.items()):
        if number == LISTED:
            yield f"and {len(by_reason) - LISTED} more reasons"
            return
        names = list(dict.fromkeys(name for name, _ in hits))
        more = f" and {len(names) - 1:,} more videos" if len(names) > 1 else ""
        yield f"{names[0]}{more}: {why} ({', '.join(dict.fromkeys(task for _, task in hits))})"


def prepare(source: Path, root: Path, link: bool) -> str:
    """Validate files of the release and put them, and the videos of theirs, under the data root.

    What is there already of a source stays, so JSON and HDF5 may come one after the other. Of the
    large sources only the videos of the subset are taken along.

    Args:
        source: the release's `data` folder, the folder that holds it, a clone of the hub copy, one
            SOURCE_data.json or one SOURCE.h5.
        root: the data root.
        link: link instead of copying.

    Raises:
        DataError: there is no such file, it does not fit the schema or other data is in the way.
        TasksError: an option has no value of its range.
    """
    source = source.expanduser().resolve()
    base, given = _given(source)
    target = root / "haven"
    whole = [_with_placed(files, layout.find(target, files.source)) for files in given]
    release = schema.read_files(base, whole, options.current())
    places = {target / name: path for name, path in _places(base, given, release)}
    for place, path in places.items():
        if place.exists() and not _is_video(place) and not _same(place, path):
            raise DataError(f"{place}: is another file than {path}; remove it first")
    for place, path in places.items():
        if not (place.exists() and _same(place, path)):
            place.parent.mkdir(parents=True, exist_ok=True)
            released_files.put(path, place, link)
    _check_placed(release, target, tuple(files.source for files in given), source)
    told = [
        f"{'linked' if link else 'copied'} {len(places)} files to {target}: "
        f"{len(release.records):,} videos of {', '.join(files.source for files in given)}; "
        f"{len(release.problems):,} videos with problems"
    ]
    large = [path.name for path in places.values() if not link and path.stat().st_size >= _LARGE]
    if large:
        told.append(f"large files were copied ({', '.join(large)}); --link links them instead")
    return "\n".join([*told, *status(root).notes])


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
        return base, [Files(slug, (source,), layout.hdf5_path(base, slug))]
    if not source.is_dir():
        raise DataError(f"{source}: no such file or folder")
    for base in (source, source / "data", source / "HAVEN"):
        found = [layout.find(base, slug) for slug in SOURCES]
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


def _places(base: Path, given: list[Files], release: Release) -> Iterator[tuple[str, Path]]:
    """Place below ROOT/haven and file, of everything that is taken along."""
    for files in given:
        for path in files.texts:
            folder = "processed" if path.suffix == ".json" else files.source
            yield f"{folder}/{path.name}", path
        if files.hdf5.is_file():
            yield f"{files.source}/h5/{files.source}.h5", files.hdf5
        if names := videos.names_file(layout.video_folders(base, files.source)):
            yield f"videos/{files.source}/{names.name}", names
    for record in release.records:
        if record.path is not None and record.path.is_file():
            yield f"videos/{record.source}/{record.path.name}", record.path


def _is_video(place: Path) -> bool:
    return place.suffix.lower() in released_files.VIDEO_ENDINGS


def _same(place: Path, path: Path) -> bool:
    """Whether two files are one, or hold the same."""
    return place.resolve() == path.resolve() or filecmp.cmp(place, path, shallow=False)


def _check_placed(release: Release, target: Path, sources: tuple[str, ...], source: Path) -> None:
    """The data read again from their place: nothing that lies there may change what they say.

    Raises:
        DataError: something does.
    """
    placed = schema.read(target, replace(options.current(), sources=sources))
    if placed.digest != release.digest:
        raise DataError(f"{target}: is read as other data than {source}; remove it first")
    for given, there in zip(release.records, placed.records, strict=True):
        if given.path is None or there.path is None or not given.path.is_file():
            continue
        if there.path.name != given.path.name:
            raise DataError(f"{there.path}: is in the way of {given.path}; remove it first")
