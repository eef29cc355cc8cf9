"""HAVEN's files as docs of the host: one per video and task.

The YAMLs name `DATASET_PATH` and one of the `process_docs` functions, which are called as the tasks
are without `haven_` (`v2t`, `temporal_doc`, `saliency_text`, ...). Both are computed when a
selected task asks for them (PEP 562), so that nothing is read at import.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven import checked, items, options, schema, usability
from lmms_eval_tasks.haven.labels import TASKS
from lmms_eval_tasks.haven.schema import Release
from lmms_eval_tasks.host import rows_store
from lmms_eval_tasks.utils import released_files

if TYPE_CHECKING:
    from datasets import Dataset

HOW_TO_GET = (
    "https://github.com/alohalab-ai/align_vsum links the JSON and HDF5 files; the videos are the "
    "user's own copies, from the pages of SumMe, TVSum, OVP, YouTube, VideoXum and MR.HiSum"
)


def __getattr__(name: str) -> Any:
    if name == "DATASET_PATH":
        return str(rows_store.folder("haven", rows(load())))
    if f"haven_{name}" in TASKS:
        return process_docs(f"haven_{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load() -> Release:
    """The data the user pointed to, of the sources the user chose.

    Raises:
        DataError: they are not there (the message says how to get them) or do not fit the schema.
        TasksError: an option has no value of its range.
    """
    place = released_files.required_folder(
        "haven",
        "HAVEN",
        HOW_TO_GET,
        "ROOT/haven/processed/SOURCE_data.json, ROOT/haven/SOURCE/h5/SOURCE.h5 and "
        "ROOT/haven/videos/SOURCE/VIDEO.mp4",
    )
    return schema.read(place, options.current())


def rows(release: Release) -> list[items.Row]:
    """One row per good video, in the release's order; no video file is opened.

    Raises:
        DataError: there is none.
    """
    if not release.records:
        raise DataError(f"{release.folder}: no video of HAVEN that can be used")
    return [items.row(record, release.digest) for record in release.records]


@functools.cache
def process_docs(task: str) -> Callable[[Dataset], Dataset]:
    """The function that makes a task's docs of the rows (items.doc).

    What the check before the run left out is left out here; without a check it is made again. A
    task that has no item gets one doc that says so (items.not_run).

    Args:
        task: one of labels.TASKS.
    """

    def docs(dataset: Dataset) -> Dataset:
        from datasets import Dataset

        found = checked.last()
        if found is None or task not in found.reasons:
            found = usability.look(load(), options.current(), [task], may_be_empty=True)
        left_out = found.left_out(task)
        of_task = TASKS[task]
        made = [
            items.doc(given, of_task, found.options)
            for given in dataset
            if given["id"] not in left_out
        ]
        if not made:
            why = usability.not_run(left_out)
            made = [items.not_run(next(iter(dataset)), of_task, found.options, why)]
        return Dataset.from_list(made)

    return docs
