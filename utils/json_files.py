"""JSON files that commands write: checked before the work, written as a whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lmms_eval_tasks.errors import TasksError


def check_output(output: Path) -> None:
    """Stop before work is done whose result could not be written.

    Raises:
        TasksError: `output` is no file in a folder that is there.
    """
    if output.is_dir() or not output.absolute().parent.is_dir():
        raise TasksError(f"{output}: not a file in a folder that is there to write to")


def write_json(output: Path, content: Any) -> None:
    """Write a whole file or none: an earlier one stays until the new one is complete."""
    partial = output.with_name(f".{output.name}.part")
    partial.write_text(json.dumps(content, indent=2, ensure_ascii=False), encoding="utf-8")
    partial.replace(output)
