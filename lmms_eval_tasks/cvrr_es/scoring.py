"""What one answer is worth: the judge's label and its score of 0 to 5 against the reference.

The same for the host's items and for saved ones (`rescore`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmms_eval_tasks.cvrr_es import judge as judging
from lmms_eval_tasks.cvrr_es import scores
from lmms_eval_tasks.judges import Judge, Verdict
from lmms_eval_tasks.judges.candidate import Judged, judge_answer


def reply_metrics(
    item: Mapping[str, Any], reply: str, *, judge: Judge, verdict: Verdict | None = None
) -> dict[str, dict[str, Any]]:
    """The metrics of one answer, by name.

    Args:
        item: a doc's identity (utils.answer_identity).
        reply: the model's text, as the host hands it over.
        judge: who is asked, where no saved verdict stands.
        verdict: a saved one.
    """
    fields = {"question": item["question"], "reference": item["reference"], "id": item["id"]}
    done = judge_answer(judge, judging.criterion(), fields, reply, verdict)
    return scores.spread(
        {
            **item,
            "reply": reply,
            "answer": done.candidate,
            "status": done.status,
            "right": done.score,
            "dimensions": {"score": {"score": _score(done), "status": done.status}},
            "verdict": None if done.verdict is None else done.verdict.as_dict(),
        }
    )


def _score(done: Judged) -> float | None:
    """0 to 5; 0 for an answer that nobody had to judge.

    Where a verdict's own cannot be told there is none: its 0 or 1 is another number.
    """
    if done.verdict is None:
        return done.score
    points = judging.points(done.verdict, done.candidate)
    return None if points is None else points.score


def broken(item: Mapping[str, Any], reply: str) -> dict[str, Any]:
    """The item of a reply whose scoring broke."""
    return {
        **item,
        "reply": reply,
        "answer": "",
        "status": "error",
        "right": None,
        "dimensions": {},
        "verdict": None,
    }
