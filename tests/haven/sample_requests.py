"""The packaged sample: its files, its docs, and what a model is given for them in both forms."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
from PIL.Image import Image

from lmms_eval_tasks.haven import inputs, items, options, sample, schema
from lmms_eval_tasks.haven.options import TASKS
from lmms_eval_tasks.haven.sample_stories import Story

Parts = list[str | Image]


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
    release = schema.read(folder, given)
    assert not release.problems
    return [
        items.doc(items.row(record, release.digest), TASKS[task], given)
        for record in release.records
    ]


def chat(doc: dict[str, Any]) -> Parts:
    """Texts and pictures in their order."""
    return [part["text"] if part["type"] == "text" else part["url"] for part in inputs.content(doc)]


def simple(doc: dict[str, Any]) -> Parts:
    """All pictures, then a text with placeholders."""
    return [*inputs.visuals(doc), inputs.text(doc)]


def both(doc: dict[str, Any]) -> Iterator[Parts]:
    """The request in both forms."""
    yield chat(doc)
    yield simple(doc)
