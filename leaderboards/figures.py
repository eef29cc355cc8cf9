"""Each printed figure of the papers' models by itself, on a scale that others can read."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from importlib.resources import files
from typing import Any, NamedTuple

from lmms_eval_tasks import leaderboards

INFINITE = float("inf")


class Scale(NamedTuple):
    """What a number's values can be."""

    kind: str  # accuracy, rating, f1, ...
    unit: str  # proportion, points, correlation
    low: float
    high: float
    judged: str = ""  # not empty: a judge decides, where the task has one


@functools.cache
def scales() -> Mapping[str, Scale]:
    """Of every number in our tasks' rows of the host's table, by its name (metrics.json)."""
    return {name: Scale(*row) for name, row in _data("metrics.json").items()}


@functools.cache
def releases() -> Mapping[str, Any]:
    """What is known of each benchmark's released data (releases.json).

    `hub` is its dataset on the Hugging Face hub; `whole` and `part` have hashes of data (as in our
    section of the results) with what they are of; `items` how many a task has, by a pattern of its
    name, where the release was counted.
    """
    found: Mapping[str, Any] = _data("releases.json")
    return found


def _data(name: str) -> Any:
    return json.loads(files(leaderboards.__name__).joinpath(name).read_text(encoding="utf-8"))


class Figure(NamedTuple):
    """One printed figure."""

    model: str  # one name for one model (the file's `identity_title`)
    row: int  # in its table, from 1
    place: tuple[str, ...]  # name and group of its row, and heading of its column, as printed
    table: Mapping[str, Any]  # as stored
    task: str  # ours that has this number; "" where there is none
    metric: str
    printed: Decimal
    value: float  # on its scale: 43.3 % is 0.433
    scale: Scale


# By a column's unit: what a printed 1 is, and the scale then. Other units are no scores.
_RATINGS = {"maverix": (0, 5), "movierecapsqa": (0, 5), "haven": (1, 5), "cvrr_es": (1, 5)}
_UNITS = {
    "share": (Decimal(1), Scale("share", "proportion", 0, 1)),
    "percent": (Decimal("0.01"), Scale("accuracy", "proportion", 0, 1)),
    "points": (Decimal("0.01"), Scale("difference", "proportion", -1, 1)),
    "correlation": (Decimal(1), Scale("correlation", "correlation", -1, 1)),
    "kappa_percent": (Decimal("0.01"), Scale("kappa", "correlation", -1, 1)),
    "rating": (Decimal(1), Scale("rating", "points", 0, 5)),
    "rating_change": (Decimal(1), Scale("difference", "points", -5, 5)),
    "cider": (Decimal(1), Scale("cider", "points", 0, 10)),
    "clipscore": (Decimal(1), Scale("clipscore", "points", 0, INFINITE)),
    "clipscore_change": (Decimal(1), Scale("difference", "points", -INFINITE, INFINITE)),
}


def of_models(benchmark: str) -> Iterator[Figure]:
    """The figures of a paper that are scores of models; not those of people, data or averages."""
    told = leaderboards.stored(benchmark)
    for table in told["tables"]:
        for line, row in enumerate(leaderboards.rows(benchmark, table), 1):
            for column, printed in row.figures.items():
                heading = told["columns"][column]["title"]
                model = _model(told, table, row, heading)
                unit = table.get("unit", told["columns"][column]["unit"])
                if printed is None or not model or unit not in _UNITS:
                    continue
                factor, scale = _UNITS[unit]
                if unit == "rating":
                    scale = scale._replace(low=_RATINGS[benchmark][0], high=_RATINGS[benchmark][1])
                places = (row.group, column, model)
                task = next((table["tasks"][one] for one in places if one in table["tasks"]), "")
                place = tuple(filter(None, (row.name, told["groups"].get(row.group, ""), heading)))
                metric = table["metric"] or column
                value = float(printed * factor)
                yield Figure(model, line, place, table, task, metric, printed, value, scale)


def _model(
    told: Mapping[str, Any], table: Mapping[str, Any], row: leaderboards.Row, heading: str
) -> str:
    """Whose it is: the row's, the group's where that is the judge, or the column's; "" of none."""
    models: Mapping[str, str | None] = told["models"]
    if table.get("group_title") == "Judge":  # judges together are one, and no model of the list
        return models.get(row.group, row.group) or ""
    return models.get(row.name) or (models.get(heading) if row.identity is None else None) or ""
