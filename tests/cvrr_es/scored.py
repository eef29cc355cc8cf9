"""Answers and ratings of hand-made docs, scored as the host does it, and saved runs of them.

Docs are questions on videos that are no files; candidates are called ada and bob, judges otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval_tasks.cvrr_es import metrics, utils
from lmms_eval_tasks.cvrr_es.study.ratings import RatingRow
from lmms_eval_tasks.judges.config import OPENAI, JudgeConfig
from lmms_eval_tasks.judges.verdict import Criterion, Status, Verdict
from lmms_eval_tasks.runs import rescore
from lmms_eval_tasks.utils.aggregate import Carrier

PART, TIME = "partial_actions", "time_order_understanding"
FAILED = "[LMMS_EVAL_REQUEST_FAILED after 3 retries] timeout"
REFUSED = "I'm sorry, but I can't help with that."

Made = dict[str, dict[str, Any]]  # metric -> item


def doc(place: int = 1, dimension: str = PART, **changes: Any) -> dict[str, Any]:
    """A question as data.rows makes it; its video is no file."""
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
    }
    return {**made, **changes}


def rated_doc(
    place: int = 1,
    candidate: str = "ada",
    reference: float | None = None,
    dimension: str = PART,
    **changes: Any,
) -> dict[str, Any]:
    """A candidate's answer to it, as judge_items makes it."""
    asked = doc(place, dimension)
    for name in ("reference", "references", "lure"):
        del asked[name]
    made = {
        **asked,
        "id": f"{asked['id']}/{candidate}",
        "question_id": asked["id"],
        "candidate": candidate,
        "answer": "A dog.",
        "empty": False,
        "others": [],
        "fell_back": False,
        "round": "first",
        "reference_rating": reference,
    }
    return {**made, **changes}


def row(
    place: int, rating: float | None, judge: str = "Zoe", candidate: str = "ada", **more: Any
) -> RatingRow:
    """A first rating of an answer in PART."""
    made: dict[str, Any] = {
        "dimension": PART,
        "question": f"{PART}/{place:03d}",
        "video": f"{PART}/{place}.mp4",
    }
    made |= {"round": "first", "status": "ok" if rating is not None else "parse_failure", **more}
    return RatingRow(candidate=candidate, judge=judge, rating=rating, **made)


class Stated:
    """A judge that says of an answer what stands in it: `right 4.5`, `wrong 0`, else nothing."""

    config = JudgeConfig(OPENAI, "stated")

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def supports(self, criterion: str) -> bool:
        return bool(criterion)

    def verdict(self, criterion: Criterion, fields: Mapping[str, Any]) -> Verdict:
        self.asked.append(dict(fields))
        label, _, score = str(fields["candidate"]).partition(" ")
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


def answered(reply: str, place: int = 1, dimension: str = PART, **changes: Any) -> Made:
    """What process_results gives, through JSON as in the host's log."""
    given = doc(place, dimension, **changes)
    found: Made = json.loads(json.dumps(utils.process_results(given, [reply])))
    return found


def rated(reply: str | int | None, given: Mapping[str, Any]) -> Made:
    """What judge_process_results gives for a reply, a rating with a reason, or no rating."""
    if not isinstance(reply, str):
        reply = "no idea" if reply is None else json.dumps({"rating": reply, "reason": "so"})
    found: Made = json.loads(json.dumps(utils.judge_process_results(given, [reply])))
    return found


def values(all_made: Sequence[Made]) -> dict[str, Any]:
    """Every metric that has items, as the host computes it; carriers of means too."""
    if metrics.FIRST in all_made[0]:
        metrics: Mapping[str, Any] = metrics.SCORES
    else:
        slugs = sorted({metrics.slug(one["kappa"]["candidate"]) for one in all_made})
        metrics = {**metrics.SCORES, **metrics.by_candidate(slugs)}
    found = {}
    for name, function in metrics.items():
        if given := [one[name] for one in all_made if name in one]:
            found[name] = function(given)
    return found


def shown(found: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is handed to the group."""
    return {name: value for name, value in found.items() if not isinstance(value, Carrier)}


def saved_run(
    task: str, all_made: Sequence[Mapping[str, Any]], model: str | None = "m (x)"
) -> rescore.Run:
    samples = [{"doc_id": n, **one} for n, one in enumerate(all_made)]
    return rescore.Run(task, Path(f"out/1_samples_{task}.jsonl"), samples, model, {})


# --- a judge's ratings of eight answers, with a reference; kappas by hand ---

# (candidate, dimension) -> pairs of rating and reference.
CELLS: dict[tuple[str, str], tuple[tuple[int, int], tuple[int, int]]] = {
    ("ada", PART): ((1, 1), (5, 5)),  # kappa 1
    ("bob", PART): ((1, 5), (5, 1)),  # kappa -1
    ("ada", TIME): ((4, 2), (4, 4)),  # a constant judge: 0
    ("bob", TIME): ((2, 1), (4, 3)),  # squares 1 + 1 of 2, by chance 1 + 1 + 9 + 1 of 4: 2/3
}


def eight(**changes: Any) -> list[Made]:
    """The items of CELLS."""
    return [
        rated(rating, rated_doc(place, candidate, reference, dimension, **changes))
        for (candidate, dimension), pairs in CELLS.items()
        for place, (rating, reference) in enumerate(pairs, 1)
    ]
