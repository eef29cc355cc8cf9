"""A host whose functions gained or lost arguments: what it can be used for still works.

Files of the installed host are edited, and found before its own. Its version says nothing of them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path

import pytest

from lmms_eval_tasks.host import needs
from tests.checks import table
from tests.conftest import Launch, host
from tests.host.test_discovery import after

# Of each file: what stands in it, and what another host has there.
Edits = Mapping[str, Mapping[str, str]]

EVALUATOR, COMMAND = "evaluator.py", "__main__.py"
NO_TASKS: Edits = {
    EVALUATOR: {
        "    tasks: Optional[List[": "    benchmarks: Optional[List[",
        '    assert tasks != [], "': '    tasks = benchmarks\n    assert tasks != [], "',
    },
    COMMAND: {"        tasks=task_names,\n": "        benchmarks=task_names,\n"},
}


def another(folder: Path, edits: Edits, version: str) -> str:
    """What a process runs first so that this host is the installed one."""
    spec = importlib.util.find_spec("lmms_eval")
    assert spec is not None
    assert spec.submodule_search_locations
    for name, changes in edits.items():
        text = Path(spec.submodule_search_locations[0], name).read_text(encoding="utf-8")
        for old, new in changes.items():
            assert old in text, old
            text = text.replace(old, new)
        (folder / "host" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "host" / name).write_text(text, encoding="utf-8")
    return f"""
import importlib.metadata as m
import lmms_eval
lmms_eval.__path__.insert(0, {str(folder / "host")!r})
version = m.version
m.version = lambda name: {version!r} if name in ("lmms_eval", "lmms-eval") else version(name)
"""


@pytest.mark.host
def test_a_run_on_another_host(launch: Launch, tmp_path: Path) -> None:
    """Its tasks are found and run; what is off is said once, and to users of our tasks alone."""
    first = another(tmp_path, NO_TASKS, "0.9.0")
    asked = ["--model", "tasks_scripted", "--tasks", "maia_vsv", "--limit", "2"]
    run = launch(after(first, host(*asked)), tmp_path)
    assert run.code == 0, run.stderr[-3000:]
    assert "|maia_vsv" in run.stdout
    assert "MAIA" not in run.stdout  # the paper's tables
    said = "lmms-eval-tasks: lmms-eval 0.9.0: simple_evaluate has no tasks: nothing is checked"
    assert run.stderr.count(said) == 1
    run = launch(after(first, host("tasks", "list")), tmp_path)
    assert {"maia", "maia_oevqa", "cvrr_es"} <= set(run.stdout.split())
    assert "lmms-eval 0.9.0" not in run.stderr


@table(
    "place, lacking",
    [
        *((place, "") for place in needs.PLACES),
        ("lmms_eval.evaluator evaluate three", "evaluate has no three"),
        ("lmms_eval.evaluator other", "there is no other"),
        ("no_host other.method", "there is no other.method"),
    ],
)
def test_what_is_looked_for(place: str, lacking: str) -> None:
    assert needs._lacking(place) == lacking
