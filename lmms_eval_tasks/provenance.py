"""Facts about how numbers came about, noted while they are computed and written into the results.

A fact is about the process, not about items: nothing that is scored is ever read from here.
"""

from __future__ import annotations

from typing import Any

_notes: dict[str, Any] = {}


def note(name: str, fact: Any) -> None:
    """Remember a fact (plain types) under `name`; the last one counts."""
    _notes[name] = fact


def notes() -> dict[str, Any]:
    """All facts noted so far in this process."""
    return dict(_notes)
