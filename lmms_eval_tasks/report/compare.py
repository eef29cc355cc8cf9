"""Numbers of saved runs with their intervals, beside each other and beside the paper's rows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lmms_eval_tasks import leaderboards, registry
from lmms_eval_tasks.benchmark import ASKED, Benchmark, Item, Items, Metric, Task
from lmms_eval_tasks.report import arrivals
from lmms_eval_tasks.report.aggregation import Asked, Quantity, cluster, of_join, of_task
from lmms_eval_tasks.report.compared_runs import Side
from lmms_eval_tasks.utils.conditions import Condition, Kind, Record, record
from lmms_eval_tasks.utils.metrics import stats
from lmms_eval_tasks.utils.metrics.stats import Interval

POINTS = 0.03  # the difference for which the number of videos is told


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
        """The number of videos like these that it takes to find a difference of POINTS."""
        se = self.value.se
        return stats.clusters_needed(se, self.value.clusters, POINTS) if se else None


@dataclass(frozen=True)
class Comparison:
    """A quantity of all sides, by their labels; only what has a value."""

    quantity: Quantity
    numbers: Mapping[str, Interval]
    differences: Mapping[str, Difference] = field(default_factory=dict)


# --- what is shown --------------------------------------------------------------------------------


def headlines(
    benchmark: Benchmark, tasks: Sequence[Task], sides: Sequence[Side]
) -> list[Comparison]:
    """The numbers of the host's table, of tasks and of what joins them."""
    quantities = [of_task(task, metric) for task in tasks for metric in shown(task)]
    for join in benchmark.joint_metrics:
        if sum(task.name in join.tasks for task in tasks) > 1:
            quantities += [of_join(join, name) for name in join.host_fields]
    made = (_compared(one, sides) for one in quantities)
    return [line for line in made if line.numbers]


def by_category(task: Task, metric: Metric, split: str, sides: Sequence[Side]) -> list[Comparison]:
    """A number by one of the task's splits; the differences are tested together."""
    values = {
        str(item.get(split) or "") for side in sides for item in side.items.get(task.name, ())
    }

    def own(value: str) -> Quantity:
        part = of_task(task, metric).part(lambda item: str(item.get(split)) == value)
        return dataclasses.replace(part, row=value)

    made = (_compared(own(value), sides) for value in sorted(values - {""}))
    return _corrected([line for line in made if line.numbers])


def beside(benchmark: Benchmark, one: leaderboards.OurNumber, side: Side) -> Interval | None:
    """A side's number that stands beside a paper's figure; None where it has none.

    It has an interval where results have one (Metric.has_interval).
    """
    join = next((own for own in benchmark.joint_metrics if own.group == one.task), None)
    if join is not None:
        whole = of_join(join, one.metric)
    else:
        task = benchmark.tasks[one.task]
        (metric,) = (own for own in task.metrics if own.name == one.metric)
        whole = of_task(task, metric)
    wanted = {name: leaderboards.plain(value) for name, value in one.where}

    def takes(item: Item) -> bool:
        return all(leaderboards.plain(str(item.get(n))) == value for n, value in wanted.items())

    quantity = whole.part(takes)
    if quantity.has_interval:
        return quantity.interval(side.asked)
    asked = [own for own in side.asked if quantity.takes(own)]
    value, clusters = quantity.compute(asked) if asked else None, len({*map(cluster, asked)})
    if not isinstance(value, float):
        return None
    return Interval(value, math.nan, math.nan, None, "none", len(asked), clusters)


def shown(task: Task) -> list[Metric]:
    """A task's headline numbers."""
    return [metric for metric in task.metrics if metric.host_fields is not None]


def by_item(metric: Metric, items: Items) -> dict[str, float]:
    """Per-item values of a metric, by item id; empty if the metric is not a mean of items."""
    found = metric.per_unit(metric.own(items)) if metric.per_unit else {}
    ids = {item["id"] for item in items}
    return {name: value for name, (_, value) in found.items()} if found.keys() <= ids else {}


# --- statistics -----------------------------------------------------------------------------------


def _compared(quantity: Quantity, sides: Sequence[Side]) -> Comparison:
    numbers = {side.label: one for side in sides if (one := quantity.interval(side.asked))}
    # A number that is INVALID is no side of a difference.
    first, *others = (side for side in sides if side is sides[0] or side.is_valid(quantity.tasks))
    if not first.is_valid(quantity.tasks):
        others = []
    differences = {
        other.label: made for other in others if (made := _difference(quantity, first, other))
    }
    return Comparison(quantity, numbers, differences)


def _difference(quantity: Quantity, *sides: Side) -> Difference | None:
    """None where two sides were asked nothing in common, or one has no number."""
    first, second = ([one for one in side.asked if quantity.takes(one)] for side in sides)
    if not (pairs := paired(first, second).pairs):
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
        old, new = map(quantity.compute, zip(*some, strict=True)) if some else (None, None)
        return None if old is None or new is None else new - old

    if not isinstance(rise(pairs), float):
        return None
    value = stats.jackknife(rise, pairs, [cluster(one) for one, _ in pairs])
    return Difference(_inside(quantity, value), stats.p_value(value), None, None)


def _inside(quantity: Quantity, difference: Interval) -> Interval:
    """No two shares are further apart than 1."""
    if not quantity.is_share:
        return difference
    ends = max(difference.low, -1.0), min(difference.high, 1.0)
    return dataclasses.replace(difference, low=ends[0], high=ends[1])


class Paired(NamedTuple):
    """The items that two runs have in common: what was asked is the same, whatever its id."""

    pairs: Sequence[tuple[Asked, Asked]]  # of the first and of the second, under the first's id
    first: int  # how many items the first has
    second: int
    other: int  # how many ids both have for items that ask something else
    by_id: int  # how many were paired by id: a log of an earlier version does not say what it asked


def paired(first: Sequence[Asked], second: Sequence[Asked]) -> Paired:
    """Pair the items of two runs by the hash of what was asked.

    Items that ask the same (twice in a run) are paired by id, or else in the order of their ids.
    Of a pool that lost an item none is left: it counts only as a whole.
    """
    before, after = _by_id(first), _by_id(second)
    hashes = _hashes(before, after)
    keys = _same(*hashes)
    lost = {
        (task.name, pool)
        for key, (task, item) in before.items()
        if key not in keys and (pool := task.pool(item))
    }
    pairs = [
        ((task, item), (task, {**after[keys[key]][1], "id": item["id"]}))
        for key, (task, item) in before.items()
        if key in keys and (task.name, task.pool(item)) not in lost
    ]
    other = sum(key in after and hashes[0][key] != hashes[1][key] for key in before)
    unknown = sum(hashes[0][key].startswith(_BY_ID) for key in keys)
    return Paired(pairs, len(before), len(after), other, unknown)


Key = tuple[str, str]  # of an item: its task's name and its id


def _same(first: Mapping[Key, str], second: Mapping[Key, str]) -> dict[Key, Key]:
    """The items of a second run that ask what those of a first do, by the hashes of both."""
    waiting: dict[tuple[str, str], list[Key]] = {}
    for key in sorted(second):
        waiting.setdefault((key[0], second[key]), []).append(key)
    found: dict[Key, Key] = {}
    for by_id in (True, False):
        for key in sorted(first.keys() - found.keys()):
            alike = waiting.get((key[0], first[key]), [])
            if key in alike or (alike and not by_id):
                found[key] = key if key in alike else alike[0]
                alike.remove(found[key])
    return found


def rows_of(task: Task, sides: Sequence[Side]) -> list[dict[str, Item]]:
    """The items of each side by the name of their row: the first's id for what both were asked.

    An item of another side that has an id of the first's and asks something else has a row of its
    own, with the side's label in its name.
    """
    first, *others = ([(task, item) for item in side.items.get(task.name, ())] for side in sides)
    before = _by_id(first)
    found = [{item["id"]: item for _, item in first}]
    for side, own in zip(sides[1:], others, strict=True):
        after = _by_id(own)
        names = {theirs: ours[1] for ours, theirs in _same(*_hashes(before, after)).items()}
        found.append(
            {
                names.get(key) or (f"{key[1]} ({side.label})" if key in before else key[1]): item
                for key, (_, item) in after.items()
            }
        )
    return found


_BY_ID = "id "  # begins what stands for a hash where a log does not say what was asked


def _hashes(*sides: Mapping[Key, Asked]) -> list[dict[Key, str]]:
    """The hash of each item, of both sides as much as the one that knows less has of it."""
    found = [{key: str(item[ASKED]) for key, (_, item) in own.items()} for own in sides]
    size = min((len(one) for own in found for one in own.values() if one), default=0)
    return [{key: one[:size] or f"{_BY_ID}{key[1]}" for key, one in own.items()} for own in found]


def _by_id(asked: Iterable[Asked]) -> dict[Key, Asked]:
    return {(task.name, str(item["id"])): (task, item) for task, item in asked}


def conditions(tasks: Sequence[Task], sides: Sequence[Side]) -> dict[str, Record]:
    """The conditions of each side's numbers, by its label; the others' as the first compares."""
    first, *others = sides
    found = {side.label: side.record([task.name for task in tasks]) for side in sides}
    for other in others:
        own = [*not_in_common(first, other, tasks), *_other_pixels(first, other, tasks)]
        found[other.label] = record([*found[other.label], *own])
    return found


def _other_pixels(first: Side, second: Side, tasks: Sequence[Task]) -> Iterator[Condition]:
    """The condition that one checkpoint got prompts of other lengths in two runs."""
    if first.model != second.model:
        return
    for name in (task.name for task in tasks if task.name in first.runs.keys() & second.runs):
        task = registry.of(name).tasks[name]
        found = paired(*([(task, item) for item in one.items[name]] for one in (first, second)))
        before, after = ([pair[place][1] for pair in found.pairs] for place in (0, 1))
        if told := arrivals.differing_prompts(name, before, after):
            yield Condition(Kind.PIXELS, f"{told} ({first.label} first)", (name,))


def not_in_common(first: Side, second: Side, tasks: Sequence[Task]) -> Iterator[Condition]:
    """The conditions of items that are not compared, because only one side was asked so."""
    data = [
        {one.text for one in side.record(t.name for t in tasks) if one.kind == Kind.DATA}
        for side in (first, second)
    ]
    differ = "" if data[0] == data[1] else f" ({'; '.join(sorted(data[0] | data[1]))})"
    both = (first, second)
    for task in tasks:
        if not all(task.name in side.runs and side.is_valid([task.name]) for side in both):
            continue
        found = paired(*([(task, i) for i in one.items[task.name]] for one in both))
        common, name = len(found.pairs), task.name
        if found.by_id:
            told = f"{name}: {found.by_id:,} items are compared with {first.label} by id alone: "
            told += "a log of an earlier version does not hold the prompts"
            yield Condition(Kind.OTHER_ITEMS, told, (name,))
        if common == found.first == found.second:
            continue
        told = (
            f"{name}: {common:,} items are in both runs and are compared ({first.label} has "
            f"{found.first:,}, this run {found.second:,})"
        )
        if found.other:
            told += f"; {found.other:,} have the same id in both runs but another prompt{differ}"
        yield Condition(Kind.OTHER_ITEMS, told, (name,))


def _corrected(lines: Sequence[Comparison]) -> list[Comparison]:
    """Correct the p-values of each side over the comparisons (Benjamini and Hochberg)."""
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
