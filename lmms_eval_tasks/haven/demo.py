"""HAVEN's part of `lmms-eval-tasks demo`: what the oracle and the coin must get on the sample.

Both read the requests' pictures and texts (sample_players.py). What they must get is computed from
the sample's docs, with the options of the run: the oracle the best value of every item, the coin
chance, within four standard errors of its draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.haven import data
from lmms_eval_tasks.haven.metrics import ALIGNMENT, KEYFRAMES, ORDER, ROUGE
from lmms_eval_tasks.haven.options import SUMMARIES, Variant
from lmms_eval_tasks.haven.options import TASKS as ALL_TASKS
from lmms_eval_tasks.judges.geval import HIGHEST
from lmms_eval_tasks.judges.verdict import NONE
from lmms_eval_tasks.sample import demo
from lmms_eval_tasks.utils import aggregate, alignments, keyframes, rankings
from lmms_eval_tasks.utils import saved_runs as saved

TASKS = ("haven", "haven_text")
STANDARD_ERRORS = 4  # how far from chance the coin's mean may be

# Kind -> what the oracle gets 1 in. Keyframes too: there are as many true ones as are asked for.
_ALL_RIGHT: dict[str, tuple[str, ...]] = {
    "v2t": ROUGE,
    "v2v": KEYFRAMES,
    "v2vt": (*ROUGE, *KEYFRAMES),
    "temporal": ORDER,
    "grounding": ALIGNMENT,
}


def __getattr__(name: str) -> Any:
    """`ORACLE` (demo.Part): computed when it is asked for, since correlations import scipy."""
    if name == "ORACLE":
        return {task: _best(ALL_TASKS[task]) for task in ALL_TASKS}
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def judge(model: str, folder: Path) -> str:
    """Recorded ratings of the oracle's summaries, which are known beforehand (demo.Part).

    Nobody rates those of the others: G-Eval's 1 to 5 need a language model, which is not at hand.
    """
    return f"replay:{folder / 'replay.jsonl'}" if model == demo.ORACLE else NONE


class Draw(NamedTuple):
    """What one random reply can be expected to get."""

    mean: float
    variance: float


def check_coin(results: Mapping[str, Any], samples: Path, key: Path) -> list[str]:  # noqa: ARG001
    """The coin beside chance (demo.Part): keyframes, orders and clips."""
    numbers = saved.numbers(results)
    return [
        _check("f1", "keyframes", numbers, ("v2v", "v2vt"), _keyframes),
        _check("spearman", "orders", numbers, ("temporal", "saliency"), _order),
        _check("hit1", "alignments", numbers, ("grounding",), _alignment),
    ]


def _check(
    metric: str,
    what: str,
    numbers: Mapping[str, Mapping[str, Any]],
    kinds: tuple[str, ...],
    expected: Callable[[Mapping[str, Any]], Draw],
) -> str:
    """A line with the coin's mean of a metric over all draws of these kinds, beside chance.

    Raises:
        TasksError: they differ by more than STANDARD_ERRORS, or a task has no number.
    """
    draws: list[Draw] = []
    total = 0.0
    for name, task in ALL_TASKS.items():
        if task.kind in kinds:
            own = [expected(doc) for doc in _docs(task)]
            mean = numbers[name].get(metric)
            if mean is None:
                raise TasksError(f"the coin has no {metric} on {name}")
            draws += own
            total += mean * len(own)
    got, chance = total / len(draws), math.fsum(draw.mean for draw in draws) / len(draws)
    error = math.sqrt(math.fsum(draw.variance for draw in draws)) / len(draws)
    if abs(got - chance) > STANDARD_ERRORS * error:
        raise TasksError(
            f"the coin got {metric} = {got:.3f} on {len(draws)} HAVEN {what}, not about "
            f"{chance:.3f} (standard error {error:.3f})"
        )
    return (
        f"coin: {metric} {got:.3f} on {len(draws)} HAVEN {what} (chance {chance:.3f}, standard "
        f"error {error:.3f})"
    )


def _keyframes(doc: Mapping[str, Any]) -> Draw:
    """F1 of K of F frames against K true ones: hits are hypergeometric."""
    k, n = doc["budget"], len(doc["picks"])
    share = keyframes.chance(n, k, k).f1
    return Draw(share, share * (1 - share) * (n - k) / (n - 1) / k)


def _order(doc: Mapping[str, Any]) -> Draw:
    """Spearman's rho of a random order, whatever ties there are."""
    return Draw(0.0, 1 / (len(doc["units"]) - 1))


def _alignment(doc: Mapping[str, Any]) -> Draw:
    """Hit@1 of one clip for each sentence, a mean over sentences."""
    n, clips = len(doc["sentences"]), len(doc["units"])
    hits = [
        alignments.one_at_random(clips, len(doc["summary_shots"][sentence - 1])).hit
        for sentence in doc["sentences"]
    ]
    return Draw(math.fsum(hits) / n, math.fsum(hit * (1 - hit) for hit in hits) / n**2)


def _best(task: Variant) -> dict[str, float]:
    """What the oracle must get: every reply well formed, and the best value of the item."""
    clean = {"failed": 0.0, "violations": 0.0}
    if task.kind in SUMMARIES:
        clean["geval_samples_valid"] = float(HIGHEST)
    if task.kind != "saliency":
        return {**clean, **dict.fromkeys(_ALL_RIGHT[task.kind], 1.0)}
    # A reply cannot say that two shots are equal, and some are.
    best = [rankings.best_reachable(_ranks(doc)) for doc in _docs(task)]
    return {
        **clean,
        "spearman": aggregate.mean(one.spearman for one in best if one.spearman is not None) or 0.0,
        "kendall": aggregate.mean(one.kendall for one in best if one.kendall is not None) or 0.0,
    }


def _ranks(doc: Mapping[str, Any]) -> list[float]:
    return rankings.importance_ranks([doc["importance"][unit - 1] for unit in doc["units"]])


def _docs(task: Variant) -> list[dict[str, Any]]:
    """What the run asked."""
    docs = data.docs(data.look([task.name], videos=False), task.name)
    return [doc for doc in docs if not doc["not_run"]]
