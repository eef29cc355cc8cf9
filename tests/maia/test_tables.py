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
    cells = {f"pool_acc_{slug}": 0.10 + n / 100 for n, slug in enumerate(SLUGS)}
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


def test_the_summary_has_a_row_for_each_setting() -> None:
    rows = {
        "maia_vsv": {"pool_acc_avg": 0.5, "pair_acc_avg": 0.75, "failed": 1},
        "maia_oevqa": {"judge_acc_avg": 0.25, "failed": 2},
        "maia": {"agg_acc_avg": 0.125},
        "maia_vsv_black": {"pool_acc_avg": 0.0, "pair_acc_avg": 0.5, "failed": 0},
    }
    sink = io.StringIO()
    show(Console(file=sink, width=UNSEEN), tables.tables([("", rows)])[:1])
    lines = [line.split() for line in sink.getvalue().splitlines()]
    assert ["32", "frames", "0.50", "0.25", "0.12", "0.75", "3"] in lines
    assert ["black", "0.00", "-", "-", "0.50", "0"] in lines


def test_what_is_not_computed_is_a_dash() -> None:
    values = {"rouge_l": 0.5, "bertscore": None, "bleu": float("nan"), "meteor": 0.25, "cider": 1.5}
    text = printed([("", {"maia_oevqa": values})])
    (line,) = [line for line in text.splitlines() if "maia_oevqa" in line]
    assert line.split() == ["maia_oevqa", "0.50", "-", "-", "0.25", "1.50"]


def test_tables_of_metrics_without_numbers_are_left_out() -> None:
    assert tables.tables([("", {"maia_oevqa": {"judge_acc": None, "agg_acc": float("nan")}})]) == []
