"""CVRR-ES's release: its questions with their ids, the paths of their videos, and its preparation.

    ROOT/cvrr_es/DIMENSION/annotations_DIMENSION.json   the original release: a list of
                                                        {Q, A, VideoID}
    ROOT/cvrr_es/DIMENSION/test-*.parquet               the copy on the hub: the same rows
    ROOT/cvrr_es/DIMENSION/VIDEO.mp4                    or CVRR-ES/DIMENSION/VIDEO.mp4

All files may also lie in a subfolder CVRR-ES. A question's id is `DIMENSION/NNN`, with its place in
the annotations: the same question is asked about several videos, so that its text is no key.
`VideoID` is the name of the video's file.

A file that is no list of rows raises an error. Errors of single rows are collected, so that the
user may run the other rows; these keep their places.
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
from lmms_eval_tasks.media.downloads import HubFiles
from lmms_eval_tasks.media.sources import Source, Window
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.json_files import digest
from lmms_eval_tasks.utils.released_files import Release
from lmms_eval_tasks.utils.validation import FileName, Text, validation_problems

HOW_TO_GET = (
    "lmms-eval-tasks data get cvrr_es downloads annotations and videos from the Hugging Face hub "
    "(lmms-eval/CVRR-ES); the authors' own archive is linked at "
    "https://github.com/mbzuai-oryx/CVRR-Evaluation-Suite. Their licences disagree (MIT, CC BY, "
    "CC BY-NC-SA): use them only for non-commercial purposes; this package holds none of them"
)
DOWNLOADS = (HubFiles("lmms-eval/CVRR-ES", ("*.parquet", "*.zip")),)
BY_HAND = (
    "where videos are missing, the authors' own archive, linked at "
    "https://github.com/mbzuai-oryx/CVRR-Evaluation-Suite"
)
UNPACKED = "CVRR-ES"  # the folder inside both archives
_PARQUET = "test-*.parquet"  # a dimension's only file on the hub


@dataclass(frozen=True)
class CvrrQuestion:
    """A question about a video."""

    id: str  # `DIMENSION/NNN`: its place in the dimension's annotations, from 1
    dimension: str  # a slug of labels.DIMENSIONS
    video: str  # the released file name; two dimensions may use the same name for different videos
    question: str  # as released, without white space at the ends
    reference: str  # the right answer

    @property
    def video_id(self) -> str:
        """The video's id, `DIMENSION/VIDEO`, unique in the whole release."""
        return f"{self.dimension}/{self.video}"


@dataclass(frozen=True, kw_only=True)
class CvrrRelease(Release):
    """The dimensions of a release, validated row by row; `place` is their folder."""

    questions: tuple[CvrrQuestion, ...]  # valid questions, in the order of the tables and files
    # By dimension, the question's text by its id; "" if an invalid row has none.
    places: Mapping[str, Mapping[str, str]]
    annotations: Mapping[str, Path]  # file by dimension

    @property
    def n_records(self) -> int:
        """The number of valid questions."""
        return len(self.questions)

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of videos and questions (PAPER_COUNTS), dimensions, and invalid rows."""
        return {
            "videos": len({one.video_id for one in self.questions}),
            "questions": len(self.questions),
            "dimensions": len(self.annotations),
            "bad_questions": len(self.problems),
        }

    def video_path(self, question: CvrrQuestion) -> Path:
        """The path of a question's video, even if there is no such file."""
        folders = [self.place, self.place / UNPACKED]
        return released_files.video_path(
            [folder / question.dimension for folder in folders], question.video
        )


# --- reading ------------------------------------------------------------------------------------


class _Row(BaseModel):
    """A row of the annotations; the hub copy's says its dimension too."""

    Q: Text
    A: Text
    VideoID: FileName


def read_cvrr(folder: Path) -> CvrrRelease:
    """Read and validate the dimensions in a folder; cached until an annotation file changes.

    Raises:
        DataError: there is no annotation file, a file cannot be read, or none of its rows can be
            used; names the place.
    """
    for base in (folder, folder / UNPACKED):
        found = [(name, find_annotations(base, name)) for name in DIMENSIONS]
        if files := tuple((name, file) for name, file in found if file is not None):
            return _read(base, files, released_files.state(*(file for _, file in files)))
    raise DataError(
        f"{folder}: no annotations of CVRR-ES (expected DIMENSION/annotations_DIMENSION.json, "
        f"DIMENSION as in {next(iter(DIMENSIONS))})"
    )


def find_annotations(base: Path, dimension: str) -> Path | None:
    """The annotation file of a dimension under `base`; None if there is none.

    Raises:
        DataError: there are several, which may differ.
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
                bad[name] = f"{file}, entry {place}: {validation_problems(error)}"
                # Keep its text: answers are joined to places first, and left out with the row
                # later.
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


# --- videos ---------------------------------------------------------------------------------------


def media_sources(release: CvrrRelease, names: Sequence[str]) -> list[Source]:
    """The videos (Benchmark.media_sources); all tasks of a run leave out the same questions."""
    windows = {
        one.id: Window(one.video_id, release.video_path(one), one.dimension)
        for one in release.questions
    }
    return [Source(tasks=names, windows=windows)]


def list_missing(release: CvrrRelease) -> list[str]:
    """Lines for `data status` on the dimensions that are missing."""
    return [f"{name}: missing" for name in DIMENSIONS if name not in release.annotations]
