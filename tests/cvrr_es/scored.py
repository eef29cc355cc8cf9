"""Answers and ratings of hand-made docs, scored as the host does it, and saved runs of them.

Docs are questions on videos that are no files; candidates are called ada and bob, judges otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval_tasks.cvrr_es.candidates import Aligned
from lmms_eval_tasks.cvrr_es.study.rated import JudgeTask
from lmms_eval_tasks.cvrr_es.study.ratings import AnswerKey, RatingRow
from lmms_eval_tasks.cvrr_es.tasks import BENCHMARK
from lmms_eval_tasks.host import task_functions
from lmms_eval_tasks.judges.verdict import OPENAI, Criterion, JudgeConfig, Status, Verdict
from lmms_eval_tasks.report import aggregation
from lmms_eval_tasks.runs import rescore
from lmms_eval_tasks.utils import json_files

PART, TIME = "partial_actions", "time_order_understanding"
FAILED = "[LMMS_EVAL_REQUEST_FAILED after 3 retries] timeout"
REFUSED = "I'm sorry, but I can't help with that."

Item = dict[str, Any]


def doc(place: int = 1, dimension: str = PART, **changes: Any) -> Item:
    """A question as data.make_cvrr_docs makes it; its video is no file."""
    made = {
        "id": f"{dimension}/{place:03d}",
        "dimension": dimension,
        "video": f"{dimension}/{place}.mp4",
        "video_path": "/nowhere/1.mp4",
        "start": None,
        "end": None,
        "n_frames": 0,
        "question": "What happens?",
        "reference": "A dog runs away.",
        "references": ["A dog runs away."],
        "lure": "A cat sleeps.",
        "data": "0123456789ab",
        "task": f"cvrr_es_{dimension}",
    }
    return {**made, **changes}


def rated_doc(
    place: int = 1,
    candidate: str = "ada",
    reference: float | None = None,
    dimension: str = PART,
    **changes: Any,
) -> Item:
    """A candidate's answer to it, as a judge task has it."""
    asked = doc(place, dimension)
    said = Aligned(candidate, {asked["id"]: "A dog."}, (), ())
    known = {} if reference is None else {AnswerKey(asked["id"], candidate): reference}
    (made,) = JudgeTask("first", [said], known).docs([asked])
    return {**made, "task": "cvrr_judge", **changes}


def row(
    place: int, rating: float | None, judge: str = "Zoe", candidate: str = "ada", **more: Any
) -> RatingRow:
    """A first rating of an answer, in PART unless told."""
    dimension = more.get("dimension", PART)
    made: dict[str, Any] = {
        "dimension": dimension,
        "question": f"{dimension}/{place:03d}",
        "video": f"{dimension}/{place}.mp4",
        "round": "first",
        "status": "ok" if rating is not None else "parse_failure",
        **more,
    }
    return RatingRow(candidate=candidate, judge=judge, rating=rating, **made)


def write_ratings(path: Path, rows: Iterable[RatingRow]) -> Path:
    """A file of ratings."""
    json_files.write_lines(path, (one.as_dict() for one in rows))
    return path


class Stated:
    """A judge that says of an answer what stands in it: `right 4.5`, `wrong 0`, else nothing.

    A refusal is `wrong 0` to it.
    """

    config = JudgeConfig(OPENAI, "stated")

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def verdict(self, criterion: Criterion, fields: Mapping[str, Any]) -> Verdict:
        self.asked.append(dict(fields))
        said = "wrong 0" if fields["candidate"] == REFUSED else str(fields["candidate"])
        label, _, score = said.partition(" ")
        if label not in ("right", "wrong"):
            return Verdict(None, Status.API_ERROR, "down", judge=self.config.label)
        pred = "correct" if label == "right" else "incorrect"
        raw = json.dumps({"pred": pred, "score": float(score), "reason": "so"})
        right = float(label == "right")
        return Verdict(right, Status.OK, "so", raw=raw, judge=self.config.label)

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, Any], samples: int
    ) -> list[Verdict]:
        return [self.verdict(criterion, fields)] * samples


def sampled(given: Mapping[str, Any], reply: str) -> dict[str, Item]:
    """What the host logs of a reply, by metric."""
    found: dict[str, Item] = json.loads(json.dumps(task_functions.process_results(given, [reply])))
    return found


def answered(reply: str, place: int = 1, dimension: str = PART, **changes: Any) -> Item:
    """The whole item of an answer."""
    return sampled(doc(place, dimension, **changes), reply)["failed"]


def rated(reply: str | int | None, given: Mapping[str, Any]) -> Item:
    """The whole item of a reply, of a rating with a reason, or of no rating."""
    if not isinstance(reply, str):
        reply = "no idea" if reply is None else json.dumps({"rating": reply, "reason": "so"})
    return sampled(given, reply)["failed"]


def task_of(items: Sequence[Item]) -> str:
    return "cvrr_judge" if "judge" in items[0] else f"cvrr_es_{items[0]['dimension']}"


def values(items: Sequence[Item]) -> dict[str, Any]:
    """Every number of a task's items."""
    return aggregation.numbers(BENCHMARK.tasks[task_of(items)], items)


def details(items: Sequence[Item]) -> dict[str, Any]:
    found = aggregation.details(BENCHMARK.tasks[task_of(items)], items)
    assert json.loads(json.dumps(found)) == found
    return found


def saved_run(task: str, items: Sequence[Item]) -> rescore.SavedRun:
    samples = [{"doc_id": n, "failed": one} for n, one in enumerate(items)]
    return rescore.SavedRun(task, Path(f"out/1_samples_{task}.jsonl"), samples, "m (x)", {})
