"""Whether saved numbers came out again, as `rescore` says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.maia.tasks import BENCHMARK
from lmms_eval_tasks.runs import score_again
from lmms_eval_tasks.runs.rescore import Rescored, rescore_saved
from lmms_eval_tasks.utils import saved_runs

SAVED = {"acc": 0.5, "kappa": None, "leniency": None}


@pytest.mark.parametrize(
    ("now", "line"),
    [
        ({}, "3 of 3 numbers equal the saved ones"),
        ({"kappa": 0.1}, "2 of 3 numbers equal the saved ones; 1 had no value before"),
        (
            {"acc": 0.6, "kappa": 0.1, "leniency": 1},
            "0 of 3 numbers equal the saved ones; 2 had no value before; differing: acc",
        ),
    ],
)
def test_what_came_since_is_no_difference(now: dict[str, Any], line: str) -> None:
    run = saved_runs.Run("cvrr_judge", Path("x_samples_cvrr_judge.jsonl"), [], "m", SAVED)
    done = Rescored({"cvrr_judge": {**SAVED, **now}}, labels={run.file: "cvrr_judge"})
    assert score_again.compared([run], done, None) == [f"cvrr_judge: {line}"]


def test_of_several_models_each_has_its_own_conditions() -> None:
    item = {"id": "video1/causal/x/0", "video": "video1", "category": "causal", "setting": "text"}
    item |= {"options": ["x", "y"], "answer": "A", "data": "d", "reply": "A", "status": "ok"}
    warned = {"lmms_eval_tasks": {"maia": {"warnings": ["the sample"]}}}
    runs = [
        saved_runs.Run(
            "maia_unimodal", Path(f"{m}_samples_x.jsonl"), [{"failed": item}], m, {}, {}, told
        )
        for m, told in (("a", warned), ("b", {"lmms_eval_tasks": {"maia": {}}}))
    ]
    assert rescore_saved(BENCHMARK, runs, None).notes == ["a: the sample"]
    assert rescore_saved(BENCHMARK, runs[:1], None).notes == ["the sample"]


def test_the_judge_is_named_where_it_judged() -> None:
    """A task of choices in the same group has nothing of it."""
    tasks = ("maia_vsv", "maia_oevqa")
    runs = [
        saved_runs.Run(task, Path(f"x_samples_{task}.jsonl"), [], "m", SAVED, {"maia": SAVED})
        for task in tasks
    ]
    equal = "3 of 3 numbers equal the saved ones"
    for model in ("", " m"):  # several models' runs have the model in their labels
        task, other, group = (f"{name}{model}" for name in (*tasks, "maia"))
        done = Rescored(
            dict.fromkeys((task, other, group), SAVED),
            labels=dict(zip((run.file for run in runs), (task, other), strict=True)),
            groups={group: [task, other]},
            judged={other},
        )
        assert score_again.compared(runs, done, "gpt") == [
            f"{task}: {equal}",
            f"{group}: {equal} (judged by gpt)",
            f"{other}: {equal} (judged by gpt)",
        ]
