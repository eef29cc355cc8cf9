"""CVRR-ES's files as docs of the host: one per question, or per question and candidate answer.

The YAMLs name `DATASET_PATH` and one of the `process_docs` functions, which are called as the
dimensions are, or `judge`, `collective` and `mixture`. All are computed when a selected task asks
for them (PEP 562), so that nothing is read at import.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es import checked, schema, usability
from lmms_eval_tasks.cvrr_es.labels import ANSWERS, DIMENSIONS, JUDGE_TASKS
from lmms_eval_tasks.cvrr_es.schema import Release
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.host import rows_store
from lmms_eval_tasks.utils import released_files

if TYPE_CHECKING:
    from datasets import Dataset

Row = dict[str, Any]

_JUDGES = {"judge": "cvrr_judge", **{n: f"cvrr_judge_{n}" for n in ("collective", "mixture")}}


def __getattr__(name: str) -> Any:
    if name == "DATASET_PATH":
        return str(rows_store.folder("cvrr_es", rows(load())))
    if name in DIMENSIONS:
        return process_docs(f"{ANSWERS}{name}")
    if name in _JUDGES:
        return process_docs(_JUDGES[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load() -> Release:
    """The data the user pointed to.

    Raises:
        DataError: they are not there (the message says how to get them) or do not fit the schema.
    """
    place = released_files.required_folder(
        "cvrr_es",
        "CVRR-ES",
        schema.HOW_TO_GET,
        "ROOT/cvrr_es/DIMENSION/annotations_DIMENSION.json and the videos beside them",
    )
    return schema.read(place)


def rows(release: Release) -> list[Row]:
    """One row per good question, in the release's order; no video is opened.

    `lure`, for scripted models as `references` is, answers the next question; that of the last one
    answers the first.

    Raises:
        DataError: there is none.
    """
    asked = release.questions
    if not asked:
        raise DataError(f"{release.folder}: no question of CVRR-ES that can be used")
    next_of = {one.id: asked[(place + 1) % len(asked)] for place, one in enumerate(asked)}
    return [
        {
            "id": one.id,
            "dimension": one.dimension,
            "video": one.video_id,
            "video_path": str(release.video_path(one).resolve()),
            "start": None,
            "end": None,
            "n_frames": settings.frames_for(one.video, default=0),
            "question": one.question,
            "reference": one.reference,
            "references": [one.reference],
            "lure": next_of[one.id].reference,
            "data": release.digest,
        }
        for one in asked
    ]


@functools.cache
def process_docs(task: str) -> Callable[[Dataset], Dataset]:
    """The function that makes a task's docs of the rows.

    A doc of a dimension is its row. One of a judge task is of a candidate's answer: it has neither
    `reference` nor what is made of it, but `question_id`, `candidate`, `answer`, `empty`, `others`
    (what the judge is shown of others, rating_rows.RatingRow as dicts), `fell_back` (the mixture's
    rule left nobody), `round` and `reference_rating` (None if there is none).

    Args:
        task: `cvrr_es_DIMENSION`, or one of labels.JUDGE_TASKS.
    """

    def docs(dataset: Dataset) -> Dataset:
        from datasets import Dataset

        found = checked.last()
        if found is None or task not in found.tasks:
            found = usability.look(load(), [task])
        left_out = found.left_out()
        rows = [row for row in dataset if row["id"] not in left_out]
        if task not in JUDGE_TASKS:
            dimension = task.removeprefix(ANSWERS)
            return Dataset.from_list([row for row in rows if row["dimension"] == dimension])
        return Dataset.from_list(found.rated[task].docs(rows))

    return docs
