"""CVRR-ES's annotation files: where each dimension's lies, its rows, and what is wrong with them.

    DIMENSION/annotations_DIMENSION.json   the original release: a list of {Q, A, VideoID}
    DIMENSION.json, .jsonl or .parquet     the hub copy as exported by dimension: rows of
    DIMENSION/test-*.parquet               {DimensionName, Q, A, VideoID}

`VideoID` is the name of the video's file. Both public copies call it so; VIDEO_KEYS are read too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import released_files

VIDEO_KEYS = ("VideoID", "video_id", "video", "video_name")
_PARQUET = "test-*.parquet"  # the hub's own name of a dimension's only file


class Annotation(NamedTuple):
    """A row that can be used; texts without the white space around them."""

    question: str
    reference: str
    video: str


def find(base: Path, dimension: str) -> Path | None:
    """The annotation file of a dimension under `base`; None if there is none.

    Raises:
        DataError: there are several, which might differ.
    """
    names = [f"{dimension}{ending}" for ending in (".json", ".jsonl", ".parquet")]
    own = base / dimension
    there = [
        path
        for path in (own / f"annotations_{dimension}.json", *(base / name for name in names))
        if path.is_file()
    ]
    there += sorted(own.glob(_PARQUET))
    if len(there) > 1:
        raise DataError(
            f"{base}: several annotation files of {dimension} "
            f"({', '.join(str(path.relative_to(base)) for path in there)}); keep one"
        )
    return there[0] if there else None


def rows(file: Path) -> list[Any]:
    """The rows of an annotation file, unchecked, in its order.

    Raises:
        DataError: it cannot be read, or is no list of rows; names the place.
    """
    if file.suffix == ".parquet":
        found: Any = _parquet(file)
    elif file.suffix == ".jsonl":
        found = [content for _, content in released_files.read_lines(file)]
    else:
        found = released_files.read_json(file)
    if not isinstance(found, list):
        raise DataError(f"{file}: expected a list of {{Q, A, VideoID}}")
    if not found:
        raise DataError(f"{file}: holds no questions")
    return found


def annotation(row: Any, dimension: str) -> Annotation | str:
    """A row as it is used, or what is wrong with it, the field first."""
    problem = next(_problems(row, dimension), "")
    if problem:
        return problem
    video = next(row[name] for name in VIDEO_KEYS if name in row)
    return Annotation(row["Q"].strip(), row["A"].strip(), video.strip())


def _problems(row: Any, dimension: str) -> Iterator[str]:
    """What is wrong with a row; what comes later relies on what was right before."""
    if not isinstance(row, Mapping):
        yield "expected an object with Q, A and VideoID"
        return
    keys = [name for name in VIDEO_KEYS if name in row]
    yield from filter(None, (_no_text(row, name) for name in ("Q", "A")))
    if not keys:
        yield f"VideoID: the field is missing (or {', '.join(VIDEO_KEYS[1:])})"
    yield from filter(None, (_no_text(row, name) for name in keys))
    names = {row[name].strip() for name in keys}
    if len(names) > 1:
        yield f"{' and '.join(keys)}: name different videos"
    for video in names:
        if "/" in video or "\\" in video or video in (".", ".."):
            yield f"{keys[0]}: expected the name of a file, without folders, found {video!r}"
    given = row.get("DimensionName", dimension)
    if not isinstance(given, str) or _plain(given) not in _names(dimension):
        yield f"DimensionName: expected {DIMENSIONS[dimension].title!r}, found {given!r}"


def _no_text(row: Mapping[str, Any], name: str) -> str:
    if name not in row:
        return f"{name}: the field is missing"
    value = row[name]
    if not isinstance(value, str):
        return f"{name}: expected a text, found {type(value).__name__}"
    return "" if value.strip() else f"{name}: expected a text, found an empty one"


def _names(dimension: str) -> set[str]:
    """How the copies write a dimension's name: its title or its slug."""
    return {_plain(dimension), _plain(DIMENSIONS[dimension].title)}


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


def _parquet(file: Path) -> list[Any]:
    import pyarrow
    from pyarrow import parquet

    try:
        found: list[Any] = parquet.ParquetFile(file).read().to_pylist()
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{file}: not a readable parquet file: {error}") from None
    return found
