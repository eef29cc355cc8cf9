"""Releases of CVRR-ES for tests: small ones, and one made of the published judgements.

The annotation files of the real release are not among the data. Its questions and references stand
in every published judgement, so annotations are built from those of one model, in their order, with
one stand-in video for all.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from tests.conftest import SHARED

MODELS = ("GPT4o", "LLaMA-VID", "TimeChat", "Video-ChatGPT", "Video-LLaVA")
STAND_IN = "stand_in.mp4"


def real_data() -> Path:
    """The published predictions and judgements, which never enter the repository."""
    folder = SHARED / "data" / "cvrr_es"
    if not (folder / "judge_results").is_dir():
        pytest.skip(f"no real CVRR-ES data at {folder}")
    return folder


def asked(row: Sequence[Any]) -> Mapping[str, str]:
    """q, a and pred of a published judgement."""
    return next(part for part in row if isinstance(part, dict) and "q" in part)


def release_from_judgements(
    judge_results: Path,
    folder: Path,
    video: Path | None = None,
    *,
    model: str = "GPT4o",
    dimensions: Sequence[str] = tuple(DIMENSIONS),
) -> Path:
    """Write annotations in the original release's form; returns `folder`.

    q and a are those of one model's judgements, in their order: the five were not all asked the
    same. `video` is put beside each dimension's annotations as STAND_IN.
    """
    for dimension in dimensions:
        file = judge_results / model / f"{dimension}.json"
        rows = [asked(row) for row in json.loads(file.read_text(encoding="utf-8"))]
        write(folder, dimension, [{"Q": r["q"], "A": r["a"], "VideoID": STAND_IN} for r in rows])
        if video is not None:
            shutil.copy(video, folder / dimension / STAND_IN)
    return folder


def write(folder: Path, dimension: str, rows: Any) -> Path:
    """A dimension's annotations in the original release's form; returns the file."""
    file = folder / dimension / f"annotations_{dimension}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(rows), encoding="utf-8")
    return file


def row(question: str, reference: str = "Yes.", video: str = "1.mp4", **more: Any) -> Any:
    """A row of the annotations; a field that is ... is left out."""
    made = {"Q": question, "A": reference, "VideoID": video, **more}
    return {name: value for name, value in made.items() if value is not ...}


def predict(folder: Path, dimension: str, rows: Any) -> Path:
    """A candidate's predictions in the released form; texts or (question, answer) pairs."""
    file = folder / f"{dimension}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(rows, list) and all(isinstance(one, tuple) for one in rows):
        rows = [{"Q": question, "A": answer} for question, answer in rows]
    file.write_text(json.dumps(rows), encoding="utf-8")
    return file
