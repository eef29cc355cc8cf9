"""MovieRecapsQA's part of `lmms-eval-tasks demo`: what the oracle and the coin must get."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.movierecapsqa.data import CONDITIONS, task_name
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS, HIGHEST
from lmms_eval_tasks.sample.demo import check_chance
from lmms_eval_tasks.utils import saved_runs as saved

TASKS = ("movierecapsqa",)
_LEAVES = tuple(task_name("segment", slug) for slug in CONDITIONS)
ORACLE = {
    task: {"rouge_l": 1.0, **{f"{name}_valid": float(HIGHEST) for name in DIMENSIONS}}
    for task in _LEAVES
}


def check_coin(results: Mapping[str, Any], samples: Path, key: Path) -> list[str]:  # noqa: ARG001
    """The coin beside chance, and what became of its false answers (demo.Part)."""
    lures = json.loads(key.read_text(encoding="utf-8"))["lures"]
    items = list(_items(samples))
    false = [item for item in items if item["candidate"] == lures[item["question"]]]
    right = [item for item in items if item["candidate"] == item["reference"]]
    if len(false) + len(right) != len(items):
        raise TasksError(f"{samples}: the coin gave answers that its key does not hold")
    line = check_chance(len(right) / len(items), 0.5, len(items), "MovieRecapsQA answers")
    for given, expected in ((right, (5, 5)), (false, (0, 5))):
        wrong = [item["id"] for item in given if _ratings(item) != expected]
        if wrong:
            raise TasksError(f"not judged {expected} in factuality and relevance: {wrong}")
    return [
        line,
        f"coin: gave {len(false)} false answers about the right thing, all with factuality 0 and "
        "relevance 5 (recorded verdicts: they test the way to the score, not a judge)",
    ]


def _items(samples: Path) -> Iterator[dict[str, Any]]:
    """The newest saved items of every task."""
    for task in _LEAVES:
        found = samples.rglob(f"*_samples_{task}.jsonl")
        newest = max(found, key=lambda path: path.stat().st_mtime)
        for sample in saved.read(newest).samples:
            yield sample["failed"]


def _ratings(item: Mapping[str, Any]) -> tuple[int | None, int | None]:
    rated = item["dimensions"]
    return rated["factuality"]["score"], rated["relevance"]["score"]
