"""Hand-made items of MovieRecapsQA, as its process_results writes them, and saved runs of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import rescore, settings
from lmms_eval_tasks.judges import run as judge_run
from lmms_eval_tasks.movierecapsqa import bounds, scores, utils
from lmms_eval_tasks.movierecapsqa.labels import DIMENSIONS
from tests.local_endpoint import LocalEndpoint
from tests.movierecapsqa.asking import Script
from tests.movierecapsqa.test_data import docs

Scored = dict[str, dict[str, Any]]  # what process_results gives: metric -> item

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
    low, high = bounds.interval(dimension, labels or [bounds.LABELS[dimension][1]])
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


def own(metric: str, items: Sequence[dict[str, Any]]) -> Any:
    """A metric over the items that belong to it, as the host computes it."""
    return scores.SCORES[metric]([item for item in items if scores.of_item(metric, item)])


# --- saved runs ---------------------------------------------------------------------------------


@contextmanager
def judged_at(
    script: Script, monkeypatch: pytest.MonkeyPatch, name: str = "one", baselines: str = ""
) -> Iterator[LocalEndpoint]:
    """The user's judge is at an endpoint."""
    with LocalEndpoint(script) as endpoint, monkeypatch.context() as patch:
        patch.setenv(settings.JUDGE, f"{name}@{endpoint.url}")
        patch.setenv(settings.BASELINES, baselines)
        judge_run.forget()
        yield endpoint
    judge_run.forget()


def score(task: str, reply: Callable[[dict[str, Any]], str]) -> list[Scored]:
    """What the host keeps of a task's replies, through JSON as in its log."""
    made = [utils.process_results(doc, [reply(doc)]) for doc in docs(task)]
    return [json.loads(json.dumps(one)) for one in made]


def aggregated(scored: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Every metric that has items, as the host computes it."""
    found: dict[str, Any] = {}
    for name, function in scores.SCORES.items():
        given = [one[name] for one in scored if name in one]
        if given:
            found[name] = function(given)
    return found


def saved_run(
    task: str,
    scored: Sequence[Scored],
    model: str | None = "m (x)",
    saved: Mapping[str, Any] | None = None,
) -> rescore.Run:
    """A saved run of one task."""
    file = Path(f"out/20260101_samples_{task}.jsonl")
    samples = [{"doc_id": number, **one} for number, one in enumerate(scored)]
    return rescore.Run(task, file, samples, model, dict(saved or {}))


def write(folder: Path, run: rescore.Run) -> Path:
    """A run as the host's files: samples and results."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"20260101_samples_{run.task}.jsonl"
    lines = [json.dumps(sample, ensure_ascii=False) for sample in run.samples]
    file.write_text("\n".join(lines), encoding="utf-8")
    results = {
        "config": {"model": "m", "model_args": "x"},
        "results": {run.task: {f"{key},none": value for key, value in run.saved.items()}},
    }
    (folder / "20260101_results.json").write_text(json.dumps(results), encoding="utf-8")
    return file
