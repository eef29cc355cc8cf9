"""Files that a user hands over, each with a mistake in its bytes or in its structure."""

from __future__ import annotations

import codecs
import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import yaml

Node = tuple[Any, Any]  # a list or dict, and a place in it

_ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        10**30,
        10**4000,
        0.5,
        -1e308,
        float("nan"),
        float("inf"),
        "",
        " ",
        "\0",
    ),
    *("x" * 5000, "a\nb", "\x1b[31m", "\ud83d", "../../etc/passwd", "/etc/passwd", "<b>", "NaN"),
    *([], {}, [[]], {"": ""}, [None], ["x", 1], {"x": {"x": []}}, "9" * 400, "2024-13-45", "1e400"),
)


def mistaken(content: bytes, ending: str, random: Random) -> bytes:
    """A file's content with a mistake; sometimes with several.

    Args:
        ending: of its name, which says how it is written.
        random: seeded; all that it depends on.
    """
    made = content
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        mistake = _bytes if ending not in _FORMS or random.random() < 0.35 else _structure
        made = mistake(made, ending, random)
    return made


def _bytes(content: bytes, ending: str, random: Random) -> bytes:
    at = random.randint(0, len(content))
    end = min(len(content), at + random.choice((1, 2, 10, 1000)))
    text = content.decode("utf-8", "replace")
    made: list[Callable[[], bytes]] = [
        lambda: content[:at] + bytes([random.randrange(256)]) + content[at + 1 :],
        lambda: content[:at] + random.choice(_PIECES) + content[at:],
        lambda: content[:at] + content[end:],
        lambda: content[:end] + content[at:],
        lambda: content[:at],
        lambda: b"",
        lambda: codecs.BOM_UTF8 + content,
        lambda: text.encode("utf-16"),
        lambda: text.encode("latin-1", "replace"),
        lambda: content.replace(b"\n", b"\r\n"),
        lambda: content.replace(b"\n", b"\r"),
        lambda: content + content,
        lambda: b"\0" * 100 + content,
        *(lambda other=other: other for other in _OTHERS),
    ]
    return random.choice(made)()


_OTHERS = (  # what people save in a file's place
    b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
    b"<!DOCTYPE html>\n<html><body>Sign in</body></html>",
    b"\x1f\x8b\x08\0\0\0\0\0",
    b"\n".join(
        b"a%d: &a%d [%s]" % (n, n, b"*a%d, " % (n - 1) * 10 if n else b"x") for n in range(9)
    ),
)

_PIECES = (
    *(
        b"\0",
        b"\xff\xfe",
        b"\xed\xa0\xbd",
        b'"',
        b"{",
        b"]",
        b",",
        b"\n",
        b"\n\n",
        b"\\",
        b"\\ud83d",
    ),
    *(b"[" * 100_000, b"9" * 5000, b"1e400", b"NaN", b"!!python/object/apply:os.system [x]", b": "),
    *(b"&a [*a]", b"\t", b"\x1b[31m", "\u2028".encode(), "\u202e".encode(), b"-->", b"../" * 9),
)


def _structure(content: bytes, ending: str, random: Random) -> bytes:
    """Another value, a missing one, one more, one twice; at a random place."""
    read, write = _FORMS[ending]
    try:
        value = [copy.deepcopy(read(content.decode("utf-8")))]
    except (ValueError, RecursionError, yaml.YAMLError):
        return _bytes(content, ending, random)
    inside, place = _place(value, random)
    match random.randrange(5):
        case 0 if inside is not value:
            del inside[place]
        case 1 if isinstance(inside, list):
            inside.insert(place, inside[random.randrange(len(inside))])
        case 2 if isinstance(inside, dict):
            inside[random.choice(("x", "", "id", "\0", f"{place} "))] = inside.pop(place)
        case 3:  # what stands elsewhere in the file
            other, there = _place(value, random)
            inside[place] = copy.deepcopy(other[there]) if other is not value else None
        case _:
            inside[place] = random.choice(_ODD)
    return write(value[0]).encode("utf-8", "surrogatepass") if value else b""


def _place(value: list[Any], random: Random) -> Node:
    """A random place in a value; less deep ones are as likely as all the many deeper ones."""
    inside, place = value, 0
    while isinstance(inside[place], dict | list) and inside[place] and random.random() < 0.75:
        inside = inside[place]
        keys = [*inside] if isinstance(inside, dict) else range(len(inside))
        place = random.choice(keys)
    return inside, place


def _lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def _write_lines(value: Any) -> str:
    rows = value if isinstance(value, list) else [value]
    return "".join(json.dumps(row) + "\n" for row in rows)


_Form = tuple[Callable[[str], Any], Callable[[Any], str]]
_FORMS: dict[str, _Form] = {
    ".json": (json.loads, json.dumps),
    ".jsonl": (_lines, _write_lines),
    ".yml": (yaml.safe_load, yaml.safe_dump),
}


def readable(folder: Path, *, media: bool = False) -> Iterator[Path]:
    """The files of a folder by path, without media unless they are asked for."""
    left_out = () if media else (".mp4", ".png", ".jpg", ".wav", ".webm")
    files = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return (file for file in files if file.suffix not in left_out and file.name[0] != ".")
