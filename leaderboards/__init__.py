"""The papers' tables as data: figures as printed, never corrected.

Each benchmark has a file, such as `maia.json`. Beside it, `maia.md` shows the same tables, lists
their errors and contradictions, and compares our numbers. The cells of a row are in the order of
its table's columns, as on the page. Figures are decimals with the digits of the page: 1.6420 is not
1.642, and stands for another range of values.

`ours` of a table, of its column (in `columns`) and of its row together name our number for a cell:
`task` (or group), `metric`, and `where`, the fields of the items that count. A text in place of
these gives the reason why there is none. In values, `{column}`, `{group}` and `{row}` stand for the
cell's own. A value may differ by kind. The kind is the row's group, unless `kind` names another;
the value of "" is for all other kinds.

`beside` are tables of other origin, of the same form. If others than the benchmark's authors print
a row, or the authors print a table elsewhere, its `source` names an entry of `sources`: `kind`
(paper, dataset card, challenge), `place`, and `conditions`, which also say what we could not see.

`layouts` are our tables in the papers' form, which tables/layouts.py draws. A layout has

- `title`, `notes` below the table, and `names`: the heading and the text of each name of a line;
- `columns`: a name in the file's `columns`, or the fields of a column of ours: `heading` (default:
  the metric's name), `task` (several: the sum), `metric`, `unit` and other fields of a cell;
- `lines`: the fields of each line of a model; without them, each task that was run is a line.

The fields of its layout, column and line describe a cell. If several have one field, the line takes
precedence over the column, and the column over the layout. In a text, `{field}` stands for another
field, `{model}` for the model ("this run" without a name), `{given}` for the model's name, and
`{marks}` for the marks of a row. Further fields:

- `where` and `suffix` end the metric's name: `_VALUE` for each value in `where`, unless `split`
  gives another form (`_{field}_{value}`), then the suffix;
- `decimals`: default 2, for an `amount` 0; `spread`: the metric behind a ±; `minus`: the task to
  which other tasks are shown as differences;
- `optional`: the column is left out if no column has a number of its metric; `if`: a line is left
  out without this metric;
- `doubt`: with `cells`, the numbers of INVALID tasks are marked, otherwise the line's first name;
- `names_below`: names that all lines share are put below the table; `turned`: lines are drawn as
  columns, the layout's columns in blocks (`block`).

In `layouts`, `columns` and `lines`, an entry that is a list of lists stands for every combination.
`{"rows_of": N}` stands for the rows of Table N that are parts of the items (of one `group`), and a
name in the file's `lists` for the entries of this list. `common` has the fields of all layouts, and
`marks` the meaning of marks.
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
# Factor of a unit; 1 for all others.
SCALES = dict.fromkeys(("percent", "points", "kappa_percent"), 0.01)


class PrintedRow(NamedTuple):
    """One printed row: a model, or a split if the models are the columns, in a group of rows."""

    name: str  # as printed; spellings differ between a paper's tables
    # One name for each model (the file's `identity_title`); None if the row is no model.
    identity: str | None
    group: str  # a key of the file's `groups`, such as MAIA's setting; "" without groups
    figures: Mapping[str, Decimal | None]  # by the column's name, in order; None for a dash


class OurNumber(NamedTuple):
    """Our number for a printed figure."""

    task: str  # name of a task or a group
    metric: str
    where: tuple[tuple[str, str], ...] = ()  # field and value of the items that count


class PrintedCell(NamedTuple):
    """One printed figure, with everything that its table says about it."""

    kind: str  # a key of the file's `groups`, if our number differs by group
    row: str  # name of the row, as printed
    column: str  # name of the column
    figure: Decimal | None  # None for a dash
    scale: float  # factor to our unit, such as 0.01 for percent
    model: str  # the model's name as printed, or the name in its place
    identity: str | None  # identity of the model; None if it is no model
    ours: OurNumber | str  # our number, or the reason why there is none

    @property
    def value(self) -> float:
        """The figure in our unit; a TypeError for a dash."""
        return self._scaled(self.figure)  # type: ignore[arg-type]

    @property
    def range(self) -> tuple[float, float]:
        """The values that are printed as this figure: half a unit of the last digit each way."""
        figure = self.figure or Decimal(0)
        half = Decimal(5).scaleb(int(figure.as_tuple().exponent) - 1)
        return self._scaled(figure - half), self._scaled(figure + half)

    def _scaled(self, figure: Decimal) -> float:
        return float(figure * Decimal(str(self.scale)))  # 49.1 % is 0.491, not 0.4910...05


@functools.cache
def stored(benchmark: str) -> Mapping[str, Json]:
    """Return the file of a benchmark's paper: its tables, and facts that tests check.

    The file is `leaderboard.json` in the benchmark's package, or NAME.json in this folder. Without
    a file, the mapping is empty.

    Raises:
        DataError: the file is not JSON; the message names it.
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
    """Return the tables of a parsed file: the paper's, then those under `beside`."""
    return [*board.get("tables", ()), *board.get("beside", {}).values()]


def heading(column: Mapping[str, Json]) -> str:
    """Return a stored column's heading in our tables: `heading`, or the title on two lines."""
    return str(column.get("heading") or column["title"].replace(" ", "\n", 1))


def title(table: Mapping[str, Json]) -> str:
    """Return the name of a stored table."""
    return table.get("label") or f"Table {table['number']}"


def source(
    board: Mapping[str, Json], table: Mapping[str, Json], row: Mapping[str, Json]
) -> Mapping[str, str] | None:
    """Return kind, place and conditions of a row that the paper or the release does not have."""
    name = row.get("source") or table.get("source")
    return board["sources"][name] if name else None


def printed_rows(board: Mapping[str, Json], table: Mapping[str, Json]) -> list[PrintedRow]:
    """Return the rows of a file's table."""
    models: Mapping[str, str] = board["models"]
    # True if the heading of the first column says that the rows are models, with one name each.
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
    """Return the figures of a file's table, row by row."""
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
    """Return a cell's kind, and our number for it or the reason why there is none."""
    source: JsonObject = {"kind": row.group, "where": {}}
    for part in parts:
        if isinstance(part, str):
            return "", part
        source |= {**part, "where": {**source["where"], **part.get("where", {})}}
    values = [source.get("task"), source.get("metric"), *source["where"].values()]
    by_kind = any(source["kind"] in value or "{group}" in value for value in values if value)
    kind = source["kind"] if by_kind else ""
    placeholders = {"column": column, "group": row.group, "row": row.identity}

    def filled(value: Json) -> str | None:
        value = value.get(kind) if isinstance(value, Mapping) else value
        # An average over models is a row without a model.
        is_none = value is None or (value == "{row}" and row.identity is None)
        return None if is_none else str(value).format(**placeholders)

    task, metric = filled(source.get("task")), filled(source.get("metric"))
    if task is None or metric is None:
        return kind, dashes
    where = ((field, filled(value)) for field, value in source["where"].items())
    return kind, OurNumber(task, metric, tuple((f, v) for f, v in where if v is not None))


def _model(
    board: Mapping[str, Json], place: str | None, row: PrintedRow, column: str
) -> tuple[str, str | None]:
    """Return name and identity of the model that a figure belongs to."""
    if place is None:
        return row.name, row.identity
    name = board["groups"][row.group] if place == "group" else board["columns"][column]["title"]
    return name, board["models"].get(name)


class Headline(NamedTuple):
    """A task's main number, and the paper's figures for it."""

    metric: str  # name of the metric
    chance: float | None  # value of guessing; None if that depends on the data
    # Name and identity of a row -> figure in our unit. Rows that others publish are left out,
    # because their judge or frames may differ.
    papers: Mapping[tuple[str, str | None], float]


def headlines(benchmark: str) -> Mapping[str, JsonObject]:
    """Return the stored headlines of a benchmark's tasks and groups, the most important first."""
    text = files(__name__).joinpath("headlines.json").read_text(encoding="utf-8")
    ours = {k: v for k, v in json.loads(text).items() if registry.of_task_name(k) == benchmark}
    return {**stored(benchmark).get("headlines", {}), **ours}


@functools.cache
def headline(task: str) -> Headline | None:
    """Return the headline of a task or group; None if none is stored.

    It is stored in headlines.json, or under `headlines` in the file of a benchmark's own package.
    """
    if (benchmark := registry.of_task_name(task)) is None:
        return None
    board = stored(benchmark)
    entry = headlines(benchmark).get(task)
    if entry is None or "metric" not in entry:
        return None
    ours = OurNumber(task, entry["metric"])
    published: dict[tuple[str, str | None], float] = {}
    for table in stored_tables(board):
        # If several tables have a number, the first one counts.
        published = published or {
            (cell.model, cell.identity): cell.value
            for line, row in zip(cells(board, table), table["rows"], strict=True)
            for cell in line
            if cell.ours == ours and cell.figure is not None
            if source(board, table, row) is None
        }
    return Headline(entry["metric"], entry.get("chance"), published)


def plain(name: str) -> str:
    """Return a name's letters and digits in lower case, on which different spellings agree."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
