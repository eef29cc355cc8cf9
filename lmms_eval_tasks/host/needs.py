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
    places: tuple[str, ...]


_EVALUATE = "lmms_eval.evaluator simple_evaluate"
PARTS = {
    "tasks": Part(
        "data, media and judge are not checked before the model loads, and the results have "
        "neither the papers' tables nor warnings",
        (f"{_EVALUATE} tasks",),
    ),
    "names": Part(
        "a wrong name of a task is not put right, and what is missing ends in a traceback",
        ("lmms_eval.tasks TaskManager.match_tasks", "lmms_eval.tasks TaskManager.all_tasks"),
    ),
    "model": Part(
        "the model's class is not known, so neither is whether its frames and sound arrive",
        (
            f"{_EVALUATE} model model_args",
            "lmms_eval.models MODEL_REGISTRY_V2.resolve force_simple",
            "lmms_eval.utils simple_parse_args_string",
        ),
    ),
    "replies": Part(
        "replies are not kept as they arrive, and failed requests count as answers",
        ("lmms_eval.evaluator evaluate lm", "lmms_eval.api.instance unwrap_generation_output"),
    ),
    "frames": Part(
        "whether an endpoint is sent the right frames is not watched",
        ("lmms_eval.protocol ChatMessages.encode_image image cache",),
    ),
    "verdicts": Part(
        "judges' failures and costs are not counted",
        ("lmms_eval.api.task ConfigurableTask.process_results",),
    ),
    "arguments": Part(
        "what rests on them is left out: a part of the data is not checked and prepared alone, a "
        "simple class not taken where the chat class will not do, a judge not given its threads",
        (f"{_EVALUATE} limit offset force_simple process_docs_parallel",),
    ),
}
_said: set[str] = set()


def on(part: str) -> bool:
    """Whether the host has all that a part needs."""
    return not _lacking(part)


@cache
def _lacking(part: str) -> str:
    """The first thing that the host does not have, in words; "" if it has all."""
    for place in PARTS[part].places:
        module, name, *arguments = place.split()
        try:
            found: Any = importlib.import_module(module)
            for step in name.split("."):
                found = getattr(found, step)
        except (ImportError, AttributeError):
            return f"there is no {name}"
        if lacking := [one for one in arguments if one not in inspect.signature(found).parameters]:
            return f"{name} has no {', '.join(lacking)}"
    return ""


def tell() -> None:
    """Say what is off, each line once in a process."""
    for name, part in PARTS.items():
        if (why := _lacking(name)) and name not in _said:
            say(f"lmms-eval {host_version()}: {why}: {part.without}")
            _said.add(name)
