"""What the user sees beside the host's own output: single lines, and the papers' tables."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

TABLE_WIDTH = 150  # twelve categories beside each other


def say(line: str) -> None:
    """One line for the user, on stderr, from the main rank only."""
    if os.environ.get("RANK", "0") == "0":
        sys.stderr.write(f"lmms-eval-tasks: {line}\n")


def wide_console() -> Console:
    """A console at least as wide as the papers' tables: a narrow one would drop columns."""
    from rich.console import Console

    return Console(width=max(Console().width, TABLE_WIDTH))
