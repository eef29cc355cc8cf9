"""The hook in the host: what is arranged in it, and when.

The host loads the entry point group `lmms_eval.models` before it imports its task manager
(architecture.md, decision 1; host.md). `register` uses that moment to arrange three things, each
when its host module is ready:

- `TaskManager` also reads our folder, where the host does not do so by itself (discovery.py);
- `simple_evaluate` checks the data and the judge of the selected tasks of ours before it builds the
  model, gives judged tasks as many scoring threads as the judge may have requests in flight (the
  host's default is four), keeps the host from sending a wrong frame, and adds our section to the
  results;
- `ConfigurableTask.process_results` says which task a verdict belongs to.

A broken hook must never break the host for other tasks: trouble here becomes one line on stderr.
Of a host that lacks something the tasks are found, and no more (needs.py).
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from lmms_eval_tasks.console import say
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.host import discovery, needs
from lmms_eval_tasks.utils import interrupts

_THREADS, HOST_THREADS = "process_docs_parallel", 4  # and the host's default
_MARK = "_lmms_eval_tasks"


def register() -> list[Any]:
    """Entry point of the host's model registry: hooks the task manager, returns our models.

    Returns:
        `ModelManifest`s of our small models; an empty list if they cannot be built.
    """
    install()
    try:
        from lmms_eval_tasks.sample import models

        return list(models.manifests())
    except Exception as error:  # the host loads all plugins in one try: never spoil the others
        say(f"our models are not available ({error!r})")
        return []


def install() -> None:
    """Arrange the hooks, now or when the host's modules are imported; safe to call again."""
    try:
        when_imported("lmms_eval.tasks", discovery.extend_task_manager, missed)
        when_imported("lmms_eval.api.task", _name_scored_tasks, missed)
        _wrap_simple_evaluate()
    except Exception as error:
        missed("lmms_eval", error)


def missed(name: str, error: Exception) -> None:
    """Say that a hook is not in place, and what to do."""
    say(f"could not hook {name} ({error!r}); pass {discovery.OUR_FOLDER}")


# --- when the host imports a module, which is heavy, and not ours -------------------------------


def when_imported(
    name: str,
    act: Callable[[ModuleType], None],
    failed: Callable[[str, Exception], None],
) -> None:
    """Call `act(module)` now if `name` is imported, else right after its import.

    An exception of `act` is raised now; after an import, which it must not break, `failed(name,
    exception)` is called instead.
    """
    if (module := sys.modules.get(name)) is not None:
        act(module)
    elif not any(isinstance(f, _Finder) and f.name == name for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder(name, act, failed))


class _Finder(importlib.abc.MetaPathFinder):
    """One shot: steps aside at the first import of `name`, and acts once it has been executed."""

    def __init__(self, name: str, act: Any, failed: Any) -> None:
        self.name, self._act, self._failed = name, act, failed

    def find_spec(self, fullname: str, *_: Any) -> Any:
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            try:
                self._act(module)
            except Exception as error:
                self._failed(fullname, error)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


# --- scoring -----------------------------------------------------------------------------------


def _name_scored_tasks(module: ModuleType) -> None:
    """Book verdicts under their task: process_results itself is never told its task's name."""
    task_class = getattr(module, "ConfigurableTask", None)
    score = getattr(task_class, "process_results", None)
    if score is None or getattr(task_class, _MARK, False):
        return  # what is missing is told by needs.py

    @functools.wraps(score)
    def process_results(self: Any, *args: Any, **kwargs: Any) -> Any:
        from lmms_eval_tasks.runs import judging

        with judging.scoring(self.config.task, len(getattr(self, "_instances", None) or ())):
            return score(self, *args, **kwargs)

    task_class.process_results = process_results  # type: ignore[union-attr]
    setattr(task_class, _MARK, True)


# --- simple_evaluate --------------------------------------------------------------------------


def _guarded(evaluate: Callable[..., Any]) -> Callable[..., Any]:
    """`simple_evaluate` with the check before the model is built and our section in the results."""
    if getattr(evaluate, _MARK, False):
        return evaluate
    signature = inspect.signature(evaluate)

    @functools.wraps(evaluate)
    def simple_evaluate(*args: Any, **kwargs: Any) -> Any:
        from lmms_eval_tasks import running
        from lmms_eval_tasks.host import endpoints, model_class, replies
        from lmms_eval_tasks.runs import after, before, judging

        bound = signature.bind(*args, **kwargs)
        given = bound.arguments
        names = given.get("tasks") or []
        names = [names] if isinstance(names, str) else names
        if not discovery.our_tasks(names) or not needs.met():
            return evaluate(*bound.args, **bound.kwargs)
        if given.get("task_manager") is None:
            given["task_manager"] = _task_manager(given.get("model"))
        if not (tasks := discovery.our_tasks(names, given["task_manager"])):
            return evaluate(*bound.args, **bound.kwargs)
        with (
            interrupts.ending(exits=_is_command()),
            _one_message(),
            judging.judging(tasks) as judged,
            running.model(model_class.named(given)),
            running.limited(given.get("limit"), given.get("offset") or 0),
        ):
            needs.check_filelock()
            before.check(tasks)
            for line in (*model_class.prepare(given), *model_class.advice(given)):
                say(line)
            before.make_media(tasks, given.get("limit"))
            if wanted := judged.begin():
                _score_side_by_side(given, wanted, signature)
            with endpoints.right_media(), replies.kept(given, tasks) as lengths:
                results = evaluate(*bound.args, **bound.kwargs)
                if results is not None:  # on rank 0, which has all items
                    after.score_together(results, tasks)
                work = judged.end()
                if results is not None:
                    after.annotate(results, tasks, work, lengths)
        return results

    setattr(simple_evaluate, _MARK, True)
    return simple_evaluate


def _score_side_by_side(given: dict[str, Any], wanted: int, signature: inspect.Signature) -> None:
    """Have the host score so many replies at a time, unless the user chose a number."""
    if _THREADS not in signature.parameters:
        say(f"this lmms-eval has no {_THREADS}: the judge is asked for one reply at a time")
    elif given.get(_THREADS, HOST_THREADS) == HOST_THREADS:
        given[_THREADS] = max(HOST_THREADS, wanted)


def _task_manager(model: Any) -> Any:
    """As the host makes one where it is given none."""
    from lmms_eval.tasks import TaskManager

    return TaskManager(model_name=model)


def _is_command() -> bool:
    """Whether this process is lmms-eval's command line, not somebody's script or notebook."""
    return bool(re.search(r"lmms[-_]eval(/__main__\.py)?$", sys.argv[0]))


@contextmanager
def _one_message() -> Iterator[None]:
    """Our errors end the host's command line with one message; elsewhere they are raised.

    By itself it prints a traceback and exits with 0 for every Exception.
    """
    try:
        yield
    except TasksError as error:
        if not _is_command():
            raise
        say(str(error))
        raise SystemExit(2) from None


def _wrap_simple_evaluate() -> None:
    """Put the guard on `lmms_eval.evaluator.simple_evaluate`, whatever state the module is in.

    As a rule the evaluator is just being imported when the entry points are loaded: its function
    does not exist yet, and no import event follows. A property on the module's class takes
    precedence over the module's own attribute, for `evaluator.simple_evaluate` and for
    `from lmms_eval.evaluator import simple_evaluate` alike.
    """
    module = sys.modules.get("lmms_eval.evaluator")
    if module is None:
        when_imported("lmms_eval.evaluator", _guard_module, missed)
    elif "simple_evaluate" in vars(module):
        _guard_module(module)
    elif type(module) is ModuleType:

        class Evaluator(ModuleType):
            @property
            def simple_evaluate(self) -> Callable[..., Any]:
                if "simple_evaluate" not in vars(self):
                    raise AttributeError("simple_evaluate")
                return _guarded(vars(self)["simple_evaluate"])

        module.__class__ = Evaluator


def _guard_module(module: ModuleType) -> None:
    if type(module) is not ModuleType:
        return  # guarded by the property above: `install` ran before and again during the import
    if not hasattr(module, "simple_evaluate"):
        return  # told by needs.py
    module.simple_evaluate = _guarded(module.simple_evaluate)  # type: ignore[attr-defined]
