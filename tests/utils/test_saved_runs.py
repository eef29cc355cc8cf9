"""Saved runs read back: whole items by id, numbers wherever they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import saved_runs


def run(*samples: Any) -> saved_runs.Run:
    return saved_runs.Run("t", Path("x.jsonl"), list(samples), None, {})


def test_items_come_in_the_order_of_their_ids() -> None:
    made = [{"failed": {"id": name, "reply": name, "status": "ok"}} for name in ("b", "a")]
    assert [item["id"] for item in saved_runs.saved_items(run(*made))] == ["a", "b"]


@pytest.mark.parametrize(
    ("second", "says"),
    [
        ({"other": {}}, "line 2: no `failed` item of this suite"),
        ({"failed": 0.5}, "line 2: no `failed` item"),
        ({"failed": {"id": "c"}}, "line 2: no `failed` item"),
        ({"failed": {"id": "c", "reply": ""}}, "line 2: the item has no text `status`; take its"),
        ({"failed": {"id": "a", "reply": "", "status": "ok"}}, "line 2: a occurs twice"),
    ],
)
def test_bad_samples(second: Any, says: str) -> None:
    first = {"failed": {"id": "a", "reply": "", "status": "ok"}}
    with pytest.raises(DataError, match=f"^x.jsonl, {says}"):
        saved_runs.saved_items(run(first, second))


def test_our_numbers_outrank_the_hosts() -> None:
    results = {
        "results": {"maia_b": {"acc,none": 1.0, "acc_stderr,none": 0.1}, "other": {"x,none": 2}},
        "lmms_eval_tasks": {
            "version": "1",
            "maia": {"numbers": {"maia_b": {"acc": 1.0, "acc_valid": 0.5}}},
        },
    }
    found = saved_runs.numbers(results)
    assert found == {"maia_b": {"acc": 1.0, "acc_valid": 0.5}, "other": {"x": 2}}
