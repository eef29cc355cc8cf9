"""Where the papers' tables are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

TABLE_WIDTH = 150  # twelve categories beside each other


def wide_console() -> Console:
    """A console at least as wide as the papers' tables: a narrow one would drop columns."""
    from rich.console import Console

    return Console(width=max(Console().width, TABLE_WIDTH))
