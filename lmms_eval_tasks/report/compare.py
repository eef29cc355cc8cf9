"""Numbers of saved runs with their intervals, compared with each other and with the paper."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lmms_eval_tasks import leaderboards, registry
from lmms_eval_tasks.benchmark import ASKED, Benchmark, Item, Items, Metric, Task
from lmms_eval_tasks.report import arrivals
from lmms_eval_tasks.report.aggregation import Quantity, TaskItem, cluster, of_joint, of_task
from lmms_eval_tasks.report.compared_runs import Side
from lmms_eval_tasks.utils.conditions import Condition, Kind, Record, record
from lmms_eval_tasks.utils.metrics import stats
from lmms_eval_tasks.utils.metrics.stats import Interval

POINTS = 0.03  # the difference for which a report gives the number of videos needed


@dataclass(frozen=True)
class Difference:
    """A number of one side minus the first side's, on the items that both have."""

    value: Interval
    # The p-value of no difference, corrected if several are tested together; None without a test.
    p: float | None
    rose: int | None  # number of averaged values that rose; None if the number is no mean
    fell: int | None

    @property
    def needed(self) -> int | None:
        """The number of such videos that a test needs to find a difference of POINTS.

        None if the difference has no standard error.
        """
        se = self.value.se
        return stats.clusters_needed(se, self.value.clusters, POINTS) if se else None


@dataclass(frozen=True)
class Comparison:
    """A quantity of all sides that have a value, by their labels."""

    quantity: Quantity
    numbers: Mapping[str, Interval]
    differences: Mapping[str, Difference] = field(default_factory=dict)

    def is_valid(self, label: str, invalid: Collection[tuple[str, str]]) -> bool:
        """Return False if a side's number is INVALID.

        Args:
            label: the side.
            invalid: label of a side and task, of numbers that are INVALID.
        """
        return all((label, task) not in invalid for task in self.quantity.tasks)


# --- comparisons ----------------------------------------------------------------------------------


def headlines(
    benchmark: Benchmark, tasks: Sequence[Task], sides: Sequence[Side]
) -> list[Comparison]:
    """Return the numbers of lmms-eval's table, of tasks and of their joint metrics."""
    quantities = [of_task(task, metric) for task in tasks for metric in headline_metrics(task)]
    for joint in benchmark.joint_metrics:
        if sum(task.name in joint.tasks for task in tasks) > 1:
            quantities += [of_joint(joint, name) for name in joint.host_fields]
    made = (_compared(one, sides) for one in quantities)
    return [line for line in made if line.numbers]


def by_category(task: Task, metric: Metric, split: str, sides: Sequence[Side]) -> list[Comparison]:
    """Return a number for each value of one of the task's splits.

    The differences between sides are tested together.
    """
    values = {
        str(item.get(split) or "") for side in sides for item in side.items.get(task.name, ())
    }

    def of_category(value: str) -> Quantity:
        part = of_task(task, metric).part(lambda item: str(item.get(split)) == value)
        return dataclasses.replace(part, row=value)

    made = (_compared(of_category(value), sides) for value in sorted(values - {""}))
    return _corrected([line for line in made if line.numbers])


def our_cell(benchmark: Benchmark, number: leaderboards.OurNumber, side: Side) -> Interval | None:
    """Return a side's number that corresponds to a paper's figure; None if it has none.

    It has an interval if the results have one (Metric.has_interval).
    """
    joint = next((m for m in benchmark.joint_metrics if m.group == number.task), None)
    if joint is not None:
        whole = of_joint(joint, number.metric)
    else:
        task = benchmark.tasks[number.task]
        (metric,) = (metric for metric in task.metrics if metric.name == number.metric)
        whole = of_task(task, metric)
    wanted = {name: leaderboards.plain(value) for name, value in number.where}

    def takes(item: Item) -> bool:
        return all(leaderboards.plain(str(item.get(n))) == value for n, value in wanted.items())

    quantity = whole.part(takes)
    if quantity.has_interval:
        return quantity.interval(side.task_items)
    asked = [own for own in side.task_items if quantity.takes(own)]
    value, clusters = quantity.compute(asked) if asked else None, len({*map(cluster, asked)})
    if not isinstance(value, float):
        return None
    return Interval(value, math.nan, math.nan, None, "none", len(asked), clusters)


def headline_metrics(task: Task) -> list[Metric]:
    """Return a task's headline numbers, which are columns of lmms-eval's table."""
    return [metric for metric in task.metrics if metric.host_fields is not None]


def by_item(metric: Metric, items: Items) -> dict[str, float]:
    """Return the per-item values of a metric, by item id; {} if the metric is no mean of items."""
    found = metric.per_unit(metric.counted_items(items)) if metric.per_unit else {}
    ids = {item["id"] for item in items}
    return {name: value for name, (_, value) in found.items()} if found.keys() <= ids else {}


# --- statistics -----------------------------------------------------------------------------------


def _compared(quantity: Quantity, sides: Sequence[Side]) -> Comparison:
    numbers = {side.label: one for side in sides if (one := quantity.interval(side.task_items))}
    # An INVALID number has no differences.
    first, *others = (side for side in sides if side is sides[0] or side.is_valid(quantity.tasks))
    if not first.is_valid(quantity.tasks):
        others = []
    differences = {
        other.label: made for other in others if (made := _difference(quantity, first, other))
    }
    return Comparison(quantity, numbers, differences)


def _difference(quantity: Quantity, *sides: Side) -> Difference | None:
    """Return the difference of two sides; None without common items, or if a side has no number."""
    first, second = ([one for one in side.task_items if quantity.takes(one)] for side in sides)
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

    def rise(some: Sequence[tuple[TaskItem, TaskItem]]) -> float | None:
        old, new = map(quantity.compute, zip(*some, strict=True)) if some else (None, None)
        return None if old is None or new is None else new - old

    if not isinstance(rise(pairs), float):
        return None
    value = stats.jackknife(rise, pairs, [cluster(one) for one, _ in pairs])
    return Difference(_inside(quantity, value), stats.p_value(value), None, None)


def _inside(quantity: Quantity, difference: Interval) -> Interval:
    """Return a difference of shares with its interval cut to -1..1."""
    if not quantity.is_share:
        return difference
    ends = max(difference.low, -1.0), min(difference.high, 1.0)
    return dataclasses.replace(difference, low=ends[0], high=ends[1])


class Paired(NamedTuple):
    """The items that two runs share: equal questions, whatever their ids."""

    pairs: Sequence[
        tuple[TaskItem, TaskItem]
    ]  # items of both runs; the second has the first one's id
    first: int  # number of items of the first run
    second: int
    other: int  # number of ids that mean different questions in the two runs
    by_id: int  # number of pairs by id: logs of earlier versions have no hash of the question


def paired(first: Sequence[TaskItem], second: Sequence[TaskItem]) -> Paired:
    """Pair the items of two runs by the hash of the question.

    Items with the same question (twice in a run) are paired by id, or else in the order of their
    ids. A pool that lost an item is left out, since it counts only as a whole.
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


Key = tuple[str, str]  # an item's task name and id


def _same(first: Mapping[Key, str], second: Mapping[Key, str]) -> dict[Key, Key]:
    """Return the items of a second run with the same questions as a first run's."""
    waiting: dict[tuple[str, str], list[Key]] = {}
    for key in sorted(second):
        waiting.setdefault((key[0], second[key]), []).append(key)
    matches: dict[Key, Key] = {}
    for by_id in (True, False):
        for key in sorted(first.keys() - matches.keys()):
            alike = waiting.get((key[0], first[key]), [])
            if key in alike or (alike and not by_id):
                matches[key] = key if key in alike else alike[0]
                alike.remove(matches[key])
    return matches


def rows_of(task: Task, sides: Sequence[Side]) -> list[dict[str, Item]]:
    """Return the items of each side by their row's name: the first side's id for a shared question.

    If another side's item has an id of the first side's and another question, it gets its own row,
    with the side's label in its name.
    """
    first, *others = ([(task, item) for item in side.items.get(task.name, ())] for side in sides)
    before = _by_id(first)
    items = [{item["id"]: item for _, item in first}]
    for side, pairs in zip(sides[1:], others, strict=True):
        after = _by_id(pairs)
        names = {theirs: ours[1] for ours, theirs in _same(*_hashes(before, after)).items()}
        items.append(
            {
                names.get(key) or (f"{key[1]} ({side.label})" if key in before else key[1]): item
                for key, (_, item) in after.items()
            }
        )
    return items


_BY_ID = "id "  # prefix of the replacement for a hash, if a log does not have it


def _hashes(*sides: Mapping[Key, TaskItem]) -> list[dict[Key, str]]:
    """Return the hash of each item, cut to the length that both sides have.

    An item without a hash gets its id, with a prefix, in place of a hash.
    """
    found = [{key: str(item[ASKED]) for key, (_, item) in own.items()} for own in sides]
    size = min((len(one) for own in found for one in own.values() if one), default=0)
    return [{key: one[:size] or f"{_BY_ID}{key[1]}" for key, one in own.items()} for own in found]


def _by_id(task_items: Iterable[TaskItem]) -> dict[Key, TaskItem]:
    return {(task.name, str(item["id"])): (task, item) for task, item in task_items}


def conditions(tasks: Sequence[Task], sides: Sequence[Side]) -> dict[str, Record]:
    """Return the conditions of each side's numbers, by the side's label.

    Sides after the first also have the conditions of the comparison with the first.
    """
    first, *others = sides
    found = {side.label: side.record([task.name for task in tasks]) for side in sides}
    for other in others:
        own = [*not_in_common(first, other, tasks), *_other_pixels(first, other, tasks)]
        found[other.label] = record([*found[other.label], *own])
    return found


def _other_pixels(first: Side, second: Side, tasks: Sequence[Task]) -> Iterator[Condition]:
    """Yield the condition that one checkpoint got prompts of different lengths in two runs."""
    if first.model != second.model:
        return
    for name in (task.name for task in tasks if task.name in first.runs.keys() & second.runs):
        task = registry.of(name).tasks[name]
        found = paired(*([(task, item) for item in one.items[name]] for one in (first, second)))
        before, after = ([pair[place][1] for pair in found.pairs] for place in (0, 1))
        if told := arrivals.differing_prompts(name, before, after):
            yield Condition(Kind.PIXELS, f"{told} ({first.label} first)", (name,))


def not_in_common(first: Side, second: Side, tasks: Sequence[Task]) -> Iterator[Condition]:
    """Yield conditions about items that are not compared: only one side has their question."""
    data = [
        {one.text for one in side.record(t.name for t in tasks) if one.kind == Kind.DATA}
        for side in (first, second)
    ]
    differ = "" if data[0] == data[1] else f" ({'; '.join(sorted(data[0] | data[1]))})"
    both = (first, second)
    for task in tasks:
        if not all(task.name in side.runs and side.is_valid([task.name]) for side in both):
            continue
        match = paired(*([(task, i) for i in one.items[task.name]] for one in both))
        common, name = len(match.pairs), task.name
        if match.by_id:
            text = f"{name}: {match.by_id:,} items are compared with {first.label} by id alone: "
            text += "a log of an earlier version does not hold the prompts"
            yield Condition(Kind.OTHER_ITEMS, text, (name,))
        if common == match.first == match.second:
            continue
        text = (
            f"{name}: {common:,} items are in both runs and are compared ({first.label} has "
            f"{match.first:,}, this run {match.second:,})"
        )
        if match.other:
            text += f"; {match.other:,} have the same id in both runs but another prompt{differ}"
        yield Condition(Kind.OTHER_ITEMS, text, (name,))


def _corrected(lines: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons with each side's p-values corrected (Benjamini and Hochberg)."""
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
