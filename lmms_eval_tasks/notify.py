"""Output to the user beside lmms-eval's own: single lines on stderr, and consoles for tables."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

UNSEEN = 150  # width in columns of a table that goes into a file or a pipe
# Control characters of terminals, characters that turn the order of letters around, surrogates.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
# An argument of a model that is a secret, also in JSON; the user and password in an address.
_SECRET = re.compile(
    r"(\b(?:(?:\w+_)?api_?key|(?:\w+_)?password|(?:hf|auth|access)_token|token|secret)"
    r"(?:=|[\"']\s*:\s*[\"']))[^,\s'\"]+|(://)[^/@\s,'\"]+(?=@)",
    re.IGNORECASE,
)


def hide_secrets(text: str) -> str:
    """Return model arguments or a command with `[key]` in place of each key and password."""
    return _SECRET.sub(lambda match: f"{match[1] or match[2]}[key]", text)


def visible(text: str) -> str:
    """Return a text from outside with all control characters escaped, except tabs and line ends."""
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def notify(line: str) -> None:
    """Write a line for the user to stderr, from the main rank only.

    No error is raised: a log on a full disk must not end the run.
    """
    if os.environ.get("RANK", "0") == "0":
        with contextlib.suppress(OSError):
            sys.stderr.write(f"lmms-eval-tasks: {visible(line)}\n")


def table_console() -> Console:
    """Return a console as wide as the terminal; print tables on it with `report.fold.show`."""
    from rich.console import Console

    if sys.stdout.isatty() and "COLUMNS" not in os.environ:
        return Console()
    return Console(width=shutil.get_terminal_size((UNSEEN, 0)).columns)  # COLUMNS may be 0
