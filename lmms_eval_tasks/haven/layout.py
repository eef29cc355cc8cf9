"""Where the files of one source lie below a folder, as released or as on the hub.

    FOLDER/processed/SOURCE_data.json     the release's data folder; or FOLDER/SOURCE_data.json
    FOLDER/SOURCE/h5/SOURCE.h5            or FOLDER/SOURCE.h5, as downloads of a folder come
    FOLDER/SOURCE.jsonl, FOLDER/SOURCE/*.jsonl, or either in processed/    the hub copy
    FOLDER/videos/SOURCE/                 the user's videos; or FOLDER/SOURCE/videos/

The JSON file is read where it is there, whatever lies beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Files:
    """The files of one source.

    Attributes:
        source: a slug of labels.SOURCES.
        texts: the JSON file, or the JSON Lines files of the hub copy; empty if there is none.
        hdf5: where the HDF5 file is, or would be.
    """

    source: str
    texts: tuple[Path, ...]
    hdf5: Path


def find(folder: Path, source: str) -> Files:
    """The files of `source` below `folder`."""
    json = f"{source}_data.json"
    texts = _first(folder / "processed" / json, folder / json)
    return Files(source, texts or _hub_copy(folder, source), hdf5_path(folder, source))


def hdf5_path(folder: Path, source: str) -> Path:
    """Where the HDF5 file of `source` is, or would be."""
    released = folder / source / "h5" / f"{source}.h5"
    return next(iter(_first(released, folder / released.name)), released)


def video_folders(folder: Path, source: str) -> list[Path]:
    """Where the videos of `source` are looked for, in order."""
    return [folder / "videos" / source, folder / source / "videos"]


def _hub_copy(folder: Path, source: str) -> tuple[Path, ...]:
    for place in (folder, folder / "processed"):
        if found := _first(place / f"{source}.jsonl"):
            return found
        if found := tuple(sorted((place / source).glob("*.jsonl"))):
            return found
    return ()


def _first(*files: Path) -> tuple[Path, ...]:
    """The first file that is there, alone; empty if none is."""
    return next(((file,) for file in files if file.is_file()), ())
