"""How fast and how much a judge may be asked, when it is asked again, and when it is given up.

Everything here counts one process. The processes of a run divide its limits with `share`.
"""

from __future__ import annotations

import email.utils
import itertools
import math
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TypeVar

from lmms_eval_tasks import settings
from lmms_eval_tasks.judges.verdict import BUSY, SLOW, ProviderError, Status, sum_known

N = TypeVar("N", int, float)
T = TypeVar("T")

BURST = 1.0  # seconds' worth of a rate that may go out at once: 10 of 600 requests a minute
SHORT = 30.0  # seconds that an endpoint may always ask for
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
    """How many requests are in flight to an endpoint: as many as it takes, `most` at most.

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
        """How many may be in flight now, 1 or more."""
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
        """How many more a reply lets out that took so long."""
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


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)(?:illi)?(?:ec(?:ond)?s?|in(?:ute)?s?|(?:ou)?rs?|ays?)?"
_PART += r"(?![a-z])[\s,]*"
_DURATION = re.compile(rf"(?:{_PART})+", re.I)
# In an error's text: "Please try again in 1m30.5s", "retryDelay": "34s".
_IN_WORDS = re.compile(rf"(?:try again|retry|wait|reset)[^.\d]{{0,30}}?((?:{_PART})+)", re.I)
# "retry_after": 12, and a header that is quoted in a text.
_NAMED = re.compile(r"(?:retry[_-]after|x-ratelimit-reset)\W{1,5}(\d+(?:\.\d+)?)\b", re.I)
_RESET = re.compile(r"(?:x-|anthropic-)?rate-?limit(?:bysize)?-(?:\w+-)*reset(?:-\w+)*")
_WORDS = 4000  # characters of an error's text that are read


def asked_wait(headers: Mapping[str, str], text: str, now: float) -> float | None:
    """Seconds that an answer "busy" asks to wait, 0.0 or more; None if it does not say.

    Read are Retry-After (seconds, a date, a duration such as "1m30s"), the times at which limits
    are reset (of those that are used up: the latest), and the error's own words.

    Args:
        headers: of the response; names in any case.
        text: the error's message.
        now: the time, in seconds since 1970.
    """
    plain = {name.lower(): value for name, value in headers.items()}
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):  # Azure's both
        if (given := _seconds(plain.get(name, ""), now)) is not None:
            return given / 1000
    if (given := _seconds(plain.get("retry-after", ""), now)) is not None:
        return given
    resets = [
        seconds
        for name, value in plain.items()
        if _RESET.fullmatch(name)
        and _is_used_up(plain.get(name.replace("reset", "remaining"), "0"))
        and (seconds := _seconds(value, now)) is not None
    ]
    if resets:
        return max(resets)
    said = _IN_WORDS.search(text[:_WORDS]) or _NAMED.search(text[:_WORDS])
    return _seconds(said[1], now) if said else None


def _is_used_up(remaining: str) -> bool:
    return not re.fullmatch(r"0*[1-9]\d*(\.\d+)?", remaining.strip())


def _seconds(text: str, now: float) -> float | None:
    """A time to wait, from seconds, a duration, a date, or seconds or milliseconds since 1970."""
    text = text.strip()
    try:
        value = float(text)
    except ValueError:
        if _DURATION.fullmatch(text):
            parts = re.findall(_PART, text, re.I)
            return math.fsum(float(number) * _UNITS[unit.lower()] for number, unit in parts)
        return _until(text, now)
    if not math.isfinite(value):
        return None
    since_1970 = value / 1000 if value > 1e11 else value
    return max(0.0, since_1970 - now if since_1970 > 1e9 else value)


def _until(date: str, now: float) -> float | None:
    """Seconds until a date of HTTP or of ISO 8601; None if it is neither."""
    try:
        if parsed := email.utils.parsedate_tz(date):
            return max(0.0, email.utils.mktime_tz(parsed) - now)
        moment = datetime.fromisoformat(date.replace("Z", "+00:00"))
        zone = moment.tzinfo or timezone.utc
        return max(0.0, moment.replace(tzinfo=zone).timestamp() - now)
    except (ValueError, OverflowError):
        return None


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
    judge: str = ""


class Budget:
    """What a process may pay for. Never exceeded as long as the upper bounds hold. Thread-safe.

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

    def _over(self, *wanted: Bill) -> str:
        """The limit that all these together would pass, in words, or ''."""
        calls = self.calls + sum(each.calls for each in wanted)
        if self.max_calls is not None and calls > self.max_calls:
            return f"over the budget of {self.max_calls} calls"
        held = (self.excess.get(one.judge, 1.0) * (one.cost or 0.0) for one in wanted)
        cost = (self.cost or 0.0) + sum(held)
        over = self.max_cost is not None and cost > self.max_cost + _ROUNDING
        return f"over the budget of ${self.max_cost:.3g}" if over else ""


def call_with_retries(
    call: Callable[[], T],
    *,
    retries: int,
    breaker: Breaker,
    on_retry: Callable[[], None] = lambda: None,
    patience: float = settings.JUDGE_PATIENCE.default,
    quiet: Callable[[], float] = lambda: math.inf,
    base: float = 0.5,
    cap: float = 30.0,
    uniform: Callable[[float, float], float] = random.uniform,
) -> T:
    """The result of the first attempt that succeeds; only a ProviderError with `retry` is retried.

    Before retry n it waits uniform(0, min(cap, base * 2**(n-1))) seconds (exponential backoff with
    full jitter), on top of what the endpoint asked for: threads that were all told the same number
    of seconds must not come back at once. The openai package's own retries would pass the rate
    limits by, and wait on after the endpoint was given up.

    A busy endpoint is asked again, however often, as long as it replies to anybody within
    `patience`: a limit by the minute is over after a minute. One that sends no reply in time is
    asked once more: what it was given up for is often worked on all the same. Such a failure opens
    the breaker only where nobody got a reply for `patience`: a short stop fails all in flight.

    Args:
        retries: after the first attempt; 0 asks once, whatever happens.
        breaker: does the waiting, and ends the retries when it opens; a reply or a refusal is a
            success to it, and a last attempt in `api_error` one failure.
        on_retry: told before each wait.
        patience: seconds without a reply to anybody that a busy or a slow endpoint has.
        quiet: seconds since the last reply to any request; without it the question's own waits.

    Raises:
        ProviderError: the last attempt's; `skipped` if the breaker was open before the first.
    """
    if breaker.is_open:
        raise ProviderError(breaker.reason, Status.SKIPPED)
    waited, slow = 0.0, 0
    for tried in itertools.count():
        try:
            result = call()
        except ProviderError as error:
            problem, asked = error, max(0.0, error.retry_after or 0.0)
        else:
            breaker.success()
            return result
        if problem.retry and asked > max(patience, SHORT):
            limit = f"over the {patience:.0f} s of {settings.JUDGE_PATIENCE.option}"
            told = f"the endpoint asks to wait {asked:.0f} s, {limit}: {problem}"
            problem = ProviderError(told, problem.status)
        slow += problem.load == SLOW
        wait = asked + uniform(0.0, min(cap, base * 2 ** min(tried, 20)))
        more = tried < retries and slow < 2
        alone = min(waited, quiet()) + wait  # without a reply to anybody
        more |= problem.load == BUSY and retries > 0 and alone <= patience
        if problem.retry and more and not breaker.is_open:
            waited += wait
            on_retry()
            if breaker.wait(wait):
                continue
        if problem.load == SLOW:
            if breaker.after and quiet() > patience:
                breaker.open(f"no reply for {patience:.0f} s, the last: {problem}")
        elif problem.status is Status.API_ERROR:
            breaker.failure(str(problem))
        elif problem.status is Status.REFUSED:
            breaker.success()
        raise problem
    raise AssertionError  # `count` has no end
