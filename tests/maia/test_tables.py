"""The printed tables: nothing is cut off, and no number stands where there is none."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from lmms_eval_tasks.console import UNSEEN, table_console
from lmms_eval_tasks.maia import tables
from lmms_eval_tasks.maia.categories import SLUGS
from lmms_eval_tasks.report.fold import show


def numbers() -> dict[str, Any]:
    """Every cell different, so that each can be found in what was printed."""
    splits = SLUGS
    cells = {f"pool_acc_{slug}": 0.10 + n / 100 for n, slug in enumerate(splits)}
    return {**cells, "pool_acc_avg": 0.31, "pool_acc": 0.32, "pool_acc_valid": 0.33}


def printed(rows: list[tuple[str, Any]], width: int = UNSEEN) -> str:
    sink = io.StringIO()
    show(Console(file=sink, width=width), tables.tables(rows))
    return sink.getvalue()


def test_a_narrow_terminal_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """No column is dropped, no line is longer, and each part has its names."""
    monkeypatch.setenv("COLUMNS", "80")
    assert table_console().width == 80
    text = printed([("tiny", {"maia_vsv": {**numbers(), "pool_acc_failed": 7}})], width=80)
    assert all(f"{value:.2f}" in text for value in numbers().values())
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.count("tiny maia_vsv") > 1


def test_a_warning_is_shown_as_it_is() -> None:
    """Whatever stands in it, on terminals of any width."""
    line = "Note: 2 failed (the last: [errno 111] of [/data/x]), not a benchmark result"
    for width in (40, 200):
        sink = io.StringIO()
        show(Console(file=sink, width=width), [line])
        assert sink.getvalue().split() == line.split()


def test_what_is_not_computed_is_a_dash() -> None:
    values = {"rouge_l": 0.5, "bertscore": None, "bleu": float("nan"), "meteor": 0.25, "cider": 1.5}
    text = printed([("", {"maia_oevqa": values})])
    (line,) = [line for line in text.splitlines() if "maia_oevqa" in line]
    assert line.split() == ["maia_oevqa", "-", "0.50", *"----", "0.25", "-", "1.50"]
