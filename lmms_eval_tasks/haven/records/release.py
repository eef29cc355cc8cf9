"""HAVEN's files: their paths, reading the videos that are evaluated, and copying files into place.

    ROOT/haven/processed/SOURCE_data.json   as released
    ROOT/haven/SOURCE/*.jsonl               the hub's copy, used without that JSON file
    ROOT/haven/SOURCE/h5/SOURCE.h5          as released; without it there is no saliency task
    ROOT/haven/videos/SOURCE/NAME.mp4       the user's own copies

NAME is the video's key in the release (video_7) or the original video's name, looked up in this
order.

A file that is not JSON or not HDF5 stops the run. Errors in single videos are collected, so that
the other videos can be run if the user allows it. Videos of the two large sources outside of the
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
from lmms_eval_tasks.haven.records.record import Arrays, JsonVideo, Record, make_record, read_arrays
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.released_files import Release

# Fields that may hold the key in a line of the hub's copy, in this order.
_KEYS = ("video_id", "video", "id")


@dataclass(frozen=True, kw_only=True)
class HavenRelease(Release):
    """The videos that are evaluated, of those chosen sources whose files exist.

    The digest covers the JSON and HDF5 of these videos alone, valid and invalid ones.

    Attributes:
        records: the valid videos, by source in the paper's order, then video_2 before video_10.
            Their paths say where the video is, or where it is expected.
    """

    records: tuple[Record, ...]

    @property
    def n_records(self) -> int:
        """The number of valid videos."""
        return len(self.records)

    @cached_property
    def by_source(self) -> dict[str, list[Record]]:
        """The valid videos of each source that has any."""
        grouped: dict[str, list[Record]] = {}
        for record in self.records:
            grouped.setdefault(record.source, []).append(record)
        return grouped

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of valid videos, in total and by source (options.PAPER_COUNTS).

        Also the numbers of frames, of shots, of videos without HDF5, and of invalid videos.
        """
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
    """Return the path of a source's JSON file below the folder."""
    return folder / "processed" / f"{source}_data.json"


def texts(folder: Path, source: str) -> tuple[Path, ...]:
    """Return the existing files with a source's records: the JSON file, or JSON Lines."""
    file = json_file(folder, source)
    return (
        (file,)
        if file.is_file()
        else tuple(released_files.visible(folder, (folder / source).glob("*.jsonl")))
    )


def h5_file(folder: Path, source: str) -> Path:
    """Return the path of a source's HDF5 file below the folder."""
    return folder / source / "h5" / f"{source}.h5"


# --- which videos -------------------------------------------------------------------------------


def evaluated_videos(source: str, videos: Iterable[str], options: HavenOptions) -> list[str]:
    """Return the videos of a source that are evaluated, in natural order (4.1).

    The paper draws 100 videos of each large source at random and does not name them. Here, they are
    the videos whose UTF-8 text `SEED:SOURCE/VIDEO`, such as 0:mrhisum/video_1020, has the smallest
    SHA-256. All videos of the source's JSON file take part, valid or not, whatever their order. If
    a file of `ids` names videos of the source, exactly these are evaluated.

    Raises:
        DataError: a file of `ids` cannot be read, or names a video that does not exist.
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
    """Return a sort key that puts video_2 before video_10."""
    parts = re.findall(r"([^0-9]*)([0-9]*)", video)
    return [(text, int(digits or -1)) for text, digits in parts], video


# --- reading ------------------------------------------------------------------------------------


def read_haven(folder: Path, options: HavenOptions) -> HavenRelease:
    """Read and validate the chosen videos below `folder`, cached while the files do not change.

    Args:
        folder: the benchmark's folder.
        options: the user's options. Without `sources`, those of the paper's six sources count whose
            files exist, or a user's own videos if there are none. Other options choose videos of a
            source.

    Raises:
        DataError: a named source has no file, or there is no file at all; a file is not JSON or not
            HDF5; no video is valid. The message names the file.
    """
    there = [one for one in SOURCES if texts(folder, one)]
    for source in options.sources:
        if source not in there:
            wanted = json_file(folder, source).relative_to(folder)
            raise DataError(f"{folder}: no file of {source} (expected {wanted})")
    # A user's own videos must not mix into the benchmark's numbers.
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
    content = hashlib.sha256()  # hash of the parsed content, whatever the files' formatting
    for source in sources:
        files, hdf5 = texts(folder, source), h5_file(folder, source)
        entries, text = read_texts(*files), " + ".join(file.name for file in files)
        ours = evaluated_videos(source, entries, options)
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
                records.append(make_record(source, video, entries[video], own, without, text=text))
            except DataError as error:
                problems[name] = str(error)
    if not records:
        told = next(f"{name}: {why}" for name, why in problems.items())
        raise DataError(f"{folder}: none of {len(problems)} videos fits the schema; {told}")
    return HavenRelease(
        place=folder,
        data_files={},  # JSON and HDF5 may come one after the other
        digest=content.hexdigest()[:12],
        problems=problems,
        records=tuple(records),
    )


def read_texts(*files: Path) -> dict[str, Any]:
    """Return the JSON value of every video by its key, from one JSON file or a source's JSON Lines.

    Raises:
        DataError: a file cannot be read, is not JSON, is no mapping of videos, or has no video;
            or two lines on a video differ in a field.
    """
    if files[0].suffix != ".jsonl":
        entries = released_files.read_json(files[0])
        if not isinstance(entries, dict) or not entries:
            raise DataError(f'{files[0]}: expected {{"video_1": {{...}}, ...}}')
        return entries
    videos: dict[str, Any] = {}
    for file in files:
        for number, line in released_files.read_lines(file):
            fields = line if isinstance(line, dict) else {}
            key = next((fields[name] for name in _KEYS if isinstance(fields.get(name), str)), None)
            if key is None:
                raise DataError(f"{file}, line {number}: no video ({' or '.join(_KEYS)})")
            part = {name: fields[name] for name in JsonVideo.model_fields if name in fields}
            video = videos.setdefault(key, {})
            if differing := [name for name in part if video.get(name, part[name]) != part[name]]:
                place = f"{file}, line {number}"
                raise DataError(
                    f"{place}: the field {differing[0]} of {key} differs from an earlier line"
                )
            video.update(part)
    if not videos:
        raise DataError(f"{files[0]}: no line, so no video")
    return videos


def release_files(source: Path) -> dict[str, Path]:
    """Return a release's files by their target path, found by name at any depth (Benchmark.files).

    JSON and HDF5 may come one after the other. The hub's JSON Lines count where a source has no
    JSON file.

    Raises:
        DataError: a file cannot be read, or there is no file of HAVEN.
    """
    places: dict[str, Path] = {}
    for slug in SOURCES:
        lines = (texts(folder.parent, slug) for folder in sorted(source.rglob(slug)))
        for found in next(filter(None, lines), ()):
            if found.suffix == ".jsonl":
                read_texts(found)
                places[f"{slug}/{found.name}"] = found
        for wanted in (json_file(Path(), slug), h5_file(Path(), slug)):
            for found in sorted(source.rglob(wanted.name))[:1]:
                read_texts(found) if found.suffix == ".json" else read_arrays(found, ())
                places[wanted.as_posix()] = found
    if not places:
        raise DataError(f"{source}: not a file of HAVEN (expected SOURCE_data.json or SOURCE.h5)")
    return places
