"""Limits on how fast and how much a judge is asked, and when it is given up.

Everything here counts one process. The processes of a run divide its limits with `share`.
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
LATE, FACTOR = 0.4, 1.5  # of a request's time, and of the fastest reply: simulated with one slot
START = 4  # requests in flight at first: nobody knows yet what an endpoint takes
_ROUNDING = 1e-9  # below the price of any token in dollars: sums of floats are not exact


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
        self,
        per_minute: float | None,
        clock: Callable[[], float] = time.monotonic,
        after: float = 0.0,
    ) -> None:
        self.per_minute, self._clock = per_minute, clock
        # When the bucket will be full again, if nothing more is reserved. Processes that share a
        # limit begin one after the other.
        self._full = clock() + after if after else -math.inf
        self._opens = -math.inf  # when a pause ends that the endpoint asked for
        self._lock = threading.Lock()

    def pause(self, seconds: float) -> None:
        """Send nothing for so long: what one request was told holds for all."""
        with self._lock:
            self._opens = max(self._opens, self._clock() + seconds)

    def reserve(self) -> float:
        """Take the next turn; returns the seconds to wait before going ahead, 0.0 or more.

        Every attempt reserves, a retry as well: endpoints also count those that they turn down.
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
    """A limit on the requests in flight to an endpoint: as many as it takes, `most` at most.

    Each reply lets one more out, so that the number doubles with every round, until the endpoint is
    too busy or too slow; that halves it, once for all requests that were under way together, and
    from then on a whole round lets one more out. A reply that takes LATE of its time, and FACTOR
    times as long as the fastest, lets none out: requests begin to queue there. Thread-safe.

    Args:
        most: requests in flight that are never exceeded.
        start: requests in flight at first.
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
        """Around one request, once there is room for it.

        Raises:
            ProviderError: `skipped`: the endpoint was given up; or the request's own.
        """
        with self._free:
            while self.now >= self.allowed and not breaker.is_open:
                self._free.wait(0.5)  # a breaker wakes nobody here
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
        """Return how many more requests a reply lets out that took so long."""
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
    """Gives an endpoint up, for the rest of the process, once `after` requests in a row failed with
    all their retries; 0 never does. `reason` is one line, empty while it is closed. Thread-safe.
    """

    def __init__(self, after: int) -> None:
        self.after, self.reason, self._failures = after, "", 0
        self._opened = threading.Condition()

    @property
    def is_open(self) -> bool:
        """True if nothing more is to be sent."""
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
    """The calls and dollars of a call: at most so much before it is made, paid after it."""

    calls: int
    cost: float | None  # dollars; None where the price or the tokens are unknown
    judge: str = ""


class Budget:
    """A process's budget. Never exceeded as long as the upper bounds hold. Thread-safe.

    A call is a reply that was received, since that is what is paid for: also one that nobody can
    read, and each sample's own. Attempts without a reply and cached replies are none. A bill above
    its bound (an endpoint that ignores max_tokens) lifts all bounds of that judge as much.

    Attributes:
        calls: paid so far; `max_calls` = 0 serves cached replies only.
        cost: dollars paid so far; None once a call's cost was unknown (no `max_cost` then).
        excess: by how many times each judge's largest bill was above its bound, 1.0 or more.
    """

    def __init__(self, max_calls: int | None, max_cost: float | None) -> None:
        self.max_calls, self.max_cost = max_calls, max_cost
        self.calls = 0
        self.cost: float | None = 0.0
        self.excess: dict[str, float] = {}
        self._held: list[Bill] = []  # the most that calls under way may cost
        self._settled = threading.Condition()

    @contextmanager
    def hold(self, calls: int, cost: float | None, judge: str = "") -> Iterator[Bill]:
        """Around one call that may cost so much at most; nothing is paid unless the bill says so.

        Where it might be over the budget because of what other threads hold, it waits for them. A
        bill whose cost is None counts as the upper bound.

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
        """The limit that all these together would pass, in words, or ''."""
        calls = self.calls + sum(each.calls for each in bills)
        if self.max_calls is not None and calls > self.max_calls:
            return f"over the budget of {self.max_calls} calls"
        held = (self.excess.get(one.judge, 1.0) * (one.cost or 0.0) for one in bills)
        cost = (self.cost or 0.0) + sum(held)
        over = self.max_cost is not None and cost > self.max_cost + _ROUNDING
        return f"over the budget of ${self.max_cost:.3g}" if over else ""
