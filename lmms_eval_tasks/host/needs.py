"""The parts of lmms-eval that the hook requires, and the loss without each of them.

A version number is not enough: a build from git has the number of the release before it, and a
newer release may still have all parts. So each part is looked up by its name, its arguments or a
text in its source.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.models.model_capabilities import host_version
from lmms_eval_tasks.notify import notify

if TYPE_CHECKING:
    from lmms_eval_tasks.doctor.checks import Findings

COMMAND = "lmms_eval.__main__"  # imported only in a run by the command line


class HostFeature(NamedTuple):
    """A part of lmms-eval that the hook requires: its module, its name, and its arguments."""

    module: str
    name: str  # "": the file of the module, which is not imported for the check
    arguments: tuple[str, ...] = ()
    # Number of positional arguments in our calls, if we pass no others.
    positional: int | None = None
    text: str = ""  # a text in its source, such as a message or a field
    # The feature that is lost without this part; "": without it, our tasks are found and no more.
    lost: str = ""


_NOT_SAVED = "results that cannot be saved are not reported"
_SCREEN = "the first screen does not name the results file"
PLACES = (
    HostFeature(
        "lmms_eval.evaluator",
        "simple_evaluate",
        ("tasks", "task_manager", "model", "model_args", "force_simple", "limit", "offset"),
    ),
    HostFeature("lmms_eval.evaluator", "evaluate", ("lm",)),
    # A request's task, and the place of its doc's id.
    HostFeature("lmms_eval.api.instance", "Instance", text="task_name"),
    HostFeature("lmms_eval.api.instance", "Instance.args"),
    HostFeature("lmms_eval.tasks", "TaskManager", ("model_name",), 0),
    HostFeature("lmms_eval.tasks", "TaskManager.task_index"),
    HostFeature("lmms_eval.tasks", "TaskManager", text='"yaml_path"'),
    HostFeature("lmms_eval.models", "MODEL_REGISTRY_V2.resolve", ("force_simple",), 1),
    HostFeature("lmms_eval.models.registry_v2", "ResolvedModel", text="class_path"),
    HostFeature("lmms_eval.models.registry_v2", "ResolvedModel", text="model_type"),
    HostFeature("lmms_eval.utils", "simple_parse_args_string", (), 1),
    HostFeature("lmms_eval.api.instance", "unwrap_generation_output", (), 1),
    HostFeature("lmms_eval.api.instance", "GenerationResult", (), 2),
    HostFeature("lmms_eval.api.instance", "TokenCounts", ("input_tokens", "output_tokens")),
    HostFeature("lmms_eval.api.task", "ConfigurableTask.process_results"),
    HostFeature("lmms_eval.protocol", "ChatMessages.encode_image", ("image", "cache")),
    *(
        HostFeature("lmms_eval.protocol", f"ChatMessages.{name}", lost="sound goes as a path")
        for name in ("to_openai_messages", "to_qwen3_vl_openai_messages")
    ),
    *(
        HostFeature(
            "lmms_eval.tasks",
            f"TaskManager.{name}",
            lost="only a new TaskManager finds the tasks of lmms-eval-tasks",
        )
        for name in ("initialize_tasks", "all_tasks", "all_groups", "all_subtasks")
    ),
    HostFeature(COMMAND, "cli_evaluate", lost="the first failed run of a list ends the others"),
    HostFeature(
        COMMAND, "cli_evaluate_single", (), 1, lost="the first failed run of a list ends the others"
    ),
    HostFeature(
        COMMAND, "utils.get_datetime_str", lost="two runs in the same second write the same files"
    ),
    HostFeature(
        "lmms_eval.loggers",
        "EvaluationTracker.save_results_aggregated",
        text="Could not save ",
        lost=_NOT_SAVED,
    ),
    HostFeature(
        "lmms_eval.loggers",
        "EvaluationTracker.save_results_samples",
        text="Could not save ",
        lost=_NOT_SAVED,
    ),
    HostFeature(
        "lmms_eval.loggers",
        "EvaluationTracker.save_results_aggregated",
        text="_results.json",
        lost=_SCREEN,
    ),
    HostFeature("lmms_eval.evaluator", "simple_evaluate", text='"date"', lost=_SCREEN),
    # The reply of lmms-eval's classes for endpoints if a request fails (utils/replies/refusals.py).
    HostFeature(
        "lmms_eval.models.chat.openai",
        "",
        text="[LMMS_EVAL_REQUEST_FAILED",
        lost="a failed request to an endpoint counts as an answer",
    ),
)

FILELOCK = "filelock>=3.15.4,<4.3"  # as in pyproject.toml


@cache
def met() -> bool:
    """Return True if lmms-eval has all parts that our runs require; report missing parts once."""
    if told := unmet():
        notify(told)
    return not _missing(fatal=True)


def examined() -> Findings:
    """Yield the finding about lmms-eval's parts, for the command `doctor`."""
    from lmms_eval_tasks.doctor.checks import Finding

    told = unmet()
    fine = f"lmms-eval {host_version()} has everything that lmms-eval-tasks hooks into"
    yield Finding("warning", told) if told else Finding("ok", fine)


def unmet() -> str:
    """Return the parts that lmms-eval lacks and the consequence, in words; "" if it has all."""
    if lacking := _missing(fatal=True):
        meant = (
            "nothing is checked before the model loads, failed requests count "
            "as answers, and the results have no tables of lmms-eval-tasks"
        )
        return f"lmms-eval {host_version()}: {'; '.join(lacking)}: {meant}"
    lacking = _missing(fatal=False)
    return f"lmms-eval {host_version()}: {'; '.join(lacking)}" if lacking else ""


def _missing(fatal: bool) -> list[str]:
    """Return the parts that lmms-eval lacks, in words.

    Args:
        fatal: True for the parts that our runs cannot do without, False for the others.
    """
    wanted = [one for one in PLACES if fatal is not bool(one.lost)]
    looked = [one for one in wanted if one.module != COMMAND or COMMAND in sys.modules]
    found = ((one, _lacking(one)) for one in looked)
    return list(
        dict.fromkeys(f"{why} ({one.lost})" if one.lost else why for one, why in found if why)
    )


def check_filelock() -> None:
    """Stop if lmms-eval cannot share this filelock's locks; the model's build would fail.

    Raises:
        TasksError: lmms-eval imports a private module that this filelock does not have.
    """
    from lmms_eval import evaluator

    share, private = getattr(evaluator, "_enable_reentrant_filelocks", None), "filelock._api"
    if share is None or private not in share.__code__.co_names:
        return  # this lmms-eval has upstream/fixes/filelock_private_module, or another way
    try:
        importlib.import_module(private)
    except ImportError as error:
        found = (
            f"filelock {version('filelock')} does not work with lmms-eval "
            f"{host_version()} ({error})"
        )
        raise TasksError(f"{found}: pip install '{FILELOCK}'") from None


def _lacking(place: HostFeature) -> str:
    """Return the name, text or arguments of a part that lmms-eval lacks; "" if it has all."""
    try:
        found, source = _found(place)
    except (ImportError, AttributeError):
        return f"{place.name or place.module} is missing"
    if source is not None and place.text not in source:
        return f"{place.name or place.module} has no {place.text.strip()}"
    if not (place.arguments or place.positional):
        return ""
    takes = inspect.signature(found).parameters
    if lacking := [one for one in place.arguments if one not in takes]:
        return f"{place.name} has no {', '.join(lacking)}"
    more = [one for one in list(takes.values())[place.positional or 0 :] if _is_asked_for(one)]
    asked = [one.name for one in more if one.name not in place.arguments]
    alone = place.positional is not None  # otherwise our calls have further arguments
    return f"{place.name} requires {', '.join(asked)}" if asked and alone else ""


def _found(place: HostFeature) -> tuple[Any, str | None]:
    """Return the object of a part, and its source code if a text is looked up in it."""
    if not place.name:
        spec = importlib.util.find_spec(place.module)
        if spec is None or spec.origin is None:
            raise ImportError(place.module)
        return None, Path(spec.origin).read_text(encoding="utf-8")
    feature: Any = importlib.import_module(place.module)
    for step in place.name.split("."):
        feature = getattr(feature, step)
    with contextlib.suppress(OSError, TypeError):
        return feature, inspect.getsource(feature) if place.text else None
    return feature, None


def _is_asked_for(parameter: inspect.Parameter) -> bool:
    variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and not variadic
