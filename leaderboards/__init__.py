"""The published tables of each paper, as data: figures as printed, never corrected.

One file per benchmark (`maia.json`); a row's cells stand in the order of its table's columns, as in
the paper, so that a table can be read against the page. `load` gives them by name.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Setting = Literal["unimodal", "black", "1frame", "32frames", "unstated"]
Share = Annotated[float, Field(ge=0, le=1)]
Score = Annotated[float, Field(ge=0, le=10)]  # CIDEr's scale ends at 10; every other one at 1

BENCHMARKS: tuple[str, ...] = ("maia",)
SETTING_TITLES: dict[str, str] = {
    "unimodal": "no video",
    "black": "black video",
    "1frame": "1 frame",
    "32frames": "32 frames",
    "unstated": "not stated",
}


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Row(_Strict):
    """One printed row: a model in a setting.

    `by_category` (with `average`) and `metrics` are alternatives: a table has categories as columns
    or metrics. `ours` holds our own figures under the same column names, `average` included; it is
    empty until someone has run that model.
    """

    model: str  # as printed; spellings differ between a paper's tables, hub_name does not
    hub_name: str | None  # full Hugging Face name; None for a baseline that is not one model
    setting: Setting
    average: Share | None
    by_category: dict[str, Share] | None
    metrics: dict[str, Score] | None
    ours: dict[str, Score] = {}

    @property
    def cells(self) -> dict[str, float]:
        """The printed columns except the average, by name, in the table's order."""
        return self.by_category or self.metrics or {}

    def value(self, column: str) -> float:
        """The printed figure of a column, or of `average`; KeyError if the row has none."""
        if column == "average" and self.average is not None:
            return self.average
        return self.cells[column]

    @model_validator(mode="after")
    def _one_kind(self) -> Row:
        if (self.by_category is None) == (self.metrics is None):
            raise ValueError(f"{self.model}: a row has categories or metrics, one of the two")
        if (self.by_category is None) != (self.average is None):
            raise ValueError(f"{self.model}: an average goes with categories, and only with them")
        if unknown := set(self.ours) - {*self.cells, "average"}:
            raise ValueError(f"{self.model}: no printed column {sorted(unknown)} to stand beside")
        return self


class Table(_Strict):
    """One table of a paper. `metric` names our metric, or is None where the columns are metrics."""

    benchmark: str
    number: int
    caption: str  # our words
    note: str | None  # what the paper leaves open about this table
    metric: str | None
    tasks: dict[Setting, str]  # our task or group whose result stands beside a row of that setting
    rows: list[Row]

    @property
    def columns(self) -> list[str]:
        """Names of the columns except the average: category slugs or metric names."""
        return list(self.rows[0].cells)

    def row(self, setting: str, model: str) -> Row:
        """The row of a model, by its printed name, in a setting. KeyError if there is none."""
        for row in self.rows:
            if (row.setting, row.model) == (setting, model):
                return row
        raise KeyError(f"Table {self.number} has no row {setting}, {model}")


def load(benchmark: str) -> list[Table]:
    """All tables of a benchmark's paper, in the paper's order.

    Raises:
        KeyError: no tables of that benchmark are stored.
        ValueError: the stored file is malformed (pydantic's error is one).
    """
    if benchmark not in BENCHMARKS:
        raise KeyError(f"no leaderboard {benchmark!r}; there are: {', '.join(BENCHMARKS)}")
    text = files(__name__).joinpath(f"{benchmark}.json").read_text(encoding="utf-8")
    raw = json.loads(text)
    return [_table(raw, table) for table in raw["tables"]]


def _table(raw: dict[str, Any], table: dict[str, Any]) -> Table:
    columns = table.pop("columns")
    rows = []
    for row in table.pop("rows"):
        cells = dict(zip(columns, row.pop("cells"), strict=True))
        categories = table["metric"] is not None
        rows.append(
            Row(
                hub_name=raw["models"][row["model"]],
                by_category=cells if categories else None,
                metrics=None if categories else cells,
                **row,
            )
        )
    return Table(benchmark=raw["benchmark"], rows=rows, **table)
