"""What is not ours: runs of other tasks, other ways to call lmms-eval, other runs of a list."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import registry, settings
from tests.checks import table
from tests.conftest import HostRun, Launch, host
from tests.host.test_discovery import LMMS_EVAL, after, without
from tests.host.test_other_hosts import write_task

pytestmark = pytest.mark.host

NOTHING = without("lmms_eval.models", "lmms_eval.tasks")  # as if this package were not installed
HOST = [sys.executable, "-m", "lmms_eval"]

# --- an import that fails -------------------------------------------------------------------------

# What a process runs first so that modules of ours cannot be imported, and nobody's from ours.
BLOCKED = """
import atexit, builtins, sys
ours, others, tried = {ours!r}, {others!r}, set()
class Blocked:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "lmms_eval_tasks":
            tried.add(name)
            if name in ours or (ours == "but" and name not in {light!r}):
                raise ImportError(f"blocked: {{name}}", name=name)
sys.meta_path.insert(0, Blocked)
real = builtins.__import__
def blocking(name, globals=None, *more, **given):
    of_us = (globals or {{}}).get("__name__", "").startswith("lmms_eval_tasks")
    if of_us and name.partition(".")[0] in others:
        raise ImportError(f"No module named {{name!r}}", name=name)
    return real(name, globals, *more, **given)
builtins.__import__ = blocking
atexit.register(lambda: print("TRIED", *sorted(tried), flush=True))
"""
# All of our modules that a run of somebody else's task may import.
LIGHT = (
    *("lmms_eval_tasks", "lmms_eval_tasks.host", "lmms_eval_tasks.host.plugin"),
    *("lmms_eval_tasks.host.models", "lmms_eval_tasks.host.discovery"),
    *("lmms_eval_tasks.registry", "lmms_eval_tasks.notify", "lmms_eval_tasks.errors"),
    *map(registry.package, registry.NAMES),  # looked for, not imported
)
NEEDS = ("fcntl", "pydantic", "openai", "av", "decord", "scipy", "torch", "yaml", "numpy")


def blocked(ours: Any = (), others: Any = ()) -> str:
    return BLOCKED.format(ours=ours, others=others, light=LIGHT)


def outcome(run: HostRun, task: str = "own_task") -> Any:
    """The numbers and the samples of a run, and its table."""
    assert run.code == 0, run.stderr[-3000:]
    shown = [line for line in run.stdout.splitlines() if line.startswith("|")]
    samples = [{**one, "eval_logger": None} for one in run.samples(task)]
    return run.results["results"], samples, shown


def test_no_module_of_ours_is_needed_for_another_task(launch: Launch, tmp_path: Path) -> None:
    """Each that such a run imports is blocked in turn, and all others at once.

    A module that no such run tries to import cannot end it, which the second shows.
    """
    own = write_task(tmp_path / "own", "own_task")
    asked = ["--model", "dummy", "--tasks", "own_task", "--include_path", str(own), "--log_samples"]

    def run(name: str, prelude: str) -> HostRun:
        out = tmp_path / name
        return launch(after(prelude, [LMMS_EVAL, *asked, "--output_path", str(out)]), out)

    expected = outcome(run("without us", NOTHING))
    as_it_is = run("as it is", blocked())
    tried = next(line for line in as_it_is.stdout.splitlines() if line.startswith("TRIED"))
    assert set(tried.split()[1:]) == set(LIGHT)
    preludes = {f"without {name}": blocked([name]) for name in LIGHT}
    preludes |= {"all others": blocked("but"), "no package": blocked((), NEEDS)}
    for name, prelude in preludes.items():
        found = run(name, prelude)
        assert outcome(found) == expected, name
        assert "Traceback" not in found.stderr, name
    assert outcome(as_it_is) == expected


def test_an_import_that_fails_ends_a_run_of_ours_with_one_line(
    launch: Launch, tmp_path: Path
) -> None:
    asked = [LMMS_EVAL, "--model", "dummy", "--tasks", "maia_vsv", "--limit", "1"]
    run = launch(after(blocked((), ["pydantic"]), asked), tmp_path)
    (line,) = (one for one in run.stderr.splitlines() if one.startswith("lmms-eval-tasks: "))
    said = "No module named 'pydantic'; pip install"
    assert f"tasks of lmms-eval-tasks cannot run here: {said}" in line
    assert (run.code, "Traceback" in run.stderr) == (2, False)


def test_a_run_of_ours_needs_no_module_that_windows_lacks(
    launch: Launch, on_sample: None, tmp_path: Path
) -> None:
    """Nor forks; what else is different there no test here can tell."""
    asked = ["--model", "tasks_scripted", "--tasks", "maia_vsv", "--limit", "2", "--log_samples"]
    prelude = blocked((), ["fcntl", "resource", "termios", "pwd", "grp"])
    prelude += "\nimport os, torch\ndel os.fork, os.register_at_fork\n"
    found = []
    for name, first in (("here", ""), ("there", prelude)):
        out = tmp_path / name
        command = after(first, [LMMS_EVAL, *asked, "--output_path", str(out)])
        run = launch(command, out, fresh=bool(first))
        assert run.code == 0, run.stderr[-3000:]
        found.append((run.results["results"], [one["failed"] for one in run.samples("maia_vsv")]))
    assert found[0] == found[1]


def test_what_the_entry_point_imports(launch: Launch, tmp_path: Path) -> None:
    """Four small modules of ours, in every command of lmms-eval: nothing of runs or judges."""
    listed = "\nprint(*sorted(set(sys.modules)), sep='\\n')"
    code = "import sys, lmms_eval.models" + listed
    names = [
        set(launch([sys.executable, "-c", one], tmp_path, fresh=True).stdout.split())
        for one in (NOTHING + code, code)
    ]
    ours = {f"lmms_eval_tasks{one}" for one in ("", ".host", ".host.plugin", ".host.models")}
    assert names[1] - names[0] == ours | {"importlib.util"} - names[0]


# --- runs of a list -------------------------------------------------------------------------------

ASKED: Mapping[str, Any] = {"model": "tasks_scripted", "limit": 2, "log_samples": True}


@table("command", [HOST, host()])
def test_one_wrong_run_of_a_list_ends_no_other(
    command: list[str], launch: Launch, tmp_path: Path
) -> None:
    """Each is told in one line; the tables of the others are printed, and the code tells it."""
    tasks = {
        "right": ("maia_vsv_1frame", {}),
        "examples": ("maia_vsv_1frame", {"num_fewshot": 3}),
        "no model": ("maia_vsv_1frame", {"model": "no_such_model"}),
        "another": ("maia_vsv_black", {}),
        "foreign": ("own_task", {"model": "dummy"}),
    }
    own = write_task(tmp_path / "own", "own_task")
    config = [
        {**ASKED, **more, "tasks": task, "output_path": str(tmp_path / name)}
        | {"include_path": str(own)}
        for name, (task, more) in tasks.items()
    ]
    file = tmp_path / "config.yaml"
    file.write_text(json.dumps(config), encoding="utf-8")
    run = launch([*command, "--config", str(file)], tmp_path, env={settings.TABLES: "all"})
    assert run.code == 2, run.stderr[-3000:]
    assert "Traceback" not in run.stderr
    said = [one for one in run.stderr.splitlines() if one.startswith("lmms-eval-tasks: ")]
    wrong = [one for one in said if "num_fewshot" in one or "no_such_model" in one]
    assert len(wrong) == 2
    assert (
        "--num_fewshot 3: tasks of lmms-eval-tasks take no examples (maia_vsv_1frame)" in wrong[0]
    )
    assert "lmms-eval has no model 'no_such_model'" in wrong[1]
    for task in ("maia_vsv_1frame", "maia_vsv_black", "own_task"):
        assert re.search(rf"^\|{task}\b", run.stdout, re.MULTILINE), task
    saved = {file.relative_to(tmp_path).parts[0] for file in tmp_path.rglob("*_results.json")}
    assert saved == {"right", "another", "foreign"}


def test_the_list_of_two_processes(launch: Launch, tmp_path: Path) -> None:
    """What one of them finds wrong before a run begins is of both, and they go on together."""
    config = [
        {**ASKED, **more, "tasks": "maia_vsv_1frame", "output_path": str(tmp_path / name)}
        for name, more in {"wrong": {"num_fewshot": 3}, "right": {}}.items()
    ]
    file = tmp_path / "config.yaml"
    file.write_text(json.dumps(config), encoding="utf-8")
    # The first is wrong for one rank alone.
    prelude = """
import os
import lmms_eval_tasks.host.evaluation as e
plain = e._check
e._check = lambda given, tasks: plain({**given, "num_fewshot": int(os.environ["RANK"])}, tasks) \\
    if given["num_fewshot"] else plain(given, tasks)
"""
    run = launch(after(prelude, host("--config", str(file))), tmp_path, processes=2)
    assert run.code == 2, run.stderr[-3000:]
    assert run.stderr.count("--num_fewshot 1: ") == 1
    (saved,) = tmp_path.rglob("*_results.json")
    assert saved.relative_to(tmp_path).parts[0] == "right"


# --- other ways to call it ------------------------------------------------------------------------

CALLED = """
from lmms_eval.tasks import TaskManager
manager = TaskManager({manager})
from lmms_eval import evaluator
try:
    made = evaluator.simple_evaluate(
        model="tasks_scripted", tasks=["maia_vsv_1frame"], limit=2, task_manager=manager, {more}
    )
    print("RAN", len(made["samples"]["maia_vsv_1frame"]), "lmms_eval_tasks" in made)
except Exception as error:
    print(type(error).__name__, error)
"""


@table(
    "manager, more, expected",
    [
        ("", "", "RAN 2 True"),  # made before the hook is there
        ("include_defaults=False", "", "RAN 2 True"),
        ("", 'model_args={"batch_size": 2}', "RAN 2 True"),
        ("", 'model_args={"batch_size": [2]}', r"TasksError model_args: batch_size=\[2\] cannot"),
        ("", "num_fewshot=0", "RAN 2 True"),
        ("", "num_fewshot=2", "TasksError --num_fewshot 2: tasks of lmms-eval-tasks take no"),
    ],
)
def test_other_ways_to_call_it(
    manager: str, more: str, expected: str, launch: Launch, tmp_path: Path
) -> None:
    code = CALLED.format(manager=manager, more=more)
    run = launch([sys.executable, "-c", code], tmp_path)
    assert re.search(f"^{expected}", run.stdout, re.MULTILINE), run.stdout + run.stderr[-3000:]
