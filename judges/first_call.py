"""One call goes first: the others that begin with the same bytes then find them in a prompt cache.

A provider's prompt cache holds a prefix once a reply to it was given. Calls that are sent side by
side before that all pay its full price.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from lmms_eval_tasks.judges import run
from lmms_eval_tasks.judges.locks import fork_safe_lock
from lmms_eval_tasks.judges.verdict import Judge, Verdict

# Seconds after the last call in which a provider still has the prefix: OpenAI keeps it for 5 to 10
# minutes without use. A segment comes again in a run when the next model is judged.
WARM = 240.0


@dataclass
class Turn:
    """One call inside the gate."""

    first: bool  # it goes alone
    sent: bool = True  # set False if it turned out to need no request: the cache is as it was


class Gate:
    """Lets the first call through alone and then all others; and again so after a long pause.

    A call that fails lets the others through too: to wait for a success could take the retries of
    every call one after another. Thread-safe.

    Args:
        clock: seconds, never going back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._alone = False  # whether a first call is under way
        self._warm_until = -math.inf

    @contextmanager
    def turn(self) -> Iterator[Turn]:
        """Around a call; waits while a first one is under way."""
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            turn = Turn(first=self._clock() >= self._warm_until)
            self._alone = turn.first
        try:
            yield turn
        finally:
            with self._changed:
                if turn.sent:
                    self._warm_until = self._clock() + WARM
                if turn.first:
                    self._alone = False
                    self._changed.notify_all()


# Of the process's run: a forked child makes a run of its own (run.py) and so never waits for a
# thread that it does not have.
_gates: WeakKeyDictionary[run.Run, dict[Hashable, Gate]] = WeakKeyDictionary()
_LOCK = fork_safe_lock()


def ahead(prefix: Hashable) -> Callable[[Judge, Callable[[], Verdict]], Verdict]:
    """`Ask.before` of requests that begin with one prefix: a judge's first one goes ahead.

    Args:
        prefix: what decides on the bytes that they share, beside the judge.
    """

    def ask(judge: Judge, request: Callable[[], Verdict]) -> Verdict:
        current = run.current()
        with _LOCK:
            gates = _gates.setdefault(current, {})
            gate = gates.setdefault((judge.config, prefix), Gate())
        with gate.turn() as turn:
            paid = current.here.paid
            verdict = request()
            # What our own cache answers does not reach the provider's.
            turn.sent = verdict.score is None or current.here.paid > paid
        return verdict

    return ask
