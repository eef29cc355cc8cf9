"""The numbers of a report in other forms: for a paper's appendix, for other programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lmms_eval_tasks.report import compare
from lmms_eval_tasks.report.compared_runs import Side, tasks_of
from lmms_eval_tasks.tables import escaping, terminal_tables
from lmms_eval_tasks.tables.paper_tables import (
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
from lmms_eval_tasks.utils.conditions import as_columns, concerning, condition_lines
from lmms_eval_tasks.utils.json_files import JsonObject

if TYPE_CHECKING:
    import pandas
    from rich.table import Table

Row = JsonObject


def headline_rows(sides: Sequence[Side]) -> Iterator[Row]:
    """Yield every headline number of every side, with its interval and its difference to the first.

    Values, intervals and differences are in the metric's own unit. `videos` is the number of
    clusters of the intervals. `valid`, `judge`, `limit` and `conditions` belong to the number
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
                    row["difference"] = {
                        **{"from": sides[0].label, "value": apart.value.estimate},
                        **{**ends, "p": apart.p},
                    }
                yield row


def condition_notes(sides: Sequence[Side]) -> list[str]:
    """Return the conditions of the numbers as lines; with several sides, each has its label."""
    found = dict.fromkeys(
        f"{label}: {line}" if len(sides) > 1 else line
        for _, tasks in tasks_of(sides)
        for label, own in compare.conditions(tasks, sides).items()
        for line in condition_lines(own)
    )
    return list(found)


def as_json(rows: Sequence[Row], _: Sequence[str] = ()) -> str:
    """Return a JSON list of rows, each with its conditions."""
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def frame(rows: Sequence[Row]) -> pandas.DataFrame:
    """Return a row for each number; conditions are one text, differences columns of their own."""
    import pandas

    told = [{**row, "conditions": "; ".join(row["conditions"])} for row in rows]
    return pandas.json_normalize(told, sep="_")


def as_csv(rows: Sequence[Row], _: Sequence[str] = ()) -> str:
    """Return a CSV line for each number, with its conditions."""
    flat = frame(rows)
    return str(escaping.frame(flat.to_dict("records"), flat.columns).to_csv(index=False))


def as_markdown(rows: Sequence[Row], notes: Sequence[str] = ()) -> str:
    """Return a Markdown table with columns for each run, and the list of conditions below it."""
    import pandas

    headings, body = _wide(rows)
    frame = pandas.DataFrame(body, columns=list(map(escaping.markdown, headings)))
    aligned = ["left", "left", *["right"] * (len(headings) - 2)]
    table = frame.to_markdown(index=False, colalign=aligned, disable_numparse=True)
    listed = "".join(f"- {escaping.markdown(line)}\n" for line in notes)
    return f"{table}\n" + (listed and f"\n{listed}")


def as_latex(rows: Sequence[Row], notes: Sequence[str] = ()) -> str:
    """Return a LaTeX table for booktabs, with the conditions as notes of a threeparttable."""
    import pandas

    headings, body = _wide(rows)
    escaped = [list(map(escaping.latex, line)) for line in body]
    frame = pandas.DataFrame(escaped, columns=list(map(escaping.latex, headings)))
    form = "ll" + "r" * (len(headings) - 2)
    listed = "".join(f"\\item {escaping.latex(line)}\n" for line in notes)
    return (
        "% requires \\usepackage{booktabs} and \\usepackage{threeparttable}\n"
        "\\begin{threeparttable}\n"
        f"{frame.to_latex(index=False, column_format=form)}"
        f"\\begin{{tablenotes}}\\footnotesize\n{listed}\\end{{tablenotes}}\n"
        "\\end{threeparttable}\n"
    )


class _Grid(NamedTuple):
    """Numbers by task and metric, with columns of each run: numbers, and differences."""

    headings: Sequence[str]
    lines: Sequence[tuple[tuple[str, str], Sequence[str]]]  # task and metric, with the cells
    first: str  # the side that others are compared with; "" if there is no difference


def _grid(
    rows: Sequence[Row], value: Callable[[Row], str], difference: Callable[[Row], str]
) -> _Grid:
    """Return rows as a table whose cells the functions make.

    Columns without a cell are left out.
    """
    body: dict[tuple[str, str], dict[tuple[str, bool], str]] = {}
    runs, first = dict.fromkeys(row["run"] for row in rows), ""
    for row in rows:
        line = body.setdefault((row["task"], row["metric"]), {})
        line[row["run"], False] = value(row)
        if apart := row.get("difference"):
            line[row["run"], True] = difference(apart)
            first = apart["from"]
    columns = [(run, is_difference) for run in runs for is_difference in (False, True)]
    there = [one for one in columns if any(one in line for line in body.values())]
    headings = [f"{run} minus {first}" if is_difference else run for run, is_difference in there]
    lines = [(names, [line.get(one, NONE) for one in there]) for names, line in body.items()]
    return _Grid(headings, lines, first)


def _wide(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of a table whose cells hold numbers with their intervals."""

    def value(row: Row) -> str:
        return f"{fixed(row['value'], 3)}{'' if row['valid'] else f' {INVALID}'}{_ends(row, fixed)}"

    def difference(apart: Row) -> str:
        p = "" if apart["p"] is None else f", p {p_text(apart['p'])}"
        return f"{signed(apart['value'], 3)}{_ends(apart, signed)}{p}"

    made = _grid(rows, value, difference)
    return ["task", "metric", *made.headings], [[*names, *own] for names, own in made.lines]


def _ends(value: Row, text: Callable[[float, int], str]) -> str:
    """Return the interval of a number or a difference as text behind it; "" without one."""
    if value["low"] is None:
        return ""
    return f" [{text(value['low'], 3)}, {text(value['high'], 3)}]"


def run_tables(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield tables for a terminal: numbers, their intervals, differences to the first run."""

    def value(row: Row) -> str:
        return doubted(fixed(Sure.of(row["value"], row), 3), not row["valid"])

    def difference(apart: Row) -> str:
        p = "" if apart["p"] is None else f"\np {p_text(apart['p'])}"
        return f"{signed(apart['value'], 3)}{p}"

    for benchmark in dict.fromkeys(row["benchmark"] for row in rows):
        own = [row for row in rows if row["benchmark"] == benchmark]
        made = _grid(own, value, difference)
        note = "below each number: its 95 % interval"
        note += f"; differences from {made.first}" if made.first else ""
        yield from by_row(benchmark, ["task", "metric"], made.headings, made.lines, note)


def as_text(rows: Sequence[Row], notes: Sequence[str] = ()) -> str:
    """Return the tables of a terminal as text for a file, and the conditions below them."""
    return terminal_tables.as_file([*run_tables(rows), *notes])


FORMS: dict[str, Callable[[Sequence[Row], Sequence[str]], str]] = {
    "text": as_text,
    "md": as_markdown,
    "csv": as_csv,
    "latex": as_latex,
    "json": as_json,
}
