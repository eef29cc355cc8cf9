"""What stands beside MAVERIX's numbers: counts, and intervals clustered by video (metrics.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from lmms_eval_tasks.maverix import robustness, rotations
from lmms_eval_tasks.maverix.labels import DIMENSIONS
from lmms_eval_tasks.utils import aggregate, rating_means, stats
from lmms_eval_tasks.utils.aggregate import Item


def details(kind: str, items: Sequence[Item]) -> dict[str, Any]:
    """Counts by status, rating and sound, and 95 % intervals clustered by video.

    Args:
        kind: choice, circular or open.
        items: whole items of one task, in any order. Withheld ones have no interval.
    """
    known = [item for item in items if not item["withheld"]]
    some = sorted(known, key=lambda item: item["id"])
    found: dict[str, Any] = {
        "items": len(items),
        "withheld": len(items) - len(some),
        "status": aggregate.by_status(items),
        "sound": dict(sorted(Counter(item["sound"] for item in items if item["sound"]).items())),
    }
    intervals: dict[str, stats.Interval | None] = {}
    if kind == "open":
        found["ratings"] = {
            d: aggregate.by_status([rating_means.rating(d, item) for item in some])
            for d in DIMENSIONS
        }
        for dimension in DIMENSIONS:
            intervals[f"{dimension}_valid"] = rating_means.interval(dimension, some)
        judged = robustness.judged_pairs(some)
        intervals["robust_both"] = _bootstrap(judged, lambda pair: float(pair.good))
        intervals["robust_diff"] = _bootstrap(judged, lambda pair: pair.gap)
    else:
        values = [float(item["right"] or 0) for item in some]
        intervals["acc"] = _clustered(values, [item["video"] for item in some])
    if kind == "circular":
        pools = list(rotations.pools(some).values())
        found["pools"] = len(pools)
        intervals["circ_acc"] = _bootstrap(pools, lambda pool: float(pool.right))
    found["intervals"] = {k: v.as_dict() for k, v in intervals.items() if v is not None}
    return found


def _clustered(values: Sequence[float], videos: Sequence[str]) -> stats.Interval | None:
    return stats.clustered_mean(values, videos) if values else None


def _bootstrap(groups: Sequence[Any], value: Callable[[Any], float]) -> stats.Interval | None:
    """Of the mean of `value` over pools or pairs, each a whole (stats.cluster_bootstrap)."""
    if not groups:
        return None
    return stats.cluster_bootstrap(
        lambda some: aggregate.mean(value(group) for group in some),
        groups,
        [group.video for group in groups],
    )
