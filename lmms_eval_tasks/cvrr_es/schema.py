"""CVRR-ES's release: its questions with their ids, and where their videos are.

    ROOT/cvrr_es/DIMENSION/annotations_DIMENSION.json   or another form (annotation_files.py)
    ROOT/cvrr_es/DIMENSION/VIDEO.mp4                    or CVRR-ES/DIMENSION/VIDEO.mp4

All of it may lie in a folder CVRR-ES below. A question's id is `DIMENSION/NNN`, its place in the
annotations: the same question is asked of several videos, so that its text is no key.

A file that is no list of rows stops. What is wrong with single rows is collected, so that the
others can be run where the user allows it; they keep their places.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from lmms_eval_tasks.cvrr_es import annotation_files
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import released_files

HOW_TO_GET = (
    "Annotations and videos: https://github.com/mbzuai-oryx/CVRR-Evaluation-Suite, or "
    "lmms-eval/CVRR-ES on the Hugging Face hub. Their licences disagree (MIT, CC BY, CC BY-NC-SA): "
    "use them for non-commercial ends only; nothing of them comes with this package"
)
UNPACKED = "CVRR-ES"  # the folder inside both archives


@dataclass(frozen=True)
class Question:
    """One question on one video.

    Attributes:
        id: `DIMENSION/NNN`, NNN the place in the dimension's annotations from 1 on.
        dimension: a slug of labels.DIMENSIONS.
        video: the file's name as released; names of two dimensions are not comparable.
        question: as released.
        reference: the right answer.
    """

    id: str
    dimension: str
    video: str
    question: str
    reference: str

    @property
    def video_id(self) -> str:
        """`DIMENSION/VIDEO`, which names one video in the whole release."""
        return f"{self.dimension}/{self.video}"


class Asked(NamedTuple):
    """What stands at a place of the annotations; "" for what a bad row does not say."""

    id: str
    question: str
    reference: str


@dataclass(frozen=True)
class Release:
    """The dimensions that are there, validated row by row.

    Attributes:
        folder: that holds the dimensions.
        digest: first 12 hex digits of the SHA-256 of the content, independent of the files' form.
        questions: the good ones, by dimension in the tables' order, then in the file's.
        problems: id of a bad row -> file, entry, field and what is wrong, in one line.
        places: dimension -> what stands at each place, bad rows included.
        files: dimension -> its annotation file.
    """

    folder: Path
    digest: str
    questions: tuple[Question, ...]
    problems: Mapping[str, str]
    places: Mapping[str, tuple[Asked, ...]]
    files: Mapping[str, Path]

    @property
    def counts(self) -> dict[str, int]:
        """Videos and questions (PAPER_COUNTS), dimensions, and rows that cannot be used."""
        return {
            "videos": len({(one.dimension, one.video) for one in self.questions}),
            "questions": len(self.questions),
            "dimensions": len(self.files),
            "bad_questions": len(self.problems),
        }

    def video_path(self, question: Question) -> Path:
        """Where the video of a question is, or would be."""
        folders = [self.folder, self.folder / UNPACKED]
        return released_files.video_path(
            [folder / question.dimension for folder in folders], question.video
        )


def question_id(dimension: str, place: int) -> str:
    """The id of the question at a place, from 1 on, of a dimension's annotations."""
    return f"{dimension}/{place:03d}"


def find_base(folder: Path) -> Path:
    """The folder that holds the dimensions: `folder`, or CVRR-ES in it.

    Raises:
        DataError: neither has an annotation file, or a dimension has several.
    """
    for base in (folder, folder / UNPACKED):
        if any(annotation_files.find(base, dimension) for dimension in DIMENSIONS):
            return base
    raise DataError(
        f"{folder}: no annotations of CVRR-ES (expected DIMENSION/annotations_DIMENSION.json, "
        f"DIMENSION as in {next(iter(DIMENSIONS))})"
    )


def read(folder: Path) -> Release:
    """Read and validate the dimensions in a folder; kept while no annotation file changes.

    Raises:
        DataError: there is none, a file cannot be read, or none of its rows can be used; names the
            place.
    """
    base = find_base(folder)
    found = [(name, annotation_files.find(base, name)) for name in DIMENSIONS]
    files = tuple((name, file) for name, file in found if file is not None)
    states = tuple((s.st_mtime_ns, s.st_size) for s in (file.stat() for _, file in files))
    return _read(base, files, states)


@lru_cache(maxsize=8)
def _read(base: Path, files: tuple[tuple[str, Path], ...], _states: object) -> Release:
    questions: list[Question] = []
    problems: dict[str, str] = {}
    places: dict[str, tuple[Asked, ...]] = {}
    content: dict[str, list[Any]] = {}
    for dimension, file in files:
        rows = annotation_files.rows(file)
        found = [annotation_files.annotation(row, dimension) for row in rows]
        ids = [question_id(dimension, place) for place in range(1, len(rows) + 1)]
        good = [
            Question(name, dimension, one.video, one.question, one.reference)
            for name, one in zip(ids, found, strict=True)
            if not isinstance(one, str)
        ]
        bad = {
            name: f"{file}, entry {place}: {why}"
            for place, (name, why) in enumerate(zip(ids, found, strict=True), 1)
            if isinstance(why, str)
        }
        if not good:
            first = next(iter(bad.values()))
            raise DataError(f"{file}: not one of {len(rows)} rows can be used; {first}")
        questions += good
        problems |= bad
        places[dimension] = _places(ids, rows, found)
        content[dimension] = [
            row if isinstance(one, str) else list(one) for row, one in zip(rows, found, strict=True)
        ]
    canonical = json.dumps(content, sort_keys=True, default=str)
    digest = hashlib.sha256(canonical.encode("utf-8", "replace")).hexdigest()[:12]
    return Release(base, digest, tuple(questions), problems, places, dict(files))


def _places(
    ids: Sequence[str], rows: Sequence[Any], found: Sequence[annotation_files.Annotation | str]
) -> tuple[Asked, ...]:
    """A bad row keeps what texts it has: answers are joined to places, and then it is left out."""

    def asked(name: str, row: Any, one: annotation_files.Annotation | str) -> Asked:
        if not isinstance(one, str):
            return Asked(name, one.question, one.reference)
        texts = [row.get(key) if isinstance(row, Mapping) else None for key in ("Q", "A")]
        question, reference = (text.strip() if isinstance(text, str) else "" for text in texts)
        return Asked(name, question, reference)

    return tuple(map(asked, ids, rows, found))
