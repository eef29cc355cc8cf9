"""Numbers from items, with their intervals: for runs, saved runs and reports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from lmms_eval_tasks import leaderboards
from lmms_eval_tasks.benchmark import GroupUnits, Item, Items, JointMetric, Metric, Task, Units
from lmms_eval_tasks.report import readings
from lmms_eval_tasks.utils.conditions import Condition, Kind
from lmms_eval_tasks.utils.json_files import Json, JsonObject
from lmms_eval_tasks.utils.metrics import aggregate, stats
from lmms_eval_tasks.utils.saved_runs import CARRIER

TaskItem = tuple[Task, Item]  # an item, with its task


def count_failed(items: Items) -> int:
    """Return the number of items whose status is not ok."""
    return sum(item["status"] != "ok" for item in items)


def numbers(task: Task, items: Items) -> JsonObject:
    """Return every metric of a task by name; a metric for which no item counts is absent."""
    values: JsonObject = {CARRIER: count_failed(items)}
    ran = aggregate.as_counted(items)
    for metric in (*task.metrics, *task.extra_metrics(ran)):
        if included := metric.counted_items(ran):
            values[metric.name] = None
            with aggregate.never_raises(metric.name):
                values[metric.name] = metric.compute(included)
    return values


def details(task: Task, items: Items) -> JsonObject:
    """Return counts by status, 95 % intervals clustered by video, and the task's own details.

    If anything is unusual, `reading` lists lines on how the replies were read, each with its weight
    (readings.py).
    """
    ordered = sorted(aggregate.as_counted(items), key=lambda item: str(item["id"]))
    notes: list[readings.Note] = []
    with aggregate.never_raises("how replies were read"):
        notes = readings.reply_notes(task, ordered)
    quantities = (of_task(task, one) for one in task.metrics if one.has_interval)
    return {
        "items": len(ordered),
        "status": aggregate.by_status(ordered),
        **({"reading": [note._asdict() for note in notes]} if notes else {}),
        **task.details(ordered),
        "intervals": intervals(quantities, [(task, item) for item in ordered]),
    }


def few_videos(task: Task, items: Items) -> list[Condition]:
    """Return the condition that a task has few videos, in a list; [] if there are enough."""
    told = stats.few(len({item.get(task.cluster_field) for item in items}))
    return [Condition(Kind.FEW, told, (task.name,))] if told else []


@dataclass(frozen=True)
class Quantity:
    """A number with an interval: one task's metric, or a joint number of several tasks."""

    row: str  # name of the task, the group, or the task's category
    metric: str
    tasks: Collection[str]  # tasks whose items count
    compute: Callable[[Sequence[TaskItem]], Json]  # computes the number; None if there is none
    takes: Callable[[TaskItem], bool]  # True for an item that counts
    is_share: bool  # True if the number lies in 0..1
    # If the number is a mean: returns the values that it averages, as Metric.per_unit does.
    units: Callable[[Sequence[TaskItem]], Units] | None = None
    has_interval: bool = True  # True if the results have an interval
    # If the number is a mean of groups' means: returns its values, as Metric.per_group_unit does.
    group_units: Callable[[Sequence[TaskItem]], GroupUnits] | None = None

    @property
    def published(self) -> leaderboards.Headline | None:
        """The paper's figures for this number, if it is the row's main number; else None."""
        found = leaderboards.headline(self.row)
        return found if found is not None and found.metric == self.metric else None

    def part(self, takes: Callable[[Item], bool]) -> Quantity:
        """Return the same number for the items for which `takes` is True."""
        return replace(self, takes=lambda one: self.takes(one) and takes(one[1]))

    def interval(self, task_items: Iterable[TaskItem]) -> stats.Interval | None:
        """Return the 95 % interval of this number, from those of the items that count for it.

        For a mean, the interval is a clustered t of the averaged values; for any other number, a
        delete-one-cluster jackknife. None if the number has no value, or is a count.
        """
        own = [one for one in task_items if self.takes(one)]
        if not own:
            return None
        if self.units is not None:
            if not (found := self.units(own)):
                return None
            videos, values = zip(*found.values(), strict=True)
            return stats.clustered_mean(values, videos, share=self.is_share)
        if self.group_units is not None:
            return _of_groups(self.group_units(own), len(own), share=self.is_share)
        if not isinstance(self.compute(own), float):
            return None
        return stats.jackknife(self.compute, own, list(map(cluster, own)), share=self.is_share)


def _of_groups(units: GroupUnits, n: int, *, share: bool) -> stats.Interval | None:
    """Return the interval of the mean of groups' means, from its values and its number of items."""
    by_video: dict[str, dict[str, list[float]]] = {}
    for group, video, value in units.values():
        by_video.setdefault(video, {}).setdefault(group, []).append(value)
    if not by_video:
        return None
    return stats.jackknife(
        _mean_of_groups, list(by_video.values()), list(by_video), share=share, n=n
    )


def _mean_of_groups(videos: Sequence[Mapping[str, Sequence[float]]]) -> float | None:
    """Return the mean of the groups' means, from the values of each video by group."""
    groups: dict[str, list[Sequence[float]]] = {}
    for by_group in videos:
        for group, values in by_group.items():
            groups.setdefault(group, []).append(values)
    return aggregate.mean(aggregate.mean(chain.from_iterable(own)) for own in groups.values())


def of_task(task: Task, metric: Metric) -> Quantity:
    """Return a task's metric as a quantity."""

    def items(task_items: Sequence[TaskItem]) -> list[Item]:
        return [item for _, item in task_items]

    @aggregate.never_raises(metric.name)
    def compute(task_items: Sequence[TaskItem]) -> Json:
        return metric.compute(items(task_items))

    def takes(task_item: TaskItem) -> bool:
        return task_item[0] is task and (metric.include is None or metric.include(task_item[1]))

    units, group_units = metric.per_unit, metric.per_group_unit
    return Quantity(
        task.name,
        metric.name,
        {task.name},
        compute,
        takes,
        metric.is_share,
        None if units is None else lambda asked: units(items(asked)),
        metric.has_interval,
        None if group_units is None else lambda asked: group_units(items(asked)),
    )


def of_joint(joint: JointMetric, name: str) -> Quantity:
    """Return a number of a joint metric as a quantity."""

    def group_by_task(task_items: Sequence[TaskItem]) -> dict[str, list[Item]]:
        by_task: dict[str, list[Item]] = {}
        for task, item in task_items:
            by_task.setdefault(task.name, []).append(item)
        return by_task

    def compute(task_items: Sequence[TaskItem]) -> Json:
        return joint_numbers(joint, group_by_task(task_items)).get(name)

    def units(task_items: Sequence[TaskItem]) -> Units:
        by_task = group_by_task(task_items)
        return {} if data_of(by_task) else joint.per_unit[name](by_task)

    return Quantity(
        joint.group,
        name,
        joint.tasks,
        compute,
        lambda task_item: task_item[0].name in joint.tasks,
        name in joint.share_names,
        units if name in joint.per_unit else None,
        name in {*joint.host_fields, *joint.per_unit},
    )


def cluster(task_item: TaskItem) -> str:
    """Return an item's cluster for intervals: its `Task.cluster_field`, such as its video."""
    task, item = task_item
    return str(item.get(task.cluster_field))


def intervals(
    quantities: Iterable[Quantity], task_items: Sequence[TaskItem]
) -> dict[str, JsonObject]:
    """Return the intervals of quantities by metric, as plain types, without missing intervals."""
    found = {one.metric: one.interval(task_items) for one in quantities}
    return {name: one.as_dict() for name, one in found.items() if one is not None}


def joint_details(
    joint: JointMetric, tasks: Mapping[str, Task], by_task: Mapping[str, Items]
) -> dict[str, JsonObject]:
    """Return the intervals of a joint metric's `host_fields`, in the form of `details`."""
    pairs = [(tasks[name], item) for name in joint.tasks for item in by_task.get(name, ())]
    return {"intervals": intervals((of_joint(joint, name) for name in joint.host_fields), pairs)}


def joint_numbers(joint: JointMetric, by_task: Mapping[str, Items]) -> JsonObject:
    """Return the numbers of a joint metric for the items by task, by name.

    The result is {} if too few of its tasks are there, or if their data or settings differ: then
    one id could mean two questions.
    """
    present = {name: by_task[name] for name in joint.tasks if by_task.get(name)}
    if present and not data_of(present):
        with aggregate.never_raises(joint.group):
            return dict(joint.compute(present))
    return {}


def data_of(sides: Mapping[str, Items]) -> dict[str, str]:
    """Return the data and the setting of each task if the tasks differ in them; else {}."""
    firsts = {name: items[0] for name, items in sides.items() if items}
    found = {
        name: " ".join(str(item[field]) for field in ("data", "setting") if field in item)
        for name, item in firsts.items()
    }
    return found if len(set(found.values())) > 1 else {}
