"""The packaged sample: its files, and its docs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py

from lmms_eval_tasks.haven import data, options, sample
from lmms_eval_tasks.haven.options import TASKS
from lmms_eval_tasks.haven.records import release as released
from lmms_eval_tasks.haven.sample_stories import Story


def build(folder: Path) -> Path:
    """The sample of HAVEN alone, in `folder`/haven."""
    made = folder / "haven"
    made.mkdir(parents=True)
    sample.write(made)
    return made


def annotation(folder: Path, story: Story) -> dict[str, Any]:
    """A video's entry of the JSON file."""
    text = (folder / "processed" / f"{story.source}_data.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)[story.video]
    return found


def arrays(folder: Path, story: Story) -> dict[str, Any]:
    """A video's group of the HDF5 file."""
    with h5py.File(folder / story.source / "h5" / f"{story.source}.h5") as file:
        return {name: dataset[()] for name, dataset in file[story.video].items()}


def docs(folder: Path, task: str, chosen: options.Options | None = None) -> list[dict[str, Any]]:
    """Every doc of a task, from the files."""
    given = options.current() if chosen is None else chosen
    release = released.read(folder, given)
    assert not release.problems
    return [
        {**data.make_doc(data.row(record, release.digest), TASKS[task], given), "task": task}
        for record in release.records
    ]
