"""MAIA's tables on the hub, `gen` (questions) and `mc` (pairs), as entries of the JSON form.

A table is known by its columns, whatever its file is called: CSV or parquet, in one file or in
several (train and test).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import BaseModel, Field, StringConstraints, ValidationError

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.validation import Text, told

SIZE = 8  # answers of a question, pairs of a pool; schema.py checks them again
ANSWERS = [f"answer{number}" for number in range(1, SIZE + 1)]
COLUMNS = {
    "gen": {"video_id", "question_category", "question", *ANSWERS},
    "mc": {"video_id", "question_category", "pool_pos", "answer1", "answer2", "target"},
}
# Tables lie in the folder of a data set, or one or two below it (`data/`, `gen/`).
_PLACES = [
    f"{folders}*.{ending}" for folders in ("", "*/", "*/*/") for ending in ("csv", "parquet")
]


class _Row(BaseModel):
    video_id: Annotated[str, StringConstraints(pattern=r"^[Vv]ideo\d+$")]
    question_category: Text

    @property
    def key(self) -> tuple[str, str]:
        """Video and category, which together name a question."""
        return self.video_id.lower(), self.question_category


class _Question(_Row):
    question: Text
    answer1: Text
    answer2: Text
    answer3: Text
    answer4: Text
    answer5: Text
    answer6: Text
    answer7: Text
    answer8: Text


class _Pair(_Row):
    pool_pos: int
    answer1: Text
    answer2: Text
    target: Annotated[int, Field(ge=0, le=1)]  # which of the two is true


Row = TypeVar("Row", bound=_Row)


class Tables(NamedTuple):
    """Files of each of the two tables."""

    gen: tuple[Path, ...]
    mc: tuple[Path, ...]


def find_any(folder: Path) -> Tables:
    """The tables in a folder, as far as they are there."""
    files: dict[str, list[Path]] = {kind: [] for kind in COLUMNS}
    for file in sorted({file for place in _PLACES for file in folder.glob(place)}):
        columns = _columns(file)
        for kind, needed in COLUMNS.items():
            if needed <= columns:
                files[kind].append(file)
    return Tables(tuple(files["gen"]), tuple(files["mc"]))


def find(folder: Path) -> Tables | None:
    """The tables in a folder; None if there are none.

    Raises:
        DataError: only one of the two is there.
    """
    found = find_any(folder)
    there = {kind: files for kind, files in found._asdict().items() if files}
    if len(there) == 1:
        ((kind, files),) = there.items()
        (other,) = COLUMNS.keys() - {kind}
        raise DataError(
            f"{folder}: holds MAIA's table {kind} ({files[0].name}) without {other}, which has the "
            f"columns {', '.join(sorted(COLUMNS[other]))}"
        )
    return found if there else None


def in_cache(source: Path) -> Path:
    """The folder that a source stands for; nothing is fetched.

    Args:
        source: a file or folder; or that of a data set in the hub's cache; or the name of one that
            is in the user's cache ("giobin/MAIA").

    Raises:
        DataError: it can be a name, and neither a folder nor such a data set has it.
    """
    if not source.exists() and not source.is_absolute() and len(source.parts) == 2:
        from huggingface_hub.constants import HF_HUB_CACHE

        cached = Path(HF_HUB_CACHE) / f"datasets--{'--'.join(source.parts)}"
        if not cached.is_dir():
            raise DataError(
                f"{source}: no such file or folder, and no data set of this name in the hub's "
                f"cache ({HF_HUB_CACHE}); to get one: hf download --repo-type dataset {source}"
            )
        source = cached
    snapshots = source / "snapshots"
    if not snapshots.is_dir():
        return source
    named = source / "refs" / "main"
    if named.is_file() and (snapshots / named.read_text().strip()).is_dir():
        return snapshots / named.read_text().strip()
    return max(snapshots.iterdir(), key=lambda one: one.stat().st_mtime, default=source)


def entries(tables: Tables) -> list[dict[str, Any]]:
    """The videos of two tables in the form of the JSON file, with `target`, in the order of `gen`.

    Raises:
        DataError: with the file, the row and the column of the first error; or with the question
            that the tables do not share.
    """
    pools: dict[tuple[str, str], dict[int, _Pair]] = {}
    for place, pair in _rows(tables.mc, _Pair):
        pool = pools.setdefault(pair.key, {})
        if pair.pool_pos in pool:
            raise DataError(f"{place}, pool_pos: {pair.pool_pos} occurs twice in this pool")
        pool[pair.pool_pos] = pair
    videos: dict[str, dict[str, Any]] = {}
    asked: set[tuple[str, str]] = set()
    for place, row in _rows(tables.gen, _Question):
        if row.key in asked:
            raise DataError(f"{place}, question_category: occurs twice for this video")
        asked.add(row.key)
        name, category = row.key
        empty = {"video": name, "question_categories_A": [], "question_categories_B": []}
        part = "B" if category.endswith("_B") else "A"
        videos.setdefault(name, empty)[f"question_categories_{part}"].append(
            {
                "category": category,
                "question": row.question,
                "answer": [getattr(row, answer) for answer in ANSWERS],
                **_statements(place, pools.get(row.key, {})),
            }
        )
    if alone := pools.keys() - asked:
        name, category = min(alone)
        raise DataError(f"{tables.mc[0]}: {name}, {category}: has pairs but no row in gen")
    return list(videos.values())


def _statements(place: str, pool: Mapping[int, _Pair]) -> dict[str, list[Any]]:
    """The eight pairs of a question in their order."""
    positions = sorted(pool)
    if positions not in (list(range(SIZE)), list(range(1, SIZE + 1))):
        raise DataError(
            f"{place}: expected {SIZE} pairs with pool_pos 0 to {SIZE - 1} in mc, "
            f"found {positions or 'none'}"
        )
    pairs = [pool[position] for position in positions]
    shown = [(pair.answer1, pair.answer2) for pair in pairs]
    target = [pair.target for pair in pairs]
    return {
        "true_statement": [texts[first] for texts, first in zip(shown, target, strict=True)],
        "false_statement": [texts[1 - first] for texts, first in zip(shown, target, strict=True)],
        "target": target,
    }


def _rows(files: Sequence[Path], model: type[Row]) -> Iterator[tuple[str, Row]]:
    """Each row of the files, with its place for messages."""
    for file in files:
        for number, values in enumerate(released_files.read_table(file), 1):
            place = f"{file}, row {number}"
            try:
                row = model.model_validate(values)
            except ValidationError as error:
                raise DataError(f"{place}, {told(error)}") from None
            yield f"{place} ({row.key[0]}, {row.key[1]})", row


def _columns(file: Path) -> set[str]:
    """Names in the head of a file; none if it has no readable one."""
    try:
        if file.suffix == ".parquet":
            from pyarrow import parquet

            return set(parquet.read_schema(file).names)
        with file.open(encoding="utf-8-sig", errors="replace", newline="") as text:
            return set(next(csv.reader(text), []))
    except (OSError, ValueError, csv.Error):  # pyarrow's ArrowInvalid is a ValueError
        return set()
