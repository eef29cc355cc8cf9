"""The traffic of one judge: when it is asked, when again, and what its load means for the user."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from lmms_eval_tasks import settings
from lmms_eval_tasks.judges.limits import Breaker, Flight, Rate
from lmms_eval_tasks.judges.prices import Price
from lmms_eval_tasks.judges.providers.exchange import BUSY, SLOW, ProviderError
from lmms_eval_tasks.judges.verdict import Status
from lmms_eval_tasks.notify import say

T = TypeVar("T")

SHORT = 30.0  # seconds that an endpoint may always ask for
OTHER_FILES = 256  # descriptors of a process that are not for requests: videos, caches, the model's


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
    of seconds must not come back at once. Nothing below this retries: that would pass the limits
    by, and wait on after the endpoint was given up.

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


@dataclass
class Endpoint:
    """The traffic of one judge in this process."""

    label: str  # of the judge
    flight: Flight
    requests: Rate
    breaker: Breaker
    price: Price | None  # None: unknown
    patience: float  # seconds (call_with_retries)
    told: dict[str, object] = field(default_factory=dict)  # what was said of it, once

    def ask(self, call: Callable[[], T], retries: int, on_retry: Callable[[], None]) -> T:
        """The result of a request as soon as there is room for it, as in `call_with_retries`."""
        return call_with_retries(
            lambda: self._send(call),
            retries=retries,
            breaker=self.breaker,
            on_retry=on_retry,
            patience=self.patience,
            quiet=lambda: self.flight.quiet,
        )

    def _send(self, call: Callable[[], T]) -> T:
        """One attempt; what it tells of the load holds for all."""
        with self.flight.turn(self.breaker):
            wait = self.requests.reserve()
            if wait and not self.breaker.wait(wait):
                raise ProviderError(self.breaker.reason, status=Status.SKIPPED)
            try:
                return call()
            except ProviderError as error:
                if error.load == BUSY and (error.retry_after or 0) <= self.patience:
                    self.requests.pause(error.retry_after or 0.0)
                self._tell(error)
                raise

    def _tell(self, error: ProviderError) -> None:
        """Tell the user what the first error of a kind means, who would see a run stand still."""
        names = (settings.JUDGE_TIMEOUT, settings.JUDGE_CONCURRENCY, settings.JUDGE_PATIENCE)
        longer, fewer, patience = (one.option for one in names)
        if error.load == SLOW:
            told = f"({error}): requests are sent again, fewer at a time; "
            told += f"to wait longer: {longer} SECONDS; to send fewer: {fewer} N"
            self.say_once(SLOW, f"does not reply in time {told}")
        elif error.load == BUSY:
            wait = f", asks to wait {error.retry_after:.0f} s" if error.retry_after else ""
            self.say_once(
                BUSY, f"is busy{wait} ({error}): fewer requests are sent at a time ({patience})"
            )

    def say_once(self, what: str, line: str) -> None:
        """Say something of this judge, the first time."""
        mine = object()
        if self.told.setdefault(what, mine) is mine:  # of several threads one says it
            say(f"the judge {self.label} {line}")


def room(wanted: int, others: int) -> int:
    """Requests that may be in flight to one endpoint beside `others` with as many: each takes a
    file descriptor. Fewer than `wanted` are said.
    """
    taken = OTHER_FILES + wanted * others
    allowed = _allow_files(taken + wanted)
    if (free := max(1, allowed - taken)) < wanted:
        say(
            f"{free} requests at a time, not {wanted}, because a process may open only {allowed:,} "
            "files (ulimit -n)"
        )
    return min(free, wanted)


def _allow_files(wanted: int) -> int:
    """Return how many files this process may open, its limit raised to `wanted` if it may be."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    return wanted if soft == resource.RLIM_INFINITY else soft
