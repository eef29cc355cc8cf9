"""The files of a user's release: to find, read, count and place them."""

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import json_files

LISTED = 20  # lines in a message


@dataclass(frozen=True, kw_only=True)
class Release:
    """A user's validated data; each benchmark adds its records.

    Attributes:
        place: the data file, or the folder of several, for messages.
        data_files: the files that were read, by their places below the benchmark's folder.
        digest: first 12 hex digits of the SHA-256 of the content, independent of formatting.
        problems: the error of each record that cannot be used, by its id.
    """

    place: Path
    data_files: Mapping[str, Path]
    digest: str
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def files(self) -> Mapping[str, Path]:
        """The files of the release except videos, by their places as in `data_files`."""
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
    """The facts about one benchmark that `lmms-eval-tasks data status` prints."""

    where: Path
    version: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)  # questions, pools, pairs, ...
    videos: int = 0  # videos that can be used
    # The other videos: "missing..." or "unreadable...".
    bad: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    problem: str = ""  # the reason why the data cannot be used, with the place of the first error


def find_file(folder: Path, names: Sequence[str], *forms: str) -> Path:
    """Return the data file in a folder, the first of `names` that exists; a file gives itself.

    Args:
        folder: a folder, or a data file.
        names: file names.
        forms: further forms, for the message.

    Raises:
        DataError: there is none; names what was expected.
    """
    if not folder.exists():
        raise DataError(f"{folder}: no such file or folder")
    found = [folder / name for name in names if (folder / name).is_file()]
    if folder.is_dir() and not found:
        raise DataError(f"{folder}: no data file (expected {' or '.join((*names, *forms))})")
    return found[0] if found else folder


# --- reading (a DataError names the file and the unreadable place) --------------------------------


def read_text(file: Path) -> str:
    """Return a file's text in UTF-8, without a byte order mark.

    Raises:
        DataError: the file cannot be read, or is no UTF-8.
    """
    try:
        return json_files.text_of(json_files.read_bytes(file))
    except ValueError as error:
        raise DataError(f"{file}: {error}") from None


def read_json(file: Path) -> Any:
    """Return the content of a JSON file in UTF-8, with or without a byte order mark.

    Raises:
        DataError: the file cannot be read, or is no JSON.
    """
    text = read_text(file)
    try:
        return json_files.parsed(text)
    except ValueError as error:
        raise DataError(f"{file}: not valid JSON: {error}") from None


def read_lines(file: Path) -> Iterator[tuple[int, Any]]:
    """Yield number (from 1) and content of the lines of a JSON Lines file, without blank lines.

    Raises:
        DataError: the file cannot be read, or a line is no JSON; names the line.
    """
    for number, line in json_files.numbered_lines(file):
        if line.strip():
            try:
                yield number, json_files.parsed(line)
            except ValueError as error:
                raise DataError(f"{file}, line {number}: not valid JSON: {error}") from None


def read_yaml(file: Path, form: str) -> dict[str, Any]:
    """Return the mapping in a YAML file in UTF-8; `form` is the expected content, for messages.

    Raises:
        DataError: the file cannot be read, is no YAML, or no mapping.
    """
    text = read_text(file)
    try:
        content = json_files.parsed_yaml(text)
    except ValueError as error:
        raise DataError(f"{file}: not YAML ({error})") from None
    if not isinstance(content, dict):
        raise DataError(f"{file}: expected {form}")
    return content


def read_table(file: Path) -> list[Any]:
    """Return the rows of a table: JSON or CSV, JSON Lines, or parquet.

    Values keep the file's types: those of CSV are texts.

    Raises:
        DataError: the file cannot be read, or is no list of rows; names the place.
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
    """Yield the rows of a CSV file; values missing at the end of a row, as from Excel, are None."""
    # Strict: without it an open quotation mark would swallow all rows after it.
    rows = csv.DictReader(io.StringIO(read_text(file), newline=""), strict=True)
    try:
        names = rows.fieldnames or []
        for sign, said in ((";", "semicolons"), ("\t", "tabs")):
            if len(names) == 1 and sign in names[0]:
                raise DataError(f"{file}: {said} between its columns: save it with commas")
        if twice := [name for name, number in Counter(names).items() if name and number > 1]:
            raise DataError(f"{file}: the column {twice[0]!r} occurs twice in its first line")
        for row in rows:
            if None in row:  # a comma was not quoted, so the values are in the wrong columns
                raise csv.Error(f"more than the {len(names)} values that its first line names")
            yield row
    except csv.Error as error:
        where = f"{file}, line {rows.line_num}"
        raise DataError(f"{where}: not readable as CSV: {error}") from None


# --- copying and linking --------------------------------------------------------------------------


def put(source: Path, target: Path, link: bool | None) -> None:
    """Copy or link a file to its place, whole or not at all; the same file there stays.

    Args:
        source: the file.
        target: its place.
        link: True makes a symbolic link, False a copy; None a hard link, which takes no space, or a
            copy where the disk has no hard links.
    """
    if target.exists() and target.samefile(source):
        return
    temporary = target.with_name(f".{target.name}.part")
    temporary.unlink(missing_ok=True)
    if link is None:
        with suppress(OSError):
            temporary.hardlink_to(real(source))
    if link:
        temporary.symlink_to(source)
    elif not temporary.exists():
        shutil.copyfile(source, temporary)
    temporary.replace(target)


def place(target: Path, files: Mapping[str, Path], link: bool | None) -> None:
    """Copy or link files to their places in `target`; files with the same content stay.

    Args:
        target: a folder.
        files: file by its place in `target`.
        link: as in `put`.

    Raises:
        DataError: another file is in a place; then nothing is copied.
    """

    def is_new(target: Path, file: Path) -> bool:
        same = target.exists() and (
            target.samefile(file) or filecmp.cmp(target, file, shallow=False)
        )
        if target.exists() and not same:
            raise DataError(f"{target}: another file than {file}; remove it first")
        return not same

    for name, file in [one for one in files.items() if is_new(target / one[0], one[1])]:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        put(file, target / name, link)


def put_folder(folder: Path, make: Callable[[Path], None]) -> None:
    """Make a folder under a temporary name and rename it: it appears whole or not at all.

    The caller holds a lock: folders that killed processes left behind are removed.

    Args:
        folder: the place; a folder there is replaced.
        make: writes the content into an empty folder.
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


# --- status ---------------------------------------------------------------------------------------


def state(*files: Path) -> tuple[tuple[int, int] | None, ...]:
    """Return time of change and size of files, to notice changes; None for a missing file."""
    return tuple(
        (file.stat().st_mtime_ns, file.stat().st_size) if file.is_file() else None for file in files
    )


def listed(problems: Mapping[str, str]) -> str:
    """Return a line for each of the first 20 problems, and the number of the others."""
    lines = [f"  {name}: {why}" for name, why in problems.items()]
    more = [f"  and {len(lines) - LISTED} more"] if len(lines) > LISTED else []
    return "\n".join(lines[:LISTED] + more)


def compared(counts: Mapping[str, int], paper: Mapping[str, int]) -> str:
    """Return a line with each count and its number in the paper."""
    parts = (f"{counts[name]:,} of {total:,} {name}" for name, total in paper.items())
    return f"{', '.join(parts)} of the paper's full set"


# --- videos ---------------------------------------------------------------------------------------

# Containers of videos that releases name without an ending.
VIDEO_ENDINGS = (
    *(".mp4", ".mkv", ".webm", ".mov", ".avi", ".m4v", ".mpg", ".ts", ".ogv"),
    *(".mpeg", ".wmv", ".flv", ".m2ts", ".mts", ".3gp"),
)


def visible(folder: Path, files: Iterable[Path]) -> list[Path]:
    """Return the files in a folder, sorted, without those that macOS and notebooks leave there.

    These begin with a dot, such as `._gen.csv`, or lie in `__MACOSX` or `.ipynb_checkpoints`.
    """
    names = {file: file.relative_to(folder).parts for file in files if file.is_file()}
    return sorted(
        f for f, own in names.items() if not any(n.startswith((".", "__MACOSX")) for n in own)
    )


def stem(video: str) -> str:
    """Return a video's name without its ending, if that is a known one: "talk.part1" has none."""
    path = Path(video)
    return path.stem if path.suffix.lower() in VIDEO_ENDINGS else video


def real(path: Path) -> Path:
    """Return the file that a link stands for; a link in a circle stays."""
    return Path(os.path.realpath(path))  # unlike resolve(), it never raises


def video_path(folders: Sequence[Path], name: str) -> Path:
    """Return the file of a video in the first of `folders` that has it, else its expected place.

    Args:
        folders: folders of a release's layout, in order.
        name: the file's name with its ending, or an id without; any known ending fits.
    """
    names = [name, *(f"{stem(name)}{ending}" for ending in VIDEO_ENDINGS)]
    expected = folders[0] / (names[1] if stem(name) == name else name)
    places = (find_named_file(folder, one) for folder in folders for one in names)
    return next(filter(None, places), expected)


def find_named_file(folder: Path, name: str) -> Path | None:
    """Return the regular file of a name in a folder or below it; None without one.

    The ending's case may differ (`.MP4`), and so may the composition of letters: macOS stores
    accents as separate characters.
    """
    if (folder / name).is_file():
        return folder / name
    *above, last = PurePosixPath(name).parts
    for part in above:
        folder = next(iter(_alike(folder, part)), folder / part)
    return next((file for file in _alike(folder, last) if file.is_file()), None)


# Nanoseconds after a change in which a further change may leave the same time stamp.
_FRESH = 2 * 10**9


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
    """Return the names in a folder, by their plain forms."""
    listing: dict[str, list[str]] = {}
    for name in sorted(file.name for file in folder.iterdir()):
        listing.setdefault(_plain(name), []).append(name)
    return listing


def _plain(name: str) -> str:
    whole, dot, ending = unicodedata.normalize("NFC", name).rpartition(".")
    return f"{whole}{dot}{ending.lower() if whole else ending}"
