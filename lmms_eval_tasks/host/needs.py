"""What the hook needs of the host; of one that lacks some of it the tasks are found, and no more.

A version does not tell: a build from git bears that of the release before it, and a newer release
may still have all of it. So each thing is looked for, by its name and its arguments.
"""

from __future__ import annotations

import importlib
import inspect
from functools import cache
from importlib.metadata import version
from typing import Any, NamedTuple

from lmms_eval_tasks.console import say
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.running import host_version
from lmms_eval_tasks.runs.doctor import Finding, Findings


class Place(NamedTuple):
    """Something of the host: its module, its name there, arguments that it takes."""

    module: str
    name: str
    arguments: tuple[str, ...] = ()
    positional: int | None = None  # beside `arguments`, where we call it with these alone


PLACES = (
    Place(
        "lmms_eval.evaluator",
        "simple_evaluate",
        ("tasks", "task_manager", "model", "model_args", "force_simple", "limit", "offset"),
    ),
    Place("lmms_eval.evaluator", "evaluate", ("lm",)),
    Place("lmms_eval.tasks", "TaskManager", ("model_name",), 0),
    Place("lmms_eval.tasks", "TaskManager.task_index"),
    Place("lmms_eval.models", "MODEL_REGISTRY_V2.resolve", ("force_simple",), 1),
    Place("lmms_eval.utils", "simple_parse_args_string", (), 1),
    Place("lmms_eval.api.instance", "unwrap_generation_output", (), 1),
    Place("lmms_eval.api.instance", "GenerationResult", (), 2),
    Place("lmms_eval.api.task", "ConfigurableTask.process_results"),
    Place("lmms_eval.protocol", "ChatMessages.encode_image", ("image", "cache")),
)

FILELOCK = "filelock>=3.15.4,<4.3"  # as in pyproject.toml


@cache
def met() -> bool:
    """Whether the host has all of it; what it does not have is said, once in a process."""
    if told := unmet():
        say(told)
    return not told


def examined() -> Findings:
    """The same for the command `doctor`."""
    told = unmet()
    fine = f"lmms-eval {host_version()} has all that the hook needs"
    yield Finding("warning", told) if told else Finding("ok", fine)


def unmet() -> str:
    """What the host does not have, and what that means, in words; "" if it has all."""
    lacking = [why for place in PLACES if (why := _lacking(place))]
    meant = (
        "nothing is checked before the model loads, failed requests count as answers, and the "
        "results have none of our tables"
    )
    return f"lmms-eval {host_version()}: {'; '.join(lacking)}: {meant}" if lacking else ""


def check_filelock() -> None:
    """Refuse a filelock that the host can't share locks of: it finds out when the model is built.

    Raises:
        TasksError: the host imports a private module that this filelock does not have.
    """
    from lmms_eval import evaluator

    share, private = getattr(evaluator, "_enable_reentrant_filelocks", None), "filelock._api"
    if share is None or private not in share.__code__.co_names:
        return  # upstream/fixes/filelock_private_module, or a host with another way
    try:
        importlib.import_module(private)
    except ImportError as error:
        found = f"filelock {version('filelock')} is not for lmms-eval {host_version()} ({error})"
        raise TasksError(f"{found}: pip install '{FILELOCK}'") from None


def _lacking(place: Place) -> str:
    """What the host does not have, in words; "" if it has all."""
    try:
        found: Any = importlib.import_module(place.module)
        for step in place.name.split("."):
            found = getattr(found, step)
    except (ImportError, AttributeError):
        return f"there is no {place.name}"
    if not (place.arguments or place.positional):
        return ""
    takes = inspect.signature(found).parameters
    if lacking := [one for one in place.arguments if one not in takes]:
        return f"{place.name} has no {', '.join(lacking)}"
    if place.positional is None:
        return ""
    more = [one for one in list(takes.values())[place.positional :] if _is_asked_for(one)]
    asked = [one.name for one in more if one.name not in place.arguments]
    return f"{place.name} asks for {', '.join(asked)}" if asked else ""


def _is_asked_for(parameter: inspect.Parameter) -> bool:
    variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and not variadic
