"""lmms-eval's log as far as a run listens to it: errors that a class logs in place of raising."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lmms_eval_tasks.host.requests import delivery

if TYPE_CHECKING:
    from loguru import Message, Record


def is_of_a_model(record: Record) -> bool:
    """Return True of a line of one of lmms-eval's model classes."""
    return (record["name"] or "").startswith("lmms_eval.models")


class LoggedErrors:
    """What a class logs as errors while it is asked; a sink of loguru's takes 10 ms to add."""

    def __init__(self) -> None:
        self._listeners: dict[int, tuple[str, list[str]]] = {}

    def hear(self, text: str) -> None:
        """Tell all who want it, in the thread that logs."""
        asked = delivery.ASKED.get()
        for name, found in list(self._listeners.values()):
            if not name or asked in (name, ""):
                found.append(text)

    @contextmanager
    def of(self, name: str = "") -> Iterator[list[str]]:
        """What is logged within: where this request is asked, or nobody's; all without a name."""
        found: list[str] = []
        self._listeners[id(found)] = name, found
        try:
            yield found
        finally:
            del self._listeners[id(found)]


@contextmanager
def audible(*mute: str) -> Iterator[None]:
    """Within it the host's log can be heard, but for some modules; somebody may have muted it."""
    from loguru import logger

    logger.enable("lmms_eval")
    for name in mute:
        logger.disable(name)
    try:
        yield
    finally:
        for name in mute:
            logger.enable(name)


@contextmanager
def logged(
    level: str, wanted: Callable[[Record], bool], hear: Callable[[str], object]
) -> Iterator[None]:
    """What the host logs within goes to `hear`: it goes on after trouble, and tells nobody else."""
    from loguru import logger

    def tell(message: Message) -> None:
        hear(" ".join(message.record["message"].split())[:300])

    sink = logger.add(tell, level=level, filter=wanted)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # somebody took all sinks away
            logger.remove(sink)
