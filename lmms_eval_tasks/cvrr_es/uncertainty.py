"""What a task's results tell beside its numbers: statuses, intervals, and what joins to others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from lmms_eval_tasks.cvrr_es import rating_scores
from lmms_eval_tasks.cvrr_es.labels import JUDGE_TASKS
from lmms_eval_tasks.cvrr_es.reliability import kappas
from lmms_eval_tasks.cvrr_es.reliability.describe import summaries
from lmms_eval_tasks.cvrr_es.reliability.leniency import leniencies
from lmms_eval_tasks.utils import aggregate, rating_means, stats
from lmms_eval_tasks.utils.aggregate import Item


def details(task: str, items: Sequence[Item]) -> dict[str, Any]:
    """Counts by status and 95 % intervals, clustered by video.

    Args:
        task: of the benchmark or of the judge study.
        items: whole items of the task, in any order.
    """
    ordered = sorted(items, key=lambda item: item["id"])
    found = {"items": len(ordered), "status": aggregate.by_status(ordered)}
    return {**found, **(_rated(ordered) if task in JUDGE_TASKS else _answered(ordered))}


def _answered(items: Sequence[Item]) -> dict[str, Any]:
    intervals = {}
    if not aggregate.is_unjudged(items):
        for name, own in (("acc", items), ("acc_valid", list(filter(aggregate.is_valid, items)))):
            if own:
                values = [float(item["right"] or 0) for item in own]
                interval = stats.clustered_mean(values, [item["video"] for item in own])
                intervals[name] = interval.as_dict()
    score = rating_means.interval("score", items)
    if score is not None:
        intervals["score_valid"] = score.as_dict()
    return {"intervals": intervals}


def _rated(items: Sequence[Item]) -> dict[str, Any]:
    """Every cell of the study's tables for this judge, and what its ratings rest on."""
    made = rating_scores.study(items)
    ratings = next(iter(made.raters.values()))
    found = kappas.reliability(made, ratings)
    notes: Counter[str] = Counter()
    for item in items:
        notes.update({name: 1 for name, n in item["notes"].items() if n})
    told = summaries(made, ratings)
    lenient = leniencies(made, ratings)
    return {
        "judge": items[0]["judge"],
        "forms": dict(sorted(notes.items())),  # how ratings were written -> number of replies
        "fell_back": sum(item["fell_back"] for item in items),
        "kappa": {
            "mean": found.mean.as_dict(),
            "pooled": found.pooled.as_dict(),
            "by_dimension": {name: one.as_dict() for name, one in found.by_dimension.items()},
            "cells": {
                f"{cell.dimension}/{cell.candidate}": one.as_dict()
                for cell, one in found.cells.items()
            },
        },
        "ratings": {
            "overall": told.overall.as_dict(),
            "by_dimension": {name: one.as_dict() for name, one in told.by_dimension.items()},
            "by_candidate": {name: one.as_dict() for name, one in told.by_candidate.items()},
        },
        "leniency": {
            "overall": lenient.overall.as_dict(),
            "by_dimension": {name: one.as_dict() for name, one in lenient.by_dimension.items()},
            "by_candidate": {name: one.as_dict() for name, one in lenient.by_candidate.items()},
        },
    }
