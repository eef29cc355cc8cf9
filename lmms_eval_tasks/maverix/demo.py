"""MAVERIX's part of `lmms-eval-tasks demo`: what the oracle and the coin must get on the sample."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmms_eval_tasks.maverix.labels import LETTERS, MODES
from lmms_eval_tasks.sample.demo import check_chance
from lmms_eval_tasks.utils import saved_runs as saved

# Open answers are not among them: their ratings from 0 to 5 need a language model.
TASKS = ("maverix_table3", "maverix_a_circular")
ORACLE = {
    **{f"maverix_{mode}": {"acc": 1.0} for mode in MODES},
    "maverix_table3": {"best_uni": 1.0, "best_multi": 1.0},
    "maverix_a_circular": {"acc": 1.0, "circ_acc": 1.0},
}


def check_coin(results: Mapping[str, Any], samples: Path, key: Path) -> list[str]:  # noqa: ARG001
    """The coin beside chance (demo.Part): over rotations, since each is a draw of its own.

    The modes' own tasks are not: the coin sees the text alone, which is the same in A, V and V+A.
    """
    numbers = saved.numbers(results)["maverix_a_circular"]
    questions = results["lmms_eval_tasks"]["maverix"]["details"]["maverix_a_circular"]["pools"]
    return [
        check_chance(
            numbers["acc"], 1 / len(LETTERS), questions * len(LETTERS), "MAVERIX rotations"
        ),
        f"coin: {numbers['circ_acc'] * questions:.0f} of {questions} MAVERIX questions right in "
        "all rotations (0.125^8: none expected)",
    ]
