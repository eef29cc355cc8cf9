"""Our tables by their layouts: each names what a run can give. To the last row: tests/golden."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from lmms_eval_tasks import registry
from lmms_eval_tasks.benchmark import Benchmark, TableRow
from lmms_eval_tasks.maia.categories import SLUGS
from lmms_eval_tasks.notify import UNSEEN, table_console
from lmms_eval_tasks.report.aggregation import CARRIER
from lmms_eval_tasks.tables import layouts
from lmms_eval_tasks.tables.terminal_tables import show
from tests import checks
from tests.checks import lines_of, rows


def names_of(benchmark: Benchmark) -> dict[str, set[str]]:
    """The names of the numbers that a run can give, by task, group or row of our tables."""
    found = {
        name: {CARRIER, *(one.name for one in task.metrics)}
        for name, task in benchmark.tasks.items()
    }
    found |= {
        one.group: {*one.compute({task: [] for task in one.tasks})}
        for one in benchmark.joint_metrics
    }
    given = [TableRow(task, dict.fromkeys(names)) for task, names in found.items()]
    return found | {row.task: {*row.values} for row in benchmark.table_rows(given)}


@pytest.mark.parametrize("name", registry.NAMES)
def test_every_column_and_line_names_a_number_of_a_run(name: str) -> None:
    """Some cells have none: a group has no mean over sources, a text no random baseline."""
    benchmark = registry.load_benchmark(name)
    known, board = names_of(benchmark), benchmark.board()
    groups = {one.group for one in benchmark.joint_metrics}

    def is_known(cell: dict[str, Any]) -> bool:
        # Which parts a group's items have is known of items alone; tasks have the same parts.
        tasks = layouts.tasks_of(cell)
        metric = layouts.metric_of({**cell, "where": {}} if groups & {*tasks} else cell)
        return any(metric in known.get(task, ()) for task in tasks)

    for layout in layouts.layouts_of(board):
        columns = layouts.columns_of(board, layout)
        lines = list(layouts.lines_of(board, layout, [("", task) for task in known]))
        grid = [[is_known({**column, **line}) for column in columns] for line in lines]
        for column, cells in zip(columns, zip(*grid, strict=True), strict=True):
            assert any(cells), (layout["title"], column)
        for line, own in zip(lines, grid, strict=True):
            # No text proxy has the document.
            without = line.get("kind") == "proxy" and line.get("name", "").endswith("_doc")
            numbers = [
                is_there
                for is_there, column in zip(own, columns, strict=True)
                if column.get("unit") != layouts.COUNT
            ]
            assert any(numbers) != without or "lines" not in layout, (layout["title"], line)


BOARD = {
    "columns": {
        "speed": {"title": "Top speed", "unit": "percent", "ours": {"metric": "speed"}},
        "laps": {"title": "Laps", "unit": "amount", "ours": "nobody counts laps alike"},
    },
    "lists": {"weather": [{"sky": "dry", "end": ""}, {"sky": "wet", "end": "_rain"}]},
    "layouts": [
        {
            "title": "Races",
            "names": {"car": "{model}", "sky": "{sky}", "of": "{what}"},
            "lines": [["weather", [{"what": "all"}, {"what": "valid", "suffix": "_valid"}]]],
            "task": "race{end}",
            "decimals": 1,
            "minus": "race",
            "columns": ["speed", {"heading": "laps", "metric": "laps", "unit": "amount"}],
        }
    ],
}


def test_a_board_of_somebody_else() -> None:
    """Lines are combinations, shares are percent, a count alone makes no line."""
    numbers = {
        "race": {"speed": 0.5, "speed_valid": 0.75, "laps": 3, "laps_valid": 3},
        "race_rain": {"speed": 0.25, "laps": 2, "laps_valid": 2},
    }

    def drawn(bad: str = "") -> list[list[str]]:
        shown = checks.printed(layouts.draw_tables(BOARD, rows(numbers, "kart", bad)))
        return [line.split() for line in lines_of(shown, "Races") if "kart" in line]

    first = [["kart", "dry", "all", "50.0", "3"], ["kart", "dry", "valid", "75.0", "3"]]
    assert drawn() == [*first, ["kart", "wet", "all", "-25.0", "-1"]]
    # What is INVALID is not compared with what is not.
    assert drawn("race")[0] == ["kart", "INVALID", "dry", "all", "50.0", "3"]
    assert drawn("race")[-1] == ["kart", "wet", "all", "25.0", "2"]


def printed(numbers: dict[str, Any], model: str = "", width: int = UNSEEN) -> str:
    sink, made = (
        io.StringIO(),
        registry.load_benchmark("maia").tables(rows({"maia_oevqa": numbers}, model)),
    )
    show(Console(file=sink, width=width), made)
    return sink.getvalue()


def test_a_narrow_terminal_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """No column is dropped, no line is longer, and each part has its names."""
    monkeypatch.setenv("COLUMNS", "80")
    assert table_console().width == 80
    monkeypatch.setenv("COLUMNS", "0")  # of a terminal without a size
    assert table_console().width == UNSEEN
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
