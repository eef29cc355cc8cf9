"""Which model is running, as far as the host told our hook: tasks are never told themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmms_eval_tasks.host.sound import Interface, Way


@dataclass(frozen=True)
class Model:
    """A run's model: its name as in `--model`, its arguments, simple or chat."""

    name: str
    interface: Interface
    arguments: Mapping[str, Any] = field(default_factory=dict)


_model: Model | None = None


@contextmanager
def model(running: Model | None) -> Iterator[None]:
    """Around one run of the host (plugin.py)."""
    global _model  # noqa: PLW0603 - the host calls doc_to_visual with a doc and nothing else
    before, _model = _model, running
    try:
        yield
    finally:
        _model = before


def current() -> Model | None:
    """The running model; None without our hook."""
    return _model


def sound(with_picture: bool) -> str:
    """Whether sound reaches the running model: delivered, not delivered, raises, unknown."""
    from lmms_eval_tasks.host import sound as table

    if _model is None:
        return "unknown"
    way: Way = "video_and_audio" if with_picture else "audio"
    return table.delivery(_model.name, _model.interface, way, _model.arguments).status


def hears() -> dict[str, str]:
    """The states of sound alone (`a`) and beside the picture (`av`), whatever is run now."""
    return {"a": sound(with_picture=False), "av": sound(with_picture=True)}


def sound_warning(with_picture: bool) -> str | None:
    """The sentence that a result must carry; None where the sound is delivered."""
    from lmms_eval_tasks.host import sound as table

    if _model is None:
        return "Whether the sound reached the model is not known: the host did not name it."
    way: Way = "video_and_audio" if with_picture else "audio"
    return table.warning(_model.name, _model.interface, way, _model.arguments)


def wants_samples() -> bool:
    """Whether the running model takes sound alone as samples only, not as a file's path."""
    from lmms_eval_tasks.host import sound as table

    return _model is not None and table.wants_samples(_model.name)


def frames() -> dict[str, Any]:
    """Options of the running model that decide how many frames it takes (frame_options.py)."""
    from lmms_eval_tasks.host import frame_options

    return frame_options.describe(_model)
