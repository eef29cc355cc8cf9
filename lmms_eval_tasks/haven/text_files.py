"""Finding single videos in the text files of one source, without keeping all of them.

MR.HiSum's JSON is 361 MB for 5,590 videos, of which 100 are used: the file is read once to find
where each video begins, and only what is asked for is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils.released_files import read_lines, read_text

_SPACE = re.compile(r"[ \t\n\r]*")
_KEYS = ("video_id", "video", "id")  # of a line of the hub copy, in this order
# What is read of a line of the hub copy; other fields are its task's own.
FIELDS = ("frames", "clips", "aligned_full_document", "aligned_text_summary", "video_name")


@dataclass(frozen=True)
class Texts:
    """The videos of one source's text files.

    Attributes:
        name: of the file, for messages: `tvsum_data.json`, or `tvsum/*.jsonl` for several.
        videos: keys of all videos, in the files' order.
        entry: the JSON value of a video, by its key.
        problems: video -> why the files contradict each other about it.
    """

    name: str
    videos: tuple[str, ...]
    entry: Callable[[str], Any]
    problems: Mapping[str, str]


def read(files: Sequence[Path]) -> Texts:
    """The videos of one JSON file, or of the JSON Lines files of one source.

    Raises:
        DataError: a file cannot be read, is not JSON, is no mapping of videos, or has no video, or
            has one twice; names the line.
    """
    if files[0].suffix == ".jsonl":
        return _lines(files)
    return _mapping(files[0])


def _mapping(file: Path) -> Texts:
    """A JSON file {video: {...}, ...}."""
    text = read_text(file)
    decoder = json.JSONDecoder()
    places: dict[str, int] = {}
    position = _skip(text, 0)
    try:
        if not text.startswith("{", position):
            decoder.decode(text)
            raise DataError(f'{file}: expected {{"video_1": {{...}}, ...}}')
        position = _skip(text, position + 1)
        while not text.startswith("}", position):
            if places:
                position = _expect(text, position, ",")
            start = position
            video, position = decoder.raw_decode(text, position)
            if not isinstance(video, str):
                raise json.JSONDecodeError("Expecting a name in double quotes", text, start)
            position = _expect(text, _skip(text, position), ":")
            if video in places:
                raise DataError(f"{file}: {video!r} occurs twice")
            places[video] = position
            _, position = decoder.raw_decode(text, position)
            position = _skip(text, position)
        if text[position + 1 :].strip(" \t\n\r"):
            raise json.JSONDecodeError("Extra data", text, _skip(text, position + 1))
    except json.JSONDecodeError as error:
        raise DataError(
            f"{file}: not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits; 100,000 brackets
        raise DataError(f"{file}: cannot be read as JSON: {error}") from None
    if not places:
        raise DataError(f"{file}: holds no videos")
    return Texts(
        file.name, tuple(places), lambda video: decoder.raw_decode(text, places[video])[0], {}
    )


def _skip(text: str, position: int) -> int:
    """The position after white space."""
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _expect(text: str, position: int, sign: str) -> int:
    """The position after `sign` and white space."""
    if not text.startswith(sign, position):
        raise json.JSONDecodeError(f"Expecting {sign!r}", text, position)
    return _skip(text, position + 1)


def _lines(files: Sequence[Path]) -> Texts:
    """JSON Lines: each line has the key of a video and some of its fields."""
    entries: dict[str, dict[str, Any]] = {}
    problems: dict[str, str] = {}
    for file in files:
        for number, content in read_lines(file):
            video, fields = _line(f"{file}, line {number}", content)
            entry = entries.setdefault(video, {})
            for name, value in fields.items():
                if entry.setdefault(name, value) != value:
                    problems.setdefault(
                        video, f"{file.name}, line {number}: another {name} than a line before"
                    )
    if not entries:
        raise DataError(f"{files[0]}: holds no videos")
    name = files[0].name if len(files) == 1 else f"{files[0].parent.name}/*.jsonl"
    return Texts(name, tuple(entries), entries.__getitem__, problems)


def _line(place: str, value: Any) -> tuple[str, dict[str, Any]]:
    """The key of a line's video, and those of its fields that are read."""
    if not isinstance(value, dict):
        raise DataError(f"{place}: expected an object")
    named = (value.get(name) for name in _KEYS)
    key = next((one for one in named if isinstance(one, str) and one), None)
    if key is None:
        raise DataError(f"{place}: no video (a text in {', '.join(_KEYS[:-1])} or {_KEYS[-1]})")
    return key, {name: value[name] for name in FIELDS if name in value}
