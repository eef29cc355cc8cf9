"""Facts about how numbers came about, noted while they are computed and written into the results.

A fact is about the process, not about items: nothing that is scored is ever read from here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lmms_eval_tasks.errors import TasksError

_notes: dict[str, Any] = {}


def note(name: str, fact: Any) -> None:
    """Remember a fact (plain types) under `name`; the last one counts."""
    _notes[name] = fact


def notes() -> dict[str, Any]:
    """All facts noted so far in this process."""
    return dict(_notes)


def known(what: str, look: Callable[[], Any], warnings: list[str]) -> Any:
    """What `look` finds, or None and one more warning: files may have gone during the run."""
    try:
        return look()
    except TasksError as error:
        warnings.append(f"the {what} of this run cannot be told any more: {error}")
        return None
