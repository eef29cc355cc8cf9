"""The context of a run: state that the parts of one run share, from its beginning to its end.

lmms-eval calls a task's functions with a doc and nothing else. So the context holds whatever else
they need: the run's settings, its model, the plan for its model class, and the range of docs. Any
further state of a run is an object in its context, one for each class (`Context.instance_of`). It
ends with the run. No module keeps the state of a run in a global variable.
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
    """A run's model: its name as in `--model`, its arguments, and its interface, simple or chat."""

    name: str
    interface: Interface
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ClassPlan:
    """The package's settings for the run's model class, which models/plan.py decides."""

    interface: Interface = "simple"  # the interface of the model's class that runs
    # Arguments for the class, in addition to the user's.
    arguments: Mapping[str, Any] = field(default_factory=dict)
    videos_as_pictures: bool = False  # a video is sent as plan.FRAMES pictures
    pictures_as_videos: bool = False  # a picture is sent as a video that shows only this picture
    # The class's reader of videos, such as a library (MediaSupport.video); "" if it gets no videos.
    reader: str = ""
    # The modality of each task (MediaSupport.modality), by the task's name.
    modality: Mapping[str, str] = field(default_factory=dict)
    one_by_one: bool = False  # the class gets one request at a time
    lines: tuple[str, ...] = ()  # lines for the user
    # Those of `lines` about media that do not reach the model in the task's form.
    short: tuple[str, ...] = ()


class Context:
    """The state of one run of lmms-eval, of one command, or of this process outside of both."""

    is_run: bool = False
    model: RunModel | None = None  # None if our hook in lmms-eval did not run
    plan: ClassPlan = ClassPlan()  # the plan for the model's class; default: no change
    docs: slice = slice(None)  # the range of each task's docs that lmms-eval uses (`--limit`)
    # True for a `--limit` below 1, a share of the docs, which `docs` cannot express.
    share: bool = False
    options: Mapping[str, str]  # values of options, by the setting's variable
    # The environment that settings are read from; None: the process's at the time of reading.
    environment: Mapping[str, str] | None = None
    values: dict[str, Any]  # settings that were read during this run, by variable

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options, self.values = options, {}
        self._own: dict[type, Any] = {}
        self._lock = threading.RLock()

    def instance_of(self, kind: type[T], make: Callable[[], T] | None = None) -> T:
        """Return the run's object of class `kind`, made by `make` or `kind()` at the first call.

        `close` of the context also calls the object's `close`, if it has one.
        """
        with self._lock:
            if kind not in self._own:
                self._own[kind] = (make or kind)()
            return cast(T, self._own[kind])

    def get(self, kind: type[T]) -> T | None:
        """Return the run's object of class `kind`; None if it was not made yet."""
        return cast("T | None", self._own.get(kind))

    def put(self, kind: type[T], value: T | None) -> T | None:
        """Replace the run's object of class `kind`, or remove it (None).

        Returns:
            The previous object; None if there was none.
        """
        with self._lock:
            before = self._own.pop(kind, None)
            if value is not None:
                self._own[kind] = value
            return cast("T | None", before)

    def go_by(self, plan: ClassPlan) -> None:
        """Set the plan for the model's class, with the interface and the arguments of the plan."""
        if self.model is not None:
            arguments = {**self.model.arguments, **plan.arguments}
            self.model, self.plan = RunModel(self.model.name, plan.interface, arguments), plan

    def close(self) -> None:
        """End the context, and call `close` of each object in it that has one."""
        for one in self._own.values():
            if hasattr(one, "close"):
                one.close()
        self._own.clear()

    def forked(self) -> None:
        """Discard the lock and all objects in a forked process; the parent's threads hold them."""
        self._lock = threading.RLock()
        self._own.clear()


_OUTSIDE = Context({})
_HERE: ContextVar[Context | None] = ContextVar("_HERE", default=None)
# A thread that lmms-eval, a model's class or a command starts inherits no ContextVar, so `current`
# uses these lists there. `_RUNS` holds the run in progress in this process; there is one at a time
# (host/evaluation.py). It may be there twice, the second time with other options (`with_options`).
# `_COMMANDS` holds contexts of commands, with their options.
_RUNS: list[Context] = []
_COMMANDS: list[Context] = []


def _after_fork() -> None:
    for one in (_OUTSIDE, *_COMMANDS, *_RUNS):
        one.forked()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_after_fork)


def current() -> Context:
    """Return the context of this thread's run or command; without one, that of the process."""
    return _HERE.get() or next(reversed(_RUNS or _COMMANDS), _OUTSIDE)


def _begins_in() -> Context:
    """Return the context whose options a new context takes: this thread's, else the process's.

    A thread without a context may not belong to the run in progress, so that run is ignored here.
    """
    return _HERE.get() or _OUTSIDE


def outside() -> Context:
    """Return the context of this process, outside of all runs."""
    return _OUTSIDE


@contextmanager
def begun(
    model: RunModel | None = None, limit: float | None = None, offset: int = 0
) -> Iterator[Context]:
    """Begin a run: yield its new context, with the present options, and close it afterwards.

    Args:
        model: the run's model; None if it becomes known later.
        limit: lmms-eval's `--limit`, the number of docs. A limit below 1 is a share of the docs;
            then `docs` is all of them, since only lmms-eval knows their number. None, 0 and -1 mean
            all docs.
        offset: lmms-eval's `--offset`, the number of docs before the first one taken.
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
    """Set options inside the block, by their settings' variables; all other state is unchanged."""
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
    """Return a task's docs in an order that brings the docs of a video to one process of the run.

    lmms-eval gives a rank every WORLD_SIZE-th doc. In the data's order, a video's questions would
    go to all ranks, and each rank would read, encode and cache the video. The run uses the same
    docs in any order and with any number of processes. The exception is a share of the docs
    (`--limit` below 1), for which the order is kept.
    """
    processes = int(os.environ.get("WORLD_SIZE", "1"))  # the variable that lmms-eval reads
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
    """Return the values of all processes of the run, by rank; each process has to call this."""
    torch = sys.modules.get("torch")
    processes = torch.distributed if torch is not None else None
    if processes is None or not processes.is_available() or not processes.is_initialized():
        return [value]
    values: list[Any] = [None] * processes.get_world_size()
    processes.all_gather_object(values, value)
    return values
