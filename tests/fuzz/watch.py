"""A bound on a process's own time: a busy machine is no failure, an endless regex is one."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class TooSlow(BaseException):
    """More CPU time than allowed."""


@contextmanager
def at_most(seconds: float) -> Iterator[list[float]]:
    """Ends what takes more CPU time of this process; in the main thread.

    Yields:
        A list that holds the seconds it took, once it is over.
    """

    def stop(*_: Any) -> None:
        raise TooSlow(f"more than {seconds:g} s of CPU time")

    took: list[float] = []
    before = signal.signal(signal.SIGPROF, stop)
    start = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield took
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        took.append(time.process_time() - start)
