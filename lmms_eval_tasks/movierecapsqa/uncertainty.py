"""What a task's results tell beside its numbers: statuses, and 95 % intervals by recap video."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmms_eval_tasks.movierecapsqa.labels import DIMENSIONS
from lmms_eval_tasks.utils import aggregate, rating_means
from lmms_eval_tasks.utils.aggregate import Item


def details(items: Sequence[Item]) -> dict[str, Any]:
    """Counts by status, of items and of ratings, and intervals of the means, clustered by video.

    Args:
        items: whole items of one task, in any order.
    """
    ordered = sorted(items, key=lambda item: item["id"])
    intervals = {f"{name}_valid": rating_means.interval(name, ordered) for name in DIMENSIONS}
    return {
        "items": len(ordered),
        "status": aggregate.by_status(ordered),
        "ratings": {
            name: aggregate.by_status([rating_means.rating(name, item) for item in ordered])
            for name in DIMENSIONS
        },
        "intervals": {
            name: interval.as_dict() for name, interval in intervals.items() if interval is not None
        },
    }
