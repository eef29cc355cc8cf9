"""HAVEN's part of `lmms-eval-tasks demo`: what the oracle and the coin must get on the sample.

Both read the requests' pictures and texts (sample_players.py). Ratings are recorded of the oracle's
summaries, which are known beforehand; nobody rates the coin's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.haven.metrics import ALIGNMENT, ORDER, ROUGE
from lmms_eval_tasks.haven.options import SUMMARIES
from lmms_eval_tasks.haven.options import TASKS as ALL_TASKS
from lmms_eval_tasks.judges.geval import HIGHEST
from lmms_eval_tasks.utils import saved_runs as saved

TASKS = ("haven", "haven_text")
STANDARD_ERRORS = 4  # how far from chance the coin's mean may be

# More frames are asked for (15 %, rounded up) than the key shots have.
_KEYFRAMES = {"f1": 0.9112554112554112, "precision": 0.8416666666666667, "recall": 1.0}
# Kind -> the best values. A reply cannot say that two shots are equally important, and in the
# sample some are.
_BEST: dict[str, dict[str, float]] = {
    "v2t": dict.fromkeys(ROUGE, 1.0),
    "v2v": _KEYFRAMES,
    "v2vt": {**dict.fromkeys(ROUGE, 1.0), **_KEYFRAMES},
    "temporal": dict.fromkeys(ORDER, 1.0),
    "grounding": dict.fromkeys(ALIGNMENT, 1.0),
    "saliency": {"spearman": 0.9832986583839738, "kendall": 0.9611235341120444},
}
_RATED = {"geval_samples_valid": float(HIGHEST)}
ORACLE = {
    name: {
        **{"failed": 0.0, "violations": 0.0},
        **_BEST[task.kind],
        **(_RATED if task.kind in SUMMARIES else {}),
    }
    for name, task in ALL_TASKS.items()
}


def check_coin(results: Mapping[str, Any], samples: Path, key: Path) -> list[str]:  # noqa: ARG001
    """The coin beside chance (demo.Part): keyframes, orders and clips."""
    return [
        _check("f1", "keyframes", list(_items(samples, ("v2v", "v2vt")))),
        _check("spearman", "orders", list(_items(samples, ("temporal", "saliency")))),
        _check("hit1", "alignments", list(_items(samples, ("grounding",)))),
    ]


def _items(samples: Path, kinds: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The newest saved items of every task of these kinds."""
    for name, task in ALL_TASKS.items():
        if task.kind in kinds:
            found = samples.rglob(f"*_samples_{name}.jsonl")
            newest = max(found, key=lambda path: path.stat().st_mtime)
            for sample in saved.read(newest).samples:
                yield sample["failed"]


def _check(metric: str, what: str, items: Sequence[Mapping[str, Any]]) -> str:
    """A line with the coin's mean of a metric beside what the same items give at random.

    Raises:
        TasksError: they differ by more than STANDARD_ERRORS.
    """
    values = [item["scores"][metric] for item in items]
    expected = [item["baselines"][f"{metric}_random"] for item in items]
    got, chance = fmean(values), fmean(expected)
    off = [value - mean for value, mean in zip(values, expected, strict=True)]
    error = stdev(off) / math.sqrt(len(off))
    if abs(got - chance) > STANDARD_ERRORS * error:
        raise TasksError(
            f"the coin got {metric} = {got:.3f} on {len(items)} HAVEN {what}, not about "
            f"{chance:.3f} (standard error {error:.3f})"
        )
    return (
        f"coin: {metric} {got:.3f} on {len(items)} HAVEN {what} (chance {chance:.3f}, standard "
        f"error {error:.3f})"
    )
