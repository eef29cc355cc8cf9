"""Which rooms call into a higher one while a saved run is scored again and shown.

Imports go down (test_house.py); what is handed down as a function is called upwards all the same.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from pathlib import Path
from types import FrameType

import pytest
from typer.testing import CliRunner

from lmms_eval_tasks import registry
from lmms_eval_tasks.commands.cli import app
from tests.checks import table
from tests.test_house import floor, modules, room

PROTOCOL = "a benchmark"  # what it says of its items (benchmark.py), whoever asks
FILES = {str(file.resolve()): name for name, file in modules().items()}


@functools.cache
def room_of(file: str) -> str | None:
    module = FILES.get(os.path.realpath(file))
    return None if module is None else room(module)


def calls_up(words: list[str]) -> set[tuple[str, str]]:
    """Rooms and the higher ones that they call in a command, as often as it may be."""
    found = set()

    def look(frame: FrameType, event: str, _: object) -> None:
        called = room_of(frame.f_code.co_filename) if event == "call" else None
        caller, by = frame.f_back, None
        while called is not None and caller is not None and by is None:
            by, caller = room_of(caller.f_code.co_filename), caller.f_back
        if called is None or by is None or floor(called) >= floor(by):
            return
        if frame.f_code.co_name not in ("<module>", "find_spec"):  # of an import
            found.add(("", PROTOCOL) if called in (*registry.NAMES, "benchmark") else (by, called))

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        done = CliRunner().invoke(app, words)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert done.exit_code == 0, done.output
    return found


@table(
    "words, known",
    [
        # Verdicts are asked for in threads of the judges'; a jackknife is of any statistic.
        (["rescore"], {("judges", "runs"), ("utils", "report")}),
        (["report", "-o", "page.html"], {("command_options", "commands")}),
    ],
)
def test_what_calls_up(
    words: list[str],
    known: set[tuple[str, str]],
    told_run: Path,
    tmp_path: Path,
    sample_root: Path,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", str(sample_root))
    monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
    monkeypatch.chdir(tmp_path)
    assert calls_up([words[0], str(told_run), *words[1:]]) == {("", PROTOCOL), *known}
