"""Reading of files that users supply, and writing of files by commands: the only place for both.

Reading: only regular files up to a size, so that nothing hangs and no memory fills up. A file that
people often save by mistake (a web page, a pointer of Git LFS) is recognised and named. Writing:
checked before the work, and whole or not at all.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from lmms_eval_tasks.errors import DataError, TasksError

if TYPE_CHECKING:
    from yaml import Node, SafeLoader

# The content of JSON or YAML; its reader validates the form.
Json: TypeAlias = Any
JsonObject: TypeAlias = dict[str, Any]

LARGEST = 2**30  # bytes of a file that is read as a whole
LONGEST = 2**28  # bytes of a line
LONGEST_YAML = 2**18  # characters: reading takes a second for each 40,000
_MOST_VALUES = 10**6  # values that the aliases of a YAML file may stand for

# --- reading --------------------------------------------------------------------------------------

_STRANGE = (
    (rb"version https://git-lfs", "a pointer of Git LFS, not the file itself: run `git lfs pull`"),
    (
        rb"(?i)(\xef\xbb\xbf)?\s*(<!doctype html|<html|<head)",
        "a web page, not the file itself: download the raw file",
    ),
    (
        rb"(?s)PK\x03\x04.{26}(\[Content_Types\]|_rels/|docProps/|xl/)",
        "a workbook or document, not a table of text: save it as CSV",
    ),
    (
        rb"PK\x03\x04|\x1f\x8b\x08|\x28\xb5\x2f\xfd|BZh[1-9]1AY|\xfd7zXZ",
        "compressed: unpack it first",
    ),
    (rb"\x00{64}", "full of zeros at its beginning: download or copy it again"),
)


def strange(head: bytes) -> str:
    """Return the kind of a file that is neither data nor a video, by its first bytes; else ""."""
    return next((said for form, said in _STRANGE if re.match(form, head)), "")


def check_input(file: Path, largest: float = LARGEST) -> bytes:
    """Return the first kilobyte of a regular file that can be read and is no `strange` file.

    Args:
        file: the file.
        largest: bytes.

    Raises:
        DataError: the file is missing, a folder, a pipe or a device, too large, or `strange`.
    """
    try:
        if file.exists() and not file.is_file():  # reading a pipe would wait forever
            raise DataError(
                f"{file}: {'a folder' if file.is_dir() else 'a pipe or a device'}, not a file"
            )
        with file.open("rb") as opened:
            size, head = os.fstat(opened.fileno()).st_size, opened.read(1024)
    except (OSError, ValueError) as error:  # ValueError: a NUL in its name
        raise DataError(f"{file}: {getattr(error, 'strerror', None) or error}") from None
    if size > largest:
        raise DataError(f"{file}: of {size:,} bytes; files of more than {largest:,} are not read")
    if said := strange(head):
        raise DataError(f"{file}: {said}")
    return head


def read_bytes(file: Path) -> bytes:
    """Return a file's content.

    Raises:
        DataError: see `check_input`; or the file cannot be read.
    """
    check_input(file)
    try:
        return file.read_bytes()
    except OSError as error:
        raise DataError(f"{file}: {error.strerror}") from None


def text_of(content: bytes) -> str:
    """Return content as text in UTF-8, without a byte order mark.

    Raises:
        ValueError: it is no UTF-8; one line.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        place = "but UTF-16" if wide else f"(byte {error.start})"
        raise ValueError(f"not UTF-8 text {place}: save it as UTF-8") from None


def numbered_lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file of any size with their numbers, from 1, one after the other.

    Raises:
        DataError: see `check_input`; or a line has more than LONGEST bytes.
    """
    check_input(file, float("inf"))
    try:
        with file.open("rb") as opened:
            number = 0
            while line := opened.readline(LONGEST + 1):
                number += 1
                if len(line) > LONGEST:
                    raise DataError(f"{file}, line {number}: more than {LONGEST:,} bytes")
                yield number, line
    except OSError as error:
        raise DataError(f"{file}: {error.strerror}") from None


def digest(value: object, digits: int = 12) -> str:
    """Return the first hex digits of the SHA-256 of a value as JSON; other types as their text."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:digits]


def parsed(text: str | bytes) -> Json:
    """Return the value of a text in JSON.

    Raises:
        ValueError: the text is no JSON, ends too early, nests too deeply, has a number of thousands
            of digits or a key twice in an object; one line.
    """
    try:
        told = text_of(text) if isinstance(text, bytes) else text
        return json.loads(told, object_pairs_hook=_each_once)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except json.JSONDecodeError as error:
        ends = error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated")
        cut = "; it ends there, so it may be cut short" if ends and error.doc.strip() else ""
        raise ValueError(f"{error}{cut}") from None
    except ValueError as error:  # an int that is too long: without Python's advice
        raise ValueError(str(error).partition(";")[0]) from None


def _each_once(pairs: list[tuple[str, Json]]) -> JsonObject:
    made = dict(pairs)
    if len(made) < len(pairs):
        ((twice, _), *_) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the key {twice!r} occurs twice in one object")
    return made


def parsed_yaml(text: str, loader: type[SafeLoader] | None = None) -> Json:
    """Return the value of a text in YAML, which has limits of length and of aliases.

    Args:
        text: one document.
        loader: a class derived from yaml.SafeLoader; default yaml.SafeLoader.

    Raises:
        ValueError: the text is no YAML, too long, or has a key twice in a mapping; one line.
    """
    import yaml

    if len(text) > LONGEST_YAML:
        raise ValueError(f"{len(text):,} characters; more than {LONGEST_YAML:,} are not read")
    try:
        made = (loader or yaml.SafeLoader)(text)
        try:
            node = made.get_single_node()
            if node is None:
                return None
            if _values(node, {}) > _MOST_VALUES:
                raise ValueError("its aliases expand to too many values")
            return made.construct_document(node)
        finally:
            made.dispose()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except (ValueError, yaml.YAMLError) as error:  # ValueError: such as the date 2026-13-01
        raise ValueError(" ".join(str(error).partition("; use sys.set_int")[0].split())) from None


def package_yaml(text: str) -> Json:
    """Return the value of a YAML file of this package, read in C if PyYAML has libyaml.

    `parsed_yaml` reads users' files, with limits that these files do not need.
    """
    import yaml

    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - safe


def _values(node: Node, counts: dict[int, float]) -> float:
    """Return the number of values that a node of YAML stands for; infinite if it contains itself.

    Raises:
        ValueError: a mapping has a key twice.
    """
    if id(node) not in counts:
        counts[id(node)] = float("inf")  # infinite until it is counted
        inside = node.value if isinstance(node.value, list) else []
        names = [pair[0] for pair in inside if isinstance(pair, tuple)]
        keys = Counter((one.tag, one.value) for one in names if isinstance(one.value, str))
        if (twice := keys.most_common(1)) and twice[0][1] > 1:
            raise ValueError(f"the key {twice[0][0][1]!r} occurs twice in one mapping")
        parts = (one for pair in inside for one in (pair if isinstance(pair, tuple) else (pair,)))
        counts[id(node)] = 1 + sum(_values(one, counts) for one in parts)
    return counts[id(node)]


# --- writing --------------------------------------------------------------------------------------


def check_output(output: Path) -> None:
    """Raise an error if a file cannot be written, before any work on its content.

    Raises:
        TasksError: `output` is a folder, or its folder does not exist.
    """
    if output.is_dir() or not output.absolute().parent.is_dir():
        raise TasksError(
            f"{output}: cannot be written: its folder does not exist, or it is not a file"
        )


def check_folder(folder: Path, option: str) -> None:
    """Make a folder if needed, and raise an error if it cannot be written, before any work.

    Raises:
        TasksError: nothing can be written there; the message begins with `option`.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise TasksError(f"{option} {folder}: cannot be written ({error.strerror})") from None


def write_json(output: Path, content: object) -> None:
    """Write JSON to a file, whole or not at all: an earlier file stays until the end.

    A function in `content` stands for its result; it is called when its part is written.
    """
    made = json.JSONEncoder(indent=2, ensure_ascii=False, default=lambda later: later())
    _write(output, made.iterencode(content))


def write_lines(output: Path, entries: Iterable[object]) -> None:
    """Write one JSON object a line, whole or not at all.

    Raises:
        TasksError: the file cannot be written.
    """
    try:
        _write(output, (json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries))
    except OSError as error:
        raise TasksError(f"{output}: cannot be written ({error.strerror})") from None


def write_text(output: Path, text: str) -> None:
    """Write a text to a file, whole or not at all."""
    _write(output, [text])


def _write(output: Path, texts: Iterable[str]) -> None:
    # With the process's number: two processes that write the same file must not share a partial
    # one.
    partial = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(texts)
        partial.replace(output)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
