"""A run's numbers in the form of the papers' tables, by the layouts of leaderboards/*.json.

The fields of a layout, of a column and of a line together describe a cell. If two of them have the
same field, the line takes precedence over the column, and the column over the layout.
leaderboards/__init__.py lists the fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, product
from typing import TYPE_CHECKING

from lmms_eval_tasks import leaderboards
from lmms_eval_tasks.tables.paper_tables import (
    DOUBT,
    INVALID,
    NONE,
    by_column,
    by_row,
    doubted,
    fixed,
    has_numbers,
    marked,
    number,
    signed,
)
from lmms_eval_tasks.utils.json_files import Json, JsonObject

if TYPE_CHECKING:
    from rich.table import Table

    from lmms_eval_tasks.benchmark import TableRow

Spec = Mapping[str, Json]
Rows = Mapping[tuple[str, str], "TableRow"]  # by model and task
COUNT = "amount"  # the unit of counts, which have no decimals
CHANGES = ("points", "rating_change", "clipscore_change")  # units of numbers with a sign


def draw_tables(board: Spec, rows: Sequence[TableRow]) -> list[Table]:
    """Return the tables of a board's layouts, without lines and tables that have no number.

    Args:
        board: a parsed file of leaderboards/ (`leaderboards.stored`), or a mapping of that form.
        rows: the numbers of one or more models, by task or group.
    """
    by_task = {(row.model, row.task): row for row in rows}
    return [table for layout in layouts_of(board) for table in _drawn(board, layout, by_task)]


def layouts_of(board: Spec) -> list[JsonObject]:
    """Return the fields of each of our tables."""
    found = [{**board.get("common", {}), **one} for one in _expanded(board, board["layouts"])]
    return [{**one, "title": one["title"].format_map(one)} for one in found]


def _drawn(board: Spec, layout: Spec, rows: Rows) -> list[Table]:
    columns = columns_of(board, layout)
    found = [_line(columns, line, rows) for line in lines_of(board, layout, rows)]
    lines = [line for line in found if line]
    optional = {place: metric_of(one) for place, one in enumerate(columns) if one.get("optional")}
    there = {
        metric for place, metric in optional.items() if any(known[place] for _, _, known in lines)
    }
    used = [place for place in range(len(columns)) if optional.get(place) in {None, *there}]
    body = [(names, [cells[place] for place in used]) for names, cells, _ in lines]
    heads, names, notes = [columns[place]["heading"] for place in used], list(layout["names"]), []
    if layout.get("names_below") and len(body) > 1 and len({(*own[1:],) for own, _ in body}) == 1:
        notes = [f"all rows: {', '.join(body[0][0][1:])}"]
        names, body = names[:1], [(own[:1], cells) for own, cells in body]
    marks = {**board.get("marks", {}), "!": DOUBT}
    ends = {mark for own, cells in body for one in (own[-1], *cells) for mark in _marks(one, marks)}
    notes += [*layout.get("notes", ()), *(note for mark, note in marks.items() if mark in ends)]
    if not layout.get("turned"):
        return by_row(layout["title"], names, heads, body, "\n".join(notes))
    blocks = [
        (block, [(heads[at], [cells[at] for _, cells in body]) for at in own])
        for block, own in groupby(range(len(used)), lambda at: columns[used[at]]["block"])
    ]
    return by_column(layout["title"], ["\n".join(own) for own, _ in body], blocks, "\n".join(notes))


def _marks(text: str, marks: Iterable[str]) -> str:
    """Return the marks at the end of a name or of a cell's number."""
    plain = text.partition("\n")[0]
    return plain[len(plain.rstrip("".join(marks))) :]


# --- columns, lines and cells ---------------------------------------------------------------------


def columns_of(board: Spec, layout: Spec) -> list[JsonObject]:
    """Return the fields of each column, together with the layout's."""
    made = []
    for column in _expanded(board, layout["columns"]):
        whole = {"decimals": 0} if column.get("unit") == COUNT else {}
        cell = {**layout, **whole, **column}
        made.append(cell if "heading" in cell else {**cell, "heading": metric_of(cell)})
    return made


def _expanded(board: Spec, entries: Iterable[Json]) -> Iterator[JsonObject]:
    """Yield the fields of each column or line of a list whose entries may stand for several."""
    for entry in entries:
        if isinstance(entry, list):  # a list of lists gives every combination
            lists = [[axis] if isinstance(axis, str) else axis for axis in entry]
            for parts in product(*(list(_expanded(board, axis)) for axis in lists)):
                yield {key: value for part in parts for key, value in part.items()}
        elif not isinstance(entry, str):
            yield from _rows_of(board, entry) if "rows_of" in entry else [entry]
        elif entry in board.get("lists", {}):
            yield from _expanded(board, board["lists"][entry])
        else:
            stored = board["columns"][entry]
            yield {
                **stored,
                "heading": leaderboards.heading(stored),
                "column": entry,
                **(stored["ours"] if isinstance(stored.get("ours"), Mapping) else {}),
            }


def _rows_of(board: Spec, part: Spec) -> Iterator[JsonObject]:
    """Yield those rows of a paper's table that are parts of the items, or one group of them."""
    (table,) = (each for each in board["tables"] if each["number"] == part["rows_of"])
    for row in table["rows"]:
        if "ours" in row and part.get("group", row["group"]) == row["group"]:
            block = {} if "group" in part else {"block": board["groups"][row["group"]]}
            yield {"heading": row["name"], **block, **row["ours"], **part}


def lines_of(board: Spec, layout: Spec, keys: Iterable[tuple[str, str]]) -> Iterator[JsonObject]:
    """Yield the fields of each line: the layout's lines for each model, else a line for each row.

    Args:
        board: the board.
        layout: the layout.
        keys: model and task of each row.
    """
    lines = list(_expanded(board, layout.get("lines", ())))
    for model, task in dict.fromkeys((model, "") for model, _ in keys) if lines else keys:
        named = {"given": model, "model": model or "this run"}
        yield from ({**named, **line} for line in lines or [{"task": task}])


def tasks_of(cell: Spec) -> list[str]:
    """Return the task of a cell's number; several tasks for a sum, [] if there is none."""
    task = cell.get("task")
    task = task.get(cell["kind"]) if isinstance(task, Mapping) else task
    names = [one.format_map(cell) for one in (task if isinstance(task, list) else [task or ""])]
    return [name for name in names if name]


def metric_of(cell: Spec) -> str:
    """Return the name of the metric of a cell's number."""
    form = cell.get("split", "_{value}")
    splits = [form.format(field=key, value=value) for key, value in cell.get("where", {}).items()]
    return "".join([cell["metric"].format_map(cell), *splits, cell.get("suffix", "")])


def _line(
    columns: Sequence[Spec], line: Spec, rows: Rows
) -> tuple[list[str], list[str], list[bool]] | None:
    """Return a line's names, its cells as text, and True for each cell with a number.

    None if the line is left out.
    """
    cells = [{**column, **line} for column in columns]
    chosen = [
        [rows[key] for task in tasks_of(cell) if (key := (cell["given"], task)) in rows]
        for cell in cells
    ]
    texts = [_text(cell, group, rows) for cell, group in zip(cells, chosen, strict=True)]
    first, own_rows = cells[0], [row for group in chosen for row in group]
    # A line needs a number that is no count.
    counted = [text for text, one in zip(texts, columns, strict=True) if one.get("unit") != COUNT]
    if not (own_rows if first.get("turned") else has_numbers(counted)):
        return None
    if (needs := first.get("if")) and not any(_value(group, needs) for group in chosen):
        return None
    is_invalid = any(row.invalid for row in own_rows)
    marks = "".join(dict.fromkeys("".join(row.marks for row in own_rows))) + "!" * is_invalid
    names = [one.format_map({**first, "marks": marks}).strip() for one in first["names"].values()]
    if is_invalid and not (first.get("turned") or first.get("doubt")):
        names[0] += f" {INVALID}"
    filled = [
        _value(own, metric_of(cell)) is not None for cell, own in zip(cells, chosen, strict=True)
    ]
    return names, texts, filled


def _value(cell_rows: Sequence[TableRow], metric: str) -> float | None:
    """Return the number in a cell's rows; the sum if several rows have one."""
    found = [known for row in cell_rows if (known := number(row.values.get(metric))) is not None]
    return found[0] if len(found) == 1 else sum(found) if found else None


def _text(cell: Spec, cell_rows: Sequence[TableRow], rows: Rows) -> str:
    """Return a cell's number as text, with its marks."""
    metric, unit = metric_of(cell), cell.get("unit", "")
    value, is_invalid = _value(cell_rows, metric), any(row.invalid for row in cell_rows)
    if value is None:
        return NONE
    decimals = int(cell.get("decimals", 0 if unit == COUNT else 2))
    base = rows.get((cell["given"], cell.get("minus", "").format_map(cell)))
    # An INVALID number is not compared with a valid one.
    is_apart = base is not None and base not in cell_rows and base.invalid == is_invalid
    if base is not None and is_apart:
        if (before := number(base.values.get(metric))) is None:
            return NONE
        value -= before
    value = 100 * value if unit in leaderboards.SCALES else value
    text = (signed if is_apart or unit in CHANGES else fixed)(value, decimals)
    if spread := cell.get("spread"):
        variance = _value(cell_rows, spread.format_map(cell))
        text = text if variance is None else marked(text, f"±{fixed(variance, decimals)}")
    return doubted(text, is_invalid and cell.get("doubt") == "cells")
