"""The papers' tables as data: figures as printed, never corrected.

One file a benchmark (`maia.json`), and beside it `maia.md`: the same tables to read, what is wrong
or contradictory in them, and what of ours stands beside. A row's cells stand in the order of its
table's columns, as on the page. Figures are decimals with the digits of the page: 1.6420 is not
1.642, and stands for another range of values.
"""

from __future__ import annotations

import json
from decimal import Decimal
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

BENCHMARKS: tuple[str, ...] = ("maia", "maverix", "movierecapsqa", "haven", "cvrr_es")

# What a column's figures measure, with the lowest and the highest that there can be.
UNITS: dict[str, tuple[float, float]] = {
    "share": (0, 1),
    "cider": (0, 10),
    "percent": (0, 100),
    "points": (-100, 100),  # a difference of two percentages
    "rating": (0, 5),  # a judge's scale
    "rating_change": (-5, 5),
    "variance": (0, 6.25),  # of scores: at most that of 0 and 5 in equal numbers
    "deviation": (0, 2.5),  # of ratings: at most that of 0 and 5 in equal numbers
    "correlation": (-1, 1),  # of ranks, and kappa
    "kappa_percent": (-100, 100),  # kappa times 100
    "clipscore": (0, 2.5),
    "clipscore_change": (-2.5, 2.5),
    "amount": (0, float("inf")),  # a count, or a length in words, tokens or seconds
}

# What a table's rows are, if its first column is headed so: models, with one name each.
OF_MODELS = ("Model", "Judge", "Candidate")


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Column(_Strict):
    """One printed column: our name for it, its title, and what its figures measure (UNITS)."""

    name: str
    title: str
    unit: str


class Row(_Strict):
    """One printed row: a model, or a split where models are the columns, in a group of rows."""

    name: str  # as printed; spellings differ between a paper's tables, identity does not
    identity: str | None  # one name per model (Leaderboard.identity_title); None if it is not one
    group: str  # key of Table.groups: MAIA's setting, a split's dimension; "" where there is none
    attributes: dict[str, str | None]  # printed properties of the model, as text
    figures: dict[str, Decimal | None]  # every column by name, in order; None for a printed dash
    unit: str | None = None  # what all of its figures measure, where it is not their columns'
    dashes: str | None = None  # why it has no figures where it has dashes, if the paper says so

    def value(self, column: str) -> float:
        """The figure of a column as a number; KeyError for an unknown column or a dash."""
        figure = self.figures[column]
        if figure is None:
            raise KeyError(f"{self.name} has a dash in {column}")
        return float(figure)


class Table(_Strict):
    """One table of a paper. `metric` names our metric where one metric fills all columns.

    What stands beside the tables (figures with printed numbers, figures of a release) has the same
    form, and a label in place of a table's number.
    """

    number: int
    label: str | None = None
    caption: str  # our words
    note: str | None = None  # what the paper leaves open about this table
    metric: str | None = None
    tasks: dict[str, str] = {}  # our task or group beside a row's group (MAIA) or beside a column
    groups: dict[str, str]  # title of every group of rows
    group_title: str | None = None  # heading of the column of groups; None: rows have no groups
    name_title: str = "Model"
    attributes: list[str] = []
    columns: list[Column]
    rows: list[Row]

    @property
    def heading(self) -> str:
        """What it is called: `Table 4`, or its label."""
        return self.label or f"Table {self.number}"

    @model_validator(mode="after")
    def _consistent(self) -> Table:
        units = {column.name: column.unit for column in self.columns}
        if unknown := set(self.tasks) - set(units) - set(self.groups):
            raise ValueError(f"{self.heading}: a task beside nothing: {sorted(unknown)}")
        for row in self.rows:
            where = f"{self.heading}, {row.name}"
            if row.group not in self.groups:
                raise ValueError(f"{where}: no group {row.group!r}")
            if row.dashes is not None and None not in row.figures.values():
                raise ValueError(f"{where}: a reason for dashes, and no dash")
            for name, figure in row.figures.items():
                lowest, highest = UNITS[row.unit or units[name]]
                if figure is not None and not lowest <= figure <= highest:
                    raise ValueError(f"{where}: {name} is {figure}, outside {lowest}..{highest}")
        return self


class Stated(_Strict):
    """A figure that the paper's text states, beside its tables."""

    where: str  # section
    value: Decimal


class Named(_Strict):
    """Names that the paper's text lists."""

    where: str
    names: list[str]


class Leaderboard(_Strict):
    """All that is stored of one paper."""

    benchmark: str
    paper: str
    identity_title: str  # what Row.identity is: a full Hugging Face name, or one table's spelling
    models: dict[str, str | None]  # every spelling of a model -> identity; None for other rows
    stated: dict[str, Stated]
    named: dict[str, Named]
    tables: list[Table]  # in the paper's order
    beside: dict[str, Table]  # what stands beside the tables

    def table(self, number: int) -> Table:
        """A table by its number; KeyError if it is not stored."""
        return {table.number: table for table in self.tables}[number]


def leaderboard(benchmark: str) -> Leaderboard:
    """A benchmark's paper.

    Raises:
        KeyError: nothing is stored of that benchmark.
        ValueError: the stored file is malformed (pydantic's error is one).
    """
    if benchmark not in BENCHMARKS:
        raise KeyError(f"no leaderboard {benchmark!r}; there are: {', '.join(BENCHMARKS)}")
    text = files(__name__).joinpath(f"{benchmark}.json").read_text(encoding="utf-8")
    raw = json.loads(text, parse_float=Decimal)
    return Leaderboard(
        **{key: raw[key] for key in ("benchmark", "paper", "identity_title", "models")},
        stated=raw.get("stated", {}),
        named=raw.get("named", {}),
        tables=[_table(raw, table) for table in raw["tables"]],
        beside={name: _table(raw, table) for name, table in raw.get("beside", {}).items()},
    )


def _table(raw: dict[str, Any], table: dict[str, Any]) -> Table:
    names, attributes = table["columns"], table.get("attributes", [])
    of_models = table.get("name_title", "Model") in OF_MODELS
    rows = [
        Row(
            name=row["name"],
            identity=raw["models"][row["name"]] if of_models else None,
            group=row.get("group", ""),
            attributes=dict(zip(attributes, row.get("attributes", []), strict=True)),
            figures=dict(zip(names, row["cells"], strict=True)),
            unit=row.get("unit"),
            dashes=row.get("dashes"),
        )
        for row in table["rows"]
    ]
    # Tables with the same columns may differ in what they measure.
    unit = {"unit": table["unit"]} if "unit" in table else {}
    columns = [Column(name=name, **{**raw["columns"][name], **unit}) for name in names]
    rest = {key: value for key, value in table.items() if key != "unit"}
    return Table(**{**rest, "groups": raw["groups"], "columns": columns, "rows": rows})
