"""The tasks that lmms-eval finds, and their owner: this package, lmms-eval, or the user."""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import importlib.util
import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from lmms_eval_tasks import registry
from lmms_eval_tasks.errors import TasksError, nearest
from lmms_eval_tasks.notify import notify

if TYPE_CHECKING:
    from lmms_eval_tasks.models.host_types import Function, TaskManager

OUR_FOLDER = '--include_path "$(lmms-eval-tasks path)"'
_MARK = "_lmms_eval_tasks"


def task_folders() -> list[str]:
    """Return the folders with task files: this package's, and those of other packages' benchmarks.

    This function is also the entry point in the group `lmms_eval.tasks`, which a patched lmms-eval
    reads (upstream/entry_point).
    """
    places = {name: registry.folder(name) for name in registry.NAMES}
    return sorted(
        {
            str(place.parent if registry.is_ours(name) else place)
            for name, place in places.items()
            if place is not None
        }
    )


def extend_task_manager(module: ModuleType) -> None:
    """Make lmms-eval's `TaskManager` read our folders, unless it does so already.

    Args:
        module: `lmms_eval.tasks`.

    Raises:
        TypeError: the class has no argument `include_path`.
    """
    manager = module.TaskManager
    if not (finds_tasks(manager) or _by_entry_point(module)):
        _include(manager)
    setattr(manager, _MARK, True)


def finds_tasks(manager: type) -> bool:
    """Return True if a class of task managers reads our folders (`extend_task_manager`)."""
    return getattr(manager, _MARK, False)


def _by_entry_point(module: ModuleType) -> bool:
    """Return True if lmms-eval finds tasks by entry points, and ours is installed."""
    group = getattr(module, "TASK_ENTRY_POINT_GROUP", None)
    return bool(group and entry_points(group=group, name="lmms_eval_tasks"))


def _include(manager: type) -> None:
    """Make a class of task managers read our folders after those in the user's `include_path`."""
    for name in ("__init__", "initialize_tasks"):
        original: Function | None = getattr(manager, name, None)
        if original and "include_path" in inspect.signature(original).parameters:
            break
    else:
        raise TypeError("TaskManager has no include_path")
    signature = inspect.signature(original)

    @functools.wraps(original)
    def reading_ours(*args: object, **kwargs: object) -> object:
        bound = signature.bind(*args, **kwargs)
        own = bound.arguments.get("include_path")
        if bound.arguments.get("include_defaults", True):
            paths = _listed(own)
            new = [folder for folder in task_folders() if folder not in map(_real, paths)]
            bound.arguments["include_path"] = [*paths, *new]
        made = original(*bound.args, **bound.kwargs)
        bound.args[0].include_path = own  # only what the user named
        return made

    setattr(manager, name, reading_ours)


def _listed(paths: object) -> list[object]:
    """Return a value of lmms-eval's `include_path` (a path, several, or None) as a list."""
    if isinstance(paths, Iterable) and not isinstance(paths, str):
        return list(paths)
    return [paths] if paths else []


def _real(path: object) -> str:
    return str(Path(str(path)).expanduser().resolve())


def complete(manager: TaskManager, names: Sequence[object]) -> None:
    """Add the tasks of ours that a run names to a task manager that did not read our folders.

    Such a manager was made before the hook was in place, or with `include_defaults=False`. (`from
    lmms_eval.tasks import TaskManager` alone loads no plugin.)
    """
    unknown = [one for one in _texts(names) if one not in manager.task_index]
    if not our_tasks(unknown):
        return
    with contextlib.suppress(AttributeError, TypeError):  # another lmms-eval: see needs.py
        found = manager.initialize_tasks(include_path=task_folders(), include_defaults=False)
        new = {name: entry for name, entry in found.items() if name not in manager.task_index}
        manager.task_index.update(new)
        manager.all_tasks.extend(new)
        for kind, known in (("group", manager.all_groups), ("task", manager.all_subtasks)):
            known.extend(name for name, entry in new.items() if entry["type"] == kind)


def _texts(names: Sequence[object]) -> list[str]:
    """Return the names in lmms-eval's `tasks`; a config has its name in `task` or `group`."""
    asked = (one.get("task", one.get("group")) if isinstance(one, dict) else one for one in names)
    return [one for one in asked if isinstance(one, str)]


def our_tasks(names: Sequence[object], manager: TaskManager | None = None) -> list[str]:
    """Return our tasks among lmms-eval's `tasks`, in order and without repetitions.

    A group is replaced by its tasks. Several files may have the name of one task. Then lmms-eval
    prefers its own file to one in `include_path`, and both to ours. This function prefers ours if
    the user named our folder in `include_path`. A printed line says which file runs.

    Args:
        names: names or configs, in the form of lmms-eval's `tasks`.
        manager: the run's task manager, which knows the file of each task; the entries of our tasks
            are changed to our files. None: a task is ours if its name is.
    """
    groups = functools.cache(registry.groups)
    ours_first = _names_our_folder(manager)
    others: dict[str, str] = {}

    def tasks_of(name: str) -> list[str]:
        own = registry.of_task_name(name)
        if own is None or not (file := registry.task_file(own, name)):
            return []
        members = groups(own).get(name, ())
        if manager is not None and (other := _other(manager, file, name)):
            others[name] = other
            if not ours_first:
                return []
            kind = "group" if members else "task"
            manager.task_index[name] = {"type": kind, "task": -1, "yaml_path": file}
        return [task for one in members for task in tasks_of(one)] if members else [name]

    found = dict.fromkeys(task for one in _texts(names) for task in tasks_of(one))
    if others:
        notify(_whose(others, ours_first))
    return list(found)


def names_ours(names: Sequence[str]) -> bool:
    """Return True if a name, or a pattern of names, stands for a task or group of ours."""
    ours = _our_names()
    return any(registry.of_task_name(n) or ("*" in n and fnmatch.filter(ours, n)) for n in names)


def _our_names() -> set[str]:
    folders = filter(None, map(registry.folder, registry.NAMES))
    return {file.stem for folder in folders for file in folder.glob("*.yaml")}


def check_names(names: Sequence[str], include_path: object = None) -> None:
    """Check the names of tasks that look like ours; lmms-eval checks all other names.

    For an unknown name, lmms-eval itself prints only a traceback.

    Args:
        names: names of tasks and groups, or patterns.
        include_path: lmms-eval's option, the folders with the user's tasks.

    Raises:
        TasksError: a name begins with a benchmark of ours, or is similar to one of our names, and
            no task has it. The message has the most similar of our names.
    """
    ours = _our_names()
    for name in names:
        own = registry.of_task_name(name)
        if own is None:
            known = not nearest(name, ours)
        elif registry.folder(own) is None:
            raise TasksError(registry.no_folder(own))
        else:
            known = bool(registry.task_file(own, name) or fnmatch.filter(ours, name))
            known |= "*" in name and bool(include_path)  # a pattern of the user's own tasks
        if not (known or _in_a_task_file(name, include_path)):
            registry.selected([name])


def package_folders(package: str) -> list[Path]:
    """Return the folders of a package's files, without importing it; [] if it is not there."""
    spec = importlib.util.find_spec(package)
    return list(map(Path, spec.submodule_search_locations or ())) if spec else []


def _in_a_task_file(name: str, include_path: object) -> bool:
    """Return True if a name occurs in a task file of lmms-eval, of its plugins or of the user."""
    places = [folder / "tasks" for folder in package_folders("lmms_eval")]
    places += [Path(str(path)).expanduser() for path in _listed(include_path)]
    for plugin in filter(None, os.environ.get("LMMS_EVAL_PLUGINS", "").split(",")):
        places += package_folders(plugin)
    files = (file for place in places for file in place.rglob("*.yaml") if file.is_file())
    return any(name in file.read_text(encoding="utf-8", errors="replace") for file in files)


def _whose(others: Mapping[str, str], ours_first: bool) -> str:
    """Return a line for the user: which of two tasks with one name runs, and how to run the other.

    Args:
        others: for each name, the other files that have it, in words.
        ours_first: True if our files run.
    """
    names, those = ", ".join(others), ", ".join(dict.fromkeys(others.values()))
    if ours_first:
        return (
            f"{names}: the tasks of lmms-eval-tasks run, since --include_path names "
            f"their folder; not used: {those}"
        )
    return (
        f"{names}: {those} run in place of the tasks of lmms-eval-tasks with the "
        f"same name; to use ours: {OUR_FOLDER}"
    )


def _names_our_folder(manager: TaskManager | None) -> bool:
    """Return True if the user named a folder of ours in a task manager's `include_path`."""
    named = _listed(getattr(manager, "include_path", None))
    return not set(task_folders()).isdisjoint(map(_real, named))


def _other(manager: TaskManager, file: str, name: str) -> str:
    """Return, in words, the files that lmms-eval uses for a name; "" if it uses ours, or none."""
    entry = manager.task_index.get(name)
    if entry is None or _real(place := entry["yaml_path"]) == file:
        return ""
    return "lmms-eval's tags" if entry["type"] == "tag" else f"the files in {Path(place).parent}"
