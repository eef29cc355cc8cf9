"""HAVEN's files, and reading those of its videos that are evaluated.

    ROOT/haven/processed/SOURCE_data.json   as released (json_file.py); or without processed/
    ROOT/haven/SOURCE/h5/SOURCE.h5          as released (hdf5_file.py); or ROOT/haven/SOURCE.h5, as
                                            downloads of a folder come; without it no saliency
    ROOT/haven/SOURCE/*.jsonl               the hub copy, where the JSON file is not there
    ROOT/haven/videos/SOURCE/NAME.mp4       the user's own copies; or ROOT/haven/SOURCE/videos/

NAME is the video's key in the release (video_7) or the original video's own name, in this order.

A file that is no JSON or no HDF5 at all stops. What is wrong with single videos is collected, so
that the others can be run where the user allows it. Videos of the two large sources outside of the
subset (`chosen`) are neither validated nor kept: MR.HiSum's JSON is 361 MB for 5,590 videos.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.options import LARGE_SOURCES, OWN, SOURCES, Options
from lmms_eval_tasks.haven.records import hdf5_file, json_file
from lmms_eval_tasks.haven.records.hdf5_file import Arrays
from lmms_eval_tasks.haven.records.record import Origin, Record, join
from lmms_eval_tasks.utils import released_files

_KEYS = ("video_id", "video", "id")  # of a line of the hub copy, in this order
# What is read of a line of the hub copy; other fields are its task's own.
FIELDS = ("frames", "clips", "aligned_full_document", "aligned_text_summary", "video_name")


@dataclass(frozen=True)
class Release:
    """The videos that are evaluated, of the chosen sources that are there.

    Attributes:
        folder: ROOT/haven.
        digest: first 12 hex digits of the SHA-256 of the content of these videos, good and bad, in
            JSON and HDF5, independent of formatting and of the other videos.
        records: the good ones, by source in the paper's order, then video_2 before video_10; their
            paths say where the video is or would be.
        problems: id of a bad video -> what is wrong with it, in one line.
    """

    folder: Path
    digest: str
    records: tuple[Record, ...]
    problems: Mapping[str, str]

    @property
    def counts(self) -> dict[str, int]:
        """Good videos, all and of each source (as options.PAPER_COUNTS), and what they hold."""
        by_source = [record.source for record in self.records]
        return {
            "videos": len(self.records),
            **{
                source: by_source.count(source)
                for source in SOURCES
                if source != OWN or OWN in by_source
            },
            "frames": sum(len(record.frames) for record in self.records),
            "shots": sum(len(record.shots) for record in self.records),
            "videos_without_hdf5": sum(record.n_frames is None for record in self.records),
            "bad_videos": len(self.problems),
        }


@dataclass(frozen=True)
class Files:
    """The files of one source.

    Attributes:
        source: a slug of options.SOURCES.
        texts: the JSON file, or the JSON Lines files of the hub copy; empty if there is none.
        hdf5: where the HDF5 file is, or would be.
    """

    source: str
    texts: tuple[Path, ...]
    hdf5: Path


# --- where files lie ----------------------------------------------------------------------------


def find(folder: Path, source: str) -> Files:
    """The files of `source` below `folder`."""
    places = (folder / "processed", folder)
    texts = _first(*(place / f"{source}_data.json" for place in places))
    texts = texts or tuple(sorted((folder / source).glob("*.jsonl")))  # the hub copy
    return Files(source, texts, hdf5_path(folder, source))


def hdf5_path(folder: Path, source: str) -> Path:
    """Where the HDF5 file of `source` is, or would be."""
    released = folder / source / "h5" / f"{source}.h5"
    return next(iter(_first(released, folder / released.name)), released)


def _first(*files: Path) -> tuple[Path, ...]:
    """The first file that is there, alone; empty if none is."""
    return next(((file,) for file in files if file.is_file()), ())


def video_folders(folder: Path, source: str) -> list[Path]:
    """Where the videos of `source` are looked for, in order."""
    return [folder / "videos" / source, folder / source / "videos"]


def placed(folder: Path, records: Iterable[Record]) -> tuple[Record, ...]:
    """The records with the path of their video: where it is, or where it would be."""
    return tuple(
        replace(record, path=_path(video_folders(folder, record.source), record))
        for record in records
    )


def _path(folders: list[Path], record: Record) -> Path:
    there = released_files.video_path(folders, record.video)
    if not there.is_file() and is_file_name(record.name):
        named = released_files.video_path(folders, record.name)
        return named if named.is_file() else there
    return there


def is_file_name(name: str) -> bool:
    """Whether a name can be that of a file in a folder: nothing else, no folder, one line."""
    return name not in ("", ".", "..") and not {"/", "\\"} & set(name) and name.isprintable()


# --- which videos -------------------------------------------------------------------------------


def chosen(source: str, videos: Iterable[str], options: Options) -> list[str]:
    """The videos of a source that are evaluated, in natural order: the same for everyone (4.1).

    The paper draws 100 of each large source at random and does not name them. Ours are those with
    the smallest SHA-256 of the UTF-8 text `SEED:SOURCE/VIDEO`, as in 0:mrhisum/video_1020, over all
    videos of the source's JSON file, good or bad, whatever their order in it. Of a source that is
    in a file of `ids` the videos named there are evaluated, and no others.

    Args:
        source: a slug of options.SOURCES; only the two large ones have a subset.

    Raises:
        DataError: a file of `ids` cannot be read, or names a video that is not there.
    """

    def digest(video: str) -> bytes:
        text = f"{options.seed}:{source}/{video}"
        return hashlib.sha256(text.encode("utf-8", "replace")).digest()

    found = list(videos)
    if named := read_ids(options.ids, [source]).get(source):
        if unknown := sorted(named - set(found), key=natural):
            raise DataError(f"ids: no video {unknown[0]} of {source} ({len(unknown)} unknown)")
        return sorted(named, key=natural)
    if source in LARGE_SOURCES and options.subset:
        found = sorted(found, key=digest)[: options.subset]
    return sorted(found, key=natural)


def read_ids(files: Sequence[str], sources: Sequence[str]) -> dict[str, set[str]]:
    """The videos that a user names, by source, one a line: `SOURCE/VIDEO`, or `VIDEO` alone.

    Alone it is of the source that the file's name begins with (mrhisum_100_seed42.txt), or of the
    only one that is read.

    Raises:
        DataError: a file cannot be read, or a line does not say which source it is of.
    """
    found: dict[str, set[str]] = {}
    for file in map(Path, files):
        first = file.name.split("_")[0]
        alone = first if first in SOURCES else (sources[0] if len(sources) == 1 else "")
        for number, line in enumerate(released_files.read_text(file).splitlines(), 1):
            before, _, video = line.strip().rpartition("/")
            if not video:
                continue
            if (before or alone) not in SOURCES:
                raise DataError(f"{file}, line {number}: expected SOURCE/VIDEO, found {line!r}")
            found.setdefault(before or alone, set()).add(video)
    return found


def natural(video: str) -> tuple[list[tuple[str, int]], str]:
    """For sorting: video_2 before video_10."""
    parts = re.findall(r"([^0-9]*)([0-9]*)", video)
    return [(text, int(digits or -1)) for text, digits in parts], video


# --- reading ------------------------------------------------------------------------------------


def read(folder: Path, options: Options) -> Release:
    """Read and validate the chosen videos below `folder`; kept while the files do not change.

    Args:
        options: `sources`; none named are those of the paper's six that are there, or a user's own
            videos where none of these is. `seed` and `subset`.

    Raises:
        DataError: there is no file of a source that was named, or of any; a file is no JSON or no
            HDF5; not one video can be used; names the file.
    """
    files = [find(folder, source) for source in options.sources or SOURCES]
    if options.sources:
        for one in files:
            if not one.texts:
                raise DataError(
                    f"{folder}: no file of {one.source} (expected processed/{one.source}_data.json)"
                )
    there = [one for one in files if one.texts]
    if not options.sources:
        # A user's own videos are not mixed into the benchmark's numbers.
        there = [one for one in there if one.source != OWN] or there
    return read_files(folder, there, options)


def read_files(folder: Path, files: list[Files], options: Options) -> Release:
    """As `read`, of given files; videos are looked for below `folder`."""
    if not files:
        raise DataError(f"{folder}: no data file (expected processed/SOURCE_data.json)")
    paths = [path for one in files for path in (*one.texts, one.hdf5)]
    paths += [Path(file) for file in options.ids]
    # Only what chooses videos: other options make other items of the same records.
    chosen_by = Options(
        seed=options.seed, subset=options.subset, ids=options.ids, slack=options.slack
    )
    release = _read(folder, tuple(files), released_files.state(*paths), chosen_by)
    return replace(release, records=placed(folder, release.records))


@lru_cache(maxsize=8)
def _read(folder: Path, files: tuple[Files, ...], _state: object, options: Options) -> Release:
    records: list[Record] = []
    problems: dict[str, str] = {}
    content = hashlib.sha256()
    read_ids(options.ids, [one.source for one in files])  # a line of another source stops
    for one in files:
        for name, found in _source(one, options, content):
            if isinstance(found, Record):
                records.append(found)
            else:
                problems[name] = found
    if not records:
        first = next(iter(problems))
        raise DataError(
            f"{folder}: not one of {len(problems)} videos fits the schema; {first}: "
            f"{problems[first]}"
        )
    return Release(folder, content.hexdigest()[:12], tuple(records), problems)


def _source(files: Files, options: Options, content: Any) -> list[tuple[str, Record | str]]:
    """Every chosen video of a source by its id: its record, or what is wrong with it.

    Args:
        content: a hash; what is read is added to it, in one form however files are formatted.
    """
    entries = read_texts(files.texts)
    named = files.texts[0].name if len(files.texts) == 1 else f"{files.source}/*.jsonl"
    ours = chosen(files.source, entries, options)
    there = files.hdf5.is_file()
    arrays = hdf5_file.read(files.hdf5, ours) if there else {}
    result: list[tuple[str, Record | str]] = []
    for video in ours:
        entry, own = entries[video], arrays.get(video)
        name = f"{files.source}/{video}"
        held = json.dumps(
            [name, entry, vars(own) if isinstance(own, Arrays) else own], sort_keys=True
        )
        content.update(f"{held}\n".encode("utf-8", "replace"))
        why = f"no group {video}" if there else "no such file"
        origin = Origin(named, files.hdf5.name, f"{files.hdf5.name}: {why}, so no importance")
        result.append((name, _one(files.source, video, entry, own, origin, slack=options.slack)))
    return result


def _one(
    source: str,
    video: str,
    entry: Any,
    own: Arrays | str | None,
    origin: Origin,
    *,
    slack: int,
) -> Record | str:
    """One video's record, or what is wrong with it."""
    if not is_file_name(video):
        return f"{origin.json}: the video's key is no name on one line, without a folder"
    given = json_file.read(entry)
    if isinstance(given, str):
        return f"{origin.json}, {given}"
    if isinstance(own, str):
        return f"{origin.hdf5}, {own}"
    return join(source, video, given, own, origin, slack=slack)


# --- the text files of one source ---------------------------------------------------------------


def read_texts(files: Sequence[Path]) -> Mapping[str, Any]:
    """The JSON value of every video, by its key, of one JSON file or of a source's JSON Lines.

    Raises:
        DataError: a file cannot be read, is not JSON, is no mapping of videos, or has no video;
            names the line.
    """
    if files[0].suffix == ".jsonl":
        entries = _lines(files)
    else:
        entries = released_files.read_json(files[0])
        if not isinstance(entries, dict):
            raise DataError(f'{files[0]}: expected {{"video_1": {{...}}, ...}}')
    if not entries:
        raise DataError(f"{files[0]}: holds no videos")
    return entries


def _lines(files: Sequence[Path]) -> dict[str, Any]:
    """JSON Lines: each line has the key of a video and some of its fields."""
    entries: dict[str, dict[str, Any]] = {}
    for file in files:
        for number, content in released_files.read_lines(file):
            place = f"{file}, line {number}"
            video, fields = _line(place, content)
            entry = entries.setdefault(video, {})
            for name, value in fields.items():
                if entry.setdefault(name, value) != value:
                    raise DataError(f"{place}: another {name} of {video} than a line before")
    return entries


def _line(place: str, value: Any) -> tuple[str, dict[str, Any]]:
    """The key of a line's video, and those of its fields that are read."""
    if not isinstance(value, dict):
        raise DataError(f"{place}: expected an object")
    named = (value.get(name) for name in _KEYS)
    key = next((one for one in named if isinstance(one, str) and one), None)
    if key is None:
        raise DataError(f"{place}: no video (a text in {', '.join(_KEYS[:-1])} or {_KEYS[-1]})")
    return key, {name: value[name] for name in FIELDS if name in value}
