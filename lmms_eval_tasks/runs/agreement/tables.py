"""What `lmms-eval-tasks agreement` prints: our scores beside the published ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lmms_eval_tasks.report.paper_tables import NONE, empty, fixed
from lmms_eval_tasks.runs.agreement.order import Order
from lmms_eval_tasks.utils.metrics.agreement import FEW_CLUSTERS, Row

if TYPE_CHECKING:
    from rich.table import Table

    from lmms_eval_tasks.utils.metrics.stats import Interval


def agreement_table(title: str, names: str, rows: Mapping[str, Row]) -> Table:
    """A dimension's coefficients, a row for each model, group and for people, or each way.

    Args:
        title: of the table.
        names: heading of the rows' names.
        rows: by name.
    """
    table = empty(title, _about(list(rows.values())))
    table.add_column(names, overflow="fold", min_width=20)
    heads = ("n", "judge\nfailed", "kappa", "rho", "|diff.|", "ours", "published")
    for heading in heads:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, row in rows.items():
        table.add_row(
            name,
            str(row.n),
            str(row.missing),
            _with_interval(row.kappa, row.intervals.get("kappa")),
            fixed(row.rho),
            fixed(row.absolute),
            _with_variance(row.ours, row.ours_var),
            _with_variance(row.published, row.published_var),
        )
    return table


def _with_variance(mean: float | None, variance: float | None) -> str:
    return NONE if mean is None else f"{mean:.2f}±{fixed(variance)}"


def _with_interval(value: float | None, interval: Interval | None) -> str:
    if value is None or interval is None or math.isnan(interval.low):
        return fixed(value)
    return f"{value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def _about(rows: Sequence[Row]) -> str:
    """What the intervals are, in lines below a table."""
    intervals = [interval for row in rows for interval in row.intervals.values()]
    if not intervals:
        return ""
    videos = max(interval.clusters for interval in intervals)
    lines = [
        "kappa: quadratic weights, over the whole scale; rho: Spearman's; |diff.|: mean distance;",
        "ours, published: mean±variance.",
        f"[low, high]: {intervals[0].method}, over up to {videos} videos.",
    ]
    if videos == 1:
        lines[2] = "No intervals: all answers are about one video."
    elif videos < FEW_CLUSTERS:
        lines.append(f"Fewer than {FEW_CLUSTERS} videos: these intervals are too narrow.")
    if undefined := max(interval.undefined for interval in intervals):
        lines.append(f"Undefined in up to {undefined} of the resamples of a row: left out of it.")
    return "\n".join(lines)


def order_table(dimension: str, order: Order, questions: int, models: int) -> Table:
    """The models by their published means, beside ours on the same questions.

    Args:
        dimension: for the title.
        order: the two orders.
        questions: of the release.
        models: of the release.
    """
    coverage = (
        f"{order.complete} of {questions} questions have a published score of all {models} models"
    )
    table = empty(f"{dimension}: the order of the models", f"{coverage}.\n{agreeing(order)}")
    table.add_column("model", overflow="fold", min_width=20)
    for title in ("mean\nours", "mean\npublished", "place\nours", "place\npublished"):
        table.add_column(title, justify="right", no_wrap=True)
    best_first = sorted(order.means, key=lambda name: -order.means[name][1])
    for name in best_first:
        ours, published = order.means[name]
        places = (_place(order, name, side) for side in (0, 1))
        table.add_row(name, fixed(ours), fixed(published), *map(str, places))
    return table


def agreeing(order: Order) -> str:
    """How far the two orders agree, in one line."""
    if not order.pairs:
        return "No order: fewer than two models have both scores on them."
    tied = f", {order.tied} tied in one of the two or both" if order.tied else ""
    return (
        f"Judged for all models compared: {order.judged}. {order.same} of {order.pairs} pairs of "
        f"models are in the same order{tied}; Kendall's tau-b "
        f"{_with_interval(order.tau, order.interval)}{_few(order.interval)}."
    )


def _few(interval: Interval | None) -> str:
    """The warning of an interval over too few videos: the questions are fewer than all of them."""
    if interval is None or not 1 < interval.clusters < FEW_CLUSTERS:
        return ""
    return f" (over {interval.clusters} videos: too narrow)"


def _place(order: Order, name: str, side: int) -> int:
    """A model's place; equal means share the better one."""
    return 1 + sum(means[side] > order.means[name][side] for means in order.means.values())
