"""The published tables of each paper, as data: figures as printed, never corrected.

One file per benchmark (`maia.json`); a row's cells stand in the order of its table's columns, as in
the paper, so that a table can be read against the page. `load` gives them by name. Figures are
decimals with the digits of the page: 1.6420 is not 1.642, and stands for another range of values.
"""

from __future__ import annotations

import json
from decimal import Decimal
from importlib.resources import files
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from lmms_eval_tasks.leaderboards.sample import Sample

Unit = Literal[
    "share",
    "cider",
    "percent",
    "points",
    "rating",
    "rating_change",
    "variance",
    "deviation",
    "correlation",
    "kappa_percent",
    "clipscore",
    "clipscore_change",
    "amount",
]

BENCHMARKS: tuple[str, ...] = ("maia", "maverix", "movierecapsqa", "haven", "cvrr_es")
RANGES: dict[Unit, tuple[float, float]] = {
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
    """One printed column: our name for it, its title, and what its figures measure."""

    name: str
    title: str
    unit: Unit


class Row(_Strict):
    """One printed row: a model, or a split where models are the columns, in a group of rows.

    `ours` holds our own figures under the names of the columns they stand beside; it is empty until
    someone has run that model.
    """

    name: str  # as printed; spellings differ between a paper's tables, identity does not
    identity: str | None  # one name per model (Leaderboard.identity_title); None if it is not one
    group: str  # key of Table.groups: MAIA's setting, a split's dimension; "" where there is none
    attributes: dict[str, str | None]  # printed properties of the model, as text
    figures: dict[str, Decimal | None]  # every column by name, in order; None for a printed dash
    unit: Unit | None = None  # what all of its figures measure, where it is not their columns'
    dashes: str | None = None  # why it has no figures where it has dashes, if the paper says so
    ours: dict[str, Decimal] = {}

    @property
    def average(self) -> float | None:
        """The printed figure of the column `average`, None without one."""
        return self.value("average") if "average" in self.figures else None

    @property
    def cells(self) -> dict[str, float]:
        """The printed columns except the average, by name, in the table's order, without dashes."""
        named = self.figures.items()
        return {name: float(v) for name, v in named if v is not None and name != "average"}

    def value(self, column: str) -> float:
        """The printed figure of a column as a number; KeyError if the row has none."""
        return float(self.printed(column))

    def printed(self, column: str) -> Decimal:
        """The figure of a column with the digits of the page; KeyError if the row has none."""
        figure = self.figures[column]
        if figure is None:
            raise KeyError(f"{self.name} has a dash in {column}")
        return figure


class Table(_Strict):
    """One table of a paper. `metric` names our metric where one metric fills all columns.

    What stands beside the tables (figures with printed numbers, figures of a release) has the same
    form, and a label in place of a table's number.
    """

    benchmark: str
    number: int
    label: str | None = None
    caption: str  # our words
    note: str | None  # what the paper leaves open about this table
    metric: str | None
    tasks: dict[str, str]  # our task or group beside a row's group (MAIA) or beside a column
    groups: dict[str, str]  # title of every group of rows
    group_title: str | None = None  # heading of the column of groups; None: rows have no groups
    name_title: str = "Model"
    headline: list[str]  # the columns beside which ours stands even while it is empty
    attributes: list[str] = []
    columns: list[Column]
    rows: list[Row]

    @property
    def heading(self) -> str:
        """What it is called: `Table 4`, or its label."""
        return self.label or f"Table {self.number}"

    def row(self, group: str, name: str) -> Row:
        """The row of a printed name in a group. KeyError if there is none."""
        for row in self.rows:
            if (row.group, row.name) == (group, name):
                return row
        raise KeyError(f"Table {self.number} has no row {group + ', ' if group else ''}{name}")

    def of(self, identity: str) -> Row | None:
        """The first row of a model by its one name, None if the table does not have it."""
        return next((row for row in self.rows if row.identity == identity), None)

    @model_validator(mode="after")
    def _consistent(self) -> Table:
        units = {column.name: column.unit for column in self.columns}
        if unknown := set(self.headline) - set(units):
            raise ValueError(f"Table {self.number}: no column {sorted(unknown)}")
        if unknown := set(self.tasks) - set(units) - set(self.groups):
            raise ValueError(f"Table {self.number}: a task beside nothing: {sorted(unknown)}")
        for row in self.rows:
            where = f"Table {self.number}, {row.name}"
            if row.group not in self.groups:
                raise ValueError(f"{where}: no group {row.group!r}")
            if list(row.figures) != list(units):
                raise ValueError(f"{where}: figures {list(row.figures)}, columns {list(units)}")
            if unknown := set(row.ours) - set(units):
                raise ValueError(f"{where}: no printed column {sorted(unknown)} to stand beside")
            if row.dashes is not None and None not in row.figures.values():
                raise ValueError(f"{where}: a reason for dashes, and no dash")
            for name, figure in [*row.figures.items(), *row.ours.items()]:
                lowest, highest = RANGES[row.unit or units[name]]
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
    tables: list[Table]
    beside: dict[str, Table] = {}  # what stands beside the tables, by the name of its block
    sample: Sample | None = None  # published scores of a released sample, where there are some


def leaderboard(benchmark: str) -> Leaderboard:
    """A benchmark's paper: tables in the paper's order, and figures of its text.

    Raises:
        KeyError: no tables of that benchmark are stored.
        ValueError: the stored file is malformed (pydantic's error is one).
    """
    if benchmark not in BENCHMARKS:
        raise KeyError(f"no leaderboard {benchmark!r}; there are: {', '.join(BENCHMARKS)}")
    text = files(__name__).joinpath(f"{benchmark}.json").read_text(encoding="utf-8")
    raw = json.loads(text, parse_float=Decimal)
    return Leaderboard(
        **{key: raw[key] for key in ("benchmark", "paper", "identity_title", "models")},
        sample=raw.get("sample"),
        stated=raw.get("stated", {}),
        named=raw.get("named", {}),
        tables=[_table(raw, table) for table in raw["tables"]],
        beside={name: _table(raw, table) for name, table in raw.get("beside", {}).items()},
    )


def load(benchmark: str) -> list[Table]:
    """All tables of a benchmark's paper, in the paper's order. Raises as `leaderboard` does."""
    return leaderboard(benchmark).tables


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
            ours=row.get("ours", {}),
        )
        for row in table["rows"]
    ]
    # Tables with the same columns may differ in what they measure.
    unit = {"unit": table["unit"]} if "unit" in table else {}
    columns = [Column(name=name, **{**raw["columns"][name], **unit}) for name in names]
    common = {"benchmark": raw["benchmark"], "groups": raw["groups"]}
    rest = {key: value for key, value in table.items() if key != "unit"}
    return Table(**{**rest, **common, "columns": columns, "rows": rows})
