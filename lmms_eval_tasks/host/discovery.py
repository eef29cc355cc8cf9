"""Which tasks the host finds, and whose they are: ours, its own, or a user's of the same name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from lmms_eval_tasks import benchmarks
from lmms_eval_tasks.console import say
from lmms_eval_tasks.errors import TasksError

OUR_FOLDER = '--include_path "$(lmms-eval-tasks path)"'
_MARK = "_lmms_eval_tasks"


def task_folders() -> list[str]:
    """The folders that hold benchmarks: the package's own, unless its path was made longer.

    The entry point for hosts that find tasks by the group `lmms_eval.tasks` (upstream/entry_point).
    """
    import lmms_eval_tasks

    paths = [Path(folder) for folder in lmms_eval_tasks.__path__]
    places = [path / name / "__init__.py" for path in paths for name in benchmarks.NAMES]
    # Of the file, not the folder: an editable installation links files one by one.
    return sorted({str(one.resolve().parent.parent) for one in places if one.is_file()})


def extend_task_manager(module: ModuleType) -> None:
    """Task managers read our folder; a TypeError if one cannot be told of a folder."""
    manager = module.TaskManager
    if not (finds_tasks(manager) or _by_entry_point(module)):
        _include(manager)
    setattr(manager, _MARK, True)


def finds_tasks(manager: Any) -> bool:
    """Whether a task manager's class reads our folder."""
    return getattr(manager, _MARK, False)


def _by_entry_point(module: ModuleType) -> bool:
    """Whether the host looks for tasks of packages itself, and for ours where they are."""
    group = getattr(module, "TASK_ENTRY_POINT_GROUP", None)
    return bool(group and entry_points(group=group, name="lmms_eval_tasks"))


def _include(manager: Any) -> None:
    """Have our folder read as if it were named in `include_path`, after what the user names."""
    for name in ("__init__", "initialize_tasks"):
        original = getattr(manager, name, manager.__init__)
        signature = inspect.signature(original)
        if "include_path" in signature.parameters:
            break
    else:
        raise TypeError("TaskManager has no include_path")

    @functools.wraps(original)
    def reading_ours(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        own = bound.arguments.get("include_path")
        if bound.arguments.get("include_defaults", True):
            paths = _listed(own)
            new = [folder for folder in task_folders() if folder not in map(_real, paths)]
            bound.arguments["include_path"] = [*paths, *new]
        made = original(*bound.args, **bound.kwargs)
        bound.args[0].include_path = own  # what the user names, and no more
        return made

    setattr(manager, name, reading_ours)


def _listed(paths: Any) -> list[Any]:
    """What the host takes as `include_path`, as a list."""
    return [paths] if isinstance(paths, str) else list(paths or [])


def _real(path: Any) -> str:
    return str(Path(str(path)).expanduser().resolve())


def our_tasks(names: Sequence[Any], manager: Any = None) -> list[str]:
    """Our tasks among names or configs as given to the host, groups opened, in order, each once.

    Args:
        names: as the host's `tasks`.
        manager: the run's task manager, where it shall be known whose a task is; without it the
            name says it. Of two files with one name the host takes the first: of its own tasks,
            `include_path`, ours; but ours, if the user named our folder. A line says which.
    """
    groups = functools.cache(benchmarks.groups)
    ours_first = _names_our_folder(manager)
    others: dict[str, str] = {}

    def tasks_of(name: Any) -> list[str]:
        if not isinstance(name, str) or not (own := benchmarks.of_task_name(name)):
            return []
        is_task, members = name in benchmarks.load(own).tasks, groups(own).get(name, ())
        if (is_task or members) and (other := _other(manager, own, name)):
            others[name] = other
            if not ours_first:
                return []
            kind, file = "task" if is_task else "group", _our_file(own, name)
            manager.task_index[name] = {"type": kind, "task": -1, "yaml_path": file}
        return [name] if is_task else [task for one in members for task in tasks_of(one)]

    asked = (one.get("task", one.get("group")) if isinstance(one, dict) else one for one in names)
    found = dict.fromkeys(task for one in asked for task in tasks_of(one))
    if others:
        say(_whose(others, ours_first))
    return list(found)


def check_names(names: Sequence[str], include_path: Any = None) -> None:
    """Refuse a name that begins as ours do, and is nobody's: the host's own message is a traceback.

    Raises:
        TasksError: names it, and the nearest of ours.
    """
    for name in names:
        own = benchmarks.of_task_name(name)
        if own is None or name in benchmarks.load(own).tasks or name in benchmarks.groups(own):
            continue
        try:
            benchmarks.selected([name])  # a pattern
        except TasksError:
            from lmms_eval.tasks import TaskManager

            if name not in TaskManager("ERROR", include_path=include_path).all_tasks:
                raise


def _whose(others: Mapping[str, str], ours_first: bool) -> str:
    """Which of two tasks of one name runs, and how to get the other."""
    names, those = ", ".join(others), ", ".join(dict.fromkeys(others.values()))
    if ours_first:
        return f"{names}: ours run, since include_path names our folder, and not {those}"
    return f"{names}: {those} run, and not ours; for ours: {OUR_FOLDER}"


def _names_our_folder(manager: Any) -> bool:
    """Whether the user names our folder in a task manager's `include_path`."""
    named = _listed(getattr(manager, "include_path", None))
    return not set(task_folders()).isdisjoint(map(_real, named))


def _other(manager: Any, benchmark: str, name: str) -> str:
    """What else the host takes for a name of ours, in words; "" if it takes ours."""
    entry = manager.task_index.get(name) if manager is not None else None
    if entry is None or _real(place := entry["yaml_path"]) == _our_file(benchmark, name):
        return ""
    return "the host's tags" if entry["type"] == "tag" else f"the files in {Path(place).parent}"


def _our_file(benchmark: str, name: str) -> str:
    """Where one of our tasks or groups stands: in a file of its name."""
    places = (Path(folder, benchmark, f"{name}.yaml") for folder in task_folders())
    return next(str(place) for place in places if place.is_file())
