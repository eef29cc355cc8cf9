"""The end of a run by Ctrl-C (SIGINT) or SIGTERM: within seconds, with a message.

Python alone joins all threads first, and threads that wait for an endpoint take minutes. While the
main thread is in foreign code (a barrier between processes) it receives no signal at all. So a
thread of ours receives them: it ends the work, prints what is kept, and ends the process after
GRACE seconds. Nothing is lost: replies are on disk as soon as they arrive (docs/robustness.md).
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from lmms_eval_tasks.notify import notify

GRACE = 2.0  # seconds in which the process may end by itself
_TOLD = 1.0  # seconds that the main thread waits for the message
_DEFAULTS: dict[signal.Signals, Callable[[int, FrameType | None], object] | int] = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
}

# Functions to call at the first signal, in another thread than the main one. Each ends some work
# and returns in words what is kept, or "".
ACTS: list[Callable[[], str]] = []
_active: _Ears | None = None


class InterruptedRunError(SystemExit):
    """The exit of a command after a signal; raised in the main thread, whatever it does."""


@contextmanager
def at_interrupt(act: Callable[[], str]) -> Iterator[None]:
    """Context manager within which `act` is one of ACTS."""
    ACTS.append(act)
    try:
        yield
    finally:
        ACTS.remove(act)


@contextmanager
def ending(*, exits: bool) -> Iterator[None]:
    """Context manager within which the first SIGINT or SIGTERM ends the run.

    It does nothing inside another such context, in another thread than the main one, and under
    handlers of others.

    Args:
        exits: True for commands: the exit code is 130 or 143, and a second signal ends the process
            at once. False: only Ctrl-C counts, it raises KeyboardInterrupt, and the process stays.
    """
    global _active  # noqa: PLW0603 - signals are the process's
    heard = [n for n, usual in _DEFAULTS.items() if signal.getsignal(n) is usual]
    heard = [n for n in heard if exits or n == signal.SIGINT]  # handlers of others stay
    is_main = threading.current_thread() is threading.main_thread()
    if _active or not is_main or not heard:
        yield
        return
    _active = _Ears(heard, exits)
    try:
        yield
    finally:
        _active.close()
        _active = None


@contextmanager
def as_usual() -> Iterator[None]:
    """Context manager within which the signals do what Python's defaults do, also in `ending`."""
    if _active is not None:
        _active.forget()
    yield


class _Ears:
    """The handlers of some signals, and the thread that receives them."""

    def __init__(self, signals: list[signal.Signals], exits: bool) -> None:
        self.signals, self._exits = signals, exits
        self._came, self._told = False, threading.Event()
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        # Python writes the number of each signal here at once, whatever the main thread does.
        self._before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in signals:
            signal.signal(number, self._handle)
        threading.Thread(target=self._hear, name="signals", daemon=True).start()

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self._told.wait(_TOLD)
        if self._exits:
            raise InterruptedRunError(128 + number)
        raise KeyboardInterrupt

    def _hear(self) -> None:
        number = self._next()
        if number is None:
            return
        self._came, until = True, time.monotonic() + GRACE
        kept = []
        for act in list(ACTS):
            with suppress(Exception):  # an error must not keep the process from its end
                kept.append(act())
        kept = [one for one in kept if one]
        goes_on = (
            f": {', '.join(kept)}; run the same command again to continue from there"
            if kept
            else ""
        )
        notify(f"interrupted by {signal.Signals(number).name}{goes_on}")
        self._told.set()
        if self._exits:
            self._reader.settimeout(max(0.0, until - time.monotonic()))
            with suppress(TimeoutError, BlockingIOError):
                number = self._next() or number
            end(128 + number)

    def _next(self) -> int | None:
        """Return the next signal that is ours; None after `close`."""
        while byte := self._reader.recv(1):
            if byte[0] in self.signals:
                return byte[0]
        return None

    def close(self) -> None:
        """Restore the default handlers, unless a signal is already ending the process."""
        if self._exits and self._came:
            return
        self.forget()
        self._writer.close()  # ends the thread

    def forget(self) -> None:
        """Restore the default handlers, but leave the thread."""
        signal.set_wakeup_fd(self._before)
        for number in self.signals:
            signal.signal(number, _DEFAULTS[number])


def end(code: int) -> None:
    """End this process and its children now, whatever its threads do."""
    if "multiprocessing" in sys.modules:
        for child in sys.modules["multiprocessing"].active_children():
            child.kill()
    os._exit(code)


_masks = threading.local()


def _before_fork() -> None:
    """Block signals during a fork: until `_in_child` the child shares the parent's socket."""
    heard = _active.signals if _active is not None else []
    _masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, heard)


def _after_fork() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _masks.before)


def _in_child() -> None:
    """Restore a child's default handlers: SIGTERM ends a pool's workers."""
    global _active  # noqa: PLW0603
    if _active is not None:
        _active.forget()
        _active = None
    _after_fork()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
