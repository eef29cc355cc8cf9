"""The traffic of one judge: requests, retries, and messages about an endpoint's load."""

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
from lmms_eval_tasks.notify import notify

T = TypeVar("T")

SHORT = 30.0  # a wait in seconds that is accepted whatever the user's patience
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
    """Return the result of the first successful attempt; only errors with `retry` are retried.

    Before retry n it waits uniform(0, min(cap, base * 2**(n-1))) seconds (exponential backoff with
    full jitter), in addition to the wait that the endpoint requested: threads with the same
    requested wait must not come back at once. No lower layer retries: it would bypass the limits,
    and wait on after the endpoint was given up.

    A busy endpoint is retried, without limit, as long as it replies to any request within
    `patience`: a limit by the minute ends after a minute. A request without a reply in time is sent
    once more: an endpoint often goes on with work that was given up. Such a failure gives the
    endpoint up only if no request got a reply for `patience`: a short stop fails all requests in
    flight.

    Args:
        call: one attempt.
        retries: retries after the first attempt; 0: a single attempt.
        breaker: waits, and ends the retries once the endpoint is given up. A reply or a refusal
            counts as a success, a last attempt with `api_error` as a failure.
        on_retry: called before each wait.
        patience: seconds that a busy or slow endpoint may be without a reply to any request.
        quiet: returns the seconds since the last reply to any request; by default only this
            request's waits count.
        base, cap: seconds of the backoff.
        uniform: returns a random number between two numbers.

    Raises:
        ProviderError: the last attempt's; `skipped` if the endpoint was given up before the first.
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
        alone = min(waited, quiet()) + wait  # seconds without a reply to any request
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
    raise AssertionError  # `count` never ends


@dataclass
class Endpoint:
    """The traffic of one judge in this process."""

    label: str  # the judge's label
    flight: Flight
    requests: Rate
    breaker: Breaker
    price: Price | None  # None: unknown
    patience: float  # seconds (call_with_retries)
    announced: dict[str, object] = field(default_factory=dict)  # printed messages, by kind

    def ask(self, call: Callable[[], T], retries: int, on_retry: Callable[[], None]) -> T:
        """Return the result of a request once there is room for it; see `call_with_retries`."""
        return call_with_retries(
            lambda: self._send(call),
            retries=retries,
            breaker=self.breaker,
            on_retry=on_retry,
            patience=self.patience,
            quiet=lambda: self.flight.quiet,
        )

    def _send(self, call: Callable[[], T]) -> T:
        """Make one attempt; its information on the endpoint's load holds for all requests."""
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
        """Tell the user what the first error of a kind means: the run may seem to stand still."""
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

    def say_once(self, subject: str, line: str) -> None:
        """Print a message about this judge, only the first time."""
        mine = object()
        if self.announced.setdefault(subject, mine) is mine:  # one thread of several prints it
            notify(f"the judge {self.label} {line}")


def room(concurrency: int, others: int) -> int:
    """Return how many requests may be in flight to one endpoint, if `others` have as many.

    Each request takes a file descriptor. If the result is below `concurrency`, a message says so.
    """
    taken = OTHER_FILES + concurrency * others
    allowed = _allow_files(taken + concurrency)
    if (free := max(1, allowed - taken)) < concurrency:
        notify(
            f"{free} requests at a time, not {concurrency}, because a process may open only "
            f"{allowed:,} files (ulimit -n)"
        )
    return min(free, concurrency)


def _allow_files(n_files: int) -> int:
    """Return how many files this process may open; raise its limit to `n_files` if possible."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return n_files
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < n_files:
        most = n_files if hard == resource.RLIM_INFINITY else min(n_files, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    return n_files if soft == resource.RLIM_INFINITY else soft
