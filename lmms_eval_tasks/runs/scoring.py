"""The scoring of replies, and the form in which items pass through lmms-eval's aggregation."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.benchmark import Item, Items, JointMetric, Metric, Task
from lmms_eval_tasks.judges.asking import GetVerdicts, run_scoring
from lmms_eval_tasks.judges.run import ordered_map
from lmms_eval_tasks.judges.verdict import ScoringSteps
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.report import aggregation
from lmms_eval_tasks.utils.json_files import Json, JsonObject
from lmms_eval_tasks.utils.metrics import aggregate
from lmms_eval_tasks.utils.replies import reply_text
from lmms_eval_tasks.utils.saved_runs import CARRIER


def scored(task: Task, log_item: Item, reply: str, answer: GetVerdicts) -> JsonObject:
    """Return the item of one reply; if scoring raises an exception, its status is `error`.

    Args:
        task: the reply's task.
        log_item: the doc's fields in the log (`Task.log_fields`).
        reply: the model's text.
        answer: returns the verdicts that the scoring requests.
    """
    try:
        made = run_scoring(task.score(log_item, reply), answer)
    except Exception:
        notify(f"scoring {log_item['id']} failed; saved with status error")
        traceback.print_exc()
        made = {**task.failed_item, "status": "error"}
    if task.judgements and reply_text.reply_status(reply) == "refused":
        made["refused"] = True  # such an answer is judged, too; further metrics count it as wrong
    return {**log_item, **made, "reply": reply}


def scored_together(task: Task, items: Items, asker: Callable[[Item], GetVerdicts]) -> Items:
    """Return the items with the fields of joint scoring (`Task.score_jointly`), in their order."""
    if task.score_jointly is None:
        return items
    scorings: list[tuple[str, ScoringSteps[Mapping[str, object]]]] = []
    with aggregate.never_raises(task.name):
        scorings = list(task.score_jointly(items))
    if not scorings:
        return items
    by_id = {item["id"]: item for item in items}

    def scored_one(named_scoring: tuple[str, ScoringSteps[Mapping[str, object]]]) -> Item:
        name, scoring = named_scoring
        item = by_id[name]
        fields: JsonObject = {"status": "error"}
        with aggregate.never_raises(name):
            fields = run_scoring(scoring, asker(item))
            fields = {**fields, "verdicts": {**item.get("verdicts", {}), **fields["verdicts"]}}
        return {**item, **fields}

    by_id |= {item["id"]: item for item in ordered_map(scored_one, scorings, task.name)}
    return list(by_id.values())


# --- through lmms-eval ----------------------------------------------------------------------------


def errors_of(key: str) -> list[str]:
    """Return the keys of a metric's standard errors in lmms-eval's results.

    `key` is the metric's own key, such as `pair_acc,none`: the metric, a comma and a filter.
    """
    metric, _, of = key.partition(",")
    return [f"{metric}_stderr{kind},{of}" for kind in ("", "_clt", "_clustered")]


class ItemsCarrier(float):
    """A number that carries a task's items through lmms-eval's aggregation.

    lmms-eval aggregates each metric separately and in no fixed order (docs/design.md). So the
    numbers that need complete items are computed afterwards, all at once (finish.py).
    """

    items: Items  # all items of the task
    # For a joint number, whose value in the task's row is nan: the task's name; else "".
    task: str

    def __new__(cls, value: float, items: Items, task: str = "") -> ItemsCarrier:
        """Return the number `value` with its items."""
        self = super().__new__(cls, value)
        self.items, self.task = items, task
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return (ItemsCarrier, (float(self), self.items, self.task))

    def __deepcopy__(self, _memo: object) -> ItemsCarrier:
        return self


def to_host_rows(
    task: Task, joint_metrics: Sequence[JointMetric], item: Item
) -> dict[str, JsonObject]:
    """Return what lmms-eval aggregates for one item: by metric, the item's fields that it needs.

    The metric `failed` gets the complete item, the others only `Metric.host_fields`. The key
    `score` makes lmms-eval compute standard errors. Only plain means have this key; it is absent,
    not None, if an item has no number (docs/design.md).
    """
    rows: dict[str, JsonObject] = {CARRIER: dict(item)}
    for metric in task.metrics:
        if metric.host_fields is None or (metric.include is not None and not metric.include(item)):
            continue
        score = {}
        if metric.mean_field and item.get(metric.mean_field) is not None:
            score = {task.cluster_field: item[task.cluster_field], "score": item[metric.mean_field]}
        rows[metric.name] = {**_short(item, metric.host_fields), **score}
    for joint_metric in joint_metrics:
        if task.name in joint_metric.tasks:
            rows |= {name: _short(item, needs) for name, needs in joint_metric.host_fields.items()}
    return rows


def _short(item: Item, needs: Sequence[str]) -> JsonObject:
    """Return the item's fields that a metric needs (`Metric.host_fields`)."""
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


def metric_list(task: Task, joint_metrics: Sequence[JointMetric]) -> list[JsonObject]:
    """Return lmms-eval's `metric_list` of a task."""

    def whole(metric: Metric) -> Callable[[Items], Json]:
        return lambda items: metric.compute(aggregate.as_counted(items))

    def failed(items: Items) -> ItemsCarrier:
        return ItemsCarrier(aggregation.count_failed(items), items)

    def side(items: Items) -> ItemsCarrier:
        return ItemsCarrier(math.nan, items, task.name)

    shown = [one for one in task.metrics if one.host_fields is not None]
    rows = [
        (CARRIER, failed, False),
        *((one.name, whole(one), one.higher_is_better) for one in shown),
    ]
    task_joints = (joint for joint in joint_metrics if task.name in joint.tasks)
    rows += [(name, side, True) for joint in task_joints for name in joint.host_fields]
    return [
        {
            "metric": name,
            "aggregation": aggregate.never_raises(name)(of),
            "higher_is_better": better,
        }
        for name, of, better in rows
    ]


def group_number(joint: JointMetric, name: str) -> Callable[..., Json]:
    """Return the aggregation of one joint number for lmms-eval's group."""

    def of_group(
        values: Sequence[object], _sizes: object = None, _weight_by_size: object = None
    ) -> Json:
        by_task = {value.task: value.items for value in values if isinstance(value, ItemsCarrier)}
        return aggregation.joint_numbers(joint, by_task).get(name)

    return aggregate.never_raises(f"{joint.group} {name}")(of_group)
