"""lmms-eval's log in a run, with errors that a class logs instead of raising them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lmms_eval_tasks.host.requests import delivery

if TYPE_CHECKING:
    from loguru import Message, Record


def is_of_a_model(record: Record) -> bool:
    """Return True for a line of one of lmms-eval's model classes."""
    return (record["name"] or "").startswith("lmms_eval.models")


class LoggedErrors:
    """The errors that a class logs during its requests.

    All requests share one sink, since loguru takes 10 ms to add a sink.
    """

    def __init__(self) -> None:
        self._listeners: dict[int, tuple[str, list[str]]] = {}

    def hear(self, text: str) -> None:
        """Pass a logged line to all listeners that want it, in the thread that logs."""
        asked = delivery.ASKED.get()
        for name, found in list(self._listeners.values()):
            if not name or asked in (name, ""):
                found.append(text)

    @contextmanager
    def of(self, name: str = "") -> Iterator[list[str]]:
        """Collect the errors that are logged while the context lasts, in the yielded list.

        Args:
            name: a request: collect its errors, and those of unknown requests; "" for all errors.
        """
        errors: list[str] = []
        self._listeners[id(errors)] = name, errors
        try:
            yield errors
        finally:
            del self._listeners[id(errors)]


@contextmanager
def audible(*mute: str) -> Iterator[None]:
    """Enable lmms-eval's log while the context lasts, except for the modules in `mute`.

    Other code may have disabled it.
    """
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
    level: str, accepts: Callable[[Record], bool], hear: Callable[[str], object]
) -> Iterator[None]:
    """Pass the wanted lines of lmms-eval's log to `hear` while the context lasts, each as one line.

    Lines are cut at 300 characters. An exception of `hear` does not end the run.
    """
    from loguru import logger

    def tell(message: Message) -> None:
        hear(" ".join(message.record["message"].split())[:300])

    sink = logger.add(tell, level=level, filter=accepts)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # other code removed all sinks
            logger.remove(sink)
