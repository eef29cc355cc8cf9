"""Notes about how numbers were computed, taken during the computation and written to the results.

A note concerns the run, not items. No scoring reads a note.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lmms_eval_tasks import context
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.utils.conditions import Condition, Kind

T = TypeVar("T")


class _Notes(dict[str, dict[str, str]]):
    """Notes by benchmark and metric."""


def note(benchmark: str, metric: str, told: str) -> None:
    """Record how a metric was computed, or the reason why not; the last note counts."""
    context.current().own(_Notes).setdefault(benchmark, {})[metric] = told


def notes(benchmark: str) -> dict[str, str]:
    """Return this run's notes on a benchmark so far, by metric."""
    return dict(context.current().own(_Notes).get(benchmark, {}))


def known(what: str, look: Callable[[], T], found: list[Condition]) -> T | None:
    """Return the result of `look`; None and one more condition if files have disappeared."""
    try:
        return look()
    except TasksError as error:
        found.append(
            Condition(Kind.NOTE, f"the {what} of this run cannot be told any more: {error}")
        )
        return None
