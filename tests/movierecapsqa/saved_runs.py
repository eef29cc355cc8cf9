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
from lmms_eval_tasks.judges import run as judge_run
from lmms_eval_tasks.movierecapsqa import scores, utils
from lmms_eval_tasks.movierecapsqa.labels import DIMENSIONS
from lmms_eval_tasks.runs import rescore
from tests.local_endpoint import Fault, LocalEndpoint, last_user_text
from tests.movierecapsqa.asking import BEST, Script, claimed, claims_of, kind, labelled
from tests.movierecapsqa.test_baselines import drawn, graded
from tests.movierecapsqa.test_data import docs

Scored = dict[str, dict[str, Any]]  # what process_results gives: metric -> item
FIRST = scores.FIRST
TASK = "movierecapsqa_segment_dialogue"
HELMET = ["helmet_correctness", "helmet_fluency"]
GEVAL = ["geval_coherence", "geval_consistency"]


def asked_for(request: Mapping[str, Any]) -> str:
    """`claims`, a dimension, or a judged baseline."""
    from lmms_eval_tasks.movierecapsqa.baselines import criteria

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


def judged_run(
    monkeypatch: pytest.MonkeyPatch,
    script: Any = None,
    baselines: str = "",
    task: str = TASK,
    **more: Any,
) -> rescore.Run:
    """A run of the host whose judge was at an endpoint that is gone by now."""
    with judged_at(script or Rater(), monkeypatch, baselines=baselines):
        scored = score(task, reply)
    return saved_run(task, scored, **more)


def asked(endpoint: LocalEndpoint, since: int = 0) -> dict[str, int]:
    return dict(Counter(asked_for(chat.json) for chat in endpoint.chats[since:]))


EVERYTHING = dict.fromkeys(("claims", *DIMENSIONS), 3)  # of the three answers that are some


def as_saved(run: rescore.Run, judge: str) -> list[Any]:
    """The run as a later one with this judge would have saved it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(settings.JUDGE, judge)
        patch.setenv(
            settings.BASELINES, "geval,helmet" if run.samples[0][FIRST]["baselines"] else ""
        )
        return score(run.task, reply)
