"""A host whose functions gained or lost arguments: what it can be used for still works.

Files of the installed host are edited, and found before its own. Its version says nothing of them.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.host import needs
from tests.checks import table
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
    },
    COMMAND: {
        "force_simple=args.force_simple": "first=args.force_simple",
        "task_manager.match_tasks(": "task_manager.matching(",
    },
    TASKS: {
        "def initialize_tasks(": "def index_tasks(",
        "self.initialize_tasks(": "self.index_tasks(",
        "def match_tasks(": "def matching(",
    },
}
NO_TASKS: Edits = {
    EVALUATOR: {
        "    tasks: Optional[List[": "    benchmarks: Optional[List[",
        '    assert tasks != [], "': '    tasks = benchmarks\n    assert tasks != [], "',
    },
    COMMAND: {"        tasks=task_names,\n": "        benchmarks=task_names,\n"},
}
OTHER_INDEX: Edits = {TASKS: {'"yaml_path"': '"file"'}}
NO_PATH_NO_THREADS: Edits = {
    EVALUATOR: {
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
    },
    COMMAND: {
        "include_path=args.include_path, model": "folders=args.include_path, model",
        'process_docs_parallel=getattr(args, "process_docs_parallel", 4)': "fast=2",
    },
}
UNCHECKED = needs.PARTS["tasks"].without


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


@pytest.mark.host
@table(
    "edits, version, off, whole",
    [
        (
            LESS,
            "0.7.3",
            [
                f"lmms-eval 0.7.3: {what}: {needs.PARTS[part].without}"
                for part, what in (
                    ("names", "there is no TaskManager.match_tasks"),
                    ("simple classes", "simple_evaluate has no force_simple"),
                    ("replies", "evaluate has no lm"),
                )
            ],
            True,
        ),
        (NO_TASKS, "0.9.0", [f"lmms-eval 0.9.0: simple_evaluate has no tasks: {UNCHECKED}"], False),
        (
            OTHER_INDEX,
            "0.7.3",
            [
                "lmms-eval 0.7.3: its index of tasks is another (KeyError('yaml_path')): "
                f"{UNCHECKED}"
            ],
            False,
        ),
        (
            NO_PATH_NO_THREADS,
            "0.9.0",
            [
                "could not hook lmms_eval.tasks (TypeError('TaskManager has no include_path')); "
                'pass --include_path "$(lmms-eval-tasks path)"',
                "lmms-eval 0.9.0: simple_evaluate has no process_docs_parallel: judges get the "
                "host's own threads",
            ],
            True,
        ),
    ],
)
def test_a_run_on_another_host(
    launch: Launch, tmp_path: Path, edits: Edits, version: str, off: list[str], whole: bool
) -> None:
    """Its tasks are found and run; each thing that is off is said once; the rest is all there."""
    first = another(tmp_path, edits, version)
    asked = ["--model", "tasks_scripted", "--tasks", "maia_vsv", "--limit", "2"]
    run = launch(after(first, host(*asked)), tmp_path)
    assert run.code == 0, run.stderr[-3000:]
    assert "|maia_vsv" in run.stdout
    assert lines(run) == off
    assert ("MAIA" in run.stdout) == whole  # the paper's tables


@pytest.mark.host
def test_tasks_are_listed_and_nothing_is_said(launch: Launch, tmp_path: Path) -> None:
    """Of what is off only a user of our tasks needs to know."""
    run = launch(after(another(tmp_path, LESS, "0.9.0"), host("tasks", "list")), tmp_path)
    assert {"maia", "maia_oevqa", "cvrr_es"} <= set(run.stdout.split())
    assert lines(run) == []


@table("part", needs.PARTS)
def test_each_thing_is_missed(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the thing, and without each of its arguments."""

    def lacking() -> str:
        needs._lacking.cache_clear()
        return needs._lacking(part)

    assert lacking() == ""
    for module, name, *arguments in needs.PARTS[part].places:
        owner: Any = importlib.import_module(module)
        *steps, last = name.split(".")
        for step in steps:
            owner = getattr(owner, step)
        if steps and not isinstance(owner, type):
            owner = type(owner)
        for one in arguments:
            found = inspect.signature(getattr(owner, last))
            left = [value for key, value in found.parameters.items() if key != one]
            with without(owner, last, monkeypatch) as put:
                put(found.replace(parameters=left))
                assert lacking() == f"{name} has no {one}"
        with without(owner, last, monkeypatch):
            assert lacking() == ("" if hasattr(owner, last) else f"there is no {name}")
    needs._lacking.cache_clear()


@contextmanager
def without(owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yields what puts a function of a signature in the place of what was taken away."""

    def put(signature: inspect.Signature) -> None:
        def other() -> None:
            """Never called."""

        other.__signature__ = signature  # type: ignore[attr-defined]
        if isinstance(owner, type):
            setattr(owner, name, other)
        else:  # the evaluator's class has a property in place of its function
            vars(owner)[name] = other

    with monkeypatch.context() as patch:
        if isinstance(owner, type):
            patch.delattr(owner, name)
        else:
            patch.delitem(vars(owner), name)
        yield put
