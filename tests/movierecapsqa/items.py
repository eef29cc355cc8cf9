"""Hand-made items of MovieRecapsQA, as its tasks write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS, WORDS, bounds
from lmms_eval_tasks.movierecapsqa.metrics import METRICS
from lmms_eval_tasks.movierecapsqa.tasks import BENCHMARK
from lmms_eval_tasks.runs import scoring

TASK = BENCHMARK.tasks["movierecapsqa_segment"]
OWN = {"e": "empty", "f": "refused", "t": "truncated", "n": "no_claims"}  # the candidate's
OTHER = {
    "m": "model_error",
    "x": "error",
    "j": "judge_api_error",
    "p": "judge_parse_failure",
    "s": "unjudged",
}


def rating(mark: str, dimension: str, labels: Sequence[str] = ()) -> dict[str, Any]:
    """One dimension: a score 0 to 5, or a status by its letter."""
    if not mark.isdigit():
        status = (OWN | OTHER)[mark]
        # judge_answer gives 0.0 for what was never put to a judge, a failed request too
        score = 0 if mark in OWN or mark == "m" else None
        return {"score": score, "status": status, "low": None, "high": None, "consistent": None}
    low, high = bounds(dimension, labels or [WORDS[dimension][1]])
    score = int(mark)
    inside = low <= score <= high
    return {"score": score, "status": "ok", "low": low, "high": high, "consistent": inside}


def answer(name: str, mark: str | Mapping[str, str] = "5", **more: Any) -> dict[str, Any]:
    """One answer from its marks, the same in all dimensions or one each."""
    marks = mark if isinstance(mark, Mapping) else dict.fromkeys(DIMENSIONS, mark)
    labels: Mapping[str, Sequence[str]] = more.pop("labels", {})
    dimensions = {d: rating(m, d, labels.get(d, ())) for d, m in marks.items()}
    statuses = [one["status"] for one in dimensions.values() if one["status"] != "ok"]
    broken = set(marks.values()) == {"x"}
    return {
        "id": name,
        "segment": name.partition("/")[0],
        "video": name.partition(".")[0],
        "source": "segment",
        "condition": "",
        "modality": "unlabelled",
        "category": "unlabelled",
        "status": statuses[0] if statuses else "ok",
        "dimensions": {} if broken else dimensions,
        "baselines": {},
        "n_claims": 2 if any(m.isdigit() for m in marks.values()) else 0,
        "candidate": "a man",
        "reference": "the man",
        "rouge_l": 0.5,
        **more,
    }


def answers(marks: str, **more: Any) -> list[dict[str, Any]]:
    return [answer(f"v{n}.1/{n}", mark, **more) for n, mark in enumerate(marks)]


def geval(score: float | None, mode: str | None = "logprobs", status: str = "ok") -> dict[str, Any]:
    return {"geval": {"score": score, "status": status, "mode": mode}}


def helmet(fluency: int | None, correctness: int | None, status: str = "ok") -> dict[str, Any]:
    given = {"fluency": fluency, "correctness": correctness}
    return {f"helmet_{name}": {"score": s, "status": status} for name, s in given.items()}


def numbers(items: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Every number of the items that no model computes."""
    plain = [metric for metric in METRICS if not metric.name.startswith(("bert", "bart"))]
    return scoring.numbers(replace(TASK, metrics=plain), items)
