"""The list of benchmarks: the one place to name a new one (docs/adding_a_benchmark.md)."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, cast

from lmms_eval_tasks.errors import DataError, TasksError, nearest

if TYPE_CHECKING:
    from lmms_eval_tasks.benchmark import Benchmark

# Folder name under lmms_eval_tasks/, which is also the folder name under the data root.
NAMES: tuple[str, ...] = ("maia", "maverix", "movierecapsqa", "haven", "cvrr_es")
# Beginnings of task names that are not the benchmark's own.
_ALSO = {"cvrr_judge": "cvrr_es"}


def load(name: str) -> Benchmark:
    """The benchmark of that name, imported on demand."""
    return cast("Benchmark", importlib.import_module(f"lmms_eval_tasks.{name}.tasks").BENCHMARK)


def named(name: str) -> Benchmark:
    """The benchmark that a user names; a DataError if there is none of that name."""
    if name not in NAMES:
        near = nearest(name, NAMES)
        raise DataError(f"no benchmark {name!r}{near or ': ' + ', '.join(NAMES)}")
    return load(name)


def of_task_name(task: str) -> str | None:
    """The benchmark whose name a task's or group's name starts with, or None."""
    beginnings = {**{name: name for name in NAMES}, **_ALSO}
    return next((own for one, own in beginnings.items() if f"{task}_".startswith(f"{one}_")), None)


def of(task: str) -> Benchmark:
    """The benchmark of one of its tasks or groups; a LookupError if it is none of ours."""
    if (name := of_task_name(task)) is None:
        raise LookupError(task)
    return load(name)


def chosen(tasks: Collection[str]) -> Iterator[tuple[Benchmark, list[str]]]:
    """The benchmarks of tasks, in our order, each with the names of its own."""
    for name in NAMES:
        if own := [task for task in tasks if of_task_name(task) == name]:
            yield load(name), own


def groups(name: str) -> Mapping[str, list[str]]:
    """A benchmark's groups of tasks, in alphabetical order, with the tasks and groups in each."""
    import yaml

    # In C where PyYAML was built with libyaml: a tenth of the time.
    class Plain(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """The host's files without their functions."""

    Plain.add_constructor("!function", lambda loader, node: None)  # noqa: ARG005
    found = {}
    for file in sorted((Path(__file__).parent / name).glob("*.yaml")):
        read = yaml.load(file.read_text(encoding="utf-8"), Plain)  # noqa: S506 - a safe loader
        if "group" in read:
            found[read["group"]] = list(read["task"])
    return found


def selected(names: Collection[str]) -> list[str]:
    """The tasks that names or patterns of tasks and groups stand for; a TasksError if none."""
    members: dict[str, list[str]] = {}
    for name in NAMES:
        members |= {**{task: [] for task in load(name).tasks}, **groups(name)}

    def tasks_of(name: str) -> list[str]:
        return [task for one in members[name] for task in tasks_of(one)] or [name]

    found: list[str] = []
    for name in names:
        if not (meant := [one for one in members if fnmatch(one, name)]):
            raise TasksError(
                f"no task or group of this suite is called {name}{nearest(name, members)} "
                "(lmms-eval-tasks list)"
            )
        found += [task for one in meant for task in tasks_of(one)]
    return list(dict.fromkeys(found))
