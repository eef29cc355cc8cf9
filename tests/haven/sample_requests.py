"""The packaged sample: its files, and its docs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lmms_eval_tasks.haven import data, options, sample
from lmms_eval_tasks.haven.options import TASKS
from lmms_eval_tasks.haven.records import release as released


def build(folder: Path) -> Path:
    """The sample of HAVEN alone, in `folder`/haven."""
    made = folder / "haven"
    made.mkdir(parents=True)
    sample.write(made)
    return made


def docs(folder: Path, task: str, chosen: options.Options | None = None) -> list[dict[str, Any]]:
    """Every doc of a task, from the files."""
    given = options.current() if chosen is None else chosen
    release = released.read(folder, given)
    assert not release.problems
    return [
        {**data.make_doc(data.row(record, release.digest), TASKS[task], given), "task": task}
        for record in release.records
    ]
