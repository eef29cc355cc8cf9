"""Our command in this process, as its console script calls it."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import nltk.data

from tests.conftest import OFFLINE
from tests.utils.metrics import tiny_nltk


class Said(NamedTuple):
    """What a command said."""

    code: int
    stdout: str
    stderr: str


def tasks_command(*arguments: object, cache: Path, env: Mapping[str, str] | None = None) -> Said:
    """Run `lmms-eval-tasks ARGUMENTS` on the packaged sample."""
    (script, *_) = entry_points(group="console_scripts", name="lmms-eval-tasks")
    own = {**OFFLINE, "LMMS_EVAL_TASKS_CACHE": str(cache), "LMMS_EVAL_TASKS_DATA": "sample"}
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("LMMS_EVAL_", "OPENAI"))}
    environment = {**kept, **own, **(env or {})}
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch.dict(os.environ, environment, clear=True),
        mock.patch.object(nltk.data, "path", [str(tiny_nltk.build(cache / "nltk"))]),
        mock.patch.object(sys, "argv", ["lmms-eval-tasks", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            script.load()()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return Said(code, out.getvalue(), err.getvalue())
