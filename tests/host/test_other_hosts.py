"""A host whose functions were renamed, gained or lost arguments: our tasks are still found.

Its version says nothing of that. What of us needs what is not there is off, which one line says.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.host import needs, plugin
from lmms_eval_tasks.host.needs import HostFeature
from tests.checks import refused, table
from tests.conftest import HOST, REPOSITORY, Launch, host
from tests.host.test_discovery import LMMS_EVAL, after

# Of each file: what stands in it, and what another host has there.
Edits = Mapping[str, Mapping[str, str]]

CHANGE = REPOSITORY / "upstream" / "entry_point" / "change.patch"
EVALUATOR, COMMAND, TASKS = "evaluator.py", "__main__.py", "tasks/__init__.py"
REGISTRY, INSTANCE, TASK = "models/registry_v2.py", "api/instance.py", "api/task.py"
LOST: Edits = {
    EVALUATOR: {
        "    tasks: Optional[List[": "    benchmarks: Optional[List[",
        '    assert tasks != [], "': '    tasks = benchmarks\n    assert tasks != [], "',
    },
    COMMAND: {"        tasks=task_names,\n": "        benchmarks=task_names,\n"},
}
RENAMED: Edits = {
    EVALUATOR: {
        ".process_results(": ".score_replies(",
        "unwrap_generation_output": "unwrapped",
        "def evaluate(": "def run_tasks(",
        "= evaluate(": "= run_tasks(",
    },
    INSTANCE: {"unwrap_generation_output": "unwrapped"},
    TASK: {"def process_results(": "def score_replies("},
    REGISTRY: {"resolve(": "look_up("},
}
GAINED: Edits = {
    EVALUATOR: {
        "unwrap_generation_output(x)": "unwrap_generation_output(x, True)",
        "unwrap_generation_output(current_raw_output)": (
            "unwrap_generation_output(current_raw_output, True)"
        ),
        ".process_results(doc, ": ".process_results(doc, scale=1, results=",
    },
    INSTANCE: {"output: Any)": "output: Any, strict: bool)"},
    TASK: {
        "def process_results(self, doc, results": "def process_results(self, doc, scale, results"
    },
    COMMAND: {"TaskManager(args.verbosity, ": "TaskManager(args.verbosity, purpose=1, "},
    TASKS: {'verbosity="INFO",\n': "verbosity,\n        purpose,\n"},
}
OTHER_WAY: Edits = {  # to tell a task manager of a folder
    TASKS: {
        "include_path: Optional[Union[str, List]] = None,\n        include_defaults: bool = True,"
        "\n        model": "paths=None,\n        include_defaults: bool = True,\n        model",
        "self.include_path = include_path": "include_path = paths",
    },
    COMMAND: {"include_path=args.include_path, model": "paths=args.include_path, model"},
}
NO_WAY: Edits = {
    TASKS: {**OTHER_WAY[TASKS], "include_path": "paths"},
    COMMAND: OTHER_WAY[COMMAND],
}


def another(
    folder: Path, edits: Edits, version: str = "0.9.0", entry_point: bool | None = None
) -> str:
    """What a process runs first so that the installed host is another one.

    Args:
        folder: where the changed files are written.
        edits: changes in its files.
        version: what it says of itself.
        entry_point: whether it has the change of `upstream/entry_point`; None: as installed.
    """
    names = {*edits} if entry_point is None else {*edits, TASKS}
    changed = {}
    for name in names:
        original, copy = HOST / name, folder / "lmms_eval" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(original, copy)
        changed[str(original)] = str(copy)
    if entry_point is not None and entry_point != has_entry_point(folder):
        apply(folder, *([] if entry_point else ["--reverse"])).check_returncode()
    for name, changes in edits.items():
        text = (folder / "lmms_eval" / name).read_text(encoding="utf-8")
        for old, new in changes.items():
            assert old in text, old
            text = text.replace(old, new)
        (folder / "lmms_eval" / name).write_text(text, encoding="utf-8")
    return f"""
import importlib.machinery
import importlib.metadata as m
import pathlib
import sys
for name in [one for one in sys.modules if one.startswith(("lmms_eval.api", "lmms_eval.filters"))]:
    del sys.modules[name]  # imported before the fork (tests/warm.py)
changed = {changed!r}
get_code = importlib.machinery.SourceFileLoader.get_code
def changed_code(self, name):
    if self.path not in changed:
        return get_code(self, name)
    return compile(pathlib.Path(changed[self.path]).read_text("utf-8"), self.path, "exec")
importlib.machinery.SourceFileLoader.get_code = changed_code
version = m.version
m.version = lambda name: {version!r} if name in ("lmms_eval", "lmms-eval") else version(name)
"""


def apply(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Apply the change of `upstream/entry_point` to the files of a host in a folder."""
    command = ["git", "apply", "-C1", *options, str(CHANGE)]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)


def has_entry_point(folder: Path) -> bool:
    """Whether the host, or a copy of its files in a folder, has that change."""
    return apply(folder, "--reverse", "--check").returncode == 0


def write_task(folder: Path, name: str) -> Path:
    """A folder with a task that is not ours, whatever its name."""
    folder.mkdir(exist_ok=True)
    (folder / "data.jsonl").write_text('{"question": "a?", "answer": "b"}\n', encoding="utf-8")
    task = {
        **{"task": name, "dataset_path": "json", "output_type": "generate_until"},
        "dataset_kwargs": {"data_files": {"test": str(folder / "data.jsonl")}},
        **{"test_split": "test", "doc_to_text": "{{question}}", "doc_to_target": "answer"},
        "generation_kwargs": {"until": ["\n"]},
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }
    (folder / f"{name}.yaml").write_text(json.dumps(task), encoding="utf-8")
    return folder


@pytest.mark.host
@table(
    "edits, lacking",
    [
        (LOST, "simple_evaluate has no tasks"),
        (
            RENAMED,
            "evaluate is missing; MODEL_REGISTRY_V2.resolve is missing; unwrap_generation_output "
            "is missing; ConfigurableTask.process_results is missing",
        ),
        (
            GAINED,
            "TaskManager requires verbosity, purpose; unwrap_generation_output requires strict",
        ),
    ],
)
def test_a_run_on_another_host(edits: Edits, lacking: str, launch: Launch, tmp_path: Path) -> None:
    """Its tasks and ours are found and run; what is off is said once."""
    asked = ["--model", "dummy", "--tasks", "maia_vsv,own_task", "--limit", "1"]
    command = host(*asked, "--include_path", str(write_task(tmp_path / "own", "own_task")))
    run = launch(after(another(tmp_path, edits), command), tmp_path)
    assert run.code == 0, run.stderr[-3000:]
    assert "|maia_vsv" in run.stdout
    assert "|own_task" in run.stdout
    assert "MAIA" not in run.stdout  # the paper's tables
    (said,) = (one for one in run.stderr.splitlines() if one.startswith("lmms-eval-tasks: "))
    assert said.startswith(f"lmms-eval-tasks: lmms-eval 0.9.0: {lacking}: nothing is checked")


@pytest.mark.host
@table(
    "edits, entry_point, command, said",
    [
        (RENAMED, None, ["tasks", "list"], ""),  # told to those who run tasks of ours
        (OTHER_WAY, False, ["--tasks", "list"], ""),
        (NO_WAY, False, ["--tasks", "list"], "could not hook lmms_eval.tasks"),
        (NO_WAY, True, ["--tasks", "list"], ""),
    ],
)
def test_the_list_of_another_host(
    edits: Edits,
    entry_point: bool | None,
    command: list[str],
    said: str,
    launch: Launch,
    tmp_path: Path,
) -> None:
    """Where the host looks for tasks of packages itself, it need not be told of a folder."""
    prelude = another(tmp_path, edits, entry_point=entry_point)
    run = launch(after(prelude, host(*command)), tmp_path)
    listed = (run.stdout + run.stderr).split()
    assert {"maia", "maia_oevqa", "cvrr_es", "mme"} <= set(listed), run.stderr[-3000:]
    lines = [one for one in run.stderr.splitlines() if one.startswith("lmms-eval-tasks: ")]
    assert [said in one for one in lines] == [True] * bool(said)


@pytest.mark.host
@table("command", [[LMMS_EVAL], host()])
def test_a_filelock_that_the_host_cannot_use(
    command: list[str], launch: Launch, tmp_path: Path
) -> None:
    """4.3 lacks what the host imports once the model is built: told before, what to install."""
    hidden = "import sys, filelock, huggingface_hub.hf_api\nsys.modules['filelock._api'] = None\n"
    asked = [*command, "--model", "dummy", "--tasks", "maia_vsv", "--limit", "1"]
    run = launch(after(hidden, asked), tmp_path)
    assert run.code == 2, run.stderr[-3000:]
    assert "Traceback" not in run.stderr
    (said,) = (one for one in run.stderr.splitlines() if one.startswith("lmms-eval-tasks: "))
    assert "(import of filelock._api halted" in said
    assert said.endswith(f"): pip install '{needs.FILELOCK}'")


def test_filelock_is_asked_for_as_in_the_requirements(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that needs no private module of it is content with any."""
    assert needs.FILELOCK in (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    importlib.import_module("lmms_eval.evaluator")  # which imports filelock's others
    monkeypatch.setitem(sys.modules, "filelock._api", None)
    refused(TasksError, "does not work with lmms-eval", needs.check_filelock)
    monkeypatch.setattr("lmms_eval.evaluator._enable_reentrant_filelocks", lambda: None)
    needs.check_filelock()
    monkeypatch.delattr("lmms_eval.evaluator._enable_reentrant_filelocks")
    needs.check_filelock()


# --- each thing of the host that we use, in this process ------------------------------------------


def variants() -> Iterator[tuple[HostFeature, str, str, str]]:
    """Place, how it is changed, of which argument, and what then is said."""
    seen: set[str] = set()
    for place in needs.PLACES:
        name = place.name or place.module
        yield place, "as it is", "", ""
        if place.name and name not in seen:  # else it is missing for another reason too
            yield place, "missing", "", f"{name} is missing"
        seen.add(name)
        if place.text:
            yield place, "unwritten", "", f"{name} has no {place.text.strip()}"
        for argument in place.arguments:
            yield place, "lost", argument, f"{name} has no {argument}"
        if place.arguments or place.positional:
            own_call = place.positional is not None
            yield place, "gained", "more", f"{name} requires more" if own_call else ""


def changed(found: Any, how: str, argument: str) -> Any:
    """A function with the same arguments, but for one."""
    signature = inspect.signature(found)
    left = [one for one in signature.parameters.values() if one.name != argument]
    if how == "gained":
        last = [one for one in left if one.kind is one.VAR_KEYWORD]
        more = inspect.Parameter(argument, inspect.Parameter.KEYWORD_ONLY)
        left = [*(one for one in left if one not in last), more, *last]

    class Changed:
        __signature__ = signature.replace(parameters=left)
        __wrapped__ = found  # whose source it has
        task_index: Any = None  # another thing of the task manager

    return Changed


@table("place, how, argument, said", list(variants()))
def test_what_is_looked_for(
    place: HostFeature,
    how: str,
    argument: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is not there is told once, and a run of our tasks is the host's own, unchecked."""
    *owners, last = place.name.split(".")
    owner: Any = importlib.import_module(place.module)
    for step in owners:
        owner = getattr(owner, step)
    if isinstance(owner, ModuleType) and not owners:  # past a property of ours on its class
        owner = SimpleNamespace(**vars(owner))
        monkeypatch.setitem(sys.modules, place.module, owner)
    if how == "missing":
        places = owner.__mro__ if isinstance(owner, type) else (owner, type(owner))
        for one in (place for place in places if last in vars(place)):
            monkeypatch.delattr(one, last)
    elif how == "unwritten":
        for reader, name in ((inspect, "getsource"), (Path, "read_text")):
            monkeypatch.setattr(reader, name, without(getattr(reader, name), place.text))
    elif how != "as it is":
        monkeypatch.setattr(owner, last, changed(getattr(owner, last), how, argument))
    monkeypatch.setattr(needs, "met", functools.cache(needs.met.__wrapped__))
    monkeypatch.setenv(settings.DATA, "/nowhere")  # refused where it is looked at

    def simple_evaluate(tasks: Any = None, task_manager: Any = None) -> str:
        return "ran"

    manager = SimpleNamespace(task_index={})
    given: Any = (["maia_vsv"], manager)
    if said and not place.lost:
        assert [plugin.guarded(simple_evaluate)(*given) for _ in range(2)] == ["ran", "ran"]
        (line,) = capsys.readouterr().err.splitlines()
        assert f": {said}: nothing is checked" in line or f": {said}; " in line
        return
    for _ in range(2):
        refused(DataError, "no MAIA data", plugin.guarded(simple_evaluate), *given)
    lines = capsys.readouterr().err.splitlines()
    assert [f"{said} ({place.lost})" in line for line in lines] == [True] * bool(said)


def without(reads: Any, text: str) -> Any:
    """A function that reads a source, which does not hold a text."""

    @functools.wraps(reads)
    def read(*args: Any, **kwargs: Any) -> str:
        return str(reads(*args, **kwargs)).replace(text, "")

    return read
