"""HAVEN's files: where they lie, reading the videos that are evaluated, putting them in place.

    ROOT/haven/processed/SOURCE_data.json   as released; or without processed/
    ROOT/haven/SOURCE/h5/SOURCE.h5          as released; or ROOT/haven/SOURCE.h5, as downloads of a
                                            folder come; without it no saliency
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
from typing import Any, NamedTuple

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven import options as choices
from lmms_eval_tasks.haven.options import LARGE_SOURCES, OWN, SOURCES, Options
from lmms_eval_tasks.haven.records.record import Origin, Record, join
from lmms_eval_tasks.haven.records.schema import Arrays, JsonVideo, read_arrays, read_json
from lmms_eval_tasks.utils import released_files

_KEYS = ("video_id", "video", "id")  # of a line of the hub copy, in this order


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
        of = [record.source for record in self.records]
        return {
            "videos": len(self.records),
            **{one: of.count(one) for one in SOURCES if one != OWN or OWN in of},
            "frames": sum(len(record.picks) for record in self.records),
            "shots": sum(len(record.shots) for record in self.records),
            "videos_without_hdf5": sum(record.n_frames is None for record in self.records),
            "bad_videos": len(self.problems),
        }


class Files(NamedTuple):
    """The files of one source.

    source: a slug of options.SOURCES. texts: the JSON file, or the JSON Lines files of the hub
    copy; empty if there is none. hdf5: where the HDF5 file is, or would be.
    """

    source: str
    texts: tuple[Path, ...]
    hdf5: Path


# --- where files lie ----------------------------------------------------------------------------


def find(folder: Path, source: str) -> Files:
    """The files of `source` below `folder`."""
    name = f"{source}_data.json"
    texts = [one for one in (folder / "processed" / name, folder / name) if one.is_file()][:1]
    texts = texts or sorted((folder / source).glob("*.jsonl"))
    released, other = folder / source / "h5" / f"{source}.h5", folder / f"{source}.h5"
    hdf5 = other if other.is_file() and not released.is_file() else released
    return Files(source, tuple(texts), hdf5)


def _path(folder: Path, record: Record) -> Path:
    """Where a record's video is, or where it would be."""
    folders = [folder / "videos" / record.source, folder / record.source / "videos"]
    there = released_files.video_path(folders, record.video)
    if not there.is_file() and _is_file_name(record.name):
        named = released_files.video_path(folders, record.name)
        return named if named.is_file() else there
    return there


def _is_file_name(name: str) -> bool:
    """Whether a name can be that of a file in a folder: nothing else, no folder, one line."""
    return name not in ("", ".", "..") and not {"/", "\\"} & set(name) and name.isprintable()


# --- which videos -------------------------------------------------------------------------------


def chosen(source: str, videos: Iterable[str], options: Options) -> list[str]:
    """The videos of a source that are evaluated, in natural order: the same for everyone (4.1).

    The paper draws 100 of each large source at random and does not name them. Ours are those with
    the smallest SHA-256 of the UTF-8 text `SEED:SOURCE/VIDEO`, as in 0:mrhisum/video_1020, over all
    videos of the source's JSON file, good or bad, whatever their order in it. Of a source that is
    in a file of `ids` the videos named there are evaluated, and no others.

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
        found = list(named)
    elif source in LARGE_SOURCES and options.subset:
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
            if video and (before or alone) not in SOURCES:
                raise DataError(f"{file}, line {number}: expected SOURCE/VIDEO, found {line!r}")
            if video:
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
            videos where none of these is. Also what chooses videos of a source, and `slack`.

    Raises:
        DataError: there is no file of a source that was named, or of any; a file is no JSON or no
            HDF5; not one video can be used; names the file.
    """
    files = [find(folder, source) for source in options.sources or SOURCES]
    there = [one for one in files if one.texts]
    if options.sources and (absent := [one.source for one in files if not one.texts]):
        wanted = f"processed/{absent[0]}_data.json"
        raise DataError(f"{folder}: no file of {absent[0]} (expected {wanted})")
    if not options.sources:  # a user's own videos are not mixed into the benchmark's numbers
        there = [one for one in there if one.source != OWN] or there
    if not there:
        raise DataError(f"{folder}: no data file (expected processed/SOURCE_data.json)")
    paths = [path for one in there for path in (*one.texts, one.hdf5)]
    # Other options make other items of the same records.
    decisive = {name: getattr(options, name) for name in ("seed", "subset", "ids", "slack")}
    state = released_files.state(*paths, *map(Path, options.ids))
    release = _read(folder, tuple(there), state, Options(**decisive))
    placed = (replace(record, path=_path(folder, record)) for record in release.records)
    return replace(release, records=tuple(placed))


@lru_cache(maxsize=8)
def _read(folder: Path, files: tuple[Files, ...], _state: object, options: Options) -> Release:
    records: list[Record] = []
    problems: dict[str, str] = {}
    content = hashlib.sha256()  # of what is read, in one form however files are formatted
    read_ids(options.ids, [one.source for one in files])  # a line of another source stops
    for one in files:
        entries = read_texts(one.texts)
        ours = chosen(one.source, entries, options)
        there = one.hdf5.is_file()
        arrays = read_arrays(one.hdf5, ours) if there else {}
        text = one.texts[0].name if len(one.texts) == 1 else f"{one.source}/*.jsonl"
        for video in ours:
            name, entry, own = f"{one.source}/{video}", entries[video], arrays.get(video)
            plain = vars(own) if isinstance(own, Arrays) else own
            held = json.dumps([name, entry, plain], sort_keys=True)
            content.update(f"{held}\n".encode("utf-8", "replace"))
            why = f"no group {video}" if there else "no such file"
            origin = Origin(text, one.hdf5.name, f"{one.hdf5.name}: {why}, so no importance")
            try:
                given = _given(video, entry, own, origin)
                array = own if isinstance(own, Arrays) else None
                records.append(join(one.source, video, given, array, origin, slack=options.slack))
            except DataError as error:
                problems[name] = str(error)
    if not records:
        told = next(f"{name}: {why}" for name, why in problems.items())
        raise DataError(f"{folder}: not one of {len(problems)} videos fits the schema; {told}")
    return Release(folder, content.hexdigest()[:12], tuple(records), problems)


def _given(video: str, entry: Any, own: Arrays | str | None, origin: Origin) -> JsonVideo:
    """A video's JSON, where neither it nor the arrays are bad."""
    if not _is_file_name(video):
        raise DataError(f"{origin.json}: the key {video!r} is no name on one line without a folder")
    try:
        given = read_json(entry)
    except DataError as error:
        raise DataError(f"{origin.json}, {error}") from None
    if isinstance(own, str):
        raise DataError(f"{origin.hdf5}, {own}")
    return given


def read_texts(files: Sequence[Path]) -> Mapping[str, Any]:
    """The JSON value of every video, by its key, of one JSON file or of a source's JSON Lines.

    Raises:
        DataError: a file cannot be read, is not JSON, is no mapping of videos, or has no video;
            names the line.
    """
    if files[0].suffix != ".jsonl":
        entries = released_files.read_json(files[0])
        if not isinstance(entries, dict) or not entries:
            raise DataError(f'{files[0]}: expected {{"video_1": {{...}}, ...}}')
        return entries
    found: dict[str, dict[str, Any]] = {}
    for file in files:
        for number, line in released_files.read_lines(file):
            fields = line if isinstance(line, dict) else {}
            key = next((fields[name] for name in _KEYS if isinstance(fields.get(name), str)), None)
            if key is None:
                raise DataError(f"{file}, line {number}: no video ({' or '.join(_KEYS)})")
            kept = {name: fields[name] for name in JsonVideo.model_fields if name in fields}
            found.setdefault(key, {}).update(kept)
    return found


# --- putting in place ---------------------------------------------------------------------------


def prepare(source: Path, root: Path, link: bool) -> str:
    """Put files of the release, and the videos of theirs, under the data root, and read them there.

    What is there already of a source stays, so JSON and HDF5 may come one after the other. Of the
    large sources only the videos of the subset are taken along.

    Args:
        source: the release's `data` folder, the folder that holds it, or a clone of the hub copy.

    Raises:
        DataError: there is no such file, it does not fit the schema or other data is in the way.
        TasksError: an option has no value of its range.
    """
    source, target = source.expanduser().resolve(), root / "haven"
    places: dict[str, Path] = {}
    for base in (source, source / "data", source / "HAVEN"):
        for files in (find(base, slug) for slug in SOURCES):
            for path in files.texts:
                folder = "processed" if path.suffix == ".json" else files.source
                places[f"{folder}/{path.name}"] = path
            if files.hdf5.is_file():
                places[f"{files.source}/h5/{files.source}.h5"] = files.hdf5
        if places:
            break
    else:
        raise DataError(
            f"{source}: no file of HAVEN (expected processed/SOURCE_data.json and "
            "SOURCE/h5/SOURCE.h5 in it, or in its folder `data`)"
        )
    fixed = list(places)
    if any(not name.endswith(".h5") for name in places):
        for record in read(base, choices.current()).records:
            if record.path is not None and record.path.is_file():
                places[f"videos/{record.source}/{record.path.name}"] = record.path
    done = released_files.place(target, places, link, fixed)
    release = read(target, choices.current())
    sources = ", ".join(dict.fromkeys(record.source for record in release.records))
    return (
        f"{done}: {len(release.records):,} videos of {sources}; "
        f"{len(release.problems):,} videos with problems"
    )
