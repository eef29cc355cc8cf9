"""The model's class in lmms-eval: which class a run takes, and checks that it can be built here."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import io
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.doctor.checks import Finding, Findings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.host import arguments as command_arguments
from lmms_eval_tasks.host import positions
from lmms_eval_tasks.models import capability_pages, model_capabilities
from lmms_eval_tasks.models.host_types import Arguments
from lmms_eval_tasks.models.plan import MediaNeeds
from lmms_eval_tasks.runs import prepare
from lmms_eval_tasks.utils.json_files import Json
from lmms_eval_tasks.utils.metrics import local_models


def run_model(run: Mapping[str, Json]) -> context.RunModel | None:
    """Return the run's model from the arguments of `simple_evaluate`; None for a model object.

    Raises:
        TasksError: lmms-eval has no such model.
    """
    from lmms_eval.utils import simple_parse_args_string

    name, arguments = run.get("model"), run.get("model_args") or {}
    if not isinstance(name, str):
        return None
    if isinstance(arguments, str):
        try:
            arguments = simple_parse_args_string(arguments)
        except ValueError:  # some classes parse their arguments themselves, such as `lm_pairs`
            arguments = {"": arguments}
    return context.RunModel(name, interface_of(name, bool(run.get("force_simple"))), arguments)


def interface_of(model: str, force_simple: bool = False) -> context.Interface:
    """Return the interface of lmms-eval's class: chat if the model has it, else simple.

    Args:
        model: a model name of lmms-eval.
        force_simple: True to take the simple class in any case.

    Raises:
        TasksError: lmms-eval has no such model.
    """
    from lmms_eval.models import MODEL_REGISTRY_V2

    try:
        resolved = MODEL_REGISTRY_V2.resolve(model, force_simple=force_simple)
    except ValueError:
        known = MODEL_REGISTRY_V2.list_model_names()
        raise TasksError(command_arguments.no_model(model, known)) from None
    return "chat" if resolved.model_type == "chat" else "simple"


def _some_video() -> bytes:
    """Return an mp4 of one small frame, as bytes."""
    import av

    written = io.BytesIO()
    with av.open(written, "w", format="mp4") as file:
        stream = file.add_stream("mpeg4", rate=1)
        stream.width = stream.height = 32
        file.mux([*stream.encode(av.VideoFrame(32, 32, "yuv420p")), *stream.encode()])
    return written.getvalue()


def set_up(run: Arguments) -> list[str]:
    """Add our arguments for the class to the run's, and check that the class can be built.

    Returns:
        Lines that tell the user which arguments are set.

    Raises:
        TasksError: the class cannot be imported or built, or cannot read videos here.
    """
    model, plan = context.current().model, context.current().plan
    if model is None:
        return []
    devices = _device_map(built(model), model)
    _check_torchcodec(plan.reader, f"{model.name} ({model.interface})")
    if model.interface != interface_of(model.name, bool(run.get("force_simple"))):
        run["force_simple"] = True
    more, given = {**plan.arguments, **devices}, run.get("model_args")
    if isinstance(given, Mapping):
        run["model_args"] = _as_text({**given, **more})
    elif more:
        told = _as_text(more)
        run["model_args"] = f"{given},{told}" if given else told
    told = ", ".join(f"{name}={value}" for name, value in devices.items())
    why = f"{model.name}: {told} set, since transformers 5 rejects the class's device_map=''"
    return [why] if devices else []


def _as_text(arguments: Mapping[str, object]) -> str:
    """Return arguments in the form of `--model_args`.

    `simple_evaluate` documents a dict, but reads a text.

    Raises:
        TasksError: lmms-eval would read a value from the text as another value; the message names
            it.
    """
    from lmms_eval.utils import simple_parse_args_string

    for name, value in arguments.items():
        parsed: dict[str, object] = {}
        with contextlib.suppress(ValueError):  # the text behind a comma is no argument
            parsed = simple_parse_args_string(f"{name}={value}")
        if parsed != {name: value} and not (
            isinstance(value, str) and str(parsed.get(name)) == value
        ):
            raise TasksError(
                f"model_args: {name}={value!r} cannot be passed, since "
                "lmms-eval takes a text of the form name=value,...: leave it "
                "out, or pass a model object"
            )
    return ",".join(f"{name}={value}" for name, value in arguments.items())


def advice(run: Arguments) -> list[str]:
    """Return lines with arguments to pass for the run's model (model_capabilities.advice)."""
    model, batch = context.current().model, str(run.get("batch_size") or 1)
    return model_capabilities.advice(model, int(batch)) if model and batch.isdecimal() else []


# --- for the command `doctor` ---------------------------------------------------------------------


def examined(run: Arguments, needs: Sequence[MediaNeeds]) -> Findings:
    """Yield the findings of `doctor` about a run's model: class, key, checkpoint and arguments.

    Raises:
        TasksError: the class cannot be used for these tasks.
    """
    if (model := context.current().model) is None:
        run_model(run)  # raises an error that gives the reason
        return
    plan = prepare.go_by_plan(model, needs)
    model = context.current().model or model  # the plan may have changed the class
    who, taken = (
        f"{model.name} ({model.interface})",
        capability_pages.line(model.name, model.interface),
    )
    unknown = "not in the table of model classes: its treatment of videos and sound is unknown"
    media = model_capabilities.media_of(model.name, model.interface)
    if media is None or not media.broken:
        yield Finding("ok" if taken else "warning", f"{who}: {taken or unknown}")
    for line in plan.lines:
        broken = media is not None and media.broken and media.broken in line
        yield Finding("error" if broken else "warning" if line in plan.short else "ok", line)
    found = built(model)
    yield from _key(found, model)
    yield from _checkpoint(model)
    yield from (Finding("ok", line) for line in set_up(dict(run)))
    yield from (Finding("warning", line) for line in advice(run))


def _key(model_class: type, model: context.RunModel) -> Findings:
    """Check that a variable with an API key that the class's module reads is set."""
    asked = re.findall(r"""["']([A-Z_]*API_KEY)["']""", _source(model_class))
    if not asked or model.arguments.keys() & {"api_key", "base_url"}:
        return
    names = list(dict.fromkeys(asked))
    if there := [one for one in names if os.environ.get(one)]:
        yield Finding("ok", f"{', '.join(there)} is set")
    else:
        yield Finding("error", f"{' or '.join(names)} is not set", f"export {names[0]}=...")


def _source(model_class: type) -> str:
    """Return the source code of lmms-eval's modules that define a class and its bases."""
    modules = {
        one.__module__ for one in model_class.__mro__ if one.__module__.startswith("lmms_eval.m")
    }
    return "\n".join(inspect.getsource(importlib.import_module(one)) for one in sorted(modules))


def _checkpoint(model: context.RunModel) -> Findings:
    """Check that the weights of `pretrained` are on this machine."""
    if not (name := str(model.arguments.get("pretrained") or "")):
        return
    if (folder := local_models.find_model(name)) is not None:
        yield Finding("ok", f"{name} is at {folder}")
        yield from _positions(folder)
        return
    if name.startswith(("/", ".", "~")) or name.count("/") > 1:
        mend = "--model_args pretrained=NAME_OR_FOLDER"
        yield Finding("error", f"{name}: no checkpoint in this folder", mend)
        return
    offline = os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0")
    why = (
        "HF_HUB_OFFLINE is set" if offline else "the run will download it from the Hugging Face hub"
    )
    told = f"{name} is not on this machine: {why}"
    yield Finding("error" if offline else "warning", told, f"hf download {name}")


def _positions(checkpoint: Path) -> Findings:
    """Check the position of the text behind a video, by the checkpoint's config (positions.py)."""
    try:
        starts = positions.starts_of(checkpoint)
    except Exception as error:  # a checkpoint's config may cause any error
        why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        yield Finding("warning", f"the position of the text after a video is unknown ({why})")
        return
    for one in starts:
        if not one.is_off:
            told = f"the text after a video starts after it, at position {one.text} ({one.family})"
            yield Finding("ok", told)
        elif positions.is_put_right(one):
            yield Finding("ok", positions.position_line(one))
        else:
            installed = settings.value(settings.MODEL_POSITIONS) == "installed"
            option = settings.MODEL_POSITIONS.option
            mend = f"leave {option} out" if installed else "another version of transformers"
            yield Finding("warning", positions.position_line(one), mend)


def built(model: context.RunModel) -> type:
    """Return the model's class, imported in the way in which lmms-eval will import it.

    Raises:
        TasksError: the import fails; the message has the reason.
    """
    from lmms_eval.models import MODEL_REGISTRY_V2

    who = f"{model.name} ({model.interface})"
    try:
        path = MODEL_REGISTRY_V2.resolve(model.name, model.interface == "simple").class_path
        module, _, name = path.rpartition(".")
        class_: type = getattr(importlib.import_module(module), name)
    except Exception as error:  # the import of lmms-eval's module may raise any error
        why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise TasksError(
            f"{who} cannot be imported ({why}); to see what it requires: "
            f"lmms-eval-tasks models {model.name}"
        ) from error
    if inspect.isabstract(class_):
        missing = ", ".join(sorted(getattr(class_, "__abstractmethods__", ())))
        raise TasksError(f"{who} cannot be used: its class lacks {missing}; use another model")
    return class_


def _device_map(model_class: type, model: context.RunModel) -> dict[str, str]:
    """Return an argument for a class whose default `device_map` is "", an error in transformers 5.

    {} for other classes. {} also in runs of several processes, in which the classes name the device
    of each process.
    """
    # A class may pass its arguments on to its bases, so their signatures count, too.
    signatures = (
        inspect.signature(vars(one).get("__init__", object)) for one in model_class.__mro__
    )
    own = [one.parameters["device_map"] for one in signatures if "device_map" in one.parameters]
    alone = int(os.environ.get("WORLD_SIZE", "1")) == 1
    if not alone or "device_map" in model.arguments or not own or own[0].default != "":
        return {}
    if int(importlib.metadata.version("transformers").split(".")[0]) < 5:
        return {}
    import torch

    if torch.cuda.is_available():
        return {"device_map": "auto"}
    return {"device_map": "cpu", **({} if "device" in model.arguments else {"device": "cpu"})}


_FORCED = "FORCE_QWENVL_VIDEO_READER"


def _check_torchcodec(reader: str, who: str) -> None:
    """Check that the reader of a class (model_capabilities.MediaSupport.video) can be used here.

    Raises:
        TasksError: it is torchcodec, which cannot be loaded; or the variable that chooses the
            reader has a wrong value.
    """
    qwens = reader == "qwen_vl_utils"  # takes torchcodec if it is installed
    forced = os.environ.get(_FORCED) if qwens else None
    if forced is not None and forced not in ("decord", "torchcodec", "torchvision"):
        raise TasksError(
            f"{_FORCED}={forced}: qwen-vl-utils knows decord, torchcodec and torchvision"
        )
    there = importlib.util.find_spec("torchcodec") is not None
    taken = forced == "torchcodec" or (qwens and there and forced is None)
    if not (reader == "transformers" or taken):
        return
    try:
        # Some versions load FFmpeg when they are imported, others with the first video.
        importlib.import_module("torchcodec.decoders").VideoDecoder(_some_video())
    except Exception as error:
        why = " ".join(str(error).split())[:120]
        mend = f"pip uninstall torchcodec, or set {_FORCED}=decord"
        raise TasksError(
            f"{who} reads videos with torchcodec, which cannot be loaded "
            f"({why}): install FFmpeg (apt install ffmpeg), or "
            f"{mend if qwens else 'pip install torchcodec'}"
        ) from error
