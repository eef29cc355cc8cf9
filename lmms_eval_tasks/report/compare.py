"""Numbers of saved runs with their intervals, beside each other and beside the paper's rows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_eval_tasks import leaderboards, measures
from lmms_eval_tasks.benchmark import Benchmark, Item, Items, Join, Metric, Task, Units
from lmms_eval_tasks.measures import Asked
from lmms_eval_tasks.report.sides import Side
from lmms_eval_tasks.utils.metrics import aggregate, stats
from lmms_eval_tasks.utils.metrics.stats import Interval

POINTS = 0.03  # the difference for which the number of videos is told


@dataclass(frozen=True)
class Quantity:
    """What a headline number is of: one task's metric, or a join's."""

    row: str  # task, group, or category of a task
    metric: str
    of: Callable[[Sequence[Asked]], Any]
    takes: Callable[[Asked], bool]
    share: bool
    units: Callable[[Sequence[Asked]], Units] | None = None  # as Metric.units

    @property
    def known(self) -> leaderboards.Headline | None:
        """What it stands beside, if it is the paper's main number."""
        found = leaderboards.headline(self.row)
        return found if found is not None and found.metric == self.metric else None


@dataclass(frozen=True)
class Difference:
    """A number of one side minus the first side's, on the items that both were asked."""

    value: Interval
    # Of no difference, corrected where several are tested together; None where nothing tests it.
    p: float | None
    rose: int | None  # of what the number is a mean of; None if it is no mean
    fell: int | None

    @property
    def needed(self) -> int | None:
        """How many videos like these it takes to find a difference of POINTS."""
        se = self.value.se
        return stats.clusters_needed(se, self.value.clusters, POINTS) if se else None


@dataclass(frozen=True)
class Line:
    """A quantity of all sides, by their labels; only what has a value."""

    quantity: Quantity
    numbers: Mapping[str, Interval]
    differences: Mapping[str, Difference] = field(default_factory=dict)


# --- what is shown --------------------------------------------------------------------------------


def headlines(benchmark: Benchmark, tasks: Sequence[Task], sides: Sequence[Side]) -> list[Line]:
    """The numbers of the host's table, of tasks and of what joins them."""
    quantities = [_of_task(task, metric) for task in tasks for metric in shown(task)]
    quantities += [one for join in benchmark.joins for one in _of_join(join, tasks)]
    made = (_line(one, sides) for one in quantities)
    return [line for line in made if line.numbers]


def by_category(task: Task, metric: Metric, split: str, sides: Sequence[Side]) -> list[Line]:
    """A number by one of the task's splits; the differences are tested together."""
    values = {
        str(item.get(split) or "") for side in sides for item in side.items.get(task.name, ())
    }

    def own(value: str) -> Quantity:
        part = _part(_of_task(task, metric), lambda item: str(item.get(split)) == value)
        return dataclasses.replace(part, row=value)

    made = (_line(own(value), sides) for value in sorted(values - {""}))
    return _corrected([line for line in made if line.numbers])


def beside(benchmark: Benchmark, one: leaderboards.Ours, side: Side) -> Interval | None:
    """A side's number that stands beside a paper's figure; None where it has none.

    It has an interval where results have one (Metric.has_interval).
    """
    join = next((own for own in benchmark.joins if own.group == one.task), None)
    if join is not None:
        (whole,) = _joined(join, [one.metric])
        has_ends = one.metric in {*join.shown, *join.units}
    else:
        task = benchmark.tasks[one.task]
        (metric,) = (own for own in task.metrics if own.name == one.metric)
        whole = _of_task(task, metric)
        has_ends = metric.has_interval
    wanted = {name: leaderboards.plain(value) for name, value in one.where}

    def takes(item: Item) -> bool:
        return all(leaderboards.plain(str(item.get(n))) == value for n, value in wanted.items())

    quantity = _part(whole, takes)
    asked = [own for own in side.asked if quantity.takes(own)]
    if has_ends:
        return interval(quantity, asked)
    value, clusters = quantity.of(asked) if asked else None, len({*map(measures.cluster, asked)})
    if not isinstance(value, float):
        return None
    return Interval(value, math.nan, math.nan, None, "none", len(asked), clusters)


def shown(task: Task) -> list[Metric]:
    """A task's headline numbers."""
    return [metric for metric in task.metrics if metric.shown is not None]


def by_item(metric: Metric, items: Items) -> dict[str, float]:
    """What a number is the mean of, by the item's id; empty of what is no mean of items."""
    found = metric.units(metric.own(items)) if metric.units else {}
    ids = {item["id"] for item in items}
    return {name: value for name, (_, value) in found.items()} if found.keys() <= ids else {}


def _of_task(task: Task, metric: Metric) -> Quantity:
    def own(asked: Sequence[Asked]) -> list[Item]:
        return [item for _, item in asked]

    def takes(one: Asked) -> bool:
        return one[0] is task and (metric.where is None or metric.where(one[1]))

    units = metric.units
    of_units = None if units is None else lambda asked: units(own(asked))
    of = aggregate.never_raises(lambda asked: metric.of(own(asked)), metric.name)
    return Quantity(task.name, metric.name, of, takes, metric.share, of_units)


def _part(whole: Quantity, takes: Callable[[Item], bool]) -> Quantity:
    """The same number of some of its items."""
    return dataclasses.replace(whole, takes=lambda one: whole.takes(one) and takes(one[1]))


def _of_join(join: Join, tasks: Sequence[Task]) -> Iterator[Quantity]:
    if sum(task.name in join.tasks for task in tasks) > 1:
        yield from _joined(join, join.shown)


def _joined(join: Join, names: Iterable[str]) -> Iterator[Quantity]:
    def takes(one: Asked) -> bool:
        return one[0].name in join.tasks

    for name, of, units in measures.of_join(join, names):
        yield Quantity(join.group, name, of, takes, name in join.shares, units)


# --- statistics -----------------------------------------------------------------------------------


def _line(quantity: Quantity, sides: Sequence[Side]) -> Line:
    asked = {side.label: [one for one in side.asked if quantity.takes(one)] for side in sides}
    numbers = {label: interval(quantity, own) for label, own in asked.items() if own}
    first, *others = asked
    differences = {label: _difference(quantity, asked[first], asked[label]) for label in others}
    return Line(quantity, _there(numbers), _there(differences))


def _there(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in found.items() if one is not None}


def interval(quantity: Quantity, asked: Sequence[Asked]) -> Interval | None:
    """With its 95 % interval; None where it has no value, or is a count."""
    clusters, share = list(map(measures.cluster, asked)), quantity.share
    return measures.interval_of(quantity.of, quantity.units, asked, clusters, share=share)


def _difference(
    quantity: Quantity, first: Sequence[Asked], second: Sequence[Asked]
) -> Difference | None:
    """None where both were asked nothing in common, or one has no number."""
    before, after = _by_id(first), _by_id(second)
    pairs = [(before[key], after[key]) for key in before if key in after]
    if not pairs:
        return None
    if quantity.units is not None:
        old, new = (quantity.units(own) for own in zip(*pairs, strict=True))
        if not (both := [name for name in old if name in new]):
            return None
        rises = [new[name][1] - old[name][1] for name in both]
        value, p = stats.mean_difference(rises, [old[name][0] for name in both])
        rose, fell = sum(one > 0 for one in rises), sum(one < 0 for one in rises)
        return Difference(_inside(quantity, value), p, rose, fell)

    def rise(some: Sequence[tuple[Asked, Asked]]) -> float | None:
        old, new = (quantity.of(own) for own in zip(*some, strict=True)) if some else (None, None)
        return None if old is None or new is None else new - old

    if not isinstance(rise(pairs), float):
        return None
    clusters = [measures.cluster(one) for one, _ in pairs]
    value = stats.jackknife(rise, pairs, clusters)
    return Difference(_inside(quantity, value), stats.p_value(value), None, None)


def _inside(quantity: Quantity, difference: Interval) -> Interval:
    """No two shares are further apart than 1."""
    if not quantity.share:
        return difference
    ends = max(difference.low, -1.0), min(difference.high, 1.0)
    return dataclasses.replace(difference, low=ends[0], high=ends[1])


def _by_id(asked: Iterable[Asked]) -> dict[tuple[str, str], Asked]:
    return {(task.name, item["id"]): (task, item) for task, item in asked}


def _corrected(lines: Sequence[Line]) -> list[Line]:
    """With the p-values of each side corrected over the lines (Benjamini and Hochberg)."""
    from scipy.stats import false_discovery_control

    made = [dict(line.differences) for line in lines]
    for label in {label for one in made for label in one}:
        own = [one for one in made if label in one and one[label].p is not None]
        corrected = false_discovery_control([one[label].p for one in own]) if own else []
        for one, p in zip(own, corrected, strict=True):
            one[label] = dataclasses.replace(one[label], p=float(p))
    return [
        dataclasses.replace(line, differences=one) for line, one in zip(lines, made, strict=True)
    ]
