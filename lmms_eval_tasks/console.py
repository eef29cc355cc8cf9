"""What the user sees beside the host's own output: single lines, and tables as wide as fits."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

UNSEEN = 150  # columns of a table that is written into a file or a pipe


def say(line: str) -> None:
    """One line for the user, on stderr, from the main rank only.

    Never raises: a log on a full disk must not end what goes on without it.
    """
    if os.environ.get("RANK", "0") == "0":
        with contextlib.suppress(OSError):
            sys.stderr.write(f"lmms-eval-tasks: {line}\n")


def table_console() -> Console:
    """A console as wide as the terminal; print tables on it with `report.fold.show`."""
    from rich.console import Console

    if sys.stdout.isatty() or os.environ.get("COLUMNS"):
        return Console()
    return Console(width=UNSEEN)
