"""Files that commands write: checked before the work, written as a whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
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


def check_folder(folder: Path, option: str) -> None:
    """Stop before work is done whose results could not be saved; the folder is made.

    Raises:
        TasksError: nothing can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise TasksError(f"{option} {folder}: cannot be written ({error.strerror})") from None


def write_json(output: Path, content: Any) -> None:
    """Write a whole file or none: an earlier one stays until the new one is complete.

    A function in `content` stands for what it returns, which is made when its turn comes.
    """
    made = json.JSONEncoder(indent=2, ensure_ascii=False, default=lambda later: later())
    _write(output, made.iterencode(content))


def write_lines(output: Path, entries: Iterable[Any]) -> None:
    """Write one JSON object a line, as `write_json` does.

    Raises:
        TasksError: the file cannot be written.
    """
    try:
        _write(output, (json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries))
    except OSError as error:
        raise TasksError(f"{output}: cannot be written ({error.strerror})") from None


def write_text(output: Path, text: str) -> None:
    """Write a text, as `write_json` does."""
    _write(output, [text])


def _write(output: Path, texts: Iterable[str]) -> None:
    # Of this process: two that write one file must not write into one another's.
    partial = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(texts)
        partial.replace(output)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
