"""The papers' tables as data: figures as printed, never corrected.

One file a benchmark (`maia.json`), and beside it `maia.md`: the same tables to read, what is wrong
or contradictory in them, and what of ours stands beside. A row's cells stand in the order of its
table's columns, as on the page. Figures are decimals with the digits of the page: 1.6420 is not
1.642, and stands for another range of values.

Which number of ours a cell stands beside is said under `ours` of its table, its column (in
`columns`) and its row, taken together: `task` (or group), `metric`, and `where`, the fields of the
items that it is of. A text in place of these is why there is none. In values, `{column}`, `{group}`
and `{row}` stand for the cell's own. A value may differ by kind, which is the row's group unless
`kind` says another: the one of "" is for kinds that are not named.

`layouts` are our tables in the papers' form (tables/layouts.py draws them). A layout has

- `title`, `notes` below the table, and `names`: the heading and the text of each name of a line;
- `columns`: a name in the file's `columns`, or fields of a column of ours: `heading` (else the
  metric's name), `task` (several: the sum), `metric`, `unit` and what else describes a cell;
- `lines`: fields of each line of a model; without them each task that was run is a line.

A cell is described by the fields of its layout, column and line; of the same field the last of
these three holds. In a text `{field}` stands for another field, `{model}` for the model ("this run"
without a name), `{given}` for its name, `{marks}` for the marks of a row. Further fields:

- `where` and `suffix` end the metric's name: `_VALUE` for each value in `where`, unless `split`
  gives another form (`_{field}_{value}`), then the suffix;
- `decimals`: 2 unless said, 0 of an `amount`; `spread`: the metric behind a ±; `minus`: the task
  that other tasks are shown as differences to;
- `optional`: the column is left out where no column has a number of its metric; `if`: a line is
  left out without this metric;
- `doubt`: `cells` marks the numbers of INVALID tasks, else the line's first name says it;
- `names_below`: names that all lines share stand below the table; `turned`: lines are drawn as
  columns, the layout's columns in blocks (`block`).

In `layouts`, `columns` and `lines` an entry that is a list of lists stands for every combination,
`{"rows_of": N}` for the rows of Table N that are parts of the items (of one `group`), and a name in
the file's `lists` for its entries. `common` has the fields of all layouts, `marks` what marks mean.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from importlib.resources import files
from typing import NamedTuple

from lmms_eval_tasks import registry
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils.json_files import Json, JsonObject

_NO_PAPER: Mapping[str, Json] = {
    "paper": "",
    "tables": [],
    "models": {},
    "columns": {},
    "groups": {},
}
SCALES = dict.fromkeys(("percent", "points", "kappa_percent"), 0.01)  # of units; 1 of all others


class PrintedRow(NamedTuple):
    """One printed row: a model, or a split where models are the columns, in a group of rows."""

    name: str  # as printed; spellings differ between a paper's tables, identity does not
    identity: str | None  # one name per model (the file's `identity_title`); None if it is not one
    group: str  # a key of the file's `groups`: MAIA's setting; "" where there is none
    figures: Mapping[str, Decimal | None]  # every column by name, in order; None for a dash


class OurNumber(NamedTuple):
    """The number of ours that a figure stands beside."""

    task: str  # or a group
    metric: str
    where: tuple[tuple[str, str], ...] = ()  # field and value: of the items that have them


class PrintedCell(NamedTuple):
    """One printed figure, with all that its table says of it."""

    kind: str  # a key of the file's `groups`, if what is beside it differs by it
    row: str  # as printed
    column: str  # its name
    figure: Decimal | None  # None for a dash
    scale: float  # of the figure's unit in ours: 0.01 of percent
    model: str  # as printed, or what stands in its place
    identity: str | None  # of the model; None if it is not one
    ours: OurNumber | str  # or why there is none

    @property
    def value(self) -> float:
        """In our unit; of a dash a TypeError."""
        return float(self.figure) * self.scale  # type: ignore[arg-type]

    @property
    def range(self) -> tuple[float, float]:
        """The values that are printed so: half a unit of the last place up and down."""
        figure = self.figure or Decimal(0)
        half = Decimal(5).scaleb(int(figure.as_tuple().exponent) - 1)
        return float(figure - half) * self.scale, float(figure + half) * self.scale


@functools.cache
def stored(benchmark: str) -> Mapping[str, Json]:
    """The file of a benchmark's paper: tables, and what tests hold against its text.

    In its own package `leaderboard.json`, or here by its name; without one there are no tables.

    Raises:
        DataError: it is not JSON; names it.
    """
    own = files(registry.package(benchmark)).joinpath("leaderboard.json")
    file = own if own.is_file() else files(__name__).joinpath(f"{benchmark}.json")
    text = file.read_text(encoding="utf-8") if file.is_file() else "{}"
    try:
        found = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    except ValueError as error:
        raise DataError(f"{file}: not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise DataError(f"{file}: expected an object")
    return {**_NO_PAPER, **found}


def stored_tables(board: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    """The tables of a parsed file: the paper's, then those that stand beside them."""
    return [*board.get("tables", ()), *board.get("beside", {}).values()]


def heading(column: Mapping[str, Json]) -> str:
    """The heading of a stored column in our tables: its own, or its title on two lines."""
    return str(column.get("heading") or column["title"].replace(" ", "\n", 1))


def title(table: Mapping[str, Json]) -> str:
    """The name of a stored table."""
    return table.get("label") or f"Table {table['number']}"


def printed_rows(board: Mapping[str, Json], table: Mapping[str, Json]) -> list[PrintedRow]:
    """The rows of a file's table."""
    models: Mapping[str, str] = board["models"]
    # What a table's rows are, if its first column is headed so: models, with one name each.
    of_models = table.get("name_title", "Model") in ("Model", "Judge", "Candidate")
    return [
        PrintedRow(
            row["name"],
            models[row["name"]] if of_models else None,
            row.get("group", ""),
            dict(zip(table["columns"], row["cells"], strict=True)),
        )
        for row in table["rows"]
    ]


def cells(board: Mapping[str, Json], table: Mapping[str, Json]) -> list[list[PrintedCell]]:
    """The figures of a file's table, row by row."""
    columns = board["columns"]
    made = []
    for row, raw in zip(printed_rows(board, table), table["rows"], strict=True):
        line = []
        for column, figure in row.figures.items():
            parts = [one.get("ours", {}) for one in (table, columns[column], raw)]
            kind, ours = _ours(parts, row, column, raw.get("dashes", ""))
            unit = raw.get("unit") or table.get("unit") or columns[column]["unit"]
            model, identity = _model(board, table.get("models"), row, column)
            scale = SCALES.get(unit, 1.0)
            line.append(PrintedCell(kind, row.name, column, figure, scale, model, identity, ours))
        made.append(line)
    return made


def _ours(
    parts: Sequence[Mapping[str, Json] | str], row: PrintedRow, column: str, dashes: str
) -> tuple[str, OurNumber | str]:
    """A cell's kind, and the number of ours beside it or why there is none."""
    said: JsonObject = {"kind": row.group, "where": {}}
    for part in parts:
        if isinstance(part, str):
            return "", part
        said |= {**part, "where": {**said["where"], **part.get("where", {})}}
    values = [said.get("task"), said.get("metric"), *said["where"].values()]
    by_kind = any(said["kind"] in one or "{group}" in one for one in values if one)
    kind = said["kind"] if by_kind else ""
    own = {"column": column, "group": row.group, "row": row.identity}

    def filled(value: Json) -> str | None:
        value = value.get(kind) if isinstance(value, Mapping) else value
        # An average over models is a row, but no model.
        is_none = value is None or (value == "{row}" and row.identity is None)
        return None if is_none else str(value).format(**own)

    task, metric = filled(said.get("task")), filled(said.get("metric"))
    if task is None or metric is None:
        return kind, dashes
    where = ((field, filled(value)) for field, value in said["where"].items())
    return kind, OurNumber(task, metric, tuple((f, v) for f, v in where if v is not None))


def _model(
    board: Mapping[str, Json], place: str | None, row: PrintedRow, column: str
) -> tuple[str, str | None]:
    """Name and identity of the model that a figure is of."""
    if place is None:
        return row.name, row.identity
    name = board["groups"][row.group] if place == "group" else board["columns"][column]["title"]
    return name, board["models"].get(name)


class Headline(NamedTuple):
    """A task's main number, and the paper's figures beside it."""

    metric: str  # its name here
    chance: float | None  # what guessing gives; None where that depends on the data
    papers: Mapping[tuple[str, str | None], float]  # name and identity of a row -> figure, our unit


@functools.cache
def headline(task: str) -> Headline | None:
    """Return the headline of a task or group; None where nothing is stored of it.

    In headlines.json, or under `headlines` in the file of a benchmark's own package.
    """
    if (benchmark := registry.of_task_name(task)) is None:
        return None
    board = stored(benchmark)
    text = files(__name__).joinpath("headlines.json").read_text(encoding="utf-8")
    own = {**board.get("headlines", {}), **json.loads(text)}.get(task)
    if own is None or "metric" not in own:
        return None
    beside = OurNumber(task, own["metric"])
    found: dict[tuple[str, str | None], float] = {}
    for table in board["tables"]:
        # A number that several tables have is the first one's.
        found = found or {
            (cell.model, cell.identity): cell.value
            for line in cells(board, table)
            for cell in line
            if cell.ours == beside and cell.figure is not None
        }
    return Headline(own["metric"], own.get("chance"), found)


def plain(name: str) -> str:
    """A name as far as spellings agree: its letters and digits, without case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
