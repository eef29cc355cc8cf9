"""What is running, as far as the host told our hook: tasks are never told themselves."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from lmms_eval_tasks.running.class_table import Interface, Way
    from lmms_eval_tasks.running.plan import Plan

T = TypeVar("T")


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
_share = False  # of the docs is asked, which `_docs` does not tell


@contextmanager
def limited(limit: float | None, offset: int) -> Iterator[None]:
    """Around one run of the host that asks a part of each task's docs only.

    Args:
        limit: as the host's `--limit`: how many docs; below 1 a share, which counts as all here,
            since only the host knows of how many; None, 0 and -1 are all.
        offset: as the host's `--offset`: how many come before these.
    """
    global _docs, _share
    stop = offset + int(limit) if limit is not None and limit >= 1 else None
    before = _docs, _share
    _docs, _share = slice(offset, stop), limit is not None and 0 < limit < 1
    try:
        yield
    finally:
        _docs, _share = before


def docs() -> slice:
    """Which docs of each task the host takes; all without our hook, and outside of a run."""
    return _docs


def by_rank(docs: Sequence[T]) -> Sequence[T]:
    """A task's docs in an order that gives each process of the run neighbours.

    The host gives every WORLD_SIZE-th doc of those it takes to a rank, so that a video's questions
    go to all ranks, and each of them reads, encodes and caches the video. Which docs are asked
    depends neither on the order nor on the number of processes; a share of them (`--limit` below
    1) would, so its order stays.
    """
    processes = int(os.environ.get("WORLD_SIZE", "1"))  # as the host reads it
    if processes == 1 or _share:
        return docs
    first = min(_docs.start or 0, len(docs))
    taken = docs[_docs]
    whole, more = divmod(len(taken), processes)
    starts = [rank * whole + min(rank, more) for rank in range(processes)]
    dealt = [taken[starts[place % processes] + place // processes] for place in range(len(taken))]
    return [*docs[:first], *dealt, *docs[first + len(taken) :]]


def checkpoint_type(model: Model) -> str:
    """transformers' model_type of a run's checkpoint; "" where its config cannot be read."""
    from transformers import AutoConfig

    name = model.arguments.get("pretrained") or model.arguments.get("model") or ""
    try:
        return str(AutoConfig.from_pretrained(str(name)).model_type)
    except (OSError, ValueError):  # none there, or code of its own; its class will say it
        return ""


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


def advice(batch_size: int) -> list[str]:
    """What to pass to the running model for speed and for a task's limit of tokens, a line each."""
    from lmms_eval_tasks.running import class_table as table

    known = _model
    return table.advice(known.name, known.interface, known.arguments, batch_size) if known else []


def wants_samples() -> bool:
    """Whether the running model takes sound alone as samples only, not as a file's path."""
    from lmms_eval_tasks.running import class_table as table

    return _model is not None and table.wants_samples(_model.name)


def wants_track() -> bool:
    """Whether the running model's chat class hears the track of an mp4 and no item beside it."""
    from lmms_eval_tasks.running import class_table as table

    return _model is not None and table.wants_track(_model.name, _model.interface)
