"""Output for the user beside lmms-eval's own: single lines, and tables as wide as fits."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

UNSEEN = 150  # columns of a table that is written into a file or a pipe
# What a terminal obeys, what turns the order of letters around, halves of characters.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def visible(text: str) -> str:
    """A text from outside as it may be shown: control characters but tabs and line ends escaped."""
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def notify(line: str) -> None:
    """One line for the user, on stderr, from the main rank only.

    Never raises: a log on a full disk must not end what goes on without it.
    """
    if os.environ.get("RANK", "0") == "0":
        with contextlib.suppress(OSError):
            sys.stderr.write(f"lmms-eval-tasks: {visible(line)}\n")


def table_console() -> Console:
    """A console as wide as the terminal; print tables on it with `report.fold.show`."""
    from rich.console import Console

    if sys.stdout.isatty() or os.environ.get("COLUMNS"):
        return Console()
    return Console(width=UNSEEN)
