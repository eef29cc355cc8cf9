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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.media.sources import Source, Window
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.json_files import digest
from lmms_eval_tasks.utils.released_files import Release
from lmms_eval_tasks.utils.validation import FileName, Text, told

HOW_TO_GET = (
    "Annotations and videos: "
    "https://github.com/mbzuai-oryx/CVRR-Evaluation-Suite, or "
    "lmms-eval/CVRR-ES on the Hugging Face hub. Their licences disagree (MIT, "
    "CC BY, CC BY-NC-SA): use them only for non-commercial purposes; this "
    "package holds none of them"
)
UNPACKED = "CVRR-ES"  # the folder inside both archives
_PARQUET = "test-*.parquet"  # the hub's own name of a dimension's only file


@dataclass(frozen=True)
class CvrrQuestion:
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


@dataclass(frozen=True, kw_only=True)
class CvrrRelease(Release):
    """The dimensions that are there, validated row by row; `place` is the folder that has them."""

    questions: tuple[CvrrQuestion, ...]  # the good ones, in the tables' and files' order
    # By dimension the question at each place, by its id; "" if a bad row does not say.
    places: Mapping[str, Mapping[str, str]]
    annotations: Mapping[str, Path]  # by dimension its file

    @property
    def n_records(self) -> int:
        """The number of good questions."""
        return len(self.questions)

    @property
    def counts(self) -> dict[str, int]:
        """Videos and questions (PAPER_COUNTS), dimensions, and rows that cannot be used."""
        return {
            "videos": len({one.video_id for one in self.questions}),
            "questions": len(self.questions),
            "dimensions": len(self.annotations),
            "bad_questions": len(self.problems),
        }

    def video_path(self, question: CvrrQuestion) -> Path:
        """Where the video of a question is, or would be."""
        folders = [self.place, self.place / UNPACKED]
        return released_files.video_path(
            [folder / question.dimension for folder in folders], question.video
        )


# --- reading it ---------------------------------------------------------------------------------


class _Row(BaseModel):
    """A row of the annotations; the hub copy's says its dimension too."""

    Q: Text
    A: Text
    VideoID: FileName


def read(folder: Path) -> CvrrRelease:
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
        raise DataError(f"{own}: several annotation files ({names}); keep only one")
    return there[0] if there else None


@lru_cache(maxsize=8)
def _read(base: Path, files: tuple[tuple[str, Path], ...], _state: object) -> CvrrRelease:
    questions: list[CvrrQuestion] = []
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
                questions.append(CvrrQuestion(name, dimension, one.VideoID, one.Q, one.A))
                asked[name] = one.Q
        if len(bad) == len(rows):
            first = "".join(f"; {why}" for why in list(bad.values())[:1])
            raise DataError(f"{file}: none of {len(rows)} rows can be used{first}")
        problems |= bad
        places[dimension], content[dimension] = asked, held
    return CvrrRelease(
        place=base,
        data_files={f"{dimension}/{file.name}": file for dimension, file in files},
        digest=digest(content),
        problems=problems,
        questions=tuple(questions),
        places=places,
        annotations=dict(files),
    )


# --- their videos ---------------------------------------------------------------------------------


def sources(release: CvrrRelease, names: Sequence[str]) -> list[Source]:
    """The videos (Benchmark.sources). All tasks of a run leave out the same questions."""
    windows = {
        one.id: Window(one.video_id, release.video_path(one), one.dimension)
        for one in release.questions
    }
    return [Source(tasks=names, windows=windows)]


def notes(release: CvrrRelease) -> list[str]:
    """Lines for `data status`: the dimensions that are not there."""
    return [f"{name}: missing" for name in DIMENSIONS if name not in release.annotations]
