"""The papers' tables as data: figures as printed, never corrected.

One file a benchmark (`maia.json`), and beside it `maia.md`: the same tables to read, what is wrong
or contradictory in them, and what of ours stands beside. A row's cells stand in the order of its
table's columns, as on the page. Figures are decimals with the digits of the page: 1.6420 is not
1.642, and stands for another range of values.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from importlib.resources import files
from typing import Any, NamedTuple

BENCHMARKS: tuple[str, ...] = ("maia", "maverix", "movierecapsqa", "haven", "cvrr_es")

# What a table's rows are, if its first column is headed so: models, with one name each.
_OF_MODELS = ("Model", "Judge", "Candidate")


@dataclass(frozen=True)
class Row:
    """One printed row: a model, or a split where models are the columns, in a group of rows."""

    name: str  # as printed; spellings differ between a paper's tables, identity does not
    identity: str | None  # one name per model (the file's `identity_title`); None if it is not one
    group: str  # key of Table.groups: MAIA's setting, a split's dimension; "" where there is none
    attributes: Mapping[str, str | None]  # printed properties of the model, as text
    figures: Mapping[str, Decimal | None]  # every column by name, in order; None for a dash

    def value(self, column: str) -> float:
        """The figure of a column as a number; KeyError for an unknown column or a dash."""
        figure = self.figures[column]
        if figure is None:
            raise KeyError(f"{self.name} has a dash in {column}")
        return float(figure)


@dataclass(frozen=True)
class Table:
    """One table of a paper, or what stands beside them: a figure's numbers, those of a release."""

    heading: str  # `Table 4`, or what else it is called
    groups: Mapping[str, str]  # title of every group of rows
    attributes: Sequence[str]
    columns: Mapping[str, str]  # our name -> title
    rows: Sequence[Row]


@dataclass(frozen=True)
class Leaderboard:
    """All that is stored of one paper."""

    models: Mapping[str, str | None]  # every spelling of a model -> identity; None for other rows
    stated: Mapping[str, Decimal]  # figures of the paper's text
    named: Mapping[str, Sequence[str]]  # names that the paper's text lists
    tables: Mapping[int, Table]  # by number, in the paper's order
    beside: Mapping[str, Table]  # what stands beside the tables


@functools.cache
def leaderboard(benchmark: str) -> Leaderboard:
    """A benchmark's paper."""
    text = files(__name__).joinpath(f"{benchmark}.json").read_text(encoding="utf-8")
    raw = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    return Leaderboard(
        models=raw["models"],
        stated={name: one["value"] for name, one in raw.get("stated", {}).items()},
        named={name: one["names"] for name, one in raw.get("named", {}).items()},
        tables={int(table["number"]): _table(raw, table) for table in raw["tables"]},
        beside={name: _table(raw, table) for name, table in raw.get("beside", {}).items()},
    )


def _table(raw: Mapping[str, Any], table: Mapping[str, Any]) -> Table:
    attributes = table.get("attributes", [])
    of_models = table.get("name_title", "Model") in _OF_MODELS
    return Table(
        heading=table.get("label") or f"Table {table['number']}",
        groups=raw["groups"],
        attributes=attributes,
        columns={name: raw["columns"][name]["title"] for name in table["columns"]},
        rows=[
            Row(
                name=row["name"],
                identity=raw["models"][row["name"]] if of_models else None,
                group=row.get("group", ""),
                attributes=dict(zip(attributes, row.get("attributes", []), strict=True)),
                figures=dict(zip(table["columns"], row["cells"], strict=True)),
            )
            for row in table["rows"]
        ],
    )


class Headline(NamedTuple):
    """What a task's main number is, and what it stands beside.

    Attributes:
        metric: its name here.
        chance: what guessing gives; None where that depends on the data.
        papers: name and identity of each row of the paper -> its figure, in our unit.
    """

    metric: str
    chance: float | None
    papers: Mapping[tuple[str, str | None], float]


@functools.cache
def headline(task: str) -> Headline | None:
    """Of a task or group (headlines.json); None where nothing is stored of it."""
    text = files(__name__).joinpath("headlines.json").read_text(encoding="utf-8")
    if (own := json.loads(text).get(task)) is None:
        return None
    papers = {}
    if "table" in own:
        benchmark = next(name for name in BENCHMARKS if task.startswith(name))
        for row in leaderboard(benchmark).tables[own["table"]].rows:
            figure = row.figures[own["column"]]
            if figure is not None and row.group in own.get("groups", [row.group]):
                papers[row.name, row.identity] = float(figure) * own.get("unit", 1)
    return Headline(own["metric"], own.get("chance"), papers)
