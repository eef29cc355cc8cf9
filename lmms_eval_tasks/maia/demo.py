"""MAIA's part of `lmms-eval-tasks demo`: what the oracle and the coin must get on the sample."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.sample.demo import check_chance
from lmms_eval_tasks.utils import saved_runs as saved

TASKS = ("maia",)
ORACLE = {
    "maia_vsv": {"pair_acc": 1.0, "pool_acc": 1.0},
    "maia_oevqa": {"judge_acc": 1.0},
    "maia": {"agg_acc": 1.0},
}
PAIR_CHANCE, POOL_CHANCE = 0.5, 0.5**8  # a pool is eight independent pairs (metrics.md)


def check_coin(results: Mapping[str, Any], samples: Path, key: Path) -> list[str]:
    """The coin beside chance, and what became of its wrong answers (demo.Part)."""
    numbers = saved.numbers(results)["maia_vsv"]
    details = results["lmms_eval_tasks"]["maia"]["details"]["maia_vsv"]
    pairs, pools = details["items"], details["pools"]
    return [
        check_chance(numbers["pair_acc"], PAIR_CHANCE, pairs, "MAIA pairs"),
        f"coin: {numbers['pool_acc'] * pools:.0f} of {pools} MAIA pools = "
        f"{numbers['pool_acc']:.2%} (closed form 0.5^8 = {POOL_CHANCE:.2%}, "
        f"{POOL_CHANCE * pools:.2f} pools expected)",
        _check_lures(samples, key),
    ]


def _check_lures(samples: Path, key: Path) -> str:
    """Every wrong answer that looks right and that the coin gave must have scored 0."""
    lures = json.loads(key.read_text(encoding="utf-8"))["lures"]
    newest = max(samples.rglob("*_samples_maia_oevqa.jsonl"), key=lambda p: p.stat().st_mtime)
    items = [sample["failed"] for sample in saved.read(newest).samples]
    # By question: what is wrong for one may be right for another.
    given = [item for item in items if item["candidate"] == lures[item["question"]]]
    if not given:
        raise TasksError(f"{newest}: the coin gave none of the wrong answers that look right")
    accepted = [item["id"] for item in given if item["right"]]
    if accepted:
        raise TasksError(f"the judge accepted wrong answers that look right: {accepted}")
    return f"coin: gave {len(given)} wrong answers that look right, all judged wrong"
