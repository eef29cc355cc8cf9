"""The numbers of a report in other forms: for a paper's appendix, for other programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lmms_eval_tasks.report import compare
from lmms_eval_tasks.report.paper_tables import NONE, fixed, number
from lmms_eval_tasks.report.sides import Side, tasks_of

Row = dict[str, Any]


def rows(sides: Sequence[Side]) -> Iterator[Row]:
    """Every headline number of every side, with its interval and its difference from the first's.

    Values, intervals and differences are in the metric's own unit; `videos` is what the intervals
    are clustered by.
    """
    for benchmark, tasks in tasks_of(sides):
        for line in compare.headlines(benchmark, tasks, sides):
            for label, one in line.numbers.items():
                row = {
                    "benchmark": benchmark.name,
                    "task": line.quantity.row,
                    "metric": line.quantity.metric,
                    "run": label,
                    "value": one.estimate,
                    "low": number(one.low),
                    "high": number(one.high),
                    "n": one.n,
                    "videos": one.clusters,
                }
                if (apart := line.differences.get(label)) is not None:
                    ends = {"low": number(apart.value.low), "high": number(apart.value.high)}
                    row["difference"] = {"value": apart.value.estimate, **ends, "p": apart.p}
                yield row


def as_json(found: Sequence[Row]) -> str:
    """A list of rows."""
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def as_csv(found: Sequence[Row]) -> str:
    """A line for each number."""
    import pandas

    return str(pandas.json_normalize(found, sep="_").to_csv(index=False))


def as_markdown(found: Sequence[Row]) -> str:
    """A table with a column for each run."""
    return f"{_wide(found).to_markdown(index=False)}\n"


def as_latex(found: Sequence[Row]) -> str:
    """The same, for booktabs."""
    import pandas

    frame = _wide(found)
    escaped = frame.map(lambda cell: str(cell).replace("_", r"\_"))
    escaped.columns = pandas.Index([name.replace("_", r"\_") for name in frame.columns])
    return str(escaped.to_latex(index=False, column_format="ll" + "r" * (len(frame.columns) - 2)))


def _wide(found: Sequence[Row]) -> Any:
    """Task and metric, and a column of numbers with intervals for each run."""
    import pandas

    lines: dict[tuple[str, str], Row] = {}
    for row in found:
        key = row["task"], row["metric"]
        line = lines.setdefault(key, {"task": row["task"], "metric": row["metric"]})
        ends = "" if row["low"] is None else f" [{fixed(row['low'], 3)}, {fixed(row['high'], 3)}]"
        line[row["run"]] = f"{fixed(row['value'], 3)}{ends}"
    return pandas.DataFrame(lines.values()).fillna(NONE)


FORMS: dict[str, Callable[[Sequence[Row]], str]] = {
    "md": as_markdown,
    "csv": as_csv,
    "latex": as_latex,
    "json": as_json,
}
