"""How fast and how much a judge may be asked, when it is asked again, and when it is given up.

Everything here counts one process. The processes of a run divide its limits with `share`.
"""

from __future__ import annotations

import itertools
import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from lmms_eval_tasks.judges.verdict import ProviderError, Status, sum_known

N = TypeVar("N", int, float)
T = TypeVar("T")

BURST = 1.0  # seconds' worth of a rate that may go out at once: 10 of 600 requests a minute
_LONGEST = 300.0  # seconds that an endpoint may ask for: a run that stands still looks like hanging
_ROUNDING = 1e-9  # dollars, below the price of any token: sums of floats are not exact


def share(total: N | None, rank: int, world: int, *, at_least: int = 0) -> N | None:
    """The part of a run's limit that process `rank` of `world` may use; None stays None.

    Integers (calls, concurrency) are divided into integers whose sum is `total`, unless `at_least`
    lifts some. Floats (dollars, rates) are divided evenly.
    """
    if total is None:
        return None
    part = total // world + (rank < total % world) if isinstance(total, int) else total / world
    return max(part, at_least)


class Rate:
    """At most so many requests a minute (None: no limit), and BURST seconds' worth at once.

    A token bucket that is reserved ahead, in the order of the calls. Thread-safe.
    """

    def __init__(
        self, per_minute: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.per_minute, self._clock = per_minute, clock
        self._full = -math.inf  # when the bucket will be full again, if nothing more is reserved
        self._lock = threading.Lock()

    def reserve(self) -> float:
        """Take the next turn; returns the seconds to wait before going ahead, 0.0 or more.

        Every attempt reserves, a retry as well: endpoints also count those that they turn down.
        """
        if self.per_minute is None:
            return 0.0
        cost = 60 / self.per_minute  # seconds in which the bucket gains one request
        with self._lock:
            now = self._clock()
            start = max(self._full, now)
            self._full = start + cost
        return max(0.0, start - now - max(0.0, BURST - cost))


class Breaker:
    """Gives an endpoint up, for the rest of the process, once `after` requests in a row failed with
    all their retries; 0 never does. `reason` is one line, empty while it is closed. Thread-safe.
    """

    def __init__(self, after: int) -> None:
        self.after, self.reason, self._failures = after, "", 0
        self._opened = threading.Condition()

    @property
    def is_open(self) -> bool:
        """Whether nothing more is to be sent."""
        return bool(self.reason)

    def failure(self, reason: str) -> None:
        """A request got no reply, for this reason."""
        with self._opened:
            self._failures += 1
            if 0 < self.after <= self._failures:
                last = next(iter(reason.splitlines()), "")
                self.open(f"{self.after} requests in a row failed, the last with: {last}")

    def success(self) -> None:
        """A request got a reply: the endpoint is alive."""
        if self._failures:  # read without the lock, which almost every call can do without
            with self._opened:
                self._failures = 0

    def open(self, reason: str) -> None:
        """Give up now, for another reason (an interrupted run); the first reason is kept."""
        with self._opened:
            self.reason = self.reason or reason
            self._opened.notify_all()

    def wait(self, seconds: float) -> bool:
        """Sleep; False as soon as the breaker is open, True if it stayed closed all the time."""
        with self._opened:
            return not self._opened.wait_for(lambda: self.is_open, max(0.0, seconds))


@dataclass(slots=True, eq=False)
class Bill:
    """What a call comes to: at most so much before it is made, and what was paid after it."""

    calls: int
    cost: float | None  # dollars; None where the price or the tokens are unknown


class Budget:
    """What a process may pay for. Never exceeded as long as the upper bounds hold. Thread-safe.

    A call is a reply that was received, since that is what is paid for: also one that nobody can
    read, and each sample's own. Attempts without a reply and cached replies are none.

    Attributes:
        calls: paid so far; `max_calls` = 0 serves cached replies only.
        cost: dollars paid so far; None once a call's cost was unknown (no `max_cost` then).
    """

    def __init__(self, max_calls: int | None, max_cost: float | None) -> None:
        self.max_calls, self.max_cost = max_calls, max_cost
        self.calls = 0
        self.cost: float | None = 0.0
        self._held: list[Bill] = []  # the most that calls under way may cost
        self._settled = threading.Condition()

    @contextmanager
    def hold(self, calls: int, cost: float | None) -> Iterator[Bill]:
        """Around one call that may cost so much at most; nothing is paid unless the bill says so.

        Where it might be over the budget because of what other threads hold, it waits for them. A
        bill whose cost is None counts as the upper bound.

        Raises:
            ProviderError: `skipped`: over the budget.
        """
        most, bill = Bill(calls, cost), Bill(0, 0.0)
        with self._settled:
            while self._over(most, *self._held):
                if over := self._over(most):
                    raise ProviderError(over, Status.SKIPPED)
                self._settled.wait()
            self._held.append(most)
        try:
            yield bill
        finally:
            with self._settled:
                self._held.remove(most)
                self.calls += bill.calls
                self.cost = sum_known([self.cost, most.cost if bill.cost is None else bill.cost])
                self._settled.notify_all()

    def _over(self, *wanted: Bill) -> str:
        """The limit that all these together would pass, in words, or ''."""
        calls = self.calls + sum(each.calls for each in wanted)
        if self.max_calls is not None and calls > self.max_calls:
            return f"over the budget of {self.max_calls} calls"
        cost = (self.cost or 0.0) + sum(each.cost or 0.0 for each in wanted)
        over = self.max_cost is not None and cost > self.max_cost + _ROUNDING
        return f"over the budget of ${self.max_cost:.3g}" if over else ""


def call_with_retries(
    call: Callable[[], T],
    *,
    retries: int,
    breaker: Breaker,
    on_retry: Callable[[], None] = lambda: None,
    base: float = 0.5,
    cap: float = 30.0,
    uniform: Callable[[float, float], float] = random.uniform,
) -> T:
    """The result of the first attempt that succeeds; only a ProviderError with `retry` is retried.

    Before retry n it waits uniform(0, min(cap, base * 2**(n-1))) seconds (exponential backoff with
    full jitter), on top of what the endpoint asked for: threads that were all told the same number
    of seconds must not come back at once. The openai package's own retries would pass the rate
    limits by, and wait on after the endpoint was given up.

    Args:
        breaker: does the waiting, and ends the retries when it opens; a reply or a refusal is a
            success to it, and a last attempt in `api_error` one failure.
        on_retry: told before each wait.

    Raises:
        ProviderError: the last attempt's; `skipped` if the breaker was open before the first.
    """
    if breaker.is_open:
        raise ProviderError(breaker.reason, Status.SKIPPED)
    for tried in itertools.count():
        try:
            result = call()
        except ProviderError as error:
            problem, asked = error, max(0.0, error.retry_after or 0.0)
        else:
            breaker.success()
            return result
        if problem.retry and asked > _LONGEST:
            told = f"the endpoint asks to wait {asked:.0f} s, over {_LONGEST:.0f} s: {problem}"
            problem = ProviderError(told, problem.status)
        if problem.retry and tried < retries and not breaker.is_open:
            on_retry()
            if breaker.wait(asked + uniform(0.0, min(cap, base * 2 ** min(tried, 20)))):
                continue
        if problem.status is Status.API_ERROR:
            breaker.failure(str(problem))
        elif problem.status is Status.REFUSED:
            breaker.success()
        raise problem
    raise AssertionError  # `count` has no end
