"""The first screen of a page of saved runs: a card for each benchmark, with its headline number.

A card draws each run's number and its 95 % interval on one scale, with chance and the paper's rows
as marks, and says which runs are VALID.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from lmms_eval_tasks import leaderboards
from lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_tasks.report.compare import Comparison
from lmms_eval_tasks.tables.paper_tables import INVALID, fixed
from lmms_eval_tasks.utils.metrics.stats import Interval

TOPS = (1.0, 5.0, 10.0, 100.0)  # ends of scales: shares, ratings, percentages


class Mark(NamedTuple):
    """A published figure on a card's scale."""

    name: str  # the paper's row
    figure: float  # in the unit of the number
    place: float  # on the scale, in percent of its width


class CardRow(NamedTuple):
    """One run's number on a card."""

    label: str  # the run
    value: str  # the number as text
    ends: str  # its 95 % interval as text; "" without one
    place: float | None  # the number on the scale, in percent; None if it is not finite
    interval: tuple[float, float] | None  # the interval's ends likewise; None without one
    state: str  # VALID, INVALID or UNKNOWN
    nearest: Mark | None  # the paper's row with the nearest figure


class Card(NamedTuple):
    """A benchmark's headline number for each run."""

    title: str
    line: Comparison  # the number
    scale: tuple[str, str]  # the ends of the scale as text
    rows: Sequence[CardRow]
    chance: Mark | None
    papers: Sequence[Mark]  # from the lowest figure to the highest
    limits: Sequence[str]  # of the numbers' comparability

    @property
    def name(self) -> str:
        """The task or group of the number, and its metric."""
        return f"{self.line.quantity.row} {self.line.quantity.metric}"


def ends_text(number: Interval) -> str:
    """Return the ends of a number's interval as text; "" without an interval."""
    return " to ".join(fixed(end, 3) for end in number.ends or ())


def make_card(
    benchmark: Benchmark,
    lines: Sequence[Comparison],
    invalid: Collection[tuple[str, str]],
    unknown: Collection[str],
    limits: Sequence[str],
) -> Card | None:
    """Return the card of a benchmark; None if no run has a headline number.

    Args:
        benchmark: the benchmark.
        lines: its headline numbers (compare.headlines).
        invalid: label of a run and task, of numbers that are INVALID.
        unknown: labels of runs without a results file, whose validity nobody can tell.
        limits: of the numbers' comparability.
    """
    if not lines:
        return None
    joint = {metric.group for metric in benchmark.joint_metrics}
    important = list(leaderboards.headlines(benchmark.name))

    def rank(line: Comparison) -> tuple[bool, bool, int]:
        row = line.quantity.row
        place = important.index(row) if row in important else len(important)
        return not line.quantity.published, row not in joint, place

    # A number with the paper's figures, of the whole group if it has one, else of the first task.
    line = min(lines, key=rank)
    published = line.quantity.published
    figures = published.papers if published else {}
    drawn = [value for one in line.numbers.values() for value in (one.estimate, one.low, one.high)]
    finite = [0.0, *figures.values(), *filter(math.isfinite, drawn)]
    lowest, highest = min(finite), max(finite)
    top = next((end for end in TOPS if highest <= end), highest)

    def place(value: float) -> float:
        return round(100 * (value - lowest) / (top - lowest), 2)

    def state(label: str) -> str:
        known = "UNKNOWN" if label in unknown else "VALID"
        return known if line.is_valid(label, invalid) else INVALID

    def row(label: str, number: Interval) -> CardRow:
        papers_by_distance = sorted(papers, key=lambda mark: abs(mark.figure - number.estimate))
        return CardRow(
            label,
            fixed(number.estimate, 3),
            ends_text(number),
            place(number.estimate) if math.isfinite(number.estimate) else None,
            (place(number.ends[0]), place(number.ends[1])) if number.ends else None,
            state(label),
            papers_by_distance[0] if papers and math.isfinite(number.estimate) else None,
        )

    in_order = sorted(figures.items(), key=lambda named: named[1])
    papers = [Mark(name, figure, place(figure)) for (name, _), figure in in_order]
    chance = published.chance if published else None
    return Card(
        benchmark.title,
        line,
        (f"{lowest:g}", f"{top:g}"),
        [row(label, one) for label, one in line.numbers.items()],
        None if chance is None else Mark("chance", chance, place(chance)),
        papers,
        limits,
    )
