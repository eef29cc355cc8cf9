"""CVRR-ES's part of `lmms-eval-tasks demo`: what the oracle and the coin must get on the sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lmms_eval_tasks.cvrr_es.labels import ANSWERS, DIMENSIONS, HIGHEST_SCORE
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.sample.demo import check_chance
from lmms_eval_tasks.utils import saved_runs as saved

TASKS = ("cvrr_es",)
ORACLE: dict[str, dict[str, float]] = {
    **{
        f"{ANSWERS}{one}": {"acc": 1.0, "acc_valid": 1.0, "score_valid": float(HIGHEST_SCORE)}
        for one in DIMENSIONS
    },
    "cvrr_es": {"mean_acc_skip_empty": 1.0, "mean_score_skip_empty": float(HIGHEST_SCORE)},
}


def check_coin(results: Mapping[str, Any], samples: Path, key: Path) -> list[str]:  # noqa: ARG001
    """The coin beside chance: half of its answers are the reference (demo.Part)."""
    items = list(_items(samples))
    same = [item["answer"] == item["reference"] for item in items]
    wrong = [
        item["id"] for item, right in zip(items, same, strict=True) if bool(item["right"]) != right
    ]
    if wrong:
        raise TasksError(f"{samples}: not judged as they were given: {', '.join(wrong)}")
    return [check_chance(sum(same) / len(same), 0.5, len(same), "CVRR-ES answers")]


def _items(samples: Path) -> Iterator[dict[str, Any]]:
    """The newest saved items of every dimension."""
    for dimension in DIMENSIONS:
        found = samples.rglob(f"*_samples_{ANSWERS}{dimension}.jsonl")
        newest = max(found, key=lambda path: path.stat().st_mtime)
        for sample in saved.read(newest).samples:
            yield sample["failed"]
