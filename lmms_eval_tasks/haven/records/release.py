"""HAVEN's files: where they lie, reading the videos that are evaluated, putting them in place.

    ROOT/haven/processed/SOURCE_data.json   as released
    ROOT/haven/SOURCE/*.jsonl               the hub copy, where that JSON file is not there
    ROOT/haven/SOURCE/h5/SOURCE.h5          as released; without it no saliency
    ROOT/haven/videos/SOURCE/NAME.mp4       the user's own copies

NAME is the video's key in the release (video_7) or the original video's own name, in this order.

A file that is no JSON or no HDF5 at all stops. What is wrong with single videos is collected, so
that the others can be run where the user allows it. Videos of the two large sources outside of the
subset (`chosen`) are neither validated nor kept: MR.HiSum's JSON is 361 MB for 5,590 videos.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.options import LARGE_SOURCES, OWN, SOURCES, HavenOptions
from lmms_eval_tasks.haven.records.record import Arrays, JsonVideo, Record, join, read_arrays
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.released_files import Release

_KEYS = ("video_id", "video", "id")  # of a line of the hub copy, in this order


@dataclass(frozen=True, kw_only=True)
class HavenRelease(Release):
    """The videos that are evaluated, of the chosen sources that are there.

    Its digest is of these videos alone, good and bad, in JSON and HDF5.

    Attributes:
        records: the good ones, by source in the paper's order, then video_2 before video_10; their
            paths say where the video is or would be.
    """

    records: tuple[Record, ...]

    @property
    def n_records(self) -> int:
        """The number of good videos."""
        return len(self.records)

    @cached_property
    def by_source(self) -> dict[str, list[Record]]:
        """The good ones of each source that has some."""
        found: dict[str, list[Record]] = {}
        for record in self.records:
            found.setdefault(record.source, []).append(record)
        return found

    @property
    def counts(self) -> dict[str, int]:
        """Good videos, all and of each source (as options.PAPER_COUNTS), and what they hold."""
        of = {source: len(own) for source, own in self.by_source.items()}
        return {
            "videos": len(self.records),
            **{one: of.get(one, 0) for one in SOURCES if one != OWN or OWN in of},
            "frames": sum(len(record.picks) for record in self.records),
            "shots": sum(len(record.shots) for record in self.records),
            "videos_without_hdf5": sum(record.n_frames is None for record in self.records),
            "bad_videos": len(self.problems),
        }


def json_file(folder: Path, source: str) -> Path:
    """Of a source's records."""
    return folder / "processed" / f"{source}_data.json"


def texts(folder: Path, source: str) -> tuple[Path, ...]:
    """What there is of a source's records: its JSON file, or a hub copy's JSON Lines."""
    file = json_file(folder, source)
    return (file,) if file.is_file() else tuple(sorted((folder / source).glob("*.jsonl")))


def h5_file(folder: Path, source: str) -> Path:
    """Of a source's arrays."""
    return folder / source / "h5" / f"{source}.h5"


# --- which videos -------------------------------------------------------------------------------


def chosen(source: str, videos: Iterable[str], options: HavenOptions) -> list[str]:
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
    lines = [line for file in options.ids for line in released_files.read_text(Path(file)).split()]
    if odd := [line for line in lines if line.partition("/")[0] not in SOURCES]:
        raise DataError(f"ids: expected SOURCE/VIDEO, found {odd[0]!r}")
    if named := {line.partition("/")[2] for line in lines if line.startswith(f"{source}/")}:
        if unknown := sorted(named - set(found), key=natural):
            raise DataError(f"ids: no video {unknown[0]} of {source} ({len(unknown)} unknown)")
        found = list(named)
    elif source in LARGE_SOURCES and options.subset:
        found = sorted(found, key=digest)[: options.subset]
    return sorted(found, key=natural)


def natural(video: str) -> tuple[list[tuple[str, int]], str]:
    """For sorting: video_2 before video_10."""
    parts = re.findall(r"([^0-9]*)([0-9]*)", video)
    return [(text, int(digits or -1)) for text, digits in parts], video


# --- reading ------------------------------------------------------------------------------------


def read(folder: Path, options: HavenOptions) -> HavenRelease:
    """Read and validate the chosen videos below `folder`; kept while the files do not change.

    Args:
        options: `sources`; none named are those of the paper's six that are there, or a user's own
            videos where none of these is. Also what chooses videos of a source.

    Raises:
        DataError: there is no file of a source that was named, or of any; a file is no JSON or no
            HDF5; not one video can be used; names the file.
    """
    there = [one for one in SOURCES if texts(folder, one)]
    for source in options.sources:
        if source not in there:
            wanted = json_file(folder, source).relative_to(folder)
            raise DataError(f"{folder}: no file of {source} (expected {wanted})")
    # A user's own videos are not mixed into the benchmark's numbers.
    there = list(options.sources) or [one for one in there if one != OWN] or there
    if not there:
        raise DataError(f"{folder}: no data file (expected processed/SOURCE_data.json)")
    paths = [file for one in there for file in (*texts(folder, one), h5_file(folder, one))]
    state = released_files.state(*paths, *map(Path, options.ids))
    release = _read(folder, tuple(there), state, options)
    placed = []
    for record in release.records:
        where = [folder / "videos" / record.source]
        names = (record.video, record.name or record.video)
        found = [released_files.video_path(where, name) for name in names]
        path = next((one for one in found if one.is_file()), found[0])
        placed.append(replace(record, path=path))
    return replace(release, records=tuple(placed))


@lru_cache(maxsize=8)
def _read(
    folder: Path, sources: tuple[str, ...], _state: object, options: HavenOptions
) -> HavenRelease:
    records: list[Record] = []
    problems: dict[str, str] = {}
    content = hashlib.sha256()  # of what is read, in one form however files are formatted
    for source in sources:
        files, hdf5 = texts(folder, source), h5_file(folder, source)
        entries, text = read_texts(*files), " + ".join(file.name for file in files)
        ours = chosen(source, entries, options)
        arrays = read_arrays(hdf5, ours) if hdf5.is_file() else {}
        for video in ours:
            name, own = f"{source}/{video}", arrays.get(video)
            plain = vars(own) if isinstance(own, Arrays) else own
            held = json.dumps([name, entries[video], plain], sort_keys=True)
            content.update(f"{held}\n".encode("utf-8", "replace"))
            why = f"no group {video}" if hdf5.is_file() else "no such file"
            try:
                if isinstance(own, str):
                    raise DataError(f"{hdf5.name}, {own}")
                without = f"{hdf5.name}: {why}, so no importance"
                records.append(join(source, video, entries[video], own, without, text=text))
            except DataError as error:
                problems[name] = str(error)
    if not records:
        told = next(f"{name}: {why}" for name, why in problems.items())
        raise DataError(f"{folder}: none of {len(problems)} videos fits the schema; {told}")
    return HavenRelease(
        place=folder,
        data_files={},  # they may come one after the other (`placed`)
        digest=content.hexdigest()[:12],
        problems=problems,
        records=tuple(records),
    )


def read_texts(*files: Path) -> dict[str, Any]:
    """The JSON value of every video, by its key, of one JSON file or of a source's JSON Lines.

    Raises:
        DataError: a file cannot be read, is not JSON, is no mapping of videos, or has no video.
    """
    if files[0].suffix != ".jsonl":
        entries = released_files.read_json(files[0])
        if not isinstance(entries, dict) or not entries:
            raise DataError(f'{files[0]}: expected {{"video_1": {{...}}, ...}}')
        return entries
    found: dict[str, Any] = {}
    for file in files:
        for number, line in released_files.read_lines(file):
            fields = line if isinstance(line, dict) else {}
            key = next((fields[name] for name in _KEYS if isinstance(fields.get(name), str)), None)
            if key is None:
                raise DataError(f"{file}, line {number}: no video ({' or '.join(_KEYS)})")
            kept = {name: fields[name] for name in JsonVideo.model_fields if name in fields}
            found.setdefault(key, {}).update(kept)
    if not found:
        raise DataError(f"{files[0]}: no line, so no video")
    return found


def placed(source: Path) -> dict[str, Path]:
    """The files of a release (Benchmark.files): known by their names, at any depth of a folder.

    JSON and HDF5 may come one after the other.
    """
    places: dict[str, Path] = {}
    for slug in SOURCES:
        for wanted in (json_file(Path(), slug), h5_file(Path(), slug)):
            for found in sorted(source.rglob(wanted.name))[:1]:
                read_texts(found) if found.suffix == ".json" else read_arrays(found, ())
                places[wanted.as_posix()] = found
    if not places:
        raise DataError(f"{source}: not a file of HAVEN (expected SOURCE_data.json or SOURCE.h5)")
    return places
