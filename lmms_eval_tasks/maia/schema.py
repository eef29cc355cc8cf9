"""MAIA's released data: their schema, and reading them with the place of the first error."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maia import hub_tables
from lmms_eval_tasks.maia.categories import BY_RELEASED_NAME
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.validation import Text, quoted, told

POOL_SIZE = 8  # answers, true and false statements of a question (paper, 3.1)
# What the full set holds (paper, 3.1 and Limitations; data_schemas.md).
PAPER_COUNTS = {"videos": 100, "questions": 2400, "pairs": 19200}
# Names of the authors' release; another name is accepted if it is the only JSON file there.
FILE_NAMES = ("data.json", "data_100%.json", "data_20%.json")

PARTS = ("A", "B")  # a category's two questions about a video

Pool = Annotated[list[Text], Field(min_length=POOL_SIZE, max_length=POOL_SIZE)]


class Question(BaseModel):
    """One question with its pool; `true_statement[i]` and `false_statement[i]` are a pair."""

    model_config = ConfigDict(frozen=True)

    category: Text  # released name with its suffix, e.g. "SpazialeParziale_A"
    question: Text
    answer: Pool
    true_statement: Pool
    false_statement: Pool
    # Which statement of each pair the release shows first: 0 the true one (tables of the hub).
    target: list[Annotated[int, Field(ge=0, le=1)]] | None = Field(
        None, min_length=POOL_SIZE, max_length=POOL_SIZE
    )

    @property
    def slug(self) -> str:
        """Our name of the category, e.g. "spatial_partial"."""
        return BY_RELEASED_NAME[self.category.rsplit("_", 1)[0]].slug


class Video(BaseModel):
    """One video and its 24 questions, in two sets of twelve categories."""

    model_config = ConfigDict(frozen=True)

    video: Annotated[str, StringConstraints(pattern=r"^video\d+$")]
    link: str | None = None
    question_categories_A: list[Question]  # noqa: N815  # as released
    question_categories_B: list[Question]  # noqa: N815

    @property
    def questions(self) -> list[Question]:
        """All questions, in the file's order."""
        return [*self.question_categories_A, *self.question_categories_B]


@dataclass(frozen=True)
class Release:
    """Validated data and the folder of their videos."""

    folder: Path
    files: tuple[Path, ...]  # one JSON file, or the hub's tables
    digest: str  # first 12 hex digits of the SHA-256 of the content, independent of formatting
    videos: tuple[Video, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Videos, questions and pairs, to compare with PAPER_COUNTS."""
        questions = sum(len(video.questions) for video in self.videos)
        return {
            "videos": len(self.videos),
            "questions": questions,
            "pairs": questions * POOL_SIZE,
        }

    def path_of(self, video: str) -> Path:
        """Where the file of `video` is, or would be: videos/5.mp4 for "video5"."""
        names = (f"{video.removeprefix('video')}.mp4", f"{video}.mp4", f"{video.capitalize()}.mp4")
        places = [self.folder / folder / name for folder in ("videos", "Videos") for name in names]
        return next((place for place in places if place.is_file()), places[0])


def read(path: Path) -> Release:
    """Read and validate a data file, or what a folder holds; kept while the files do not change.

    Args:
        path: the JSON file; its folder; a folder with the hub's tables, or one of their files.

    Raises:
        DataError: with the file, the entry or row, and the field of the first error.
    """
    is_table = path.suffix in (".csv", ".parquet")
    folder = path.parent if is_table or path.is_file() else path
    has_json = path.is_file() or any((folder / name).is_file() for name in FILE_NAMES)
    tables = hub_tables.find(folder) if is_table or not has_json else None
    files: tuple[Path, ...] = (*tables.gen, *tables.mc) if tables else ()
    files = files or (released_files.find_file(path, FILE_NAMES, "the tables gen and mc"),)
    return _read(folder, files, tables, released_files.state(*files))


@lru_cache(maxsize=8)
def _read(
    folder: Path, files: tuple[Path, ...], tables: hub_tables.Tables | None, _state: object
) -> Release:
    file = files[0]
    content = hub_tables.entries(tables) if tables else released_files.read_json(file)
    if not isinstance(content, list):
        raise DataError(f"{file}: expected a list of videos, found {quoted(content)}")
    videos = []
    for number, entry in enumerate(content, 1):
        try:
            videos.append(Video.model_validate(entry))
        except ValidationError as error:
            raise DataError(f"{file}: entry {number}, {told(error)}") from None
    if not videos:
        raise DataError(f"{file}: holds no videos")
    _check_meaning(file, videos)
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode("utf-8")).hexdigest()[:12]
    return Release(folder=folder, files=files, digest=digest, videos=tuple(videos))


def _check_meaning(file: Path, videos: list[Video]) -> None:
    """What a schema cannot say: known categories, unique ids, pairs of different statements."""
    seen: set[str] = set()
    for video in videos:
        if video.video in seen:
            raise DataError(f"{file}: {video.video} occurs twice")
        seen.add(video.video)
        categories: set[str] = set()
        for question in video.questions:
            place = f"{file}: {video.video}, {question.category}"
            name, _, part = question.category.rpartition("_")
            if name not in BY_RELEASED_NAME or part not in PARTS:
                known = ", ".join(BY_RELEASED_NAME)
                raise DataError(f"{place}, field category: expected one of {known} with _A or _B")
            if question.category in categories:
                raise DataError(f"{place}, field category: occurs twice in this video")
            categories.add(question.category)
            for index, (true, false) in enumerate(
                zip(question.true_statement, question.false_statement, strict=True)
            ):
                if true == false:
                    raise DataError(
                        f"{place}, field false_statement, entry {index + 1}: "
                        "equals the true statement"
                    )
