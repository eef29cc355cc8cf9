"""The printed tables: nothing is cut off, and no number stands where there is none."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from lmms_eval_tasks import registry
from lmms_eval_tasks.maia.categories import SLUGS
from lmms_eval_tasks.notify import UNSEEN, table_console
from lmms_eval_tasks.tables.fold import show
from tests.checks import rows


def printed(values: dict[str, Any], model: str = "", width: int = UNSEEN) -> str:
    sink = io.StringIO()
    made = registry.load("maia").tables(rows({"maia_oevqa": values}, model))
    show(Console(file=sink, width=width), made)
    return sink.getvalue()


def test_a_narrow_terminal_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """No column is dropped, no line is longer, and each part has its names."""
    monkeypatch.setenv("COLUMNS", "80")
    assert table_console().width == 80
    cells = {f"judge_acc_{slug}": 0.10 + n / 100 for n, slug in enumerate(SLUGS)}
    cells |= {"judge_acc_avg": 0.31, "judge_acc": 0.32, "judge_acc_valid": 0.33}
    text = printed({**cells, "judge_acc_failed": 7}, "tiny", width=80)
    assert all(f"{value:.2f}" in text for value in cells.values())
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.count("maia_oevqa tiny") > 1


def test_what_is_not_computed_is_a_dash() -> None:
    values = {"rouge_l": 0.5, "bertscore": None, "bleu": float("nan"), "meteor": 0.25, "cider": 1.5}
    (line,) = [line for line in printed(values).splitlines() if "maia_oevqa" in line]
    assert line.split() == ["maia_oevqa", "-", "0.50", *"----", "0.25", "-", "1.50"]
