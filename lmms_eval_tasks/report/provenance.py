"""Facts about how numbers came about, noted while they are computed and written into the results.

A fact is about the run, not about items: nothing that is scored is ever read from here.
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
    """Remember what a metric was computed with, or why not; the last one counts."""
    context.current().own(_Notes).setdefault(benchmark, {})[metric] = told


def notes(benchmark: str) -> dict[str, str]:
    """The notes of this run on a benchmark so far, by metric."""
    return dict(context.current().own(_Notes).get(benchmark, {}))


def known(what: str, look: Callable[[], T], found: list[Condition]) -> T | None:
    """Return what `look` returns, or None and one more condition: files may have gone by now."""
    try:
        return look()
    except TasksError as error:
        found.append(Condition(Kind.NOTE, f"the {what} of this run are no longer known: {error}"))
        return None
