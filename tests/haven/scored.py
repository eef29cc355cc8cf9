"""Replies to hand-made docs, scored as the host does it, and saved runs of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.haven import judge as texts
from lmms_eval_tasks.haven.tasks import BENCHMARK, BLANK, log_fields
from lmms_eval_tasks.host import task_functions
from lmms_eval_tasks.report import aggregation
from lmms_eval_tasks.runs import rescore
from lmms_eval_tasks.utils.metrics.local_models import ModelScores
from lmms_eval_tasks.utils.saved_runs import SavedRun
from tests.haven.docs import doc

Item = dict[str, Any]
# K = 3; each frame is a shot.
FRAMES: Item = {"frames": 20, "shots": 20, "key_shots": [1, 4, 11], "keyframes": [1, 2, 3, 11]}
REFUSED = "I'm sorry, but I can't help with that."
FAILED = "[LMMS_EVAL_REQUEST_FAILED after 3 retries] timeout"
# Replies that give nothing -> whose failure it is.
NOTHING = {"": "empty", REFUSED: "refused", "<think>First": "truncated", FAILED: "model_error"}


def whole(task: str, reply: str, **changes: Any) -> Item:
    """The whole item of a reply to a hand-made doc, through JSON as in the host's log."""
    return of_doc(doc(task, **changes), reply)


def of_doc(given: Mapping[str, Any], reply: Any) -> Item:
    found: Item = json.loads(json.dumps(task_functions.process_results(given, [reply])))["failed"]
    return found


def broken(task: str, **changes: Any) -> Item:
    """A reply whose scoring broke."""
    return {**log_fields(doc(task, **changes)), **BLANK, "status": "error", "reply": "[1]"}


def numbers(task: str, items: Sequence[Item]) -> dict[str, Any]:
    return aggregation.numbers(BENCHMARK.tasks[task], items)


def details(task: str, items: Sequence[Item]) -> dict[str, Any]:
    return aggregation.details(BENCHMARK.tasks[task], items)


def video(number: int, source: str = "tvsum") -> dict[str, str]:
    return {"id": f"{source}/video_{number}", "source": source}


def no_bert(monkeypatch: pytest.MonkeyPatch) -> None:
    """BERTScore is the share of the candidate's words that the reference has."""

    def fake(
        candidates: Sequence[str], references: Sequence[Sequence[str]], **_: Any
    ) -> ModelScores:
        both = [
            (c.split(), " ".join(r).split()) for c, r in zip(candidates, references, strict=True)
        ]
        found = [sum(w in ref for w in own) / len(own) if own else 0.0 for own, ref in both]
        return ModelScores(tuple(found), "BERTScore by hand")

    monkeypatch.setattr(texts, "bert_score", fake)


def no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor CLIPScore: a quarter of each sentence, and a hundredth of frame numbers."""

    def clip(asked: Sequence[texts.SummaryFrames], **_: bool) -> list[float | None]:
        return [len(one.sentences) / 4 + sum(one.frames) / 100 for one in asked]

    no_bert(monkeypatch)
    monkeypatch.setattr(texts, "clip_values", clip)
    monkeypatch.setattr(texts, "clip_problem", lambda: None)


def saved_run(task: str, *replies: str) -> SavedRun:
    """Replies to videos 1, 2, ... of TVSum."""
    items = [whole(task, reply, **video(n)) for n, reply in enumerate(replies, 1)]
    samples = [{"doc_id": n, "failed": one} for n, one in enumerate(items)]
    return SavedRun(task, Path(f"out/1_samples_{task}.jsonl"), samples, "m (x)", {})


def rescored(*given: SavedRun) -> rescore.Rescored:
    return rescore.rescore_saved(BENCHMARK, given, None)
