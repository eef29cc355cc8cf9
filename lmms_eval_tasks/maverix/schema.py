"""MAVERIX's files in a schema of our own (the paper's are not public), and reading them.

    ROOT/maverix/data.json        {"version": "...", "items": [...]}, or the list alone (item.py)
    ROOT/maverix/columns.yml      optional: another file's names and words (item.py)
    ROOT/maverix/videos/NAME.mp4  any container
    ROOT/maverix/subtitles/NAME.srt, .vtt or .json

A file that is not of the schema at all stops with the place of its first error. What is wrong with
single items is collected, so that the others can be run where the user allows it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix.item import COLUMNS_FILE, FIELDS, Item, read_columns
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.released_files import VIDEO_ENDINGS

# What the full set holds (paper, Table 1 and Benchmark Design). An item is one of the unique
# questions: it is asked once with eight options, and twice openly.
PAPER_COUNTS = {"videos": 700, "questions": 852, "asked": 2556}
ASKED_EACH = 3
# Ours, and the name that the paper announces (A); another one is accepted if it is the only one.
FILE_NAMES = ("data.json", "MAVERIX_v1.0.json")
_SHOWN = 60  # characters of a value in a message
_MAX_ERRORS = 3  # of one item, in its line


@dataclass(frozen=True)
class Release:
    """A data file whose good items are validated, and the folder of its videos.

    Attributes:
        file: the data file.
        digest: first 12 hex digits of the SHA-256 of content and column map, independent of
            formatting.
        version: the file's own, or "".
        items: the good ones, in the file's order.
        problems: id of a bad item -> what is wrong with it, in one line.
        ignored: names in the file that are no field of the schema, sorted.
    """

    file: Path
    digest: str
    version: str
    items: tuple[Item, ...]
    problems: Mapping[str, str]
    ignored: tuple[str, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Videos and questions of good items, to compare with PAPER_COUNTS; bad items."""
        return {
            "videos": len({item.video for item in self.items}),
            "questions": len(self.items),
            "asked": len(self.items) * ASKED_EACH,
            "bad_items": len(self.problems),
        }

    @property
    def withheld(self) -> dict[str, int]:
        """Good items without an answer, and without a reference: they carry no score."""
        return {
            "answers": sum(item.answer is None for item in self.items),
            "references": sum(item.reference is None for item in self.items),
        }

    def path_of(self, video: str) -> Path:
        """Where the file of `video` is, or would be: videos/NAME with its own or a known ending."""
        folder = self.file.parent / "videos"
        stem, named = _stem(video), _stem(video) != video
        known = [f"{stem}{ending}" for ending in VIDEO_ENDINGS]
        for name in [video, *known]:
            if (folder / name).is_file():
                return folder / name
        others = [path for path in folder.glob("*") if path.stem == stem and path.is_file()]
        if len(others) == 1 and not named:
            return others[0]
        return folder / (video if named else known[0])

    def subtitles_of(self, video: str) -> Path | None:
        """The subtitle file of `video`, srt before vtt before json; None if there is none."""
        from lmms_eval_tasks.utils import subtitles

        folder = self.file.parent / "subtitles"
        return subtitles.find(folder, video) or subtitles.find(folder, _stem(video))


def _stem(video: str) -> str:
    """The name without the ending of a video, if it has one; "talk.part1" has none."""
    path = Path(video)
    return path.stem if path.suffix.lower() in VIDEO_ENDINGS else video


def find_file(folder: Path) -> Path:
    """The data file in a folder of the layout above.

    Raises:
        DataError: there is none, or more than one and none has a known name.
    """
    return released_files.find_file(folder, FILE_NAMES)


def read(path: Path) -> Release:
    """Read and validate a data file, or the one of a folder; kept while the files do not change.

    Raises:
        DataError: not a file of the schema at all, an item without a usable id or with another
            item's id, or not one item that can be used; names the file and the place.
    """
    file = find_file(path) if path.is_dir() else path
    try:
        state = file.stat()
    except OSError as error:
        raise DataError(f"{file}: {error.strerror}") from None
    beside = file.parent / COLUMNS_FILE
    mapped = beside.stat() if beside.is_file() else None
    return _read(
        file,
        (state.st_mtime_ns, state.st_size),
        None if mapped is None else (mapped.st_mtime_ns, mapped.st_size),
    )


@lru_cache(maxsize=8)
def _read(file: Path, _state: tuple[int, int], _map_state: tuple[int, int] | None) -> Release:
    content = released_files.read_json(file)
    version = content.get("version", "") if isinstance(content, dict) else ""
    entries = content.get("items") if isinstance(content, dict) else content
    if not isinstance(entries, list):
        raise DataError(f'{file}: expected {{"version": "...", "items": [...]}} or a list of items')
    if not isinstance(version, str):
        raise DataError(f"{file}, version: expected a text, found {_quoted(version)}")
    if not entries:
        raise DataError(f"{file}: holds no items")
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise DataError(f"{file}, entry {number}: expected an object, found {_quoted(entry)}")
    mapping = read_columns(file.parent)
    if unused := mapping.unused(entries):
        raise DataError(
            f"{file.parent / COLUMNS_FILE}, columns, {unused}: no entry of {file.name} has "
            f"{mapping.columns[unused]!r}"
        )
    items, problems = _validated(file, [mapping.apply(entry) for entry in entries])
    canonical = json.dumps([content, mapping.columns, mapping.values], sort_keys=True, default=str)
    known = {*FIELDS, *mapping.names()}
    return Release(
        file=file,
        digest=hashlib.sha256(canonical.encode()).hexdigest()[:12],
        version=version,
        items=items,
        problems=problems,
        ignored=tuple(sorted({name for entry in entries for name in entry} - known)),
    )


def _validated(
    file: Path, entries: list[dict[str, Any]]
) -> tuple[tuple[Item, ...], dict[str, str]]:
    """The good items, and the problems of the others by id."""
    items: list[Item] = []
    problems: dict[str, str] = {}
    places: dict[str, int] = {}
    for number, entry in enumerate(entries, 1):
        problem = ""
        try:
            item = Item.model_validate(entry)
            name = item.id
            items.append(item)
        except ValidationError as error:
            at_id = [found for found in error.errors() if found["loc"] == ("id",)]
            if at_id:
                raise DataError(f"{file}, entry {number}: {_told(at_id[0])}") from None
            name = str(entry["id"]).strip()
            problem = "; ".join(_told(found) for found in error.errors()[:_MAX_ERRORS])
        if name in places:
            raise DataError(
                f"{file}, entry {number}: id {_quoted(name)} is also that of entry {places[name]}"
            )
        places[name] = number
        if problem:
            problems[name] = problem
    if not items:
        first = next(iter(problems))
        raise DataError(
            f"{file}: not one of {len(entries)} items fits the schema; "
            f"{_quoted(first)}: {problems[first]}"
        )
    return tuple(items), problems


def _told(error: Mapping[str, Any]) -> str:
    """An error in a user's words: the field, what is wrong, the value if it is short by nature."""
    place = ", ".join(f"entry {p + 1}" if isinstance(p, int) else str(p) for p in error["loc"])
    told = _IN_OUR_WORDS.get(error["type"]) or str(error["msg"]).removeprefix("Value error, ")
    value = error["input"]
    shown = f", found {_quoted(value)}" if isinstance(value, str | int | float) else ""
    return f"{f'{place}: ' if place else ''}{told}{shown}"


# pydantic's kinds of errors; those of our own validators speak for themselves.
_IN_OUR_WORDS = {
    "missing": "the field is missing",
    "string_type": "expected a text",
    "string_too_short": "is empty",
    "string_unicode": "holds half of a character (a lone surrogate)",
    "bool_type": "expected true or false",
}


def _quoted(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 3]}..."
