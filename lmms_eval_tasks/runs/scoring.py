"""Scoring: a reply becomes an item, for a run and `rescore`, and goes through the host."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.benchmark import Item, Items, JointMetric, Metric, Task
from lmms_eval_tasks.judges.asking import Answer, settle
from lmms_eval_tasks.judges.run import ordered_map
from lmms_eval_tasks.judges.verdict import Scoring
from lmms_eval_tasks.notify import say
from lmms_eval_tasks.report import aggregation
from lmms_eval_tasks.utils.json_files import Json, JsonObject
from lmms_eval_tasks.utils.metrics import aggregate
from lmms_eval_tasks.utils.replies import reply_text
from lmms_eval_tasks.utils.saved_runs import CARRIER


def scored(task: Task, kept: Item, reply: str, answer: Answer) -> JsonObject:
    """The item of one reply; an exception becomes the status `error`, or the run would be lost."""
    try:
        made = settle(task.score(kept, reply), answer)
    except Exception:
        say(f"scoring {kept['id']} failed; saved with status error")
        traceback.print_exc()
        made = {**task.failed_item, "status": "error"}
    if task.judgements and reply_text.reply_status(reply) == "refused":
        made["refused"] = True  # judged like any answer; the numbers are given without it too
    return {**kept, **made, "reply": reply}


def scored_together(task: Task, items: Items, asker: Callable[[Item], Answer]) -> Items:
    """Items with what is scored of several at once (`Task.score_jointly`), in their order."""
    if task.score_jointly is None:
        return items
    wanted: list[tuple[str, Scoring[Mapping[str, object]]]] = []
    with aggregate.never_raises(task.name):
        wanted = list(task.score_jointly(items))
    if not wanted:
        return items
    found = {item["id"]: item for item in items}

    def scored_one(one: tuple[str, Scoring[Mapping[str, object]]]) -> Item:
        name, scoring = one
        item = found[name]
        made: JsonObject = {"status": "error"}
        with aggregate.never_raises(name):
            made = settle(scoring, asker(item))
            made = {**made, "verdicts": {**item.get("verdicts", {}), **made["verdicts"]}}
        return {**item, **made}

    found |= {item["id"]: item for item in ordered_map(scored_one, wanted, task.name)}
    return list(found.values())


# --- through the host ---------------------------------------------------------------------------


def errors_of(key: str) -> list[str]:
    """Names of the host's standard errors of a metric in its table, `metric,filter`."""
    metric, _, of = key.partition(",")
    return [f"{metric}_stderr{kind},{of}" for kind in ("", "_clt", "_clustered")]


class Carried(float):
    """A number on its way through the host that carries a task's items.

    The host aggregates each metric alone and in no fixed order (docs/design.md). What is computed
    of whole items is computed once, after it is done (finish.py).
    """

    items: Items  # of the task
    task: str  # whose side of a joined number it is, which is nan in the task's own row; "" else

    def __new__(cls, value: float, items: Items, task: str = "") -> Carried:
        """Make one."""
        self = super().__new__(cls, value)
        self.items, self.task = items, task
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return (Carried, (float(self), self.items, self.task))

    def __deepcopy__(self, _memo: object) -> Carried:
        return self


def spread(task: Task, joins: Sequence[JointMetric], item: Item) -> dict[str, JsonObject]:
    """The item under the metrics of the host's table: whole under `failed`, short under the others.

    The key `score` brings the host's standard errors: only under plain means, and absent, not None,
    where there is no number (docs/design.md).
    """
    made: dict[str, JsonObject] = {CARRIER: dict(item)}
    for metric in task.metrics:
        if metric.host_fields is None or (metric.include is not None and not metric.include(item)):
            continue
        score = {}
        if metric.mean_field and item.get(metric.mean_field) is not None:
            score = {task.cluster_field: item[task.cluster_field], "score": item[metric.mean_field]}
        made[metric.name] = {**_short(item, metric.host_fields), **score}
    for join in joins:
        if task.name in join.tasks:
            made |= {name: _short(item, needs) for name, needs in join.host_fields.items()}
    return made


def _short(item: Item, needs: Sequence[str]) -> JsonObject:
    """The fields that a metric needs (`Metric.host_fields`)."""
    short: JsonObject = {}
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


def metric_list(task: Task, joins: Sequence[JointMetric]) -> list[JsonObject]:
    """The host's `metric_list` of a task."""

    def whole(metric: Metric) -> Callable[[Items], Json]:
        return lambda items: metric.compute(aggregate.as_counted(items))

    def failed(items: Items) -> Carried:
        return Carried(aggregation.count_failed(items), items)

    def side(items: Items) -> Carried:
        return Carried(math.nan, items, task.name)

    shown = [one for one in task.metrics if one.host_fields is not None]
    rows = [
        (CARRIER, failed, False),
        *((one.name, whole(one), one.higher_is_better) for one in shown),
    ]
    own = (join for join in joins if task.name in join.tasks)
    rows += [(name, side, True) for join in own for name in join.host_fields]
    return [
        {
            "metric": name,
            "aggregation": aggregate.never_raises(name)(of),
            "higher_is_better": better,
        }
        for name, of, better in rows
    ]


def group_number(join: JointMetric, name: str) -> Callable[..., Json]:
    """The aggregation of one joined number for the host's group."""

    def of_group(
        values: Sequence[object], _sizes: object = None, _weight_by_size: object = None
    ) -> Json:
        sides = {value.task: value.items for value in values if isinstance(value, Carried)}
        return aggregation.joined(join, sides).get(name)

    return aggregate.never_raises(f"{join.group} {name}")(of_group)
