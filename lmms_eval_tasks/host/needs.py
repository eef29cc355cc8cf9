"""What the hook needs of the host; of one that lacks some of it the tasks are found, and no more.

A version does not tell: a build from git bears that of the release before it, and a newer release
may still have all of it. So each thing is looked for, by its name and its arguments.
"""

from __future__ import annotations

import importlib
import inspect
from functools import cache
from typing import Any

from lmms_eval_tasks.console import say
from lmms_eval_tasks.running import host_version
from lmms_eval_tasks.runs.doctor import Finding, Findings

# Module, name in it, and arguments, of each thing.
PLACES = (
    "lmms_eval.evaluator simple_evaluate tasks model model_args limit offset force_simple "
    "process_docs_parallel",
    "lmms_eval.evaluator evaluate lm",
    "lmms_eval.models MODEL_REGISTRY_V2.resolve force_simple",
    "lmms_eval.utils simple_parse_args_string",
    "lmms_eval.api.instance unwrap_generation_output",
    "lmms_eval.api.task ConfigurableTask.process_results",
    "lmms_eval.protocol ChatMessages.encode_image image cache",
)


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


def _lacking(place: str) -> str:
    """What the host does not have, in words; "" if it has all."""
    module, name, *arguments = place.split()
    try:
        found: Any = importlib.import_module(module)
        for step in name.split("."):
            found = getattr(found, step)
    except (ImportError, AttributeError):
        return f"there is no {name}"
    lacking = [one for one in arguments if one not in inspect.signature(found).parameters]
    return f"{name} has no {', '.join(lacking)}" if lacking else ""
