"""A model's class is seen before it is loaded: what cannot work ends the run with one line."""

from __future__ import annotations

import importlib
import io
from abc import ABC, abstractmethod
from types import SimpleNamespace
from typing import Any

import av
import pytest
import torch

from lmms_eval_tasks import context
from lmms_eval_tasks.context import ClassPlan
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.host import model_class
from tests.checks import refused, table


class Whole:
    """A class of the host that can be built."""

    def __init__(self, device_map: str = "", device: str = "cuda", **more: Any) -> None:
        self.given = device_map, device, more


class Inherits(Whole):
    """Its chat class."""

    def __init__(self, frames: int = 4, **more: Any) -> None:
        super().__init__(**more)
        self.frames = frames


class Abstract(ABC):
    """One that the host's interface has outgrown."""

    @abstractmethod
    def generate_until_multi_round(self) -> None: ...


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    from lmms_eval.models import MODEL_REGISTRY_V2

    def resolve(name: str, force_simple: bool = False) -> Any:
        kind = "simple" if force_simple or name == "Whole" else "chat"
        module = "no.such.module" if name == "Gone" else __name__
        return SimpleNamespace(class_path=f"{module}.{name}", model_type=kind)

    monkeypatch.setattr(MODEL_REGISTRY_V2, "resolve", resolve)


def prepared(name: str, plan: ClassPlan, **run: Any) -> dict[str, Any]:
    given = {"model": name, **run}
    with context.begun(model_class.run_model(given)):
        context.current().go_by(plan)
        model_class.set_up(given)
    return given


@table(
    "name, said",
    [
        ("Abstract", r"Abstract \(chat\) cannot be used: its class lacks generate_until_multi_ro"),
        ("Gone", r"Gone \(chat\) cannot be imported \(ModuleNotFoundError: No module named"),
        ("NotThere", r"NotThere \(chat\) cannot be imported \(AttributeError"),
    ],
)
def test_classes_that_cannot_be_built(name: str, said: str) -> None:
    refused(TasksError, said, prepared, name, ClassPlan("chat"))


@table(
    "given, added, made",
    [
        ("device_map=cpu", {"n": 4, "m": "y"}, "device_map=cpu,n=4,m=y"),
        ({"device_map": "cpu"}, {"n": 4}, "device_map=cpu,n=4"),
        ("device_map=cpu", {}, "device_map=cpu"),
    ],
)
def test_arguments_that_are_set(given: Any, added: Any, made: Any) -> None:
    assert prepared("Inherits", ClassPlan("chat", added), model_args=given)["model_args"] == made


@table(
    "arguments, cuda, processes, version, expected",
    [
        ("", True, "1", "5.23.0", "device_map=auto"),
        ("", False, "1", "5.23.0", "device_map=cpu,device=cpu"),
        ("device=cpu", False, "1", "5.23.0", "device=cpu,device_map=cpu"),
        ("device_map=cuda:1", True, "1", "5.23.0", "device_map=cuda:1"),
        ("", True, "4", "5.23.0", ""),  # the class names each process's own
        ("", True, "1", "4.57.6", ""),
    ],
)
def test_a_device_map_that_transformers_refuses(
    arguments: str,
    cuda: bool,
    processes: str,
    version: str,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setenv("WORLD_SIZE", processes)
    monkeypatch.setattr(importlib.metadata, "version", lambda _: version)
    made = prepared("Inherits", ClassPlan("chat"), model_args=arguments)
    assert made["model_args"] == expected
    assert "force_simple" not in made


@table("name, forced", [("Inherits", True), ("Whole", False)])
def test_the_simple_class_in_place_of_the_chat_class(name: str, forced: bool) -> None:
    made = prepared(name, ClassPlan("simple"), model_args="device_map=cpu")
    assert made.get("force_simple", False) is forced


@table(
    "reader, installed, loads, setting, said",
    [
        ("transformers", False, False, "", "pip install torchcodec"),
        ("transformers", True, False, "", r"cannot be loaded \(no libavutil\): install FFmp"),
        ("transformers", True, None, "", r"cannot be loaded \(no libtorch\): install FFmp"),
        ("transformers", True, True, "", ""),
        ("qwen_vl_utils", True, None, "", "or set FORCE_QWENVL_VIDEO_READER=decord"),
        ("qwen_vl_utils", False, False, "", ""),
        ("qwen_vl_utils", True, False, "", "or set FORCE_QWENVL_VIDEO_READER=decord"),
        ("qwen_vl_utils", True, False, "decord", ""),
        ("qwen_vl_utils", True, False, "torchcodec", "or set FORCE_QWENVL_VIDEO_READER=decord"),
        ("qwen_vl_utils", True, True, "opencv", "=opencv: qwen-vl-utils knows decord, torchcodec"),
        ("decord", True, False, "", ""),
        ("", False, False, "", ""),
    ],
)
def test_torchcodec(
    reader: str,
    installed: bool,
    loads: bool | None,  # None: not before the first video, as in 0.17
    setting: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = importlib.import_module

    def import_module(name: str, *more: Any) -> Any:
        if name != "torchcodec.decoders":
            return real(name, *more)
        if loads is False:
            raise RuntimeError("no libavutil")
        return SimpleNamespace(VideoDecoder=decoder)

    def decoder(content: bytes) -> None:
        with av.open(io.BytesIO(content)) as file:
            assert len(list(file.decode(video=0))) == 1
        if not loads:
            raise RuntimeError("no libtorch")

    monkeypatch.setattr(importlib, "import_module", import_module)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object() if installed else None)
    monkeypatch.delenv("FORCE_QWENVL_VIDEO_READER", raising=False)
    if setting:
        monkeypatch.setenv("FORCE_QWENVL_VIDEO_READER", setting)
    plan, arguments = ClassPlan("chat", reader=reader), "device_map=cpu"
    if not said:
        assert prepared("Inherits", plan, model_args=arguments)["model_args"] == arguments
    else:
        refused(TasksError, said, prepared, "Inherits", plan, model_args=arguments)
