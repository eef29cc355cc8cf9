"""A host whose functions gained or lost arguments: what it can be used for still works.

Files of the installed host are edited, and found before its own. Its version says nothing of them.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from lmms_eval_tasks.host import needs
from tests.conftest import HostRun, Launch, host
from tests.host.test_discovery import after

# Of each file: what stands in it, and what another host has there.
Edits = Mapping[str, Mapping[str, str]]

EVALUATOR, TASKS, COMMAND = "evaluator.py", "tasks/__init__.py", "__main__.py"
LESS: Edits = {
    EVALUATOR: {
        "def evaluate(\n    lm,\n": "def evaluate(\n    candidate,\n",
        "            lm=lm,\n": "            candidate=lm,\n",
        "    # stores the final result": "    lm = candidate\n    # stores the final result",
        "    force_simple: bool = False,\n": "    first: bool = False,\n",
        "get_model(model, force_simple)": "get_model(model, first)",
        "    max_tokens: Optional[int] = None,\n    process_docs_parallel: int = 4,\n": (
            "    max_tokens: Optional[int] = None,\n    fast: int = 1,\n"
        ),
        "    process_docs_parallel = int(process_docs_parallel)\n": (
            "    process_docs_parallel = 1\n"
        ),
    },
    TASKS: {
        "        include_path: Optional[Union[str, List]] = None,\n"
        "        include_defaults: bool = True,\n        model_name": "        folders=None,\n"
        "        include_defaults: bool = True,\n        model_name",
        "self.include_path = include_path": "include_path = folders",
        "def match_tasks(": "def matching(",
    },
    COMMAND: {
        "force_simple=args.force_simple": "first=args.force_simple",
        "task_manager.match_tasks(": "task_manager.matching(",
        "include_path=args.include_path, model": "folders=args.include_path, model",
        'process_docs_parallel=getattr(args, "process_docs_parallel", 4)': "fast=2",
    },
}
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


def lines(run: HostRun) -> list[str]:
    """What was said of this host."""
    ours = [line for line in run.stderr.splitlines() if line.startswith("lmms-eval-tasks: ")]
    return [one.removeprefix("lmms-eval-tasks: ") for one in ours if "lmms" in one[17:]]


def off(part: str, what: str, version: str) -> str:
    return f"lmms-eval {version}: {what}: {needs.PARTS[part].without}"


@pytest.mark.host
@pytest.mark.parametrize(
    ("edits", "version", "said", "whole"),
    [
        (
            LESS,
            "0.7.3",
            [
                "could not hook lmms_eval.tasks (TypeError('TaskManager has no include_path')); "
                'pass --include_path "$(lmms-eval-tasks path)"',
                off("names", "there is no TaskManager.match_tasks", "0.7.3"),
                off("replies", "evaluate has no lm", "0.7.3"),
                off(
                    "arguments",
                    "simple_evaluate has no force_simple, process_docs_parallel",
                    "0.7.3",
                ),
            ],
            True,
        ),
        (NO_TASKS, "0.9.0", [off("tasks", "simple_evaluate has no tasks", "0.9.0")], False),
    ],
)
def test_a_run_on_another_host(
    launch: Launch, tmp_path: Path, edits: Edits, version: str, said: list[str], whole: bool
) -> None:
    """Its tasks are found and run; each thing that is off is said once; the rest is all there."""
    first = another(tmp_path, edits, version)
    asked = ["--model", "tasks_scripted", "--tasks", "maia_vsv", "--limit", "2"]
    run = launch(after(first, host(*asked)), tmp_path)
    assert run.code == 0, run.stderr[-3000:]
    assert "|maia_vsv" in run.stdout
    assert lines(run) == said
    assert ("MAIA" in run.stdout) == whole  # the paper's tables
    if not whole:  # of what is off only a user of our tasks needs to know
        run = launch(after(first, host("tasks", "list")), tmp_path)
        assert {"maia", "maia_oevqa", "cvrr_es"} <= set(run.stdout.split())
        assert lines(run) == []


def test_what_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    needs._lacking.cache_clear()
    assert [part for part in needs.PARTS if not needs.on(part)] == []
    module = SimpleNamespace(named=lambda one, two: None)
    monkeypatch.setitem(sys.modules, "some_host", module)
    for place, lacking in {
        "some_host named one two": "",
        "some_host named one three": "named has no three",
        "some_host other": "there is no other",
        "no_host other.method": "there is no other.method",
    }.items():
        monkeypatch.setitem(needs.PARTS, place, needs.Part("", (place,)))
        assert needs._lacking(place) == lacking
