"""MAIA's released data: their schema, and the functions that read them.

There are two forms: one JSON file, or the hub's tables `gen` (questions) and `mc` (pairs). The
tables are CSV or parquet files, and a table may be in several files (train and test). A table is
recognised by its columns; the names of the files do not matter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maia.categories import BY_RELEASED_NAME
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.released_files import Release
from lmms_eval_tasks.utils.validation import Text, quoted, validation_problems

POOL_SIZE = 8  # answers, true statements and false statements of a question (paper, 3.1)
# Counts of the full set (paper, 3.1 and Limitations).
PAPER_COUNTS = {"videos": 100, "questions": 2400, "pairs": 19200}
# File names of the authors' release.
FILE_NAMES = ("data.json", "data_100%.json", "data_20%.json")
ANSWERS = [f"answer{number}" for number in range(1, POOL_SIZE + 1)]
COLUMNS = {
    "gen": {"video_id", "question_category", "question", *ANSWERS},
    "mc": {"video_id", "question_category", "pool_pos", "answer1", "answer2", "target"},
}
Pool = Annotated[list[Text], Field(min_length=POOL_SIZE, max_length=POOL_SIZE)]
Target = Annotated[int, Field(ge=0, le=1)]


class MaiaQuestion(BaseModel):
    """One question with its pool; `true_statement[i]` and `false_statement[i]` are a pair."""

    model_config = ConfigDict(frozen=True)

    category: Text  # released name with its suffix, e.g. "SpazialeParziale_A"
    question: Text
    answer: Pool
    true_statement: Pool
    false_statement: Pool
    # For each pair, the place of the true statement in the hub's tables: 0 is first, 1 is second.
    # None for a JSON file, which gives no order.
    target: list[Target] | None = Field(None, min_length=POOL_SIZE, max_length=POOL_SIZE)

    @field_validator("category")
    @classmethod
    def _known(cls, value: str) -> str:
        name, _, part = value.rpartition("_")
        if name not in BY_RELEASED_NAME or part not in ("A", "B"):
            raise ValueError(f"expected one of {', '.join(BY_RELEASED_NAME)} with _A or _B")
        return value

    @model_validator(mode="after")
    def _different(self) -> MaiaQuestion:
        pairs = zip(self.true_statement, self.false_statement, strict=True)
        for number, (true, false) in enumerate(pairs, 1):
            if true == false:
                raise ValueError(f"false_statement, entry {number}: equals the true statement")
        return self

    @property
    def slug(self) -> str:
        """The slug of the category, such as "spatial_partial"."""
        return BY_RELEASED_NAME[self.category.rsplit("_", 1)[0]]


class Video(BaseModel):
    """One video and its 24 questions, in two sets of twelve categories."""

    model_config = ConfigDict(frozen=True)

    video: Annotated[str, StringConstraints(pattern=r"^video\d+$")]
    question_categories_A: list[MaiaQuestion]  # noqa: N815  # as released
    question_categories_B: list[MaiaQuestion]  # noqa: N815

    @property
    def questions(self) -> list[MaiaQuestion]:
        """All questions, in the file's order."""
        return [*self.question_categories_A, *self.question_categories_B]

    @model_validator(mode="after")
    def _once(self) -> Video:
        names = [question.category for question in self.questions]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"{self.video}, category {min(twice)} occurs twice")
        return self


class _Pair(BaseModel):
    """A row of `mc`."""

    pool_pos: int
    answer1: Text
    answer2: Text
    target: Target  # index of the true statement


@dataclass(frozen=True, kw_only=True)
class MaiaRelease(Release):
    """Validated data of one JSON file or the hub's tables, and the folder of their videos."""

    folder: Path
    videos: tuple[Video, ...]

    @property
    def n_records(self) -> int:
        """The number of videos, which are this benchmark's records."""
        return len(self.videos)

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of videos, questions, pools and pairs; the pairs of a question are a pool."""
        number = sum(len(video.questions) for video in self.videos)
        pairs = number * POOL_SIZE
        return {"videos": len(self.videos), "questions": number, "pools": number, "pairs": pairs}

    def path_of(self, video: str) -> Path:
        """Return the path of a video's file, which may be missing: videos/5.* for "video5"."""
        names = (video.removeprefix("video"), video, video.capitalize())
        folders = [self.folder / "videos", self.folder / "Videos"]
        found = (released_files.video_path(folders, name) for name in names)
        is_there = next((file for file in found if file.is_file()), None)
        return is_there or released_files.video_path(folders, names[0])


def data_files(folder: Path) -> list[Path]:
    """Return the files that may hold data: JSON files in the folder, and tables at any depth."""
    tables = (file for file in folder.rglob("*") if file.suffix.lower() in (".csv", ".parquet"))
    return released_files.visible(folder, {*folder.glob("*.json"), *filter(_may_be_ours, tables)})


def _may_be_ours(file: Path) -> bool:
    """Return False for a CSV file without `video_id` in its first line, in any encoding."""
    if file.suffix.lower() != ".csv" or not file.is_file():
        return True
    with file.open("rb") as opened:
        first = opened.readline(2**16).replace(b"\0", b"")  # as in UTF-16
    return b"video_id" in first


def read_maia(path: Path) -> MaiaRelease:
    """Read and validate a JSON file, or the data in a folder; unchanged files are read only once.

    Raises:
        DataError: the data are missing or wrong; the message names the file, the entry or row, and
            the field of the first error.
    """
    files = data_files(path) if path.is_dir() else [path]
    return _read(path, released_files.state(*files))


@lru_cache(maxsize=8)
def _read(path: Path, _state: object) -> MaiaRelease:
    has_json = path.is_file() or any((path / name).is_file() for name in FILE_NAMES)
    tables = {} if has_json else _tables(path)
    if tables:
        files = tuple(file for own in tables.values() for file in own)
        content = _entries(tables)
    else:
        files = (released_files.find_file(path, FILE_NAMES, "the tables gen and mc"),)
        content = released_files.read_json(files[0])
    if not isinstance(content, list):
        raise DataError(f"{files[0]}: expected a list of videos, found {quoted(content)}")
    videos: dict[str, Video] = {}
    for number, entry in enumerate(content, 1):
        place = f"{files[0]}: {entry['video'] if tables else f'entry {number}'}, "
        try:
            video = Video.model_validate(entry)
        except ValidationError as error:
            raise DataError(place + validation_problems(error)) from None
        if video.video in videos:
            raise DataError(f"{place}{video.video} occurs twice")
        videos[video.video] = video
    if not videos:
        raise DataError(f"{files[0]}: no videos")
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    # A lone surrogate in a field that is not read is no error.
    digest = hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    folder = path if path.is_dir() else path.parent
    return MaiaRelease(
        place=files[0],
        data_files={file.relative_to(folder).as_posix(): file for file in files},
        digest=digest,
        folder=folder,
        videos=tuple(videos.values()),
    )


# --- the hub's tables ---------------------------------------------------------------------------

Rows = list[Mapping[str, Any]]
Tables = dict[str, dict[Path, Rows]]  # `gen` and `mc` -> file -> rows


def _tables(folder: Path) -> Tables:
    """Return the tables in a folder; {} if there are none.

    Raises:
        DataError: there is only one of the two tables.
    """
    tables: Tables = {}
    for file in data_files(folder):
        rows = released_files.read_table(file) if file.suffix.lower() != ".json" else []
        for kind, needed in COLUMNS.items():
            if rows and needed <= rows[0].keys():
                tables.setdefault(kind, {})[file] = rows
    if len(tables) == 1:
        ((kind, files),) = tables.items()
        raise DataError(
            f"{folder}: holds MAIA's table {kind} ({min(files).name}) without the other: gen has "
            "the questions, mc the pairs"
        )
    return tables


def _entries(tables: Tables) -> list[dict[str, Any]]:
    """Return the videos of both tables in the form of the JSON file, in the order of `gen`.

    Their questions also have `target`.

    Raises:
        DataError: a row of pairs is malformed or belongs to no question, or a question or pair
            occurs twice.
    """
    pools: dict[tuple[str, str], list[_Pair]] = {}
    places: dict[object, str] = {}  # file and row of each question and pair

    def once(row: Mapping[str, Any], place: str, *position: int) -> None:
        key = (*_question_of(row), *position)
        if (first := places.setdefault(key, place)) != place:
            which = "".join(f", pool_pos {one}" for one in position)
            raise DataError(f"{place}: {key[0]}, {key[1]}{which} stands already in {first}")

    for file, rows in tables["mc"].items():
        for number, row in enumerate(rows, 1):
            place = f"{file}, row {number}"
            try:
                pair = _Pair.model_validate(row)
            except ValidationError as error:
                raise DataError(f"{place}, {validation_problems(error)}") from None
            once(row, place, pair.pool_pos)
            pools.setdefault(_question_of(row), []).append(pair)
    for file, rows in tables["gen"].items():
        for number, row in enumerate(rows, 1):
            once(row, f"{file}, row {number}")
    videos: dict[str, dict[str, Any]] = {}
    asked = [row for rows in tables["gen"].values() for row in rows]
    for row in asked:
        name, category = _question_of(row)
        pairs = sorted(pools.get((name, category), []), key=lambda pair: pair.pool_pos)
        empty = {"video": name, "question_categories_A": [], "question_categories_B": []}
        part = "B" if category.endswith("_B") else "A"
        videos.setdefault(name, empty)[f"question_categories_{part}"].append(
            {
                "category": category,
                "question": row["question"],
                "answer": list(itemgetter(*ANSWERS)(row)),
                "true_statement": [(p.answer1, p.answer2)[p.target] for p in pairs],
                "false_statement": [(p.answer1, p.answer2)[1 - p.target] for p in pairs],
                "target": [pair.target for pair in pairs],
            }
        )
    if alone := pools.keys() - set(map(_question_of, asked)):
        name, category = min(alone)
        raise DataError(f"{min(tables['mc'])}: {name}, {category}: has pairs but no row in gen")
    return list(videos.values())


def _question_of(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return video and category of a row, which together identify a question."""
    return str(row["video_id"]).lower(), str(row["question_category"]).strip()
