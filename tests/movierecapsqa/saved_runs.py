"""Answers scored as the host does it, by a judge at an endpoint, and saved runs of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.host import names
from lmms_eval_tasks.judges import run as judge_run
from lmms_eval_tasks.movierecapsqa.baselines import GEVAL_NAMES as GEVAL
from lmms_eval_tasks.movierecapsqa.baselines import HELMET_NAMES as HELMET
from lmms_eval_tasks.movierecapsqa.baselines import criteria
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS
from lmms_eval_tasks.movierecapsqa.tasks import BENCHMARK
from lmms_eval_tasks.runs import before, rescore, scoring
from lmms_eval_tasks.utils.saved_runs import Run
from tests.local_endpoint import Fault, LocalEndpoint, drawn, last_user_text
from tests.movierecapsqa.asking import BEST, Script, claimed, claims_of, graded, kind, labelled

Item = dict[str, Any]
TASK = "movierecapsqa_segment_dialogue"


def asked_for(request: Mapping[str, Any]) -> str:
    """`claims`, a dimension, or a judged baseline."""
    system = request["messages"][0]["content"]
    found = [name for name, one in criteria().items() if one.system == system]
    return found[0] if found else kind(request)


class Rater:
    """Two claims, or one of answers about 20; rates by what it reads; fails where it is told to."""

    def __init__(self, plus: int = 0, fails: str = "") -> None:
        self.plus, self.fails = plus, fails

    def __call__(self, request: dict[str, Any]) -> str | Fault:
        name, text = asked_for(request), last_user_text(request)
        if name == self.fails:
            return "nothing that could be read"
        drawn_score = len(text) + self.plus
        if name == "claims":
            return claimed(["He waits."] if "20" in text else ["He waits.", "It snows."])
        if name in HELMET:
            return graded(drawn_score % (2 if name == "helmet_fluency" else 4))
        if name in GEVAL:
            return drawn(request, [1 + drawn_score % 5, 5])
        labels = [BEST[name] for _ in claims_of(request)]
        return labelled(labels, (drawn_score + DIMENSIONS.index(name)) % 6)


def reply(doc: dict[str, Any]) -> str:
    """An empty answer to one of the four questions."""
    return "" if doc["id"] == "talk.1/11" else f"It is said about {doc['id']}."


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


def score(task: str, reply: Callable[[dict[str, Any]], str]) -> list[Item]:
    """The items of a task's replies, through JSON as in the host's log."""
    made = [names.process_results(doc, [reply(doc)]) for doc in before.docs(BENCHMARK, task)]
    return [json.loads(json.dumps(one["failed"])) for one in made]


def numbers(items: Sequence[Item]) -> dict[str, Any]:
    """What a run of the host says of the items."""
    return scoring.numbers(BENCHMARK.tasks[TASK], items)


def saved_run(task: str, items: Sequence[Item], model: str | None = "m (x)") -> Run:
    """A saved run of one task."""
    samples = [{"doc_id": number, "failed": one} for number, one in enumerate(items)]
    return Run(task, Path(f"out/20260101_samples_{task}.jsonl"), samples, model, {})


def items_of(run: Run) -> list[Item]:
    return [sample["failed"] for sample in run.samples]


def again(*runs: Run, judge: str | None = None, **options: bool) -> rescore.Rescored:
    return rescore.rescore_saved(BENCHMARK, runs, judge, **options)


def write(folder: Path, run: Run) -> Path:
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


def judged_run(
    monkeypatch: pytest.MonkeyPatch,
    script: Any = None,
    baselines: str = "",
    task: str = TASK,
    **more: Any,
) -> Run:
    """A run of the host whose judge was at an endpoint that is gone by now."""
    with judged_at(script or Rater(), monkeypatch, baselines=baselines):
        items = score(task, reply)
    return saved_run(task, items, **more)


def asked(endpoint: LocalEndpoint, since: int = 0) -> dict[str, int]:
    return dict(Counter(asked_for(chat.json) for chat in endpoint.chats[since:]))


EVERYTHING = dict.fromkeys(("claims", *DIMENSIONS), 3)  # of the three answers that are some
