"""What the hook needs of the host, and what is off where the host does not have it.

A version does not tell: a build from git bears that of the release before it, and a newer release
may still have all of it. So each thing is looked for, by its name and its arguments. What is off is
said in one line each, once, when a task of ours is first used.
"""

from __future__ import annotations

import importlib
import inspect
from functools import cache
from typing import Any, NamedTuple

from lmms_eval_tasks.console import say
from lmms_eval_tasks.running import host_version


class Part(NamedTuple):
    """Something that the hook does.

    Attributes:
        without: what the user has to know where it is off.
        places: module, name in it, and arguments, of each thing that it needs.
    """

    without: str
    places: tuple[tuple[str, ...], ...]


_EVALUATOR = "lmms_eval.evaluator"
_MANAGER = "lmms_eval.tasks"
PARTS = {
    "tasks": Part(
        "data, media and judge are not checked before the model loads, and the results have "
        "neither the papers' tables nor warnings",
        (
            (_EVALUATOR, "simple_evaluate", "tasks"),
            (_MANAGER, "TaskManager.task_index"),
            ("lmms_eval.utils", "load_yaml_config", "mode"),
        ),
    ),
    "names": Part(
        "a wrong name of a task is not put right, and what is missing ends in a traceback",
        (
            (_MANAGER, "TaskManager.match_tasks"),
            (_MANAGER, "TaskManager.all_tasks"),
        ),
    ),
    "limit": Part(
        "all data are checked and all media made, whatever part of them is asked",
        ((_EVALUATOR, "simple_evaluate", "limit", "offset"),),
    ),
    "model": Part(
        "the model's class is not known, so neither is whether its frames and sound arrive",
        (
            (_EVALUATOR, "simple_evaluate", "model", "model_args"),
            ("lmms_eval.models", "MODEL_REGISTRY_V2.resolve", "force_simple"),
            ("lmms_eval.utils", "simple_parse_args_string"),
        ),
    ),
    "simple classes": Part(
        "a model's simple class is not taken where its chat class will not do",
        ((_EVALUATOR, "simple_evaluate", "force_simple"),),
    ),
    "replies": Part(
        "replies are not kept as they arrive, and failed requests count as answers",
        (
            (_EVALUATOR, "evaluate", "lm"),
            ("lmms_eval.api.instance", "unwrap_generation_output"),
        ),
    ),
    "frames": Part(
        "whether an endpoint is sent the right frames is not watched",
        (("lmms_eval.protocol", "ChatMessages.encode_image", "image", "cache"),),
    ),
    "verdicts": Part(
        "judges' failures and costs are not counted",
        (("lmms_eval.api.task", "ConfigurableTask.process_results"),),
    ),
    "threads": Part(
        "judges get the host's own threads",
        ((_EVALUATOR, "simple_evaluate", "process_docs_parallel"),),
    ),
}
_said: set[str] = set()
_noted: list[str] = []


def on(part: str) -> bool:
    """Whether the host has all that a part needs."""
    return not _lacking(part)


@cache
def _lacking(part: str) -> str:
    """The first thing that the host does not have, in words; "" if it has all."""
    for module, name, *arguments in PARTS[part].places:
        try:
            found: Any = importlib.import_module(module)
            for step in name.split("."):
                found = getattr(found, step)
        except (ImportError, AttributeError):
            return f"there is no {name}"
        for argument in arguments:
            if not takes(found, argument):
                return f"{name} has no {argument}"
    return ""


def takes(function: Any, argument: str) -> bool:
    """Whether a function has an argument of this name."""
    return argument in inspect.signature(function).parameters


def note(what: str, without: str) -> None:
    """Something else that is not as it was; told with the rest."""
    _noted.append(f"{what}: {without}")


def tell() -> None:
    """Say what is off, each line once in a process."""
    found = [f"{why}: {part.without}" for name, part in PARTS.items() if (why := _lacking(name))]
    for line in (*found, *_noted):
        if line not in _said:
            say(f"lmms-eval {host_version()}: {line}")
            _said.add(line)
