"""Whether saved numbers came out again, as `rescore` says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.maverix import tasks as maverix
from lmms_eval_tasks.runs import after, score_again
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
    numbers = {"cvrr_judge": {**SAVED, **now}}
    assert score_again.compared([run], numbers, None) == [f"cvrr_judge: {line}"]


def test_one_model_s_failures_do_not_mark_another_s_numbers() -> None:
    names = [f"{name} {model} (x)" for model in "mn" for name in ("maverix_v", "maverix_table3")]
    bad = {"maverix_v m (x) ask": "too many failed"}
    found = after.marked(maverix.BENCHMARK, dict.fromkeys(names, SAVED), bad)
    assert list(found) == [*(f"{name} INVALID" for name in names[:2]), *names[2:]]


def test_the_judge_is_named_where_it_judged() -> None:
    """A task of choices in the same group has nothing of it."""
    runs = [
        saved_runs.Run(task, Path(f"x_samples_{task}.jsonl"), [], "m", SAVED, {"maia": SAVED})
        for task in ("maia_vsv", "maia_oevqa")
    ]
    numbers = dict.fromkeys(("maia_vsv", "maia_oevqa", "maia"), SAVED)
    equal = "3 of 3 numbers equal the saved ones"
    assert score_again.compared(runs, numbers, "gpt", {"maia_oevqa"}) == [
        f"maia_vsv: {equal}",
        f"maia: {equal} (judged by gpt)",
        f"maia_oevqa: {equal} (judged by gpt)",
    ]
