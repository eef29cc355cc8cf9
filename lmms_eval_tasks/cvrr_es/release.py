"""CVRR-ES's release: its questions with their ids, where their videos are, and putting it in place.

    ROOT/cvrr_es/DIMENSION/annotations_DIMENSION.json   the original release: a list of
                                                        {Q, A, VideoID}
    ROOT/cvrr_es/DIMENSION/test-*.parquet               the hub copy: rows of the same
    ROOT/cvrr_es/DIMENSION/VIDEO.mp4                    or CVRR-ES/DIMENSION/VIDEO.mp4

All of it may lie in a folder CVRR-ES below. A question's id is `DIMENSION/NNN`, its place in the
annotations: the same question is asked of several videos, so that its text is no key. `VideoID` is
the name of the video's file.

A file that is no list of rows stops. What is wrong with single rows is collected, so that the
others can be run where the user allows it; they keep their places.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, PAPER_COUNTS
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.media import video_checks
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.released_files import Seen
from lmms_eval_tasks.utils.validation import FileName, Text, told

HOW_TO_GET = (
    "Annotations and videos: https://github.com/mbzuai-oryx/CVRR-Evaluation-Suite, or "
    "lmms-eval/CVRR-ES on the Hugging Face hub. Their licences disagree (MIT, CC BY, CC BY-NC-SA): "
    "use them for non-commercial ends only; nothing of them comes with this package"
)
UNPACKED = "CVRR-ES"  # the folder inside both archives
_PARQUET = "test-*.parquet"  # the hub's own name of a dimension's only file


@dataclass(frozen=True)
class Question:
    """One question on one video."""

    id: str  # `DIMENSION/NNN`, NNN the place in the dimension's annotations from 1 on
    dimension: str  # a slug of labels.DIMENSIONS
    video: str  # the file's name as released; names of two dimensions are not comparable
    question: str  # as released, without the white space around it
    reference: str  # the right answer

    @property
    def video_id(self) -> str:
        """`DIMENSION/VIDEO`, which names one video in the whole release."""
        return f"{self.dimension}/{self.video}"


@dataclass(frozen=True)
class Release:
    """The dimensions that are there, validated row by row."""

    folder: Path  # that holds the dimensions
    digest: str  # first 12 hex digits of the SHA-256 of the content, whatever the files' form
    questions: tuple[Question, ...]  # the good ones, by dimension in the tables' order, then file's
    problems: Mapping[str, str]  # id of a bad row -> file, entry, field and what is wrong
    # By dimension the question at each place, by its id; "" if a bad row does not say.
    places: Mapping[str, Mapping[str, str]]
    files: Mapping[str, Path]  # by dimension its annotation file

    @property
    def counts(self) -> dict[str, int]:
        """Videos and questions (PAPER_COUNTS), dimensions, and rows that cannot be used."""
        return {
            "videos": len({one.video_id for one in self.questions}),
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


# --- reading it ---------------------------------------------------------------------------------


class _Row(BaseModel):
    """A row of the annotations; the hub copy's says its dimension too."""

    Q: Text
    A: Text
    VideoID: FileName


def load() -> Release:
    """The data the user pointed to (`read`); no video is opened."""
    return read(settings.required_folder("cvrr_es", "CVRR-ES", HOW_TO_GET))


def read(folder: Path) -> Release:
    """Read and validate the dimensions in a folder; kept while no annotation file changes.

    Raises:
        DataError: there is none, a file cannot be read, or none of its rows can be used; names the
            place.
    """
    for base in (folder, folder / UNPACKED):
        found = [(name, find(base, name)) for name in DIMENSIONS]
        if files := tuple((name, file) for name, file in found if file is not None):
            return _read(base, files, released_files.state(*(file for _, file in files)))
    raise DataError(
        f"{folder}: no annotations of CVRR-ES (expected DIMENSION/annotations_DIMENSION.json, "
        f"DIMENSION as in {next(iter(DIMENSIONS))})"
    )


def find(base: Path, dimension: str) -> Path | None:
    """The annotation file of a dimension under `base`; None if there is none.

    Raises:
        DataError: there are several, which might differ.
    """
    own = base / dimension
    released = own / f"annotations_{dimension}.json"
    there = [*([released] if released.is_file() else []), *sorted(own.glob(_PARQUET))]
    if len(there) > 1:
        names = ", ".join(path.name for path in there)
        raise DataError(f"{own}: several annotation files ({names}); keep one")
    return there[0] if there else None


@lru_cache(maxsize=8)
def _read(base: Path, files: tuple[tuple[str, Path], ...], _state: object) -> Release:
    questions: list[Question] = []
    problems: dict[str, str] = {}
    places: dict[str, dict[str, str]] = {}
    content: dict[str, list[Any]] = {}
    for dimension, file in files:
        rows = released_files.read_table(file)
        asked, held, bad = dict[str, str](), list[Any](), dict[str, str]()
        for place, row in enumerate(rows, 1):
            name = f"{dimension}/{place:03d}"
            try:
                one = _Row.model_validate(row)
            except ValidationError as error:
                bad[name] = f"{file}, entry {place}: {told(error)}"
                # It keeps its text: answers are put to places, and then left out with it.
                text = row.get("Q") if isinstance(row, Mapping) else None
                asked[name] = text.strip() if isinstance(text, str) else ""
                held.append(row)
            else:
                held.append([one.Q, one.A, one.VideoID])
                questions.append(Question(name, dimension, one.VideoID, one.Q, one.A))
                asked[name] = one.Q
        if len(bad) == len(rows):
            first = "".join(f"; {why}" for why in list(bad.values())[:1])
            raise DataError(f"{file}: not one of {len(rows)} rows can be used{first}")
        problems |= bad
        places[dimension], content[dimension] = asked, held
    text = json.dumps(content, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
    return Release(base, digest, tuple(questions), problems, places, dict(files))


# --- what is there --------------------------------------------------------------------------------


def seen(place: Path) -> Seen:
    """What lies in a folder (Benchmark.seen)."""
    release = read(place)
    paths = {one.video_id: release.video_path(one) for one in release.questions}
    found, problems = video_checks.look({n: released_files.real(p) for n, p in paths.items()})
    notes = [released_files.compared(release.counts, PAPER_COUNTS)]
    notes += [f"{name}: not there" for name in DIMENSIONS if name not in release.files]
    notes += release.problems.values()
    return Seen(release.folder, release.digest, release.counts, len(found), problems, notes)


def placed(source: Path) -> dict[str, Path]:
    """The files of a release (Benchmark.files): annotations, and those of their videos there."""
    release = read(source)
    own = [(one.dimension, release.video_path(one)) for one in release.questions]
    own += release.files.items()
    return {f"{dimension}/{path.name}": path for dimension, path in own if path.is_file()}
