"""Figures that `make test-engine` prints at its end: lines of Markdown tables."""

from __future__ import annotations

import os
from pathlib import Path


def write(line: str) -> None:
    """Add a line to the file that FIGURES names, if it names one."""
    if name := os.environ.get("FIGURES"):
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
