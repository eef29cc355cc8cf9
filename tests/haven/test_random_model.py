"""A model that replies at random, in the form asked for, gets what NAME_random says.

Each of 10,000 replies goes through `tasks.score`, and their items through the metrics: reader,
scorer and closed form meet here. Of orders of five or six shots there are only 120 or 720, and
scipy takes milliseconds for each: equal replies are scored once, since the scorer is pure, and
count as often as they were drawn.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import cache
from statistics import fmean, stdev
from typing import Any

import pytest

from lmms_eval_tasks.haven import metrics, tasks
from lmms_eval_tasks.haven.options import TASKS
from tests.haven.docs import doc

DRAWS = 10_000
BOUND = 4.0  # standard errors, two-sided: 6 in 100,000 by chance, and the seed is fixed

Item = dict[str, Any]
Model = Callable[[random.Random, Item], str]


def frames(rng: random.Random, item: Item) -> str:
    """K different frames."""
    return str(rng.sample(range(1, item["n_frames"] + 1), item["budget"]))


def clips(rng: random.Random, item: Item) -> str:
    """One clip for each sentence."""
    n = len(item["units"])
    return "\n".join(
        f"Summary {number}: Clip {rng.randint(1, n)}" for number in range(1, 1 + len(item["asked"]))
    )


def order(rng: random.Random, item: Item) -> str:
    """All that is shown, in any order."""
    n = len(item["units"])
    name = "Sentence" if item["kind"] == "temporal" and item["text"] else "Shot"
    return " > ".join(f"{name} {place}" for place in rng.sample(range(1, n + 1), n))


MODELS: dict[str, Model] = {
    "v2v": frames,
    "grounding": clips,
    "temporal": order,
    "saliency": order,
}
SETS = [[1, 2], [4], [3, 5, 6]]  # the shots of three sentences
SHOTS: dict[str, Any] = {"frames": 24, "shots": 6}
# Small items: many, few and as many keyframes as are asked for; importance without and with ties.
CASES: list[tuple[str, dict[str, Any]]] = [
    ("haven_v2v", {"frames": 20, "keyframes": [1, 4, 11]}),
    ("haven_v2v", {"frames": 14, "keyframes": [2, 3, 5, 7, 11]}),
    ("haven_v2v_text", {"frames": 27, "keyframes": [27]}),
    ("haven_grounding", {**SHOTS, "summary_shots": SETS}),
    ("haven_grounding_text", {"frames": 10, "shots": 5}),
    ("haven_temporal", {"frames": 10, "shots": 5}),
    ("haven_temporal_doc", {**SHOTS, "units": [6, 1, 4, 2, 5]}),
    ("haven_temporal_text", SHOTS),
    ("haven_saliency", {**SHOTS, "importance": [0.4, 0.1, 0.9, 0.3, 0.8, 0.2]}),
    ("haven_saliency_doc", {**SHOTS, "importance": [0.5, 0.5, 0.1, 0.9, 0.1, 0.1]}),
    ("haven_saliency_text", {"frames": 10, "shots": 5, "importance": [0, 0, 0, 0, 1]}),
]
IDS = [f"{name}-{number}" for number, (name, _) in enumerate(CASES)]


def drawn(task: str, changes: dict[str, Any], model: Model) -> list[Item]:
    """The items of 10,000 replies."""
    item = tasks.keep(doc(task, **changes))
    rng = random.Random(f"{task} {changes}")

    @cache
    def scored(reply: str) -> Item:
        return {**item, **tasks.score(item, reply), "reply": reply}

    return [scored(model(rng, item)) for _ in range(DRAWS)]


def distances(task: str, items: list[Item]) -> dict[str, float]:
    """How far each metric's mean is from NAME_random, in standard errors of the mean."""
    found = {}
    by_name = {metric.name: metric for metric in tasks.BENCHMARK.tasks[task].metrics}
    for name in metrics.MEASURED[TASKS[task].kind]:
        mean, chance = (by_name[metric].of(items) for metric in (name, f"{name}_random"))
        values = [item["scores"][name] for item in items]
        assert mean == pytest.approx(fmean(values), abs=1e-12)
        found[name] = (mean - chance) / (stdev(values) / math.sqrt(DRAWS))
    return found


@pytest.mark.parametrize(("task", "changes"), CASES, ids=IDS)
def test_a_random_model_is_at_chance(task: str, changes: dict[str, Any]) -> None:
    made = drawn(task, changes, MODELS[TASKS[task].kind])
    assert {one["status"] for one in made} == {"ok"}
    assert not any(one["violations"] for one in made)
    assert len({one["reply"] for one in made}) > 50
    off = distances(task, made)
    assert off
    assert all(abs(distance) < BOUND for distance in off.values()), off


@pytest.mark.parametrize(
    ("task", "changes", "right"),
    [
        (*CASES[0], "[1, 4, 11]"),
        # Shown are sentences 2, 1 and 3.
        (*CASES[3], "Summary 1: Clip 4\nSummary 2: Clip 1\nSummary 3: Clip 3"),
        (*CASES[5], "Shot 3 > Shot 1 > Shot 4 > Shot 2 > Shot 5"),  # 2, 4, 1, 3, 5 are shown
        (*CASES[9], "Shot 4 > Shot 1 > Shot 2 > Shot 3 > Shot 5 > Shot 6"),
    ],
    ids=["v2v", "grounding", "temporal", "saliency"],
)
def test_a_model_that_knows_one_video_in_ten_is_not(
    task: str, changes: dict[str, Any], right: str
) -> None:
    """What the bound can tell: far less than what models differ by."""
    guesses = MODELS[TASKS[task].kind]

    def model(rng: random.Random, item: Item) -> str:
        return right if rng.random() < 0.1 else guesses(rng, item)

    off = distances(task, drawn(task, changes, model))
    assert all(distance > BOUND for distance in off.values()), off
