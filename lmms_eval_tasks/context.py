"""What is running, as far as the host told our hook: tasks are never told themselves."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

T = TypeVar("T")
Interface = Literal["simple", "chat"]


@dataclass(frozen=True)
class Model:
    """A run's model: its name as in `--model`, its arguments, simple or chat."""

    name: str
    interface: Interface
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """What is done for a run's class (plan.py)."""

    interface: Interface = "simple"  # which of the model's classes runs
    arguments: Mapping[str, Any] = field(default_factory=dict)  # beside the user's
    videos_as_pictures: bool = False  # videos go as pictures, plan.FRAMES of each
    pictures_as_videos: bool = False  # a picture goes as a video that shows nothing else
    reader: str = ""  # of videos in the class (class_table.Media.video), "" if it is given none
    modality: Mapping[str, str] = field(default_factory=dict)  # by task (class_table.Media)
    one_by_one: bool = False  # requests go to the class one at a time
    told: tuple[str, ...] = ()  # lines for the user
    short: tuple[str, ...] = ()  # of these, what does not arrive as the tasks have it


_model: Model | None = None
_plan = Plan()


@contextmanager
def model(running: Model | None) -> Iterator[None]:
    """Around one run of the host (plugin.py)."""
    global _model, _plan
    before = _model, _plan
    _model, _plan = running, Plan()
    try:
        yield
    finally:
        _model, _plan = before


def current() -> Model | None:
    """The running model; None without our hook."""
    return _model


def go_by(plan: Plan) -> None:
    """What was decided for the running model; its class may be another one by now."""
    global _model, _plan
    if _model is not None:
        arguments = {**_model.arguments, **plan.arguments}
        _model, _plan = Model(_model.name, plan.interface, arguments), plan


def planned() -> Plan:
    """What was decided for the running model: nothing, unless told."""
    return _plan


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


def gathered(own: T) -> list[T]:
    """What every process of the run has, by rank; each of them has to ask."""
    torch = sys.modules.get("torch")
    processes = torch.distributed if torch is not None else None
    if processes is None or not processes.is_available() or not processes.is_initialized():
        return [own]
    found: list[Any] = [None] * processes.get_world_size()
    processes.all_gather_object(found, own)
    return found
