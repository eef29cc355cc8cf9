"""The installed benchmarks: those of the entry point group `lmms_eval_tasks.benchmarks`.

Ours are entries of our own package, and no different from those of others. An entry's name is the
benchmark's: of its folder under the data root, and the first part of its tasks' names. Its object
is the `Benchmark`, in a module of a package that holds all that comes with it:

- `*.yaml`, the files of its tasks and groups; `prompts/*.yml`;
- `settings.py`: settings of its own (`settings.declare`), which are options of `lmms_eval`;
- `commands.py`: `add(app)` adds its commands to `lmms-eval-tasks`;
- `sample.py`: its part of the packaged sample; `leaderboard.json`: the paper's figures.

docs/your_benchmark.md has a whole one.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatch
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, cast

from lmms_eval_tasks.errors import DataError, TasksError, nearest
from lmms_eval_tasks.notify import say

if TYPE_CHECKING:
    from types import ModuleType

    from lmms_eval_tasks.benchmark import Benchmark

GROUP = "lmms_eval_tasks.benchmarks"
# What somebody's package may raise while it is imported.
ERRORS = (Exception, SystemExit)
_OURS = __name__.partition(".")[0]


def _is_ours(entry: EntryPoint) -> bool:
    return entry.module.startswith(f"{_OURS}.")


def _entries() -> tuple[dict[str, EntryPoint], list[str]]:
    """By name, and lines on those that are left out. Nothing is imported."""
    every = sorted(entry_points(group=GROUP), key=lambda one: (one.name, not _is_ours(one)))
    found: dict[str, EntryPoint] = {}
    left_out: list[str] = []
    taken = {one.stem for one in Path(__file__).parent.iterdir()} | {"judges", "utils"}
    for one in every:
        if one.name in found and one.value != found[one.name].value:
            left_out.append(f"{one.value}: {found[one.name].value} also has the name {one.name}")
        elif one.name in taken and not _is_ours(one):
            left_out.append(f"{one.value}: invalid name of a benchmark: {one.name}")
        else:
            found.setdefault(one.name, one)
    return found, left_out


ENTRIES, LEFT_OUT = _entries()
NAMES: tuple[str, ...] = tuple(ENTRIES)


def is_ours(name: str) -> bool:
    """True if a benchmark is in our own package."""
    return _is_ours(ENTRIES[name])


def load(name: str) -> Benchmark:
    """The benchmark of that name, imported on demand.

    Raises:
        TasksError: its package cannot be imported; names it.
    """
    try:
        return cast("Benchmark", ENTRIES[name].load())
    except ERRORS as error:
        why = f"{type(error).__name__}: {error}"
        raise TasksError(
            f"the benchmark {name} cannot be imported from {ENTRIES[name].value}: {why}"
        ) from error


def there() -> Iterator[Benchmark]:
    """All benchmarks that can be used; a line says which cannot, and why."""
    for line in LEFT_OUT:
        say(f"skipped: {line}")
    for name in NAMES:
        try:
            if folder(name) is None:
                raise TasksError(no_folder(name))
            made = load(name)
        except TasksError as error:
            say(str(error))
        else:
            yield made


def no_folder(name: str) -> str:
    """The reason why a benchmark's tasks cannot be found, if `folder` returns None."""
    return (
        f"the tasks of {name} cannot be found: {package(name)} is not a package "
        "that can be imported (a folder with __init__.py)"
    )


def package(name: str) -> str:
    """The package that holds a benchmark, or another one of ours, such as `judges`."""
    if name not in ENTRIES:
        return f"{_OURS}.{name}"
    module = ENTRIES[name].module
    return module.rpartition(".")[0] or module


@cache
def folder(name: str) -> Path | None:
    """The folder of a benchmark's files; None if they are in no folder or cannot be found."""
    try:
        spec = importlib.util.find_spec(package(name))
    except ERRORS:  # of a package above it
        return None
    places = spec.submodule_search_locations if spec else None
    # Of the file, not the folder: an editable installation links files one by one.
    files = (Path(place, "__init__.py").resolve() for place in places or ())
    return next((file.parent for file in files if file.is_file()), None)


def has_part(name: str, module: str) -> bool:
    """True if a benchmark's package has a module, such as `sample`."""
    place = folder(name)
    return place is not None and (place / f"{module}.py").is_file()


def part(name: str, module: str) -> ModuleType:
    """A module of a benchmark's package; raises ERRORS if it cannot be imported."""
    return importlib.import_module(f"{package(name)}.{module}")


def named(name: str) -> Benchmark:
    """The benchmark that a user names; a DataError if there is none of that name."""
    if name not in NAMES:
        near = nearest(name, NAMES)
        raise DataError(f"no benchmark {name!r}{near or ': ' + ', '.join(NAMES)}")
    return load(name)


def of_task_name(task: str) -> str | None:
    """The benchmark that a task or group is of, by the first part of its name or by its file."""
    own = [name for name in NAMES if f"{task}_".startswith(f"{name}_")]
    if own or not task.isidentifier():
        return max(own, key=len, default=None)
    ours_first = sorted(NAMES, key=lambda name: not is_ours(name))
    return next((name for name in ours_first if task_file(name, task)), None)


@cache
def task_file(name: str, task: str) -> str:
    """The path of a task's or group's file, which has its name; "" if there is none."""
    place = folder(name)
    # A list of names is longer than a file's name can be: an error of Path's.
    found = place is not None and os.path.isfile(file := f"{place}/{task}.yaml")  # noqa: PTH113
    return file if found else ""


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
    place = folder(name)
    for file in sorted(place.glob("*.yaml") if place else ()):
        read = yaml.load(file.read_text(encoding="utf-8"), Plain)  # noqa: S506 - a safe loader
        if "group" in read:
            found[read["group"]] = list(read["task"])
    return found


def selected(names: Collection[str]) -> list[str]:
    """The tasks that names or patterns of tasks and groups stand for; a TasksError if none."""
    members: dict[str, list[str]] = {}
    for benchmark in there():
        members |= {**{task: [] for task in benchmark.tasks}, **groups(benchmark.name)}

    def tasks_of(name: str) -> list[str]:
        return [task for one in members[name] for task in tasks_of(one)] or [name]

    found: list[str] = []
    for name in names:
        if not (meant := [one for one in members if fnmatch(one, name)]):
            raise TasksError(
                "no task or group of lmms-eval-tasks has the name "
                f"{name}{nearest(name, members)} (all tasks: lmms-eval-tasks "
                "list)"
            )
        found += [task for one in meant for task in tasks_of(one)]
    return list(dict.fromkeys(found))
