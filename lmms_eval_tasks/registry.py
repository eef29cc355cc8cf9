"""The installed benchmarks: all entry points of the group `lmms_eval_tasks.benchmarks`.

The benchmarks of this package are entry points like those of other packages. An entry point's name
is the benchmark's name, which is also its folder below the data root and the first part of its
tasks' names. The entry point's object is the `Benchmark`. Its module lies in a package that holds
everything else of the benchmark:

- `*.yaml`: the files of its tasks and groups; `prompts/*.yml`: its prompts;
- `settings.py`: its settings (`settings.declare`), which become options of `lmms_eval`;
- `commands.py`: `add(app)` adds its commands to `lmms-eval-tasks`;
- `sample.py`: its part of the packaged sample;
- `leaderboard.json`: the paper's figures.

docs/your_benchmark.md shows a complete example.
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
from typing import TYPE_CHECKING, Any, cast

from lmms_eval_tasks.errors import DataError, TasksError, nearest
from lmms_eval_tasks.notify import notify

if TYPE_CHECKING:
    from types import ModuleType

    from lmms_eval_tasks.benchmark import Benchmark

GROUP = "lmms_eval_tasks.benchmarks"
# The errors that an import of another package may raise.
ERRORS = (Exception, SystemExit)
_OURS = __name__.partition(".")[0]


def _is_ours(entry: EntryPoint) -> bool:
    return entry.module.startswith(f"{_OURS}.")


def _entries() -> tuple[dict[str, EntryPoint], list[str]]:
    """Return the entry points by name, and a line for each that is left out.

    Nothing is imported.
    """
    every = sorted(entry_points(group=GROUP), key=lambda ep: (ep.name, not _is_ours(ep)))
    entries: dict[str, EntryPoint] = {}
    left_out: list[str] = []
    taken = {file.stem for file in Path(__file__).parent.iterdir()} | {"judges", "utils"}
    for ep in every:
        if ep.name in entries and ep.value != entries[ep.name].value:
            left_out.append(f"{ep.value}: {entries[ep.name].value} also has the name {ep.name}")
        elif ep.name in taken and not _is_ours(ep):
            left_out.append(f"{ep.value}: invalid name of a benchmark: {ep.name}")
        else:
            entries.setdefault(ep.name, ep)
    return entries, left_out


ENTRIES, LEFT_OUT = _entries()
NAMES: tuple[str, ...] = tuple(ENTRIES)


def is_ours(name: str) -> bool:
    """Return True if a benchmark is part of this package."""
    return _is_ours(ENTRIES[name])


def load_benchmark(name: str) -> Benchmark:
    """Import and return the benchmark of that name.

    Raises:
        TasksError: its package cannot be imported; the message names the package.
    """
    try:
        return cast("Benchmark", ENTRIES[name].load())
    except ERRORS as error:
        why = f"{type(error).__name__}: {error}"
        raise TasksError(
            f"the benchmark {name} cannot be imported from {ENTRIES[name].value}: {why}"
        ) from error


def usable_benchmarks() -> Iterator[Benchmark]:
    """Yield all benchmarks that can be used; print a line with the reason for each other one."""
    for line in LEFT_OUT:
        notify(f"skipped: {line}")
    for name in NAMES:
        try:
            if folder(name) is None:
                raise TasksError(no_folder(name))
            made = load_benchmark(name)
        except TasksError as error:
            notify(str(error))
        else:
            yield made


def no_folder(name: str) -> str:
    """Return the message for a benchmark whose folder is unknown (`folder` returned None)."""
    return (
        f"the tasks of {name} cannot be found: {package(name)} is not a package "
        "that can be imported (a folder with __init__.py)"
    )


def package(name: str) -> str:
    """Return the name of a benchmark's package, or of a part of ours, such as `judges`."""
    if name not in ENTRIES:
        return f"{_OURS}.{name}"
    module = ENTRIES[name].module
    return module.rpartition(".")[0] or module


@cache
def folder(name: str) -> Path | None:
    """Return the folder of a benchmark's files; None if there is none or it cannot be found."""
    try:
        spec = importlib.util.find_spec(package(name))
    except ERRORS:  # the import of a package above this one failed
        return None
    places = spec.submodule_search_locations if spec else None
    # The file is resolved, not the folder, since an editable installation links single files.
    files = (Path(place, "__init__.py").resolve() for place in places or ())
    return next((file.parent for file in files if file.is_file()), None)


def has_part(name: str, module: str) -> bool:
    """Return True if a benchmark's package has a module of that name, such as `sample`."""
    place = folder(name)
    return place is not None and (place / f"{module}.py").is_file()


def part(name: str, module: str) -> ModuleType:
    """Import and return a module of a benchmark's package; raises ERRORS if the import fails."""
    return importlib.import_module(f"{package(name)}.{module}")


def find_benchmark(name: str) -> Benchmark:
    """Return the benchmark that a user named.

    Raises:
        DataError: there is no benchmark of that name.
    """
    if name not in NAMES:
        near = nearest(name, NAMES)
        raise DataError(f"no benchmark {name!r}{near or ': ' + ', '.join(NAMES)}")
    return load_benchmark(name)


def of_task_name(task: str) -> str | None:
    """Return the benchmark of a task or group, by the first part of its name or by its file.

    Returns:
        The benchmark's name; None if no installed benchmark has the task.
    """
    own = [name for name in NAMES if f"{task}_".startswith(f"{name}_")]
    if own or not task.isidentifier():
        return max(own, key=len, default=None)
    ours_first = sorted(NAMES, key=lambda name: not is_ours(name))
    return next((name for name in ours_first if task_file(name, task)), None)


@cache
def task_file(name: str, task: str) -> str:
    """Return the path of a task's or group's YAML file in a benchmark's package; "" without one."""
    place = folder(name)
    # os.path, since Path raises an error for a name that is too long, such as a list of tasks.
    found = place is not None and os.path.isfile(file := f"{place}/{task}.yaml")  # noqa: PTH113
    return file if found else ""


def of(task: str) -> Benchmark:
    """Return the benchmark of a task or group.

    Raises:
        LookupError: no installed benchmark has the task.
    """
    if (name := of_task_name(task)) is None:
        raise LookupError(task)
    return load_benchmark(name)


def benchmarks_of(tasks: Collection[str]) -> Iterator[tuple[Benchmark, list[str]]]:
    """Yield the benchmarks of some tasks, in the registry's order, each with its task names."""
    for name in NAMES:
        if own := [task for task in tasks if of_task_name(task) == name]:
            yield load_benchmark(name), own


def groups(name: str) -> Mapping[str, list[str]]:
    """Return a benchmark's groups in alphabetical order, each with its tasks and subgroups."""
    found = {}
    place = folder(name)
    for file in sorted(place.glob("*.yaml") if place else ()):
        read = _read_yaml(file)
        if "group" in read:
            found[read["group"]] = list(read["task"])
    return found


def task_keys(name: str, task: str) -> dict[str, Any]:
    """Return the keys of a task's YAML file and of the files that it includes.

    The value of a key with a `!function` is None.
    """
    keys: dict[str, Any] = {}
    file: Path | None = Path(task_file(name, task))
    while file is not None:
        keys = {**_read_yaml(file), **keys}
        included = keys.pop("include", None)
        file = file.with_name(included) if included else None
    return keys


def _read_yaml(file: Path) -> dict[str, Any]:
    import yaml

    # The C loader, if PyYAML has it, takes a tenth of the time.
    class Plain(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """A YAML loader that ignores lmms-eval's `!function`."""

    Plain.add_constructor("!function", lambda loader, node: None)  # noqa: ARG005
    return cast("dict[str, Any]", yaml.load(file.read_text(encoding="utf-8"), Plain))  # noqa: S506 - a safe loader


def selected(names: Collection[str]) -> list[str]:
    """Return the tasks that match names or patterns of tasks and groups.

    Raises:
        TasksError: a name or pattern matches nothing.
    """
    members: dict[str, list[str]] = {}
    for benchmark in usable_benchmarks():
        members |= {**{task: [] for task in benchmark.tasks}, **groups(benchmark.name)}

    def tasks_of(name: str) -> list[str]:
        return [task for member in members[name] for task in tasks_of(member)] or [name]

    tasks: list[str] = []
    for name in names:
        if not (matching := [member for member in members if fnmatch(member, name)]):
            raise TasksError(
                "no task or group of lmms-eval-tasks has the name "
                f"{name}{nearest(name, members)} (all tasks: lmms-eval-tasks "
                "list)"
            )
        tasks += [task for member in matching for task in tasks_of(member)]
    return list(dict.fromkeys(tasks))
