"""The published answers and judgements of a model as a run of the host: data, replies, judgements.

Annotations are built from the model's own judgements, in their order, with one stand-in clip: not
all models were asked the same, and the release's own files are not among the data. Everything is
keyed by the question's id, since questions repeat.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lmms_eval_tasks.cvrr_es import judge, release, sample
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from lmms_eval_tasks.utils.json_files import write_lines
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
    """Write all of it; the answers are the judged ones.

    Args:
        model: of the published ones.
        folder: where.
        dimensions: which.
        kind: of prompting, "" (standard) or two_step.
    """
    results = real_data() / kind / "judge_results"
    folder.mkdir(parents=True, exist_ok=True)
    clip = folder / "clip.mp4"
    videos = sample.sample_videos()
    next(own for name, own in videos.items() if name.endswith("/box.mp4")).write(clip)
    place = folder / "root" / "cvrr_es"
    release_from_judgements(results, place, clip, model=model, dimensions=dimensions)
    judged = {
        f"{name}/{number:03d}": row
        for name in dimensions
        for number, row in enumerate(json.loads((results / model / f"{name}.json").read_text()), 1)
    }
    replies, recordings = [], []
    for one in release.read_cvrr(place).questions:
        row = judged[one.id]
        answer = asked(row)["pred"].strip().removesuffix("</s>").strip()
        said = next(part for part in row if isinstance(part, dict) and "score" in part)
        fields = {"id": one.id, "question": one.question, "reference": one.reference}
        recording = {"criterion": judge.NAME, "fields": {**fields, "candidate": answer}}
        replies.append({"id": one.id, "reply": answer})
        recordings.append({**recording, "reply": json.dumps(said)})
    write_lines(folder / "replies.jsonl", replies)
    write_lines(folder / "judgements.jsonl", recordings)
    files = folder / "replies.jsonl", folder / "judgements.jsonl"
    return Published(folder / "root", *files, len(replies))


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
