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


def note(benchmark: str, metric: str, line: str) -> None:
    """Record how a metric was computed, or the reason why not; the last note counts."""
    context.current().instance_of(_Notes).setdefault(benchmark, {})[metric] = line


def implementation_notes(benchmark: str) -> dict[str, str]:
    """Return this run's notes on a benchmark so far, by metric."""
    return dict(context.current().instance_of(_Notes).get(benchmark, {}))


def value_or_condition(
    subject: str, look: Callable[[], T], conditions: list[Condition]
) -> T | None:
    """Return the result of `look`; None and one more condition if files have disappeared."""
    try:
        return look()
    except TasksError as error:
        conditions.append(
            Condition(Kind.NOTE, f"the {subject} of this run are no longer known: {error}")
        )
        return None
