"""What is running, as far as the host told our hook: tasks are never told themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmms_eval_tasks.running.class_table import Interface, Way
    from lmms_eval_tasks.running.plan import Plan


def host_version() -> str | None:
    """Version of the installed lmms-eval, or None."""
    try:
        return version("lmms_eval")
    except PackageNotFoundError:
        return None


@dataclass(frozen=True)
class Model:
    """A run's model: its name as in `--model`, its arguments, simple or chat."""

    name: str
    interface: Interface
    arguments: Mapping[str, Any] = field(default_factory=dict)


_model: Model | None = None
_plan: Plan | None = None


@contextmanager
def model(running: Model | None) -> Iterator[None]:
    """Around one run of the host (plugin.py)."""
    global _model, _plan
    before = _model, _plan
    _model, _plan = running, None
    try:
        yield
    finally:
        _model, _plan = before


def go_by(plan: Plan) -> None:
    """What was decided for the running model (plan.py); its class may be another one by now."""
    global _model, _plan
    if _model is not None:
        arguments = {**_model.arguments, **plan.arguments}
        _model, _plan = Model(_model.name, plan.interface, arguments), plan


def planned() -> Plan | None:
    """What was decided for the running model; None where nothing was."""
    return _plan


def videos_as_pictures() -> bool:
    """Whether the running model's class takes no videos, but pictures of them."""
    return _plan is not None and _plan.videos_as_pictures


def pictures_as_videos() -> bool:
    """Whether the running model's class takes no pictures, but videos that show one."""
    return _plan is not None and _plan.pictures_as_videos


_docs = slice(None)


@contextmanager
def limited(limit: float | None, offset: int) -> Iterator[None]:
    """Around one run of the host that asks a part of each task's docs only.

    Args:
        limit: as the host's `--limit`: how many docs; below 1 a share, which counts as all here,
            since only the host knows of how many; None, 0 and -1 are all.
        offset: as the host's `--offset`: how many come before these.
    """
    global _docs  # noqa: PLW0603 - the host asks for a task's docs with nothing else
    stop = offset + int(limit) if limit is not None and limit >= 1 else None
    before, _docs = _docs, slice(offset, stop)
    try:
        yield
    finally:
        _docs = before


def docs() -> slice:
    """Which docs of each task the host takes; all without our hook, and outside of a run."""
    return _docs


def current() -> Model | None:
    """The running model; None without our hook."""
    return _model


def sound(with_picture: bool) -> str:
    """Whether sound reaches the running model: delivered, not delivered, raises, unknown."""
    from lmms_eval_tasks.running import class_table as table

    if _model is None:
        return "unknown"
    way: Way = "video_and_audio" if with_picture else "audio"
    return table.delivery(_model.name, _model.interface, way, _model.arguments).status


def hears() -> dict[str, str]:
    """The states of sound alone (`a`) and beside the picture (`av`), whatever is run now."""
    return {"a": sound(with_picture=False), "av": sound(with_picture=True)}


def sound_warning(with_picture: bool) -> str | None:
    """The sentence that a result must carry; None where the sound is delivered."""
    from lmms_eval_tasks.running import class_table as table

    if _model is None:
        return "Whether the sound reached the model is not known: the host did not name it."
    way: Way = "video_and_audio" if with_picture else "audio"
    return table.warning(_model.name, _model.interface, way, _model.arguments)


def wants_samples() -> bool:
    """Whether the running model takes sound alone as samples only, not as a file's path."""
    from lmms_eval_tasks.running import class_table as table

    return _model is not None and table.wants_samples(_model.name)


def wants_track() -> bool:
    """Whether the running model's chat class hears the track of an mp4 and no item beside it."""
    from lmms_eval_tasks.running import class_table as table

    return _model is not None and table.wants_track(_model.name, _model.interface)


def frames() -> dict[str, Any]:
    """Options of the running model that decide how many frames it takes (frame_options.py)."""
    from lmms_eval_tasks.running import frame_options

    return frame_options.describe(_model)
