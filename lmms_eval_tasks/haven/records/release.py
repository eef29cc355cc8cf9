"""HAVEN's files, and reading those of its videos that are evaluated.

    ROOT/haven/processed/SOURCE_data.json   as released (json_file.py); or without processed/
    ROOT/haven/SOURCE/h5/SOURCE.h5          as released (hdf5_file.py); or ROOT/haven/SOURCE.h5, as
                                            downloads of a folder come; without it no saliency
    ROOT/haven/SOURCE.jsonl                 the hub copy; or ROOT/haven/SOURCE/*.jsonl, or either in
                                            processed/; the JSON file is read where it is there
    ROOT/haven/videos/SOURCE/NAME.mp4       the user's own copies; or ROOT/haven/SOURCE/videos/

NAME is what an optional names.json beside the videos says ({"video_7": "file.mp4"}), or the video's
key in the release (video_7), or the original video's own name, in this order.

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
from lmms_eval_tasks.utils.validation import quoted

NAMES = "names.json"
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
    for place in reversed(places):  # the hub copy
        texts = texts or _first(place / f"{source}.jsonl")
        texts = texts or tuple(sorted((place / source).glob("*.jsonl")))
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


def names_file(folders: Iterable[Path]) -> Path | None:
    """The first names.json in the folders of a source's videos; None if there is none."""
    return next((f / NAMES for f in folders if (f / NAMES).is_file()), None)


def placed(folder: Path, records: Iterable[Record]) -> tuple[Record, ...]:
    """The records with the path of their video: where it is, or where it would be.

    Args:
        folder: ROOT/haven.
        records: of any sources.

    Raises:
        DataError: a names.json is no mapping of keys to names of files.
    """
    found: dict[str, tuple[list[Path], Mapping[str, str]]] = {}
    result = []
    for record in records:
        if record.source not in found:
            folders = video_folders(folder, record.source)
            found[record.source] = folders, _names(folders)
        result.append(replace(record, path=_path(*found[record.source], record)))
    return tuple(result)


def _path(folders: list[Path], names: Mapping[str, str], record: Record) -> Path:
    """The file of a record's video; names.json alone decides about the videos that it names."""
    if record.video in names:
        return released_files.video_path(folders, names[record.video])
    there = released_files.video_path(folders, record.video)
    if not there.is_file() and is_file_name(record.name):
        named = released_files.video_path(folders, record.name)
        return named if named.is_file() else there
    return there


def is_file_name(name: str) -> bool:
    """Whether a name can be that of a file in a folder: nothing else, no folder, one line."""
    return name not in ("", ".", "..") and not {"/", "\\"} & set(name) and name.isprintable()


def _names(folders: Iterable[Path]) -> dict[str, str]:
    file = names_file(folders)
    if file is None:
        return {}
    content = released_files.read_json(file)
    if not isinstance(content, dict):
        raise DataError(f'{file}: expected {{"video_7": "file.mp4"}}, found {quoted(content)}')
    for video, name in content.items():
        if not isinstance(name, str) or not is_file_name(name):
            raise DataError(f"{file}, {video}: expected the name of a file, found {quoted(name)}")
    return content


# --- which videos -------------------------------------------------------------------------------


def chosen(source: str, videos: Iterable[str], options: Options) -> list[str]:
    """The videos of a source that are evaluated, in natural order: the same for everyone (4.1).

    The paper draws 100 of each large source at random and does not name them. Ours are those with
    the smallest SHA-256 of the UTF-8 text `SEED:SOURCE/VIDEO`, as in 0:mrhisum/video_1020, over all
    videos of the source's JSON file, good or bad, whatever their order in it.

    Args:
        source: a slug of options.SOURCES; only the two large ones have a subset.
        videos: all keys of its JSON file.
        options: `seed` and `subset`; a subset of 0 is all.
    """

    def digest(video: str) -> bytes:
        text = f"{options.seed}:{source}/{video}"
        return hashlib.sha256(text.encode("utf-8", "replace")).digest()

    found = list(videos)
    if source in LARGE_SOURCES and options.subset:
        found = sorted(found, key=digest)[: options.subset]
    return sorted(found, key=natural)


def natural(video: str) -> tuple[list[tuple[str, int]], str]:
    """For sorting: video_2 before video_10."""
    parts = re.findall(r"([^0-9]*)([0-9]*)", video)
    return [(text, int(digits or -1)) for text, digits in parts], video


# --- reading ------------------------------------------------------------------------------------


def read(folder: Path, options: Options) -> Release:
    """Read and validate the chosen videos below `folder`; kept while the files do not change.

    Args:
        folder: ROOT/haven.
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
    # Only what chooses videos: other options make other items of the same records.
    chosen_by = Options(seed=options.seed, subset=options.subset)
    release = _read(folder, tuple(files), released_files.state(*paths), chosen_by)
    return replace(release, records=placed(folder, release.records))


@lru_cache(maxsize=8)
def _read(folder: Path, files: tuple[Files, ...], _state: object, options: Options) -> Release:
    records: list[Record] = []
    problems: dict[str, str] = {}
    content = hashlib.sha256()
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
        files: of the source.
        options: which videos are chosen.
        content: a hash; what is read is added to it, in one form however files are formatted.
    """
    texts = read_texts(files.texts)
    ours = chosen(files.source, texts.entries, options)
    there = files.hdf5.is_file()
    arrays = hdf5_file.read(files.hdf5, ours) if there else {}
    result: list[tuple[str, Record | str]] = []
    for video in ours:
        entry, own = texts.entries[video], arrays.get(video)
        name = f"{files.source}/{video}"
        held = json.dumps(
            [name, entry, vars(own) if isinstance(own, Arrays) else own], sort_keys=True
        )
        content.update(f"{held}\n".encode("utf-8", "replace"))
        why = f"no group {video}" if there else "no such file"
        origin = Origin(texts.name, files.hdf5.name, f"{files.hdf5.name}: {why}, so no importance")
        wrong = texts.problems.get(video)
        result.append((name, wrong or _one(files.source, video, entry, own, origin)))
    return result


def _one(
    source: str, video: str, entry: Any, own: Arrays | str | None, origin: Origin
) -> Record | str:
    """One video's record, or what is wrong with it."""
    if not is_file_name(video):
        return f"{origin.json}: the video's key is no name on one line, without a folder"
    given = json_file.read(entry)
    if isinstance(given, str):
        return f"{origin.json}, {given}"
    if isinstance(own, str):
        return f"{origin.hdf5}, {own}"
    return join(source, video, given, own, origin)


# --- the text files of one source ---------------------------------------------------------------


@dataclass(frozen=True)
class Texts:
    """The videos of one source's text files.

    Attributes:
        name: of the file, for messages: `tvsum_data.json`, or `tvsum/*.jsonl` for several.
        entries: the JSON value of every video, by its key.
        problems: video -> why the files contradict each other about it.
    """

    name: str
    entries: Mapping[str, Any]
    problems: Mapping[str, str]


def read_texts(files: Sequence[Path]) -> Texts:
    """The videos of one JSON file, or of the JSON Lines files of one source.

    Raises:
        DataError: a file cannot be read, is not JSON, is no mapping of videos, or has no video;
            names the line.
    """
    if files[0].suffix == ".jsonl":
        made = _lines(files)
    else:
        content = released_files.read_json(files[0])
        if not isinstance(content, dict):
            raise DataError(f'{files[0]}: expected {{"video_1": {{...}}, ...}}')
        made = Texts(files[0].name, content, {})
    if not made.entries:
        raise DataError(f"{files[0]}: holds no videos")
    return made


def _lines(files: Sequence[Path]) -> Texts:
    """JSON Lines: each line has the key of a video and some of its fields."""
    entries: dict[str, dict[str, Any]] = {}
    problems: dict[str, str] = {}
    for file in files:
        for number, content in released_files.read_lines(file):
            video, fields = _line(f"{file}, line {number}", content)
            entry = entries.setdefault(video, {})
            for name, value in fields.items():
                if entry.setdefault(name, value) != value:
                    problems.setdefault(
                        video, f"{file.name}, line {number}: another {name} than a line before"
                    )
    name = files[0].name if len(files) == 1 else f"{files[0].parent.name}/*.jsonl"
    return Texts(name, entries, problems)


def _line(place: str, value: Any) -> tuple[str, dict[str, Any]]:
    """The key of a line's video, and those of its fields that are read."""
    if not isinstance(value, dict):
        raise DataError(f"{place}: expected an object")
    named = (value.get(name) for name in _KEYS)
    key = next((one for one in named if isinstance(one, str) and one), None)
    if key is None:
        raise DataError(f"{place}: no video (a text in {', '.join(_KEYS[:-1])} or {_KEYS[-1]})")
    return key, {name: value[name] for name in FIELDS if name in value}
