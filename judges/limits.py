"""Limits on the rate and number of a judge's requests, and the end of a failing endpoint's use.

All counts are of one process. The processes of a run divide its limits with `share`.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from lmms_eval_tasks.judges.providers.exchange import ProviderError
from lmms_eval_tasks.judges.verdict import Status, sum_known

N = TypeVar("N", int, float)

BURST = 1.0  # seconds' worth of a rate that may go out at once: 10 of 600 requests a minute
# Factors of the timeout, and of the fastest reply's time; found by simulation with one slot.
LATE, FACTOR = 0.4, 1.5
START = 4  # requests in flight at first, since an endpoint's capacity is not known
_ROUNDING = 1e-9  # below the price of any token in dollars: sums of floats are not exact


def share(total: N | None, rank: int, world: int, *, at_least: int = 0) -> N | None:
    """Return the part of a run's limit that process `rank` of `world` may use; None stays None.

    Integers (calls, concurrency) are divided into integers whose sum is `total`, unless `at_least`
    raises some. Floats (dollars, rates) are divided evenly.
    """
    if total is None:
        return None
    part = total // world + (rank < total % world) if isinstance(total, int) else total / world
    return max(part, at_least)


class Rate:
    """A limit of requests a minute (None: no limit), with BURST seconds' worth at once.

    A token bucket with reservations in the order of the calls. Thread-safe.
    """

    def __init__(
        self,
        per_minute: float | None,
        clock: Callable[[], float] = time.monotonic,
        after: float = 0.0,
    ) -> None:
        self.per_minute, self._clock = per_minute, clock
        # The time when the bucket is full again, without further reservations. Processes that share
        # a limit start one after the other.
        self._full = clock() + after if after else -math.inf
        self._opens = -math.inf  # the end of a pause that the endpoint requested
        self._lock = threading.Lock()

    def pause(self, seconds: float) -> None:
        """Send nothing for some seconds: a pause requested by one reply holds for all."""
        with self._lock:
            self._opens = max(self._opens, self._clock() + seconds)

    def reserve(self) -> float:
        """Take the next turn; return the seconds to wait before the request, 0.0 or more.

        Every attempt reserves, a retry too: endpoints also count requests that they reject.
        """
        with self._lock:
            now = self._clock()
            paused = max(0.0, self._opens - now)
            if self.per_minute is None:
                return paused
            cost = 60 / self.per_minute  # seconds in which the bucket gains one request
            start = max(self._full, now)
            self._full = start + cost
        return max(paused, start - now - max(0.0, BURST - cost))


class Flight:
    """A limit on the requests in flight to an endpoint, which adapts up to `most`.

    Each reply adds one request, so that the number doubles every round, until the endpoint is too
    busy or too slow. That halves the number, once for all requests in flight together; from then on
    a whole round adds one request. A reply that takes LATE of the timeout, and FACTOR times as long
    as the fastest reply, adds none: requests queue at the endpoint. Thread-safe.

    Args:
        most: the largest number of requests in flight.
        start: the number at first.
        timeout: seconds that a request has.
    """

    def __init__(self, most: int, start: int = START, timeout: float = math.inf) -> None:
        self.most, self.now, self.timeout = most, 0, timeout
        self._fastest, self._latest = math.inf, time.monotonic()
        self._allowed, self._round, self._doubles = float(min(start, most)), 0, True
        self._free = threading.Condition()

    @property
    def allowed(self) -> int:
        """The number of requests that may be in flight now, 1 or more."""
        return int(self._allowed + _ROUNDING)

    @property
    def quiet(self) -> float:
        """Seconds since the last reply to any request, or since the beginning."""
        return time.monotonic() - self._latest

    @contextmanager
    def turn(self, breaker: Breaker) -> Iterator[None]:
        """Context manager for one request, entered when there is room for it.

        Raises:
            ProviderError: `skipped` if the endpoint was given up; or the request's error.
        """
        with self._free:
            while self.now >= self.allowed and not breaker.is_open:
                # With a timeout, since the breaker does not notify this condition.
                self._free.wait(0.5)
            if breaker.is_open:
                raise ProviderError(breaker.reason, Status.SKIPPED)
            self.now += 1
            begun, sent = self._round, time.monotonic()
        more = 0.0
        try:
            yield
            more = self._more(time.monotonic() - sent)
        except ProviderError as error:
            if error.load:
                self._halve(begun)
            raise
        finally:
            with self._free:
                self.now -= 1
                self._allowed = min(self._allowed + more, float(self.most))
                self._free.notify(max(1, self.allowed - self.now))

    def _more(self, seconds: float) -> float:
        """Return how many more requests may go out after a reply that took `seconds`."""
        with self._free:
            self._latest = time.monotonic()
            self._fastest = min(self._fastest, seconds)
            if seconds > LATE * self.timeout and seconds > FACTOR * self._fastest:
                self._doubles = False
                return 0.0
        return 1.0 if self._doubles else 1 / self.allowed

    def _halve(self, begun: int) -> None:
        with self._free:
            if begun == self._round:
                self._round += 1
                self._doubles, self._allowed = False, max(1.0, self._allowed / 2)


class Breaker:
    """The state of an endpoint, which is given up after too many failures in a row.

    After `after` requests in a row that failed with all their retries, it stays given up for the
    rest of the process; 0: never. `reason` is one line, empty while the endpoint is in use.
    Thread-safe.
    """

    def __init__(self, after: int) -> None:
        self.after, self.reason, self._failures = after, "", 0
        self._opened = threading.Condition()

    @property
    def is_open(self) -> bool:
        """True if no further request may go out."""
        return bool(self.reason)

    def failure(self, reason: str) -> None:
        """Count a request that failed for this reason."""
        with self._opened:
            self._failures += 1
            if 0 < self.after <= self._failures:
                last = next(iter(reason.splitlines()), "")
                self.open(f"{self.after} requests in a row failed, the last with: {last}")

    def success(self) -> None:
        """Count a request that got a reply."""
        if self._failures:  # read without the lock, which nearly no call needs
            with self._opened:
                self._failures = 0

    def open(self, reason: str) -> None:
        """Give the endpoint up now, such as in an interrupted run; the first reason stays."""
        with self._opened:
            self.reason = self.reason or reason
            self._opened.notify_all()

    def wait(self, seconds: float) -> bool:
        """Sleep; return False as soon as the endpoint is given up, True after the whole time."""
        with self._opened:
            return not self._opened.wait_for(lambda: self.is_open, max(0.0, seconds))


@dataclass(slots=True, eq=False)
class Bill:
    """The calls and dollars of one call: the upper bound before it, the payment after it."""

    calls: int
    cost: float | None  # dollars; None if the price or the tokens are unknown
    judge: str = ""


class Budget:
    """A process's budget, kept as long as the upper bounds hold. Thread-safe.

    A call is a received reply, since replies are paid for: also an unreadable one, and each sample.
    Attempts without a reply and cached replies do not count. A bill above its upper bound (an
    endpoint that ignores max_tokens) raises all later bounds of that judge by the same factor.

    Attributes:
        calls: paid so far; `max_calls` = 0 allows cached replies only.
        cost: dollars paid so far; None once a call's cost was unknown (no `max_cost` then).
        excess: by judge, the largest ratio of a bill to its bound, 1.0 or more.
    """

    def __init__(self, max_calls: int | None, max_cost: float | None) -> None:
        self.max_calls, self.max_cost = max_calls, max_cost
        self.calls = 0
        self.cost: float | None = 0.0
        self.excess: dict[str, float] = {}
        self._held: list[Bill] = []  # upper bounds of the calls in flight
        self._settled = threading.Condition()

    @contextmanager
    def hold(self, calls: int, cost: float | None, judge: str = "") -> Iterator[Bill]:
        """Context manager for one call with an upper bound; only the yielded bill is paid.

        If the call might exceed the budget because of other threads' calls in flight, it waits for
        them. A bill whose cost is None counts as the upper bound.

        Raises:
            ProviderError: `skipped`: over the budget.
        """
        most, bill = Bill(calls, cost, judge), Bill(0, 0.0)
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
                if most.cost and bill.cost:
                    found = bill.cost / most.cost
                    self.excess[judge] = max(1.0, self.excess.get(judge, 1.0), found)
                self.cost = sum_known([self.cost, most.cost if bill.cost is None else bill.cost])
                self._settled.notify_all()

    def _over(self, *bills: Bill) -> str:
        """Return the limit that these bills together would exceed, in words, or ""."""
        calls = self.calls + sum(each.calls for each in bills)
        if self.max_calls is not None and calls > self.max_calls:
            return f"over the budget of {self.max_calls} calls"
        held = (self.excess.get(one.judge, 1.0) * (one.cost or 0.0) for one in bills)
        cost = (self.cost or 0.0) + sum(held)
        over = self.max_cost is not None and cost > self.max_cost + _ROUNDING
        return f"over the budget of ${self.max_cost:.3g}" if over else ""
