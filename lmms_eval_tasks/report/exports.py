"""The numbers of a report in other forms: for a paper's appendix, for other programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.report import cells, compare
from lmms_eval_tasks.report.paper_tables import NONE, Sure, by_row, fixed, number, p_text, signed
from lmms_eval_tasks.report.sides import Side, tasks_of

if TYPE_CHECKING:
    from rich.table import Table

Row = dict[str, Any]


def rows(sides: Sequence[Side]) -> Iterator[Row]:
    """Every headline number of every side, with its interval and its difference from the first's.

    Values, intervals and differences are in the metric's own unit; `videos` is what the intervals
    are clustered by.
    """
    for benchmark, tasks in tasks_of(sides):
        for line in compare.headlines(benchmark, tasks, sides):
            for label, one in line.numbers.items():
                row = {
                    "benchmark": benchmark.name,
                    "task": line.quantity.row,
                    "metric": line.quantity.metric,
                    "run": label,
                    "value": one.estimate,
                    "low": number(one.low),
                    "high": number(one.high),
                    "n": one.n,
                    "videos": one.clusters,
                }
                if (apart := line.differences.get(label)) is not None:
                    ends = {"low": number(apart.value.low), "high": number(apart.value.high)}
                    row["difference"] = {"value": apart.value.estimate, **ends, "p": apart.p}
                yield row


def notes(sides: Sequence[Side]) -> list[str]:
    """How the replies behind the numbers were read, in lines, where it matters (readings.py)."""
    found = [
        (side.label, line)
        for benchmark, _ in tasks_of(sides)
        for side in sides
        for line in side.reading(benchmark)
    ]
    return [f"{label}: {line}" if len(sides) > 1 else line for label, line in found]


def as_json(found: Sequence[Row]) -> str:
    """A list of rows."""
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def as_csv(found: Sequence[Row]) -> str:
    """A line for each number."""
    import pandas

    flat = pandas.json_normalize(found, sep="_")
    return str(cells.frame(flat.to_dict("records"), flat.columns).to_csv(index=False))


def as_markdown(found: Sequence[Row], lines: Sequence[str] = ()) -> str:
    """A table with a column for each run, and a list of lines below it."""
    frame = _wide(found)
    frame.columns = frame.columns.map(cells.markdown)
    listed = "".join(f"- {cells.markdown(line)}\n" for line in lines)
    return f"{frame.to_markdown(index=False)}\n" + (listed and f"\n{listed}")


def as_latex(found: Sequence[Row]) -> str:
    """The same, for booktabs."""
    frame = _wide(found)
    escaped = frame.map(lambda cell: cells.latex(str(cell)))
    escaped.columns = frame.columns.map(cells.latex)
    return str(escaped.to_latex(index=False, column_format="ll" + "r" * (len(frame.columns) - 2)))


def _wide(found: Sequence[Row]) -> Any:
    """Task and metric, and a column of numbers with intervals for each run."""
    import pandas

    lines: dict[tuple[str, str], Row] = {}
    for row in found:
        key = row["task"], row["metric"]
        line = lines.setdefault(key, {"task": row["task"], "metric": row["metric"]})
        ends = "" if row["low"] is None else f" [{fixed(row['low'], 3)}, {fixed(row['high'], 3)}]"
        line[row["run"]] = f"{fixed(row['value'], 3)}{ends}"
    return pandas.DataFrame(lines.values()).fillna(NONE)


def tables(found: Sequence[Row]) -> Iterator[Table]:
    """For a terminal: intervals below the numbers, and differences from the first run's."""
    runs = list(dict.fromkeys(row["run"] for row in found))
    for benchmark in dict.fromkeys(row["benchmark"] for row in found):
        lines: dict[tuple[str, str], dict[str, str]] = {}
        for row in found:
            if row["benchmark"] == benchmark:
                line = lines.setdefault((row["task"], row["metric"]), {})
                line[row["run"]] = fixed(Sure.of(row["value"], row), 3)
                if apart := row.get("difference"):
                    p = "" if apart["p"] is None else f"\np {p_text(apart['p'])}"
                    line[f"{row['run']}\ndifference"] = f"{signed(apart['value'], 3)}{p}"
        columns = [one for run in runs for one in (run, f"{run}\ndifference")]
        columns = [one for one in columns if any(one in line for line in lines.values())]
        body = [(names, [line.get(one, NONE) for one in columns]) for names, line in lines.items()]
        note = "below a number: its 95 % interval"
        note += f"; differences from {runs[0]}" if len(runs) > 1 else ""
        yield from by_row(benchmark, ["task", "number"], columns, body, note)


FORMS: dict[str, Callable[[Sequence[Row]], str]] = {
    "md": as_markdown,
    "csv": as_csv,
    "latex": as_latex,
    "json": as_json,
}
