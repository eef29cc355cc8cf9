"""The hook in lmms-eval: the functions that it wraps, and when it does so.

lmms-eval loads the entry point group `lmms_eval.models` before it imports its task manager
(docs/design.md, "What lmms-eval does"). At that moment, `register` prepares three changes, each of
which is made as soon as its module of lmms-eval is imported:

- `TaskManager` also reads our folders, if lmms-eval does not do so by itself (discovery.py).
- `simple_evaluate` checks whether any task of the run is ours. Such a run goes through
  evaluation.py.
- `cli_evaluate` prints one line for a run of our tasks that cannot start, continues with the next
  run of a `--config` list, and exits with 2 after the last one.

Runs of other tasks must not be affected. So this module imports only the standard library at first,
and other modules of the package when they are needed; an error becomes one line on stderr. If
lmms-eval lacks a function that is wrapped here, our tasks are still found (needs.py).
"""

from __future__ import annotations

import contextlib
import functools
import importlib.abc
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from lmms_eval_tasks.models.host_types import Arguments, Function

_MARK = "_lmms_eval_tasks"

Act = Callable[[ModuleType], None]
Failed = Callable[[str, Exception], None]


def register() -> list[object]:
    """Arrange the hooks, and return our models; lmms-eval's model registry calls this entry point.

    Returns:
        `ModelManifest`s of our models; an empty list if they cannot be built.
    """
    install()
    try:
        from lmms_eval_tasks.host import models

        return list(models.manifests())
    # lmms-eval loads all plugins in one `try`, so an error here would disable the others, too.
    except Exception as error:
        _say(f"the models of lmms-eval-tasks are not available ({error!r})")
        return []


def install() -> None:
    """Arrange the hooks, now or when lmms-eval's modules are imported; safe to call again."""
    try:
        when_imported("lmms_eval.tasks", _extend_task_manager, missed)
        when_imported("lmms_eval.evaluator", _guard_evaluator, missed, "simple_evaluate")
        when_imported("lmms_eval.__main__", _guard_command, missed, "cli_evaluate")
    except Exception as error:
        missed("lmms_eval", error)


def missed(name: str, error: Exception) -> None:
    """Print that a hook is not in place, and what to do."""
    pass_it = '--include_path "$(lmms-eval-tasks path)"'
    _say(f"could not hook {name} ({error!r}); pass {pass_it}")


def _say(line: str) -> None:
    """Call `notify.notify`, if it can be imported."""
    with contextlib.suppress(Exception):
        from lmms_eval_tasks.notify import notify

        notify(line)


# --- actions after the import of lmms-eval's modules ----------------------------------------------


def when_imported(name: str, act: Act, failed: Failed, defines: str = "") -> None:
    """Call `act(module)` once a module is imported: now, or right after its import.

    Args:
        name: name of the module.
        act: the function to call. Its exception is raised if the module is already imported. After
            an import, which must not break, `failed(name, exception)` is called instead.
        failed: the function to call for an exception of `act`.
        defines: a name in the module that `act` needs; "" if it needs none. If the module is just
            being imported and still lacks the name, `act` is called as soon as other code reads
            the name.
    """
    module = sys.modules.get(name)
    if module is None:
        if not any(
            isinstance(f, _Finder) and (f.name, f.act) == (name, act) for f in sys.meta_path
        ):
            sys.meta_path.insert(0, _Finder(name, act, failed))
    elif not defines or defines in vars(module):
        act(module)
    elif type(module) is ModuleType:
        module.__class__ = _unfinished(defines, act, failed)


def _attempt(act: Act, failed: Failed, module: ModuleType) -> None:
    try:
        act(module)
    except Exception as error:
        failed(module.__name__, error)


class _Finder(importlib.abc.MetaPathFinder):
    """A finder that calls `act` once, after the first import of `name`."""

    def __init__(self, name: str, act: Act, failed: Failed) -> None:
        self.name, self.act, self._failed = name, act, failed

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _attempt(self.act, self._failed, module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _unfinished(defines: str, act: Act, failed: Failed) -> type[ModuleType]:
    """Return a class for a module that is being imported: the first use of a name calls `act`.

    Both `module.name` and `from module import name` use a name.

    Args:
        defines: the name.
        act: the function to call with the module.
        failed: the function to call for an exception of `act`.
    """

    class Unfinished(ModuleType):
        def __getattribute__(self, attribute: str) -> object:
            plain = super().__getattribute__
            if attribute == defines and defines in plain("__dict__"):
                self.__class__ = ModuleType  # type: ignore[assignment]
                _attempt(act, failed, self)
            return plain(attribute)

    return Unfinished


# --- hooks ----------------------------------------------------------------------------------------


def _extend_task_manager(module: ModuleType) -> None:
    from lmms_eval_tasks.host import discovery

    discovery.extend_task_manager(module)


def _guard_evaluator(module: ModuleType) -> None:
    if hasattr(module, "simple_evaluate"):  # otherwise needs.py reports it
        module.simple_evaluate = guarded(module.simple_evaluate)  # type: ignore[attr-defined]


def _guard_command(module: ModuleType) -> None:
    module.cli_evaluate = commanded(module)  # type: ignore[attr-defined]


def guarded(evaluate: Function) -> Function:
    """Return lmms-eval's `simple_evaluate`, wrapped: runs with our tasks go through evaluation.py.

    Runs of other tasks call lmms-eval's function with unchanged arguments.
    """
    if getattr(evaluate, _MARK, False):
        return evaluate
    signature = inspect.signature(evaluate)

    @functools.wraps(evaluate)
    def simple_evaluate(*args: object, **kwargs: object) -> object:
        try:
            bound = signature.bind(*args, **kwargs)
            tasks = _ours(bound.arguments)
        # It is unknown whether the run has tasks of ours, so the run is not changed.
        except Exception as error:
            _say(f"cannot tell whether the run has tasks of lmms-eval-tasks ({error!r})")
            tasks = []
        if not tasks:
            return evaluate(*args, **kwargs)
        return _evaluation().evaluated(evaluate, bound, tasks)

    setattr(simple_evaluate, _MARK, True)
    return simple_evaluate


def _ours(arguments: Arguments) -> list[str]:
    """Return our tasks among those of a run.

    If a name looks like ours, a task manager decides. It is made, and added to the arguments, if
    the run has none.
    """
    from lmms_eval_tasks.host import discovery

    names = arguments.get("tasks") or []
    names = [names] if isinstance(names, str) else names
    if not discovery.our_tasks(names):
        return []
    if arguments.get("task_manager") is None:
        from lmms_eval.tasks import TaskManager

        arguments["task_manager"] = TaskManager(model_name=arguments.get("model"))
    discovery.complete(arguments["task_manager"], names)
    return discovery.our_tasks(names, arguments["task_manager"])


def _evaluation() -> ModuleType:
    """Import and return evaluation.py, which makes the runs with our tasks.

    Raises:
        TasksError: the import fails; the message names what is missing.
    """
    try:
        from lmms_eval_tasks.host import evaluation
    except ImportError as error:
        from lmms_eval_tasks.errors import not_importable

        raise not_importable(error) from error
    return evaluation


def commanded(module: ModuleType) -> Function:
    """Return lmms-eval's `cli_evaluate`, wrapped: it continues after a run that cannot start.

    For such a run of our tasks, one line is printed, and the exit code is 2. lmms-eval's function
    would print a traceback and exit with 0.
    """
    evaluate_all: Function = module.cli_evaluate
    if getattr(evaluate_all, _MARK, False):
        return evaluate_all

    def each(*args: object, **kwargs: object) -> object:
        wrong: list[str] = []
        evaluate = getattr(module, "cli_evaluate_single", None)
        if evaluate is None:  # needs.py reports it
            return evaluate_all(*args, **kwargs)
        module.cli_evaluate_single = _told(evaluate, wrong)  # type: ignore[attr-defined]
        try:
            made = evaluate_all(*args, **kwargs)
        finally:
            module.cli_evaluate_single = evaluate  # type: ignore[attr-defined]
        if wrong:
            raise SystemExit(_wrong())
        return made

    @functools.wraps(evaluate_all)
    def cli_evaluate(*args: object, **kwargs: object) -> object:
        script = None if args or kwargs else _script(sys.argv[1:])
        return script.take_over(module, each) if script else each(*args, **kwargs)

    setattr(cli_evaluate, _MARK, True)
    return cli_evaluate


def _script(arguments: list[str]) -> ModuleType | None:
    """Return script.py if a command names a task of ours, or a `--config` file; else None.

    Such a file may name tasks of ours.
    """
    # An error here must not end a command without our tasks; with our tasks, it shows again later.
    with contextlib.suppress(Exception):
        from lmms_eval_tasks.host import discovery

        values = [given.partition("=")[2] if given[:1] == "-" else given for given in arguments]
        names = [name.strip() for value in values for name in value.split(",")]
        if any(given.startswith("--c") for given in arguments) or discovery.names_ours(names):
            from lmms_eval_tasks.host import script

            return script
    return None


def _told(evaluate: Function, wrong: list[str]) -> Function:
    """Return `cli_evaluate_single`, wrapped: it prints a TasksError and adds it to `wrong`."""

    @functools.wraps(evaluate)
    def cli_evaluate_single(*args: object, **kwargs: object) -> object:
        try:
            return evaluate(*args, **kwargs)
        except Exception as error:
            if not _is_ours(error):
                raise
            _say(str(error))
            if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not getattr(error, "of_all", False):
                raise SystemExit(_wrong()) from None  # the other processes are still in this run
            wrong.append(str(error))
            return None, None  # the result of a rank without results

    return cli_evaluate_single


def _wrong() -> int:
    from lmms_eval_tasks.errors import WRONG

    return WRONG


def _is_ours(error: Exception) -> bool:
    with contextlib.suppress(ImportError):
        from lmms_eval_tasks.errors import TasksError

        return isinstance(error, TasksError)
    return False
