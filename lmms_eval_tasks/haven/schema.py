"""HAVEN's files, and reading those of its videos that are evaluated.

    ROOT/haven/processed/SOURCE_data.json   as released (json_file.py)
    ROOT/haven/SOURCE/h5/SOURCE.h5          as released (hdf5_file.py); without it no saliency
    ROOT/haven/videos/SOURCE/VIDEO.mp4      the user's own copies (videos.py)

A file that is no JSON or no HDF5 at all stops. What is wrong with single videos is collected, so
that the others can be run where the user allows it. Videos of the two large sources outside of the
subset (subset.py) are neither validated nor read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven import hdf5_file, joining, json_file, layout, subset, text_files, videos
from lmms_eval_tasks.haven.hdf5_file import Arrays
from lmms_eval_tasks.haven.joining import Origin
from lmms_eval_tasks.haven.labels import OWN, SOURCES
from lmms_eval_tasks.haven.layout import Files
from lmms_eval_tasks.haven.options import Options
from lmms_eval_tasks.haven.record import Record

State = tuple[tuple[int, int] | None, ...]


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
        """Good videos, all and of each source (as labels.PAPER_COUNTS), and what they hold."""
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
    files = [layout.find(folder, source) for source in options.sources or SOURCES]
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
    states = tuple(_state((*one.texts, one.hdf5)) for one in files)
    # Only what chooses videos: other options make other items of the same records.
    chosen_by = replace(Options(), seed=options.seed, subset=options.subset)
    found = _read(folder, tuple(files), states, chosen_by)
    return replace(found, records=videos.placed(folder, found.records))


def _state(files: tuple[Path, ...]) -> State:
    """What shows that files have changed; None of one that is not there."""
    states = (file.stat() if file.is_file() else None for file in files)
    return tuple(state and (state.st_mtime_ns, state.st_size) for state in states)


@lru_cache(maxsize=8)
def _read(
    folder: Path, files: tuple[Files, ...], _states: tuple[State, ...], options: Options
) -> Release:
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
        content: a hash; what is read is added to it.
    """
    texts = text_files.read(files.texts)
    chosen = subset.chosen(files.source, texts.videos, options)
    there = files.hdf5.is_file()
    arrays = hdf5_file.read(files.hdf5, chosen) if there else {}
    result: list[tuple[str, Record | str]] = []
    for video in chosen:
        entry, own = texts.entry(video), arrays.get(video)
        name = f"{files.source}/{video}"
        content.update(_canonical(name, entry, own))
        why = f"no group {video}" if there else "no such file"
        origin = Origin(texts.name, files.hdf5.name, f"{files.hdf5.name}: {why}, so no importance")
        wrong = texts.problems.get(video)
        result.append((name, wrong or _one(files.source, video, (entry, own), origin)))
    return result


def _one(
    source: str, video: str, held: tuple[Any, Arrays | str | None], origin: Origin
) -> Record | str:
    """One video's record, or what is wrong with it; `held` is its JSON and its HDF5."""
    if not videos.is_file_name(video):
        return f"{origin.json}: the video's key is no name on one line, without a folder"
    given, own = json_file.read(held[0]), held[1]
    if isinstance(given, str):
        return f"{origin.json}, {given}"
    if isinstance(own, str):
        return f"{origin.hdf5}, {own}"
    return joining.join(source, video, given, own, origin)


def _canonical(name: str, entry: Any, own: Arrays | str | None) -> bytes:
    """A video's content in one form, however its files are formatted."""
    arrays = vars(own) if isinstance(own, Arrays) else own
    text = json.dumps([name, entry, arrays], sort_keys=True)
    return f"{text}\n".encode("utf-8", "replace")
