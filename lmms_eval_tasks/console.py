"""Where the papers' tables are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

TABLE_WIDTH = 190  # twelve categories beside each other


def wide_console() -> Console:
    """A console as wide as the papers' tables need where the output is not a terminal."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal else Console(width=TABLE_WIDTH)
