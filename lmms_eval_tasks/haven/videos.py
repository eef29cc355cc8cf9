"""Where the user's own copy of a record's video is.

    ROOT/haven/videos/SOURCE/NAME.mp4    any container; or ROOT/haven/SOURCE/videos/NAME.mp4

NAME is what an optional names.json there says ({"video_7": "file.mp4"}), or the video's key in the
release (video_7), or the original video's own name, in this order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven import layout
from lmms_eval_tasks.haven.json_file import quoted
from lmms_eval_tasks.haven.record import Record
from lmms_eval_tasks.utils import released_files

NAMES = "names.json"


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
            folders = layout.video_folders(folder, record.source)
            found[record.source] = folders, _names(folders)
        folders, names = found[record.source]
        result.append(replace(record, path=path(folders, names, record)))
    return tuple(result)


def path(folders: list[Path], names: Mapping[str, str], record: Record) -> Path:
    """The file of a record's video in `folders`; where it would be if none has it.

    Args:
        folders: in order.
        names: names.json's; it alone decides about the videos that it names.
        record: the video.
    """
    if record.video in names:
        return released_files.video_path(folders, names[record.video])
    candidates = [record.video, *([record.name] if is_file_name(record.name) else [])]
    for name in candidates:
        if (file := released_files.video_path(folders, name)).is_file():
            return file
    return released_files.video_path(folders, record.video)


def is_file_name(name: str) -> bool:
    """Whether a name can be that of a file in a folder: nothing else, no folder, one line."""
    return (
        name not in ("", ".", "..")
        and "/" not in name
        and "\\" not in name
        and (name.isprintable())
    )


def names_file(folders: Iterable[Path]) -> Path | None:
    """The first names.json in the folders of a source's videos; None if there is none."""
    return next((f / NAMES for f in folders if (f / NAMES).is_file()), None)


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
