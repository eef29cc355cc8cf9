"""The files of a user's release: finding, reading, counting and placing them."""

from __future__ import annotations

import csv
import filecmp
import io
import os
import shutil
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import json_files

LISTED = 20  # lines of one message


@dataclass(frozen=True, kw_only=True)
class Release:
    """A user's validated data. Each benchmark adds its records.

    Attributes:
        place: the data file, or the folder of several: what messages name.
        data_files: the files that were read, by their places below the benchmark's folder.
        digest: first 12 hex digits of the SHA-256 of the content, independent of formatting.
        problems: what is wrong with each record that cannot be used, by its id.
    """

    place: Path
    data_files: Mapping[str, Path]
    digest: str
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def files(self) -> Mapping[str, Path]:
        """The files that are there but for the videos, as `data_files` has them."""
        return self.data_files

    @property
    def n_records(self) -> int:
        """The number of records that can be used."""
        raise NotImplementedError

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of videos, questions, ... by name, as in the benchmark's `paper_counts`."""
        raise NotImplementedError


@dataclass(frozen=True)
class DataStatus:
    """The lines of one benchmark in `lmms-eval-tasks data status`."""

    where: Path
    version: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)  # questions, pools, pairs, ...
    videos: int = 0  # that can be used
    bad: Mapping[str, str] = field(default_factory=dict)  # others: "missing..." or "unreadable..."
    notes: Sequence[str] = ()
    problem: str = ""  # why the data cannot be used, with the place of the first error


def find_file(folder: Path, names: Sequence[str], *forms: str) -> Path:
    """The data file in a folder, of the first known name that is there; a file is itself.

    Raises:
        DataError: there is none; names what was expected, `forms` too.
    """
    if not folder.exists():
        raise DataError(f"{folder}: no such file or folder")
    found = [folder / name for name in names if (folder / name).is_file()]
    if folder.is_dir() and not found:
        raise DataError(f"{folder}: no data file (expected {' or '.join((*names, *forms))})")
    return found[0] if found else folder


# --- reading: a DataError names the file, and the place in it that cannot be read -----------------


def read_text(file: Path) -> str:
    """A file's text in UTF-8, without a byte order mark."""
    try:
        return json_files.text_of(json_files.read_bytes(file))
    except ValueError as error:
        raise DataError(f"{file}: {error}") from None


def read_json(file: Path) -> Any:
    """The content of a JSON file in UTF-8, with or without a byte order mark."""
    text = read_text(file)
    try:
        return json_files.parsed(text)
    except ValueError as error:
        raise DataError(f"{file}: not valid JSON: {error}") from None


def read_lines(file: Path) -> Iterator[tuple[int, Any]]:
    """The lines of a JSON lines file: number, from 1, and content; blank ones are skipped."""
    for number, line in json_files.lines(file):
        if line.strip():
            try:
                yield number, json_files.parsed(line)
            except ValueError as error:
                raise DataError(f"{file}, line {number}: not valid JSON: {error}") from None


def read_yaml(file: Path, form: str) -> dict[str, Any]:
    """The mapping in a YAML file in UTF-8; `form` is what was expected, for the message."""
    text = read_text(file)
    try:
        content = json_files.parsed_yaml(text)
    except ValueError as error:
        raise DataError(f"{file}: not YAML ({error})") from None
    if not isinstance(content, dict):
        raise DataError(f"{file}: expected {form}")
    return content


def read_table(file: Path) -> list[Any]:
    """The rows of a table: JSON or CSV, one object a line in JSON Lines, or parquet.

    Rows are as the file has them: what CSV holds is text.
    """
    rows: Any
    if file.suffix.lower() == ".jsonl":
        rows = [content for _, content in read_lines(file)]
    elif file.suffix.lower() == ".csv":
        rows = list(_csv_rows(file))
    elif file.suffix.lower() == ".parquet":
        from pyarrow import ArrowException, parquet

        json_files.check_input(file)
        try:
            with parquet.ParquetFile(file) as opened:
                about = opened.metadata
                groups = (about.row_group(one) for one in range(about.num_row_groups))
                if (size := sum(one.total_byte_size for one in groups)) > json_files.LARGEST:
                    most = f"more than {json_files.LARGEST:,} are not read"
                    raise DataError(f"{file}: {size:,} bytes when unpacked; {most}")
                rows = opened.read().to_pylist()
        except (ArrowException, OSError, UnicodeDecodeError) as error:
            why = " ".join(str(error).split())
            raise DataError(f"{file}: not a readable parquet file: {why}") from None
    else:
        rows = read_json(file)
    if not isinstance(rows, list):
        raise DataError(f"{file}: expected a list of rows")
    return rows


def _csv_rows(file: Path) -> Iterator[dict[str, str | None]]:
    """The rows of a CSV file; what is left off at the end of a row, as Excel does, is None."""
    # Strict: a quotation mark that is never closed would swallow all rows behind it.
    rows = csv.DictReader(io.StringIO(read_text(file), newline=""), strict=True)
    try:
        names = rows.fieldnames or []
        for sign, said in ((";", "semicolons"), ("\t", "tabs")):
            if len(names) == 1 and sign in names[0]:
                raise DataError(f"{file}: {said} between its columns: save it with commas")
        if twice := [name for name, number in Counter(names).items() if name and number > 1]:
            raise DataError(f"{file}: the column {twice[0]!r} occurs twice in its first line")
        for row in rows:
            if None in row:  # where a comma was not quoted, the values are in the wrong columns
                raise csv.Error(f"more than the {len(names)} values that its first line names")
            yield row
    except csv.Error as error:
        where = f"{file}, line {rows.line_num}"
        raise DataError(f"{where}: not readable as CSV: {error}") from None


# --- putting in place -----------------------------------------------------------------------------


def put(source: Path, target: Path, link: bool) -> None:
    """Copy or link a file to its place, as a whole or not at all; one that is there stays."""
    if target.exists() and target.samefile(source):
        return
    temporary = target.with_name(f".{target.name}.part")
    temporary.unlink(missing_ok=True)
    if link:
        temporary.symlink_to(source)
    else:
        shutil.copyfile(source, temporary)
    temporary.replace(target)


def place(target: Path, files: Mapping[str, Path], link: bool) -> None:
    """Put files (place in `target` -> file) as copies or links; the same content there stays.

    Raises:
        DataError: another file is in a place; nothing was put then.
    """

    def is_new(there: Path, file: Path) -> bool:
        same = there.exists() and (there.samefile(file) or filecmp.cmp(there, file, shallow=False))
        if there.exists() and not same:
            raise DataError(f"{there}: another file than {file}; remove it first")
        return not same

    for name, file in [one for one in files.items() if is_new(target / one[0], one[1])]:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        put(file, target / name, link)


def put_folder(folder: Path, make: Callable[[Path], None]) -> None:
    """Make a folder beside its place and rename it there: whole or not at all.

    The caller holds a lock: what killed processes left beside it goes.
    """
    for leftover in folder.parent.glob(f".{folder.name}-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as work:
        new = Path(work, "new")
        new.mkdir()
        make(new)
        if folder.exists():
            folder.rename(Path(work, "old"))
        new.rename(folder)


# --- looking --------------------------------------------------------------------------------------


def state(*files: Path) -> tuple[tuple[int, int] | None, ...]:
    """Time and size of files, to keep what was read while they stay; None for one not there."""
    return tuple(
        (file.stat().st_mtime_ns, file.stat().st_size) if file.is_file() else None for file in files
    )


def listed(problems: Mapping[str, str]) -> str:
    """One line each of the first 20, and how many more there are."""
    lines = [f"  {name}: {why}" for name, why in problems.items()]
    more = [f"  and {len(lines) - LISTED} more"] if len(lines) > LISTED else []
    return "\n".join(lines[:LISTED] + more)


def compared(counts: Mapping[str, int], paper: Mapping[str, int]) -> str:
    """One line: how many of everything there are, of how many in the paper."""
    parts = (f"{counts[name]:,} of {total:,} {name}" for name, total in paper.items())
    return f"{', '.join(parts)} of the paper's full set"


# --- videos ---------------------------------------------------------------------------------------

# Containers of the videos that releases name without an ending.
VIDEO_ENDINGS = (
    *(".mp4", ".mkv", ".webm", ".mov", ".avi", ".m4v", ".mpg", ".ts", ".ogv"),
    *(".mpeg", ".wmv", ".flv", ".m2ts", ".mts", ".3gp"),
)


def stem(video: str) -> str:
    """The name without the ending of a video, if it has one; "talk.part1" has none."""
    path = Path(video)
    return path.stem if path.suffix.lower() in VIDEO_ENDINGS else video


def real(path: Path) -> Path:
    """The file that a link stands for; links in a circle, which stand for none, as they are."""
    return Path(os.path.realpath(path))  # unlike resolve(), it never raises


def video_path(folders: Sequence[Path], name: str) -> Path:
    """The file of a video in the first of `folders` that has it; where it would be if none has.

    Args:
        folders: in order; of a release's layout.
        name: of the file, with its own ending or, as ids are, without; any known one is taken.
    """
    names = [name, *(f"{stem(name)}{ending}" for ending in VIDEO_ENDINGS)]
    expected = folders[0] / (names[1] if stem(name) == name else name)
    places = (named(folder, one) for folder in folders for one in names)
    return next(filter(None, places), expected)


def named(folder: Path, name: str) -> Path | None:
    """The regular file of a name in a folder or below it; None without one.

    Its ending may be in another case (`.MP4`), and its letters may be composed in another way:
    macOS writes the accent of an e apart.
    """
    if (folder / name).is_file():
        return folder / name
    *above, last = PurePosixPath(name).parts
    for part in above:
        folder = next(iter(_alike(folder, part)), folder / part)
    return next((file for file in _alike(folder, last) if file.is_file()), None)


_FRESH = 2 * 10**9  # nanoseconds in which a folder may change without another time of change


def _alike(folder: Path, name: str) -> list[Path]:
    try:
        changed = folder.stat().st_mtime_ns
        is_fresh = abs(time.time_ns() - changed) < _FRESH
        listing = (_listing.__wrapped__ if is_fresh else _listing)(folder, changed)
    except OSError:
        return []
    return [folder / one for one in listing.get(_plain(name), ())]


@lru_cache(maxsize=256)
def _listing(folder: Path, changed: int) -> dict[str, list[str]]:  # noqa: ARG001 - its state
    """The names in a folder by their plain forms."""
    found: dict[str, list[str]] = {}
    for name in sorted(file.name for file in folder.iterdir()):
        found.setdefault(_plain(name), []).append(name)
    return found


def _plain(name: str) -> str:
    whole, dot, ending = unicodedata.normalize("NFC", name).rpartition(".")
    return f"{whole}{dot}{ending.lower() if whole else ending}"
