"""From a reply to an item, from items to numbers: for a run, `rescore` and reports alike."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from lmms_eval_tasks.benchmark import Item, Items, Join, Metric, Task, Units
from lmms_eval_tasks.console import say
from lmms_eval_tasks.judges.asking import Answer, settle
from lmms_eval_tasks.judges.run import ordered_map
from lmms_eval_tasks.judges.verdict import Scoring
from lmms_eval_tasks.utils.metrics import aggregate, stats
from lmms_eval_tasks.utils.replies import answers
from lmms_eval_tasks.utils.saved_runs import CARRIER

T = TypeVar("T")
Asked = tuple[Task, Item]  # an item, and the task that it is of
Of = Callable[[Sequence[Asked]], Units]


def scored(task: Task, kept: Item, reply: str, answer: Answer) -> dict[str, Any]:
    """The item of one reply; an exception becomes the status `error`, or the run would be lost."""
    try:
        made = settle(task.score(kept, reply), answer)
    except Exception:
        say(f"scoring {kept['id']} failed; kept as status error")
        traceback.print_exc()
        made = {**task.blank, "status": "error"}
    if task.asks and answers.reply_status(reply) == "refused":
        made["refused"] = True  # judged like any answer; the numbers are given without it too
    return {**kept, **made, "reply": reply}


def scored_together(task: Task, items: Items, asker: Callable[[Item], Answer]) -> Items:
    """Items with what is scored of several at once (`Task.together`), in their order."""
    listed = aggregate.never_raises(lambda: list(task.together(items)), task.name)
    if not (wanted := listed()):
        return items
    found = {item["id"]: item for item in items}

    def scored_one(one: tuple[str, Scoring]) -> Item:
        name, scoring = one
        item = found[name]
        made = aggregate.never_raises(lambda: settle(scoring, asker(item)), name)()
        if made is None:
            return {**item, "status": "error"}
        return {**item, **made, "verdicts": {**item.get("verdicts", {}), **made["verdicts"]}}

    found |= {item["id"]: item for item in ordered_map(scored_one, wanted, task.name)}
    return list(found.values())


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
    """Counts by status, 95 % intervals clustered by video, and what else the task tells."""
    ordered = sorted(aggregate.as_counted(items), key=lambda item: str(item["id"]))
    wanted = [one for one in task.metrics if one.shown is not None or one.units or one.sure]
    found = {one.name: interval(one, ordered, task.cluster) for one in wanted}
    return {
        "items": len(ordered),
        "status": aggregate.by_status(ordered),
        **task.details(ordered),
        "intervals": {name: one.as_dict() for name, one in found.items() if one is not None},
    }


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


def of_join(join: Join) -> Iterator[tuple[str, Callable[[Sequence[Asked]], Any], Of | None]]:
    """The shown numbers of a join as numbers of items with their tasks, each with its units."""

    def sides(asked: Sequence[Asked]) -> dict[str, list[Item]]:
        found: dict[str, list[Item]] = {}
        for task, item in asked:
            found.setdefault(task.name, []).append(item)
        return found

    def number(name: str, asked: Sequence[Asked]) -> Any:
        return joined(join, sides(asked)).get(name)

    def units(name: str, asked: Sequence[Asked]) -> Units:
        return join.units[name](sides(asked))

    for name in join.shown:
        yield name, partial(number, name), partial(units, name) if name in join.units else None


def joined_details(
    join: Join, tasks: Mapping[str, Task], sides: Mapping[str, Items]
) -> dict[str, Any]:
    """The intervals of the shown numbers of a join, as `details` has those of a task."""
    asked = [(tasks[name], item) for name in join.tasks for item in sides.get(name, ())]
    clusters = [str(item.get(task.cluster)) for task, item in asked]
    found = {
        name: interval_of(of, units, asked, clusters, share=name in join.shares)
        for name, of, units in of_join(join)
    }
    return {"intervals": {name: one.as_dict() for name, one in found.items() if one is not None}}


def joined(join: Join, sides: Mapping[str, Items]) -> dict[str, Any]:
    """The numbers of a join, of whichever of its tasks are there; {} if they are too few."""
    own = {name: sides[name] for name in join.tasks if sides.get(name)}
    guarded = aggregate.never_raises(join.of, join.group)
    return dict(guarded(own) or {}) if own else {}


# --- through the host ---------------------------------------------------------------------------


def errors_of(key: str) -> list[str]:
    """Names of the host's standard errors of a metric in its table, `metric,filter`."""
    metric, _, of = key.partition(",")
    return [f"{metric}_stderr{kind},{of}" for kind in ("", "_clt", "_clustered")]


class Carried(float):
    """A number on its way through the host that carries a task's items.

    The host aggregates each metric alone and in no fixed order (host.md, Results). What is computed
    of whole items is computed once, after it is done (after.py).
    """

    items: Items  # of the task
    task: str  # whose side of a joined number it is, which is nan in the task's own row; "" else

    def __new__(cls, value: float, items: Items, task: str = "") -> Carried:
        """Make one."""
        self = super().__new__(cls, value)
        self.items, self.task = items, task
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (Carried, (float(self), self.items, self.task))

    def __deepcopy__(self, _memo: Any) -> Carried:
        return self


def spread(task: Task, joins: Sequence[Join], item: Item) -> dict[str, dict[str, Any]]:
    """The item under the metrics of the host's table: whole under `failed`, short under the others.

    The key `score` brings the host's standard errors: only under plain means, and absent, not None,
    where there is no number (host.md).
    """
    made: dict[str, dict[str, Any]] = {CARRIER: dict(item)}
    for metric in task.metrics:
        if metric.shown is None or (metric.where is not None and not metric.where(item)):
            continue
        score = {}
        if metric.mean and item.get(metric.mean) is not None:
            score = {task.cluster: item[task.cluster], "score": item[metric.mean]}
        made[metric.name] = {**_short(item, metric.shown), **score}
    for join in joins:
        if task.name in join.tasks:
            made |= {name: _short(item, needs) for name, needs in join.shown.items()}
    return made


def _short(item: Item, needs: Sequence[str]) -> dict[str, Any]:
    """The fields that a metric needs (`Metric.shown`)."""
    short: dict[str, Any] = {}
    for need in needs:
        *path, last = need.split(".")
        value: Any = item
        place = short
        for name in path:
            value = value.get(name, {})
            place = place.setdefault(name, {}) if value else place
        if last in value:
            place[last] = value[last]
    return short


def metric_list(task: Task, joins: Sequence[Join]) -> list[dict[str, Any]]:
    """The host's `metric_list` of a task."""

    def whole(metric: Metric) -> Callable[[Items], Any]:
        return lambda items: metric.of(aggregate.as_counted(items))

    def failed(items: Items) -> Carried:
        return Carried(count_failed(items), items)

    def side(items: Items) -> Carried:
        return Carried(math.nan, items, task.name)

    shown = [one for one in task.metrics if one.shown is not None]
    rows = [(CARRIER, failed, False), *((one.name, whole(one), one.better) for one in shown)]
    own = (join for join in joins if task.name in join.tasks)
    rows += [(name, side, True) for join in own for name in join.shown]
    return [
        {
            "metric": name,
            "aggregation": aggregate.never_raises(of, name),
            "higher_is_better": better,
        }
        for name, of, better in rows
    ]


def group_number(join: Join, name: str) -> Callable[..., Any]:
    """The aggregation of one joined number for the host's group."""

    def of_group(values: Sequence[Any], _sizes: Any = None, _weight_by_size: Any = None) -> Any:
        sides = {value.task: value.items for value in values if isinstance(value, Carried)}
        return joined(join, sides).get(name)

    return aggregate.never_raises(of_group, f"{join.group} {name}")
