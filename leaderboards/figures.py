"""The printed figures of the papers' models, one by one, on scales that others can read."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from importlib.resources import files
from typing import NamedTuple

from lmms_eval_tasks import leaderboards
from lmms_eval_tasks.utils.json_files import Json

INFINITE = float("inf")


class Scale(NamedTuple):
    """The kind, the unit and the range of a number."""

    kind: str  # accuracy, rating, f1, ...
    unit: str  # proportion, points, correlation
    low: float
    high: float
    judged: str = ""  # not empty if a judge decides, for tasks that have one


@functools.cache
def scales() -> Mapping[str, Scale]:
    """Return the scale of every number in lmms-eval's table, by its name (metrics.json)."""
    return {name: Scale(*row) for name, row in _data("metrics.json").items()}


@functools.cache
def hubs() -> Mapping[str, str]:
    """Return the dataset of each benchmark on the Hugging Face hub (hubs.json)."""
    datasets: Mapping[str, str] = _data("hubs.json")
    return datasets


def _data(name: str) -> Json:
    return json.loads(files(leaderboards.__name__).joinpath(name).read_text(encoding="utf-8"))


class Figure(NamedTuple):
    """One printed figure of a model."""

    model: str  # one name for each model (the file's `identity_title`)
    row: int  # number of its row in the table, from 1
    place: tuple[str, ...]  # name and group of its row, and heading of its column, as printed
    table: Mapping[str, Json]  # the stored table
    task: str  # our task with this number; "" if there is none
    metric: str
    printed: Decimal
    value: float  # the figure on its scale: 43.3 % is 0.433
    scale: Scale


# Unit of a column -> its scale. Other units are no scores.
_UNITS = {
    "share": Scale("share", "proportion", 0, 1),
    "percent": Scale("accuracy", "proportion", 0, 1),
    "points": Scale("difference", "proportion", -1, 1),
    "correlation": Scale("correlation", "correlation", -1, 1),
    "kappa_percent": Scale("kappa", "correlation", -1, 1),
    "rating": Scale("rating", "points", 0, 5),
    "rating_change": Scale("difference", "points", -5, 5),
    "cider": Scale("cider", "points", 0, 10),
    "clipscore": Scale("clipscore", "points", 0, INFINITE),
    "clipscore_change": Scale("difference", "points", -INFINITE, INFINITE),
}


def of_models(board: Mapping[str, Json]) -> Iterator[Figure]:
    """Yield the figures of a paper that are scores of models, not of people, data or averages."""
    for table in board.get("tables", ()):
        grid = zip(table["rows"], leaderboards.cells(board, table), strict=True)
        for line, (row, cells) in enumerate(grid, 1):
            for cell in cells:
                # Several judges count as one, and are no model of the file's list.
                model = cell.identity or (cell.model if table.get("models") == "group" else None)
                unit = table.get("unit", board["columns"][cell.column]["unit"])
                if cell.figure is None or not model or unit not in _UNITS:
                    continue
                scale = _UNITS[unit]
                if unit == "rating":
                    low, high = map(int, board["ratings"])
                    scale = scale._replace(low=low, high=high)
                title = board["columns"][cell.column]["title"]
                names = cell.row, board["groups"].get(row.get("group", "")), title
                ours = cell.ours if isinstance(cell.ours, leaderboards.OurNumber) else None
                task, metric = (ours.task, ours.metric) if ours else ("", cell.column)
                place, value = tuple(filter(None, names)), cell.value
                yield Figure(model, line, place, table, task, metric, cell.figure, value, scale)
