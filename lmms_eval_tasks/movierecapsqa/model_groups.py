"""Open-source and proprietary models (5.1): the rows of Table 5 are means over such groups.

Which model is in which is a map of pieces of names, leaderboards/model_groups.json.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

from lmms_eval_tasks.report.paper_tables import number
from lmms_eval_tasks.utils import aggregate

LEAST = 2  # models that make a group's row


def group_of(model: str) -> str | None:
    """The group of a model by its name or its arguments; None if the map has none for it."""
    for group, pattern in _patterns().items():
        if pattern.search(model.lower()):
            return group
    return None


def grouped(models: Iterable[str]) -> dict[str, list[str]]:
    """Group -> its models, of those groups that have two or more."""
    found: dict[str, list[str]] = {}
    for model in dict.fromkeys(models):
        if group := group_of(model):
            found.setdefault(group, []).append(model)
    return {group: own for group, own in sorted(found.items()) if len(own) >= LEAST}


def mean_of(values: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """The mean of every metric over some models' numbers; None where one of them has none.

    A mean of variances, or of counts, is nothing that the paper has: only means are taken.
    """
    names = {name for own in values for name in own if not name.endswith(_NO_MEANS)}
    made: dict[str, float | None] = {}
    for name in sorted(names):
        found = [number(own.get(name)) for own in values]
        known = [one for one in found if one is not None]
        made[name] = aggregate.mean(known) if len(known) == len(found) else None
    return made


_NO_MEANS = ("_var", "_failed", "_inconsistent", "_low", "_high", "_coverage", "claims")


@lru_cache(maxsize=1)
def _patterns() -> dict[str, re.Pattern[str]]:
    file = resources.files("lmms_eval_tasks.leaderboards") / "model_groups.json"
    groups = json.loads(file.read_text(encoding="utf-8"))["groups"]
    # At the beginning of a word: `aria` is no part of `variant`.
    return {
        group: re.compile(rf"(?<![a-z])(?:{'|'.join(map(re.escape, pieces))})")
        for group, pieces in groups.items()
    }
