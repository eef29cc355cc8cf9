"""How many frames a model takes, from its arguments and its class."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from lmms_eval_tasks.running import Model, frame_options


class Base:
    """The simple class of a model, as the host has them."""

    def __init__(self, pretrained: str = "x", max_num_frames: int = 32, fps: Any = None) -> None:
        self.made = (pretrained, max_num_frames, fps)


class Passing(Base):
    """Its chat class: one argument more, the others passed on."""

    def __init__(self, nframes: int = 4, max_num_frames: int = 16, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.nframes = nframes, max_num_frames


class Inheriting(Passing):
    """A class without an __init__."""


class Closed(Base):
    """What the base takes cannot be given."""

    def __init__(self, num_frames: int, video_fps: float = 1.5) -> None:
        super().__init__(fps=video_fps)
        self.num_frames = num_frames


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of model classes that is imported, as after a run."""
    from lmms_eval.models import MODEL_REGISTRY_V2

    module = ModuleType("their_models")
    for one in (Base, Passing, Inheriting, Closed):
        setattr(module, one.__name__, one)
    monkeypatch.setitem(sys.modules, "their_models", module)

    def resolve(name: str, force_simple: bool = False) -> Any:
        if name == "nothing":
            raise ValueError(name)
        path = "their_models.Base" if force_simple else f"their_models.{name}"
        return SimpleNamespace(class_path=path)

    monkeypatch.setattr(MODEL_REGISTRY_V2, "resolve", resolve)


@pytest.mark.parametrize(
    ("name", "interface", "expected"),
    [
        ("Base", "chat", {"max_num_frames": 32, "fps": None}),
        ("Passing", "chat", {"nframes": 4, "max_num_frames": 16, "fps": None}),
        ("Inheriting", "chat", {"nframes": 4, "max_num_frames": 16, "fps": None}),
        ("Passing", "simple", {"max_num_frames": 32, "fps": None}),
        ("Closed", "chat", {"video_fps": 1.5}),
        ("NotThere", "chat", frame_options.NOT_READ),
        ("nothing", "chat", frame_options.NOT_READ),
    ],
)
def test_defaults(name: str, interface: Any, expected: Any, host: Any) -> None:
    assert frame_options.describe(Model(name, interface))["defaults"] == expected


def test_what_is_given_goes_before_the_default(host: Any) -> None:
    arguments = {"max_num_frames": 8, "pretrained": "y", "video_fps": object, "device": "cpu"}
    found = frame_options.describe(Model("Base", "chat", arguments))
    assert found == {
        "given": {"max_num_frames": 8, "video_fps": str(object)},
        "defaults": {"fps": None},
    }


def test_without_a_model() -> None:
    assert frame_options.describe(None) == {"given": {}, "defaults": frame_options.NOT_READ}


def test_nothing_is_imported_for_it() -> None:
    """The class of a run that is over is imported; of another one, nothing heavy may be."""
    name = "lmms_eval.models.chat.qwen2_5_omni"
    before = name in sys.modules
    frame_options.describe(Model("qwen2_5_omni", "chat"))
    assert (name in sys.modules) == before


def test_a_class_of_the_host() -> None:
    from lmms_eval.models.chat.async_openai import AsyncOpenAIChat

    found = frame_options.describe(Model("async_openai", "chat", {"nframes": 4}))
    assert AsyncOpenAIChat
    assert found["given"] == {"nframes": 4}
    assert "nframes" not in found["defaults"]
    assert "max_frames" in found["defaults"]
