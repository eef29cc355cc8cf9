"""From items to numbers with their intervals: for runs, saved runs and reports alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from lmms_eval_tasks.benchmark import Item, Items, Join, Metric, Task, Units
from lmms_eval_tasks.report import readings
from lmms_eval_tasks.utils.conditions import Condition, Kind
from lmms_eval_tasks.utils.metrics import aggregate, stats
from lmms_eval_tasks.utils.saved_runs import CARRIER

T = TypeVar("T")
Asked = tuple[Task, Item]  # an item, and the task that it is of
Of = Callable[[Sequence[Asked]], Units]


def count_failed(items: Items) -> int:
    """Number of items whose status is not ok."""
    return sum(item["status"] != "ok" for item in items)


def numbers(task: Task, items: Items) -> dict[str, Any]:
    """Every number of a task's items, by name; those of which it has no item are left out."""
    found = {}
    ran = aggregate.as_counted(items)
    for metric in (*task.metrics, *task.more(ran)):
        if own := metric.own(ran):
            found[metric.name] = aggregate.never_raises(metric.of, metric.name)(own)
    return {CARRIER: count_failed(items), **found}


def details(task: Task, items: Items) -> dict[str, Any]:
    """Counts by status, 95 % intervals clustered by video, and what else the task tells.

    `reading`, where anything is odd, is a list of lines on how its replies were read, each with its
    weight (readings.py).
    """
    ordered = sorted(aggregate.as_counted(items), key=lambda item: str(item["id"]))
    found = {
        one.name: interval(one, ordered, task.cluster) for one in task.metrics if one.has_interval
    }
    notes = aggregate.never_raises(readings.notes, "how replies were read")(task, ordered)
    return {
        "items": len(ordered),
        "status": aggregate.by_status(ordered),
        **({"reading": [note._asdict() for note in notes]} if notes else {}),
        **task.details(ordered),
        "intervals": {name: one.as_dict() for name, one in found.items() if one is not None},
    }


def few_videos(task: Task, items: Items) -> list[Condition]:
    """That a task's numbers rest on few videos; [] of enough."""
    told = stats.few(len({item.get(task.cluster) for item in items}))
    return [Condition(Kind.FEW, told, (task.name,))] if told else []


def interval(metric: Metric, items: Items, cluster: str) -> stats.Interval | None:
    """A metric of some items with its 95 % interval; None where it has no value or is a count."""
    own = metric.own(items)
    of = aggregate.never_raises(metric.of, metric.name)
    clusters = [str(item.get(cluster)) for item in own]
    return interval_of(of, metric.units, own, clusters, share=metric.share)


def interval_of(
    of: Callable[[Sequence[T]], Any],
    units: Callable[[Sequence[T]], Units] | None,
    items: Sequence[T],
    clusters: Sequence[str],
    *,
    share: bool,
) -> stats.Interval | None:
    """As `interval`, of any number: of a mean's units, else of the number without each cluster."""
    if not items:
        return None
    if units is not None:
        if not (found := units(items)):
            return None
        videos, values = zip(*found.values(), strict=True)
        return stats.clustered_mean(values, videos, share=share)
    if not isinstance(of(items), float):
        return None
    return stats.jackknife(of, items, clusters, share=share)


def cluster(one: Asked) -> str:
    """What an item's intervals are clustered by: its video."""
    task, item = one
    return str(item.get(task.cluster))


def of_join(
    join: Join, names: Iterable[str]
) -> Iterator[tuple[str, Callable[[Sequence[Asked]], Any], Of | None]]:
    """Numbers of a join as numbers of items with their tasks, each with its units."""

    def sides(asked: Sequence[Asked]) -> dict[str, list[Item]]:
        found: dict[str, list[Item]] = {}
        for task, item in asked:
            found.setdefault(task.name, []).append(item)
        return found

    def number(name: str, asked: Sequence[Asked]) -> Any:
        return joined(join, sides(asked)).get(name)

    def units(name: str, asked: Sequence[Asked]) -> Units:
        found = sides(asked)
        return {} if data_of(found) else join.units[name](found)

    for name in names:
        yield name, partial(number, name), partial(units, name) if name in join.units else None


def joined_details(
    join: Join, tasks: Mapping[str, Task], sides: Mapping[str, Items]
) -> dict[str, Any]:
    """The intervals of the shown numbers of a join, as `details` has those of a task."""
    asked = [(tasks[name], item) for name in join.tasks for item in sides.get(name, ())]
    clusters = list(map(cluster, asked))
    found = {
        name: interval_of(of, units, asked, clusters, share=name in join.shares)
        for name, of, units in of_join(join, join.shown)
    }
    return {"intervals": {name: one.as_dict() for name, one in found.items() if one is not None}}


def joined(join: Join, sides: Mapping[str, Items]) -> dict[str, Any]:
    """The numbers of a join, of whichever of its tasks are there.

    They are {} if the tasks are too few, or of different data: the same id may then be of two
    questions.
    """
    own = {name: sides[name] for name in join.tasks if sides.get(name)}
    guarded = aggregate.never_raises(join.of, join.group)
    return dict(guarded(own) or {}) if own and not data_of(own) else {}


def data_of(sides: Mapping[str, Items]) -> dict[str, str]:
    """Data and setting by task, where tasks differ in one of them; {} where they do not."""
    firsts = {name: items[0] for name, items in sides.items() if items}
    found = {
        name: " ".join(str(item[field]) for field in ("data", "setting") if field in item)
        for name, item in firsts.items()
    }
    return found if len(set(found.values())) > 1 else {}
