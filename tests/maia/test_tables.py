"""The printed tables: nothing is cut off, and no number stands where there is none."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from lmms_eval_tasks.console import TABLE_WIDTH, wide_console
from lmms_eval_tasks.maia import tables
from lmms_eval_tasks.maia.categories import SLUGS


def numbers() -> dict[str, Any]:
    """Every cell different, so that each can be found in what was printed."""
    cells = {f"pool_acc_{slug}": 0.10 + n / 100 for n, slug in enumerate(SLUGS)}
    return {**cells, "pool_acc_avg": 0.31, "pool_acc": 0.32, "pool_acc_valid": 0.33}


def printed(rows: list[tuple[str, Any]], width: int = TABLE_WIDTH) -> str:
    sink = io.StringIO()
    for table in tables.tables(rows):
        Console(file=sink, width=width).print(table)
    return sink.getvalue()


def test_every_category_and_form_is_printed() -> None:
    values = {**numbers(), "pool_acc_failed": 7}
    text = printed([("tiny random VLM", {"maia_vsv_1frame_en": values})])
    for value in numbers().values():
        assert f"{value:.2f}" in text
    assert " 7 " in text
    assert "\u2026" not in text  # rich's ellipsis: a column did not fit
    assert all(len(line) <= TABLE_WIDTH for line in text.splitlines())
    assert set(tables.HEADINGS) == set(SLUGS)


def test_a_narrow_terminal_does_not_drop_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert wide_console().width == TABLE_WIDTH


def test_what_is_not_computed_is_a_dash() -> None:
    values = {"rouge_l": 0.5, "bertscore": None, "bleu": float("nan"), "meteor": 0.25, "cider": 1.5}
    text = printed([("", {"maia_oevqa": values})])
    (line,) = [line for line in text.splitlines() if "maia_oevqa" in line]
    assert line.split() == ["maia_oevqa", "0.50", "-", "-", "0.25", "1.50"]


def test_tables_of_metrics_without_numbers_are_left_out() -> None:
    assert tables.tables([("", {"maia_oevqa": {"judge_acc": None, "agg_acc": float("nan")}})]) == []


def test_cells_of_the_two_by_two() -> None:
    counts = {"both": 20, "pool_only": 3, "answer_only": 18, "neither": 7, "joined": 48}
    values = {"agg_acc": 20 / 48, **{f"agg_acc_n_{name}": n for name, n in counts.items()}}
    text = printed([("oracle", {"maia": values})])
    assert any(line.split()[2:] == ["20", "3", "18", "7", "48"] for line in text.splitlines())
