"""The numbers of a report in other forms: for a paper's appendix, for other programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.report import cells, compare, fold
from lmms_eval_tasks.report.paper_tables import (
    INVALID,
    NONE,
    Sure,
    by_row,
    doubted,
    fixed,
    number,
    p_text,
    signed,
)
from lmms_eval_tasks.report.sides import Side, tasks_of
from lmms_eval_tasks.utils.conditions import as_columns, concerning, lines

if TYPE_CHECKING:
    from rich.table import Table

Row = dict[str, Any]


def rows(sides: Sequence[Side]) -> Iterator[Row]:
    """Every headline number of every side, with its interval and its difference from the first's.

    Values, intervals and differences are in the metric's own unit; `videos` is what the intervals
    are clustered by. `valid`, `judge`, `limit` and `conditions` are those of the number
    (conditions.as_columns).
    """
    for benchmark, tasks in tasks_of(sides):
        found = compare.conditions(tasks, sides)
        for line in compare.headlines(benchmark, tasks, sides):
            for label, one in line.numbers.items():
                own = concerning(found[label], line.quantity.tasks)
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
                    **as_columns(own),
                }
                if (apart := line.differences.get(label)) is not None:
                    ends = {"low": number(apart.value.low), "high": number(apart.value.high)}
                    found_apart = {"value": apart.value.estimate, **ends, "p": apart.p}
                    row["difference"] = {"from": sides[0].label, **found_apart}
                yield row


def notes(sides: Sequence[Side]) -> list[str]:
    """The conditions of the numbers in lines, of several sides each with the side's label."""
    found = dict.fromkeys(
        f"{label}: {line}" if len(sides) > 1 else line
        for _, tasks in tasks_of(sides)
        for label, own in compare.conditions(tasks, sides).items()
        for line in lines(own)
    )
    return list(found)


def as_json(found: Sequence[Row], _: Sequence[str] = ()) -> str:
    """A list of rows, each with its conditions."""
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def as_csv(found: Sequence[Row], _: Sequence[str] = ()) -> str:
    """A line for each number, with its conditions."""
    import pandas

    told = [{**row, "conditions": "; ".join(row["conditions"])} for row in found]
    flat = pandas.json_normalize(told, sep="_")
    return str(cells.frame(flat.to_dict("records"), flat.columns).to_csv(index=False))


def as_markdown(found: Sequence[Row], told: Sequence[str] = ()) -> str:
    """A table with columns for each run, and the list of conditions below it."""
    frame = _wide(found)
    frame.columns = frame.columns.map(cells.markdown)
    listed = "".join(f"- {cells.markdown(line)}\n" for line in told)
    aligned = ["left", "left", *["right"] * (len(frame.columns) - 2)]
    table = frame.to_markdown(index=False, colalign=aligned, disable_numparse=True)
    return f"{table}\n" + (listed and f"\n{listed}")


def as_latex(found: Sequence[Row], told: Sequence[str] = ()) -> str:
    """The same for booktabs, with the conditions as notes of a threeparttable."""
    frame = _wide(found)
    escaped = frame.map(lambda cell: cells.latex(str(cell)))
    escaped.columns = frame.columns.map(cells.latex)
    form = "ll" + "r" * (len(frame.columns) - 2)
    listed = "".join(f"\\item {cells.latex(line)}\n" for line in told)
    return (
        "% needs \\usepackage{booktabs} and \\usepackage{threeparttable}\n"
        "\\begin{threeparttable}\n"
        f"{escaped.to_latex(index=False, column_format=form)}"
        f"\\begin{{tablenotes}}\\footnotesize\n{listed}\\end{{tablenotes}}\n"
        "\\end{threeparttable}\n"
    )


def _wide(found: Sequence[Row]) -> Any:
    """Task and metric, and columns of each run: numbers with intervals, and differences."""
    import pandas

    table: dict[tuple[str, str], Row] = {}
    first = _first(found)
    runs = dict.fromkeys(row["run"] for row in found)
    for row in found:
        key = row["task"], row["metric"]
        line = table.setdefault(key, {"task": row["task"], "metric": row["metric"]})
        mark = "" if row["valid"] else f" {INVALID}"
        line[row["run"]] = f"{fixed(row['value'], 3)}{mark}{_ends(row, fixed)}"
        if apart := row.get("difference"):
            p = "" if apart["p"] is None else f", p {p_text(apart['p'])}"
            line[_less(row["run"], apart["from"])] = (
                f"{signed(apart['value'], 3)}{_ends(apart, signed)}{p}"
            )
    columns = [one for run in runs for one in (run, _less(run, first))]
    there = [one for one in columns if any(one in line for line in table.values())]
    return pandas.DataFrame(table.values(), columns=["task", "metric", *there]).fillna(NONE)


def _first(found: Sequence[Row]) -> str:
    """The side that others are compared with; "" if there is no difference."""
    return next((row["difference"]["from"] for row in found if "difference" in row), "")


def _less(run: str, first: str) -> str:
    """The heading of a run's differences from the first side's numbers."""
    return f"{run} less {first}"


def _ends(value: Row, text: Callable[[float, int], str]) -> str:
    """The interval of a number or a difference, as text behind it; "" where there is none."""
    if value["low"] is None:
        return ""
    return f" [{text(value['low'], 3)}, {text(value['high'], 3)}]"


def tables(found: Sequence[Row]) -> Iterator[Table]:
    """For a terminal: intervals below the numbers, and differences from the first run's."""
    runs, first = list(dict.fromkeys(row["run"] for row in found)), _first(found)
    for benchmark in dict.fromkeys(row["benchmark"] for row in found):
        body: dict[tuple[str, str], dict[str, str]] = {}
        for row in found:
            if row["benchmark"] == benchmark:
                line = body.setdefault((row["task"], row["metric"]), {})
                shown = fixed(Sure.of(row["value"], row), 3)
                line[row["run"]] = doubted(shown, not row["valid"])
                if apart := row.get("difference"):
                    p = "" if apart["p"] is None else f"\np {p_text(apart['p'])}"
                    line[_less(row["run"], apart["from"])] = f"{signed(apart['value'], 3)}{p}"
        headings = [one for run in runs for one in (run, _less(run, first))]
        headings = [one for one in headings if any(one in line for line in body.values())]
        cells_of = [
            (names, [line.get(one, NONE) for one in headings]) for names, line in body.items()
        ]
        note = "below a number: its 95 % interval"
        note += f"; differences from {first}" if first else ""
        yield from by_row(benchmark, ["task", "number"], headings, cells_of, note)


def as_text(found: Sequence[Row], told: Sequence[str] = ()) -> str:
    """The tables of a terminal as a file holds them, and the conditions below them."""
    return fold.as_file([*tables(found), *told])


FORMS: dict[str, Callable[[Sequence[Row], Sequence[str]], str]] = {
    "text": as_text,
    "md": as_markdown,
    "csv": as_csv,
    "latex": as_latex,
    "json": as_json,
}
