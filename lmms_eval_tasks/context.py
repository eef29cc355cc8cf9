"""The state that the parts of one run share: made when the run begins, gone when it ends.

Tasks are called by lmms-eval with a doc and nothing else, so what they need of the run stands here:
its settings, its model and what was decided for it, which docs it asks. Whatever else a room keeps
for a run is an object of a class of its own (`Context.own`), which ends with the run as well: no
module has a state beside it.
"""

from __future__ import annotations

import copy
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast

T = TypeVar("T")
Interface = Literal["simple", "chat"]


@dataclass(frozen=True)
class RunModel:
    """A run's model: its name as in `--model`, its arguments, simple or chat."""

    name: str
    interface: Interface
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ClassPlan:
    """The preparations for a run's model class (models/plan.py)."""

    interface: Interface = "simple"  # which of the model's classes runs
    arguments: Mapping[str, Any] = field(default_factory=dict)  # beside the user's
    videos_as_pictures: bool = False  # videos go as pictures, plan.FRAMES of each
    pictures_as_videos: bool = False  # a picture goes as a video that shows nothing else
    reader: str = ""  # of videos in the class (MediaSupport.video), "" if it is given none
    modality: Mapping[str, str] = field(default_factory=dict)  # by task (MediaSupport.modality)
    one_by_one: bool = False  # requests go to the class one at a time
    lines: tuple[str, ...] = ()  # lines for the user
    short: tuple[str, ...] = ()  # of these, what does not arrive as the tasks have it


class Context:
    """One run of lmms-eval, one command, or what is done outside of both."""

    is_run: bool = False
    model: RunModel | None = None  # None without our hook
    plan: ClassPlan = ClassPlan()  # what was decided for the model: nothing, unless told
    docs: slice = slice(None)  # of each task's, those that lmms-eval takes
    share: bool = False  # of the docs is asked (a `--limit` below 1), which `docs` does not tell
    options: Mapping[str, str]  # settings that options said, by variable
    environment: Mapping[str, str] | None = None  # that settings are read in; None: as it is now
    values: dict[str, Any]  # settings that were read in it, by variable

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options, self.values = options, {}
        self._own: dict[type, Any] = {}
        self._lock = threading.RLock()

    def instance_of(self, kind: type[T], make: Callable[[], T] | None = None) -> T:
        """The run's own object of a class: made by `make`, or without arguments, when asked first.

        Its `close`, if it has one, is called in the end.
        """
        with self._lock:
            if kind not in self._own:
                self._own[kind] = (make or kind)()
            return cast(T, self._own[kind])

    def get(self, kind: type[T]) -> T | None:
        """The run's object of a class; None if it was not made."""
        return cast("T | None", self._own.get(kind))

    def put(self, kind: type[T], value: T | None) -> T | None:
        """Put an object in the place of its kind, or nothing; returns what was there."""
        with self._lock:
            before = self._own.pop(kind, None)
            if value is not None:
                self._own[kind] = value
            return cast("T | None", before)

    def go_by(self, plan: ClassPlan) -> None:
        """Take over what was decided for the model, whose class may be another one by now."""
        if self.model is not None:
            arguments = {**self.model.arguments, **plan.arguments}
            self.model, self.plan = RunModel(self.model.name, plan.interface, arguments), plan

    def close(self) -> None:
        """End it, and what is kept in it."""
        for one in self._own.values():
            if hasattr(one, "close"):
                one.close()
        self._own.clear()

    def forked(self) -> None:
        """In the child process of a fork: locks and clients belong to the parent's threads."""
        self._lock = threading.RLock()
        self._own.clear()


_OUTSIDE = Context({})
_HERE: ContextVar[Context | None] = ContextVar("_HERE", default=None)
# For threads that lmms-eval, a model's class or a command start, which inherit nothing: the runs
# that go on in this process, of which there is one at a time (host/evaluation.py), perhaps with
# other options for a while; and the options of commands.
_RUNS: list[Context] = []
_COMMANDS: list[Context] = []


def _after_fork() -> None:
    for one in (_OUTSIDE, *_COMMANDS, *_RUNS):
        one.forked()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_after_fork)


def current() -> Context:
    """The context of the run or command that goes on in this thread."""
    return _HERE.get() or next(reversed(_RUNS or _COMMANDS), _OUTSIDE)


def _begins_in() -> Context:
    """The context in which a new one begins; a new thread may not belong to the run in progress."""
    return _HERE.get() or _OUTSIDE


def outside() -> Context:
    """The context of this process, in which runs begin and end."""
    return _OUTSIDE


@contextmanager
def begun(
    model: RunModel | None = None, limit: float | None = None, offset: int = 0
) -> Iterator[Context]:
    """Around one run: a context of its own, with the options that hold now.

    Args:
        model: that runs; it may be named later.
        limit: as lmms-eval's `--limit`: how many docs; below 1 a share, which counts as all here,
            since only lmms-eval knows of how many; None, 0 and -1 are all.
        offset: as lmms-eval's `--offset`: how many come before these.
    """
    made = Context(_begins_in().options)
    made.model, made.is_run = model, True
    stop = offset + int(limit) if limit is not None and limit >= 1 else None
    made.docs = slice(offset, stop) if offset or stop else slice(None)
    made.share = limit is not None and 0 < limit < 1
    with _entered(made):
        try:
            yield made
        finally:
            made.close()


@contextmanager
def with_options(options: Mapping[str, str]) -> Iterator[None]:
    """Within it options say this too, by variable; all else is as outside."""
    made = copy.copy(_begins_in())
    made.options, made.values = {**made.options, **options}, {}
    with _entered(made):
        yield


@contextmanager
def _entered(context: Context) -> Iterator[None]:
    token, going = _HERE.set(context), _RUNS if context.is_run else _COMMANDS
    going.append(context)
    try:
        yield
    finally:
        _HERE.reset(token)
        going.remove(context)


def by_rank(docs: Sequence[T]) -> Sequence[T]:
    """A task's docs in an order that gives each process of the run neighbours.

    The host gives every WORLD_SIZE-th doc of those it takes to a rank, so that a video's questions
    go to all ranks, and each of them reads, encodes and caches the video. Which docs are asked
    depends neither on the order nor on the number of processes; a share of them (`--limit` below
    1) would, so its order stays.
    """
    processes = int(os.environ.get("WORLD_SIZE", "1"))  # as the host reads it
    run = current()
    if processes == 1 or run.share:
        return docs
    first = min(run.docs.start or 0, len(docs))
    taken = docs[run.docs]
    whole, more = divmod(len(taken), processes)
    starts = [rank * whole + min(rank, more) for rank in range(processes)]
    dealt = [taken[starts[place % processes] + place // processes] for place in range(len(taken))]
    return [*docs[:first], *dealt, *docs[first + len(taken) :]]


def gathered(value: T) -> list[T]:
    """The values of all processes of the run, by rank; each process has to call this."""
    torch = sys.modules.get("torch")
    processes = torch.distributed if torch is not None else None
    if processes is None or not processes.is_available() or not processes.is_initialized():
        return [value]
    found: list[Any] = [None] * processes.get_world_size()
    processes.all_gather_object(found, value)
    return found
