"""A model that replies at random, in the form asked for, gets what NAME_random says.

Reader, scorer, metrics and closed form meet here; the closed forms alone are held against all
selections and orders in tests/utils.
"""

from __future__ import annotations

import math
import random
from functools import cache
from statistics import stdev
from typing import Any

import pytest

from lmms_eval_tasks.haven import metrics, tasks
from lmms_eval_tasks.haven.options import TASKS
from tests.haven.docs import doc

DRAWS = 5_000
BOUND = 4.0  # standard errors, two-sided: 6 in 100,000 by chance, and the seed is fixed


def reply(rng: random.Random, item: dict[str, Any]) -> str:
    """K different frames; one clip for each sentence; or all that is shown, in any order."""
    n = len(item["units"])
    if item["kind"] == "v2v":
        return str(rng.sample(range(1, item["n_frames"] + 1), item["budget"]))
    if item["kind"] == "grounding":
        places = range(1, 1 + len(item["asked"]))
        return "\n".join(f"Summary {place}: Clip {rng.randint(1, n)}" for place in places)
    return " > ".join(f"Shot {place}" for place in rng.sample(range(1, n + 1), n))


@pytest.mark.parametrize(
    ("task", "changes"),
    [
        ("haven_v2v", {"frames": 14, "keyframes": [2, 3, 5, 7, 11]}),
        ("haven_grounding", {"frames": 24, "shots": 6, "summary_shots": [[1, 2], [4], [3, 5, 6]]}),
        ("haven_temporal", {"frames": 24, "shots": 6, "units": [6, 1, 4, 2, 5]}),
        ("haven_saliency", {"shots": 6, "importance": [0.5, 0.5, 0.1, 0.9, 0.1, 0.1]}),
    ],
)
def test_a_random_model_is_at_chance(task: str, changes: dict[str, Any]) -> None:
    item = tasks.keep(doc(task, **changes))
    rng = random.Random(f"{task} {changes}")

    @cache  # of an order's few hundred replies each is scored once
    def scored(text: str) -> dict[str, Any]:
        return {**item, **tasks.score(item, text)}

    items = [scored(reply(rng, item)) for _ in range(DRAWS)]
    assert {one["status"] for one in items} == {"ok"}
    assert not any(one["violations"] for one in items)
    of = {metric.name: metric.of for metric in tasks.BENCHMARK.tasks[task].metrics}
    for name in metrics.MEASURED[TASKS[task].kind]:
        error = stdev(one["scores"][name] for one in items) / math.sqrt(DRAWS)
        assert abs(of[name](items) - of[f"{name}_random"](items)) < BOUND * error, name
