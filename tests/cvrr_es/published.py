"""The published answers and judgements of a model as a run of the host: data, replies, judgements.

Annotations are built from the model's own judgements, in their order, with one stand-in clip: not
all models were asked the same, and the release's own files are not among the data. Everything is
keyed by the question's id, since questions repeat.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lmms_eval_tasks.cvrr_es import judge, release, sample
from lmms_eval_tasks.cvrr_es.candidates import align, read
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from tests.conftest import REPOSITORY
from tests.cvrr_es.release_files import asked, real_data, release_from_judgements


class Published(NamedTuple):
    """What the host's command line is given."""

    root: Path  # --data
    replies: Path  # of tasks_recorded
    judgements: Path  # --judge replay:FILE
    items: int


def write(
    model: str, folder: Path, dimensions: Sequence[str] = tuple(DIMENSIONS), kind: str = ""
) -> Published:
    """Write all of it; the answers are those of the predictions, which must be the judged ones.

    Args:
        model: of the published ones.
        folder: where.
        dimensions: which.
        kind: of prompting, "" (standard) or two_step.
    """
    results = real_data() / kind / "judge_results"
    folder.mkdir(parents=True, exist_ok=True)
    clip = folder / "clip.mp4"
    videos = sample.videos()
    next(own for name, own in videos.items() if name.endswith("/box.mp4")).write(clip)
    place = folder / "root" / "cvrr_es"
    release_from_judgements(results, place, clip, model=model, dimensions=dimensions)
    read_again = release.read(place)
    ((name, own),) = read([real_data() / kind / "predictions" / model]).items()
    found = align(name, own, read_again)
    assert not found.problems
    judged = {dimension: _rows(results, model, dimension) for dimension in dimensions}
    replies, recordings = [], []
    for one in read_again.questions:
        row = judged[one.dimension][int(one.id.rpartition("/")[2]) - 1]
        answer = found.answers[one.id]
        assert asked(row)["pred"].strip().removesuffix("</s>").strip() == answer
        said = next(part for part in row if isinstance(part, dict) and "score" in part)
        fields = {
            "id": one.id,
            "question": one.question,
            "reference": one.reference,
            "candidate": answer,
        }
        replies.append({"id": one.id, "reply": answer})
        recordings.append({"criterion": judge.NAME, "fields": fields, "reply": json.dumps(said)})
    return Published(
        folder / "root",
        _lines(folder / "replies.jsonl", replies),
        _lines(folder / "judgements.jsonl", recordings),
        len(replies),
    )


def _lines(file: Path, entries: Sequence[Any]) -> Path:
    file.write_text("".join(json.dumps(one) + "\n" for one in entries), encoding="utf-8")
    return file


def _rows(results: Path, model: str, dimension: str) -> list[Any]:
    rows: list[Any] = json.loads((results / model / f"{dimension}.json").read_text("utf-8"))
    return rows


def figures(kind: str = "") -> Mapping[str, Mapping[str, str]]:
    """Model -> dimension, or `average` -> the published accuracy in %, as leaderboards/ has it.

    Args:
        kind: "" or two_step.
    """
    file = REPOSITORY / "leaderboards" / "cvrr_es.json"
    board = json.loads(file.read_text(encoding="utf-8"))["beside"]
    table = board["release_two_step" if kind else "release"]
    return {
        row["name"]: {
            name: f"{cell:.2f}" for name, cell in zip(table["columns"], row["cells"], strict=True)
        }
        for row in table["rows"]
        if row["name"] != "questions"
    }
