"""The papers' tables as data: figures as printed, never corrected.

One file a benchmark (`maia.json`), and beside it `maia.md`: the same tables to read, what is wrong
or contradictory in them, and what of ours stands beside. A row's cells stand in the order of its
table's columns, as on the page. Figures are decimals with the digits of the page: 1.6420 is not
1.642, and stands for another range of values.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from decimal import Decimal
from importlib.resources import files
from typing import Any, NamedTuple

BENCHMARKS: tuple[str, ...] = ("maia", "maverix", "movierecapsqa", "haven", "cvrr_es")


class Row(NamedTuple):
    """One printed row: a model, or a split where models are the columns, in a group of rows."""

    name: str  # as printed; spellings differ between a paper's tables, identity does not
    identity: str | None  # one name per model (the file's `identity_title`); None if it is not one
    group: str  # a key of the file's `groups`: MAIA's setting; "" where there is none
    figures: Mapping[str, Decimal | None]  # every column by name, in order; None for a dash


@functools.cache
def stored(benchmark: str) -> Mapping[str, Any]:
    """The file of a benchmark's paper: tables, and what tests hold against its text."""
    text = files(__name__).joinpath(f"{benchmark}.json").read_text(encoding="utf-8")
    found: Mapping[str, Any] = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    return found


def table(benchmark: str, number: int) -> list[Row]:
    """The rows of a paper's table."""
    (found,) = (one for one in stored(benchmark)["tables"] if one["number"] == number)
    return rows(benchmark, found)


def rows(benchmark: str, found: Mapping[str, Any]) -> list[Row]:
    """The rows of a stored table."""
    models: Mapping[str, str] = stored(benchmark)["models"]
    # What a table's rows are, if its first column is headed so: models, with one name each.
    of_models = found.get("name_title", "Model") in ("Model", "Judge", "Candidate")
    return [
        Row(
            row["name"],
            models[row["name"]] if of_models else None,
            row.get("group", ""),
            dict(zip(found["columns"], row["cells"], strict=True)),
        )
        for row in found["rows"]
    ]


class Headline(NamedTuple):
    """What a task's main number is, and what it stands beside."""

    metric: str  # its name here
    chance: float | None  # what guessing gives; None where that depends on the data
    papers: Mapping[tuple[str, str | None], float]  # name and identity of a row -> figure, our unit


@functools.cache
def headline(task: str) -> Headline | None:
    """Of a task or group (headlines.json); None where nothing is stored of it."""
    text = files(__name__).joinpath("headlines.json").read_text(encoding="utf-8")
    if (own := json.loads(text).get(task)) is None:
        return None
    papers = {}
    if "table" in own:
        benchmark = next(name for name in BENCHMARKS if task.startswith(name))
        for row in table(benchmark, own["table"]):
            figure = row.figures[own["column"]]
            if figure is not None and row.group in own.get("groups", [row.group]):
                papers[row.name, row.identity] = float(figure) * own.get("unit", 1)
    return Headline(own["metric"], own.get("chance"), papers)
