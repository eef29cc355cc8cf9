"""The host's class of a model: which one it takes, and whether it can be built here."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import inspect
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import running
from lmms_eval_tasks.console import say
from lmms_eval_tasks.errors import TasksError

if TYPE_CHECKING:
    from lmms_eval_tasks.running.class_table import Interface


def named(run: Mapping[str, Any]) -> running.Model | None:
    """The run's model as `simple_evaluate` was told; None for an object that the user made."""
    from lmms_eval.utils import simple_parse_args_string

    name, arguments = run.get("model"), run.get("model_args") or {}
    if not isinstance(name, str):
        return None
    if isinstance(arguments, str):
        try:
            arguments = simple_parse_args_string(arguments)
        except ValueError:  # a class may read its arguments itself, as `lm_pairs` does
            arguments = {"": arguments}
    interface = interface_of(name, bool(run.get("force_simple")))
    return running.Model(name, interface, arguments)


def interface_of(model: str, force_simple: bool = False) -> Interface:
    """Which class of a model the host takes: the chat class if there is one, unless told not to.

    Args:
        model: the name in `--model`, or an alias of it; plugins' models as well.
        force_simple: as `--force_simple`; without effect on a model that has no simple class.

    Raises:
        TasksError: the host has no such model.
    """
    from lmms_eval.models import MODEL_REGISTRY_V2

    try:
        resolved = MODEL_REGISTRY_V2.resolve(model, force_simple=force_simple)
    except ValueError:
        raise TasksError(
            f"lmms-eval has no model {model!r}: `lmms-eval models` lists them"
        ) from None
    return "chat" if resolved.model_type == "chat" else "simple"


def prepare(run: dict[str, Any]) -> None:
    """Give the host what was decided for the run's class, and see whether it can be built.

    Args:
        run: arguments of the host's `simple_evaluate`, which get what is set for the model.

    Raises:
        TasksError: the class cannot be imported, built, or read videos here.
    """
    model, plan = running.current(), running.planned()
    if model is None or plan is None:
        return
    found = built(model)
    check_torchcodec(plan.reader, f"{model.name} ({model.interface})")
    devices = device_map(found, model)
    if devices:
        told = ", ".join(f"{name}={value}" for name, value in devices.items())
        say(f"{model.name}: {told} set, since transformers 5 refuses its device_map=''")
    batch = str(run.get("batch_size") or 1)
    for line in running.advice(int(batch)) if batch.isdecimal() else ():
        say(line)
    if model.interface != interface_of(model.name, bool(run.get("force_simple"))):
        run["force_simple"] = True
    run["model_args"] = _added(run.get("model_args"), {**plan.arguments, **devices})


def _added(arguments: Any, more: Mapping[str, Any]) -> Any:
    """`--model_args`, as text or by name, with some more."""
    if not more:
        return arguments
    if isinstance(arguments, Mapping):
        return {**arguments, **more}
    told = [arguments] if arguments else []
    return ",".join([*told, *(f"{name}={value}" for name, value in more.items())])


def built(model: running.Model) -> type:
    """The class, imported as the host does it a moment later.

    Raises:
        TasksError: it cannot be imported or built here.
    """
    from lmms_eval.models import MODEL_REGISTRY_V2

    who = f"{model.name} ({model.interface})"
    more = f"lmms-eval-tasks models {model.name} says what it needs"
    try:
        path = MODEL_REGISTRY_V2.resolve(model.name, model.interface == "simple").class_path
        module, _, name = path.rpartition(".")
        found: type = getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever a module of the host does when it is imported
        why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise TasksError(f"{who} cannot be imported here ({why}); {more}") from error
    if inspect.isabstract(found):
        missing = ", ".join(sorted(getattr(found, "__abstractmethods__", ())))
        raise TasksError(
            f"{who} cannot be built: its class lacks {missing}; this lmms-eval cannot run it: take "
            "another model"
        )
    return found


def default(found: type, argument: str) -> Any:
    """What a class takes for an argument that nobody gives; None if it has no such argument."""
    for base in found.__mro__:
        if "__init__" not in vars(base):
            continue
        parameters = inspect.signature(vars(base)["__init__"]).parameters
        if argument in parameters:
            return parameters[argument].default
        # A class that passes its arguments on is asked together with its bases.
        if not any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
            break
    return None


def device_map(found: type, model: running.Model) -> dict[str, str]:
    """What to set where a class's own `device_map` is "", which transformers 5 refuses.

    Several processes are left alone: the classes then name each process's device themselves.
    """
    alone = int(os.environ.get("WORLD_SIZE", "1")) == 1
    if not alone or "device_map" in model.arguments or default(found, "device_map") != "":
        return {}
    if int(importlib.metadata.version("transformers").split(".")[0]) < 5:
        return {}
    import torch

    if torch.cuda.is_available():
        return {"device_map": "auto"}
    return {"device_map": "cpu", **({} if "device" in model.arguments else {"device": "cpu"})}


def check_torchcodec(reader: str, who: str) -> None:
    """Can this reader of videos (class_table.Media.video) of a class be used here?

    Raises:
        TasksError: torchcodec is missing where it is needed, or is there and cannot be loaded.
    """
    if reader not in ("qwen_vl_utils", "transformers"):
        return
    if importlib.util.find_spec("torchcodec") is None:
        if reader == "transformers":
            raise TasksError(
                f"{who} reads videos through transformers, which needs torchcodec and FFmpeg: "
                "pip install torchcodec, and FFmpeg from the system (apt install ffmpeg)"
            )
        return
    if reader == "qwen_vl_utils" and os.environ.get("FORCE_QWENVL_VIDEO_READER"):
        return
    try:
        importlib.import_module("torchcodec.decoders")
    except Exception as error:
        why = " ".join(str(error).split())[:120]
        mend = "install FFmpeg (apt install ffmpeg) or pip uninstall torchcodec"
        if reader == "qwen_vl_utils":
            mend += ", or set FORCE_QWENVL_VIDEO_READER=decord"
        raise TasksError(
            f"torchcodec is installed and cannot be loaded ({why}), so that {who} cannot read "
            f"videos: {mend}"
        ) from error
