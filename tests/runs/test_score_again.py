"""What `rescore` says of saved numbers and of what they rest on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.maia.tasks import BENCHMARK
from lmms_eval_tasks.runs.rescore import Changes, rescore_saved
from lmms_eval_tasks.utils import saved_runs


@pytest.mark.parametrize(
    ("now", "line"),
    [
        ({}, "2 of 2 numbers equal the saved ones"),
        ({"kappa": 0.1}, "2 of 2 numbers equal the saved ones"),  # it came since
        (
            {"acc": 0.6, "kappa": 0.1},
            "1 of 2 numbers equal the saved ones; changed: acc 0.5 to 0.6",
        ),
    ],
)
def test_whether_saved_numbers_came_out_again(now: dict[str, Any], line: str) -> None:
    saved = {"acc": 0.5, "n": 3, "kappa": None}
    found = Changes.between(saved, {**saved, **now}, 4, 2)
    assert Changes.between({}, now) is None
    assert found is not None
    assert found.line(judged=False) == line
    told = found.line(judged=True)
    assert told.startswith("4 verdicts new, 2 kept; ")
    assert ("kappa - to 0.1" in told) == ("kappa" in now)


def test_of_several_models_each_has_its_own_conditions() -> None:
    item = {"id": "video1/causal/x/0", "video": "video1", "category": "causal", "setting": "text"}
    item |= {"options": ["x", "y"], "answer": "A", "data": "d", "reply": "A", "status": "ok"}
    warned = {"lmms_eval_tasks": {"maia": {"warnings": ["the sample"]}}}
    runs = [
        saved_runs.SavedRun(
            "maia_unimodal", Path(f"{m}_samples_x.jsonl"), [{"failed": item}], m, {}, {}, told
        )
        for m, told in (("a", warned), ("b", {"lmms_eval_tasks": {"maia": {}}}))
    ]
    told = rescore_saved(BENCHMARK, runs).lines()
    assert "a: the sample" in told
    assert "b: the sample" not in told
    assert "the sample" in rescore_saved(BENCHMARK, runs[:1]).lines()
