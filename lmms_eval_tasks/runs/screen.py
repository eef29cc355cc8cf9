"""The end of a run: its first screen, and all tables, which are also written to a file.

The first screen has about ten lines for each benchmark: the model and the run's validity; each
task's main number with its interval, chance, the count and the paper's row of the same setting; the
judge, frames and doubts; and where to find more.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks import leaderboards, registry, settings
from lmms_eval_tasks.benchmark import Benchmark, TableRow
from lmms_eval_tasks.judges import report
from lmms_eval_tasks.report import readings
from lmms_eval_tasks.report.invalid import Throughput
from lmms_eval_tasks.tables.paper_tables import NONE, Sure, fixed, number
from lmms_eval_tasks.tables.terminal_tables import show
from lmms_eval_tasks.utils.conditions import (
    Condition,
    Kind,
    Record,
    from_dicts,
    is_valid,
    limits,
)
from lmms_eval_tasks.utils.json_files import Json

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

ROWS = 8  # most rows of main numbers; the tables have all tasks
NOTES = 3  # most conditions of one kind; other kinds have as many


def first(results: Mapping[str, Json], console: Console, files: Sequence[Path] = ()) -> None:
    """Print the first screen for lmms-eval's results."""
    section = results["lmms_eval_tasks"]
    for name in (one for one in registry.NAMES if one in section):
        show(console, [*_of_benchmark(registry.load_benchmark(name), results), ""])
    with_tables = bool(settings.value(settings.TABLES))
    shown = [] if with_tables else report.of_results(results, by_task=False)
    shown += filter(None, [str(Throughput(**section.get("answered", {})))])
    shown += [f"INVALID: {line}" for line in section.get("invalid", {}).values()]
    shown += [f"written: {file}" for file in files]
    if not with_tables:
        shown.append("more tables: --tables headline; every split: --tables all")
    for line in shown:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def full(results: Mapping[str, Json], console: Console, *, every: bool) -> None:
    """Print the papers' tables: all of them with `every`, else the headline tables."""
    for name in registry.NAMES:
        if name in results["lmms_eval_tasks"]:
            show(console, paper_tables(registry.load_benchmark(name), results, every=every))
    for line in report.of_results(results):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


# --- the first screen -----------------------------------------------------------------------------


def _of_benchmark(benchmark: Benchmark, results: Mapping[str, Json]) -> list[RenderableType]:
    section = results["lmms_eval_tasks"][benchmark.name]
    bad = invalid_names(results)
    config = results.get("config", {})
    model = f"{config.get('model', '')} ({config.get('model_args') or 'default arguments'})"
    conditions = from_dicts(section["conditions"])
    has_number = any(
        number(v) is not None for own in section["numbers"].values() for v in own.values()
    )
    state = "VALID" if is_valid(conditions) else "INVALID"
    state = state if has_number else "no number yet"
    seen = section.get("videos")
    videos = f", {seen['asked']:,} of {seen['of']:,} videos" if seen and seen["of"] else ""
    skipped = {name for own in section.get("left_out", {}).values() for name in own}
    lost = f", {len(skipped):,} {benchmark.records} skipped" if skipped else ""
    lines: list[RenderableType] = [
        f"{benchmark.title}: {state}{videos}{lost}",
        f"  model: {model}",
    ]
    tasks = [name for name in benchmark.tasks if name in section["numbers"]]
    groups = [
        one.group
        for one in benchmark.joint_metrics
        if one.group in section["numbers"] and one.host_fields
    ]
    # Joint numbers come before a benchmark's many splits.
    names = [*groups, *tasks] if len(tasks) > ROWS else [*tasks, *groups]
    rows = [row for name in names if (row := _row(benchmark, name, section, model, bad))]
    lines += [_numbers(rows[:ROWS])] if rows else []
    lines += [f"  {one.text}" for one in conditions if not one.is_limit]
    shown, more_notes = _first_of_each_kind(conditions)
    lines += [f"  Note: {one.text}" for one in shown]
    for what, more in (("tasks", len(rows) - ROWS), ("notes", more_notes)):
        lines += [f"  and {more} more {what} (--tables headline)"] if more > 0 else []
    return lines


def _first_of_each_kind(conditions: Record) -> tuple[list[Condition], int]:
    """Return the first NOTES limits of each kind, and the number of the others.

    INVALID is not among them; it has lines of its own.
    """
    limits = [one for one in conditions if one.is_limit and one.kind != Kind.INVALID]
    kinds = dict.fromkeys(one.kind for one in limits)
    shown = [one for kind in kinds for one in [x for x in limits if x.kind == kind][:NOTES]]
    return shown, len(limits) - len(shown)


def _row(
    benchmark: Benchmark, name: str, section: Mapping[str, Json], model: str, bad: Collection[str]
) -> list[str] | None:
    """Return a task's or group's main number with its interval, chance and paper's row.

    None if it has no number to show.
    """
    numbers, about = section["numbers"][name], section["details"].get(name, {})
    known = leaderboards.headline(name)
    if known is not None and known.metric in numbers:
        metric, chance, papers = known
    else:
        task, joins = benchmark.tasks.get(name), benchmark.joint_metrics
        shown = [one.name for one in task.metrics if one.host_fields is not None] if task else []
        shown += [metric for one in joins if one.group == name for metric in one.host_fields]
        if not shown:
            return None
        metric, chance, papers = shown[0], None, {}
    value = number(numbers.get(metric))
    interval = about.get("intervals", {}).get(metric, {})
    low, high = interval.get("low"), interval.get("high")
    count, statuses = f"{about.get('items', '')}", about.get("status", {})
    if readings.is_thin(statuses):
        count = f"{readings.count_read(statuses)} of {count} read"
    return [
        f"  {name}{' INVALID' if name in bad else ''}",
        metric,
        fixed(value, 3),
        NONE if low is None or high is None else f"{fixed(low, 3)} to {fixed(high, 3)}",
        NONE if chance is None else f"{chance:g}",
        count,
        NONE if value is None or not papers else _closest(papers, model, value),
    ]


def _closest(papers: Mapping[tuple[str, str | None], float], model: str, value: float) -> str:
    """Return the paper's row of this model, else the row with the closest value."""
    given = _plain(model)
    # The longest name wins, because "GPT-4o" is part of "GPT-4o mini".
    own = {one: key for key in papers for one in key if one and _plain(one) in given}
    models = [key for key in papers if key[1] is not None] or list(papers)
    nearest = min(models, key=lambda one: abs(papers[one] - value))
    key = own[max(own, key=len)] if own else nearest
    return f"{fixed(papers[key], 3)} {key[0]}{'' if own else ' (closest value)'}"


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _numbers(rows: Iterable[Sequence[str]]) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in ("  task", "metric"):
        table.add_column(column, overflow="fold")
    for column in ("value", "95 % interval", "chance", "n"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("paper, same setting", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


# --- the tables in full ---------------------------------------------------------------------------


def paper_tables(
    benchmark: Benchmark, results: Mapping[str, Json], *, every: bool
) -> list[RenderableType]:
    """Return the papers' tables for lmms-eval's results, with their warnings."""
    section = results["lmms_eval_tasks"][benchmark.name]
    numbers = dict(sorted(section["numbers"].items()))
    made = table_rows(numbers, invalid_names(results), section["details"])
    shown = chosen_tables(benchmark, made, every=every)
    conditions = from_dicts(section["conditions"])
    shown += [f"{benchmark.title}: {one.text}" for one in conditions if not one.is_limit]
    return [*shown, *(f"Note: {line}" for line in limits(conditions))]


def table_rows(
    numbers: Mapping[str, Mapping[str, Json]],
    bad: Collection[str],
    details: Mapping[str, Mapping[str, Json]],
) -> list[TableRow]:
    """Return numbers as table rows.

    Args:
        numbers: by task or group, or by these and a model.
        bad: names of invalid rows.
        details: by name; their intervals are attached to the numbers.
    """
    made = []
    for name, values in numbers.items():
        task, _, model = name.partition(" ")
        intervals = details.get(name, {}).get("intervals", {})
        known = {key: Sure.of(value, intervals.get(key)) for key, value in values.items()}
        made.append(TableRow(task, known, model, name in bad))
    return made


def chosen_tables(
    benchmark: Benchmark, rows: Sequence[TableRow], *, every: bool | None = None
) -> list[RenderableType]:
    """Return all tables of a paper with `every`, else the headline; None follows the setting."""
    made = list(benchmark.tables(rows))
    every = settings.value(settings.TABLES) == "all" if every is None else every
    if every or len(made) <= benchmark.headline:
        return made
    more = f"{benchmark.title}: {len(made) - benchmark.headline} more tables with --tables all"
    return [*made[: benchmark.headline], more]


def invalid_names(results: Mapping[str, Json]) -> set[str]:
    """Return the invalid tasks of lmms-eval's results, and the groups with such tasks."""
    tasks = results["lmms_eval_tasks"].get("invalid", {}).keys()
    groups = dict(results.get("group_subtasks", {}))
    for benchmark, _ in registry.benchmarks_of(tasks):
        groups |= {joint.group: joint.tasks for joint in benchmark.joint_metrics}
    return {*tasks, *(name for name, members in groups.items() if tasks & set(members))}
