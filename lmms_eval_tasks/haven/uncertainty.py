"""What a task's results tell beside its numbers: statuses, violations, 95 % intervals by video."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from lmms_eval_tasks.haven import scores
from lmms_eval_tasks.haven.labels import TASKS
from lmms_eval_tasks.utils import aggregate, stats
from lmms_eval_tasks.utils.aggregate import Item


def details(task: str, items: Sequence[Item]) -> dict[str, Any]:
    """Counts by status and by kind of violation, and bootstrap intervals over videos.

    The intervals are of the means over videos and of `_valid`; a video of which a metric is
    undefined is in none of its resamples.

    Args:
        task: one of labels.TASKS.
        items: whole items of the task, in any order.
    """
    why = next((item["not_run"] for item in items if item["status"] == scores.NOT_RUN), None)
    if why is not None:
        return {"items": 0, "not_run": why}
    ordered = sorted(items, key=lambda item: item["id"])
    measured = scores.MEASURED[TASKS[task].kind]
    kinds: Counter[str] = Counter()
    for item in ordered:
        kinds.update({name: 1 for name, n in item["violations"].items() if n})
    found: dict[str, Any] = {
        "items": len(ordered),
        "status": aggregate.by_status(ordered),
        "violations": dict(sorted(kinds.items())),  # kind -> number of replies
        "undefined": {item["id"]: item["undefined"] for item in ordered if item["undefined"]},
        "intervals": {
            name: interval.as_dict()
            for metric in measured
            for name, interval in _intervals(metric, ordered).items()
        },
    }
    parts = {part for item in ordered for part in item["parts"]}
    if len(parts) > 1:
        found["parts"] = {
            part: aggregate.by_status(
                [{"status": scores.part_status(item, part)} for item in ordered]
            )
            for part in sorted(parts)
        }
    return found


def _intervals(metric: str, items: Sequence[Item]) -> dict[str, stats.Interval]:
    part = scores.part_of(metric)
    # As in the means: a reply whose scoring broke has no scores, and counts as 0.
    values = [(item, item["scores"].get(metric, 0.0)) for item in items]
    defined = [(item, value) for item, value in values if value is not None]
    valid = [
        (item, value)
        for item, value in defined
        if aggregate.is_valid({"status": scores.part_status(item, part)})
    ]
    return {
        name: stats.cluster_bootstrap(
            aggregate.mean,
            [value for _, value in own],
            [item["video"] for item, _ in own],
        )
        for name, own in ((metric, defined), (f"{metric}_valid", valid))
        if own
    }
