"""Trying again what an endpoint may answer later."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from lmms_eval_tasks.judges.exchange import ProviderError
from lmms_eval_tasks.judges.verdict import Status

if TYPE_CHECKING:
    from tenacity import RetryCallState

    from lmms_eval_tasks.judges.limits import Breaker

T = TypeVar("T")


def call_with_retries(
    call: Callable[[], T],
    *,
    retries: int,
    breaker: Breaker,
    on_retry: Callable[[ProviderError, float], None],
    base: float = 0.5,
    cap: float = 30.0,
    longest: float = 300.0,
    uniform: Callable[[float, float], float] = random.uniform,
) -> T:
    """The result of the first attempt that succeeds; tells the breaker how it ended.

    Before retry n it waits uniform(0, min(cap, base * 2**(n-1))) seconds (exponential backoff with
    full jitter), on top of what the endpoint asked for: threads that were all told the same number
    of seconds must not come back at once. The breaker counts a reply or a refusal as a success,
    and one failure when the last attempt ends in `api_error`.

    Args:
        call: one attempt; only a ProviderError with `retry` is tried again.
        retries: attempts after the first.
        breaker: does the waiting; when it opens, the retries end.
        on_retry: told the error and the seconds before each wait.
        base: seconds, upper end of the first wait.
        cap: seconds, upper end of any wait that the endpoint did not ask for.
        longest: seconds that an endpoint may ask for; more ends the retries, since a run that
            stands still for an hour looks like one that hangs.
        uniform: source of the jitter.

    Raises:
        ProviderError: the last attempt's; `skipped` with the breaker's reason if it was open
            before the first.
    """
    if breaker.is_open:
        raise ProviderError(breaker.reason, status=Status.SKIPPED)

    def attempt() -> T:
        try:
            return call()
        except ProviderError as error:
            if not error.retry or (error.retry_after or 0.0) <= longest:
                raise
            raise ProviderError(
                f"the endpoint asks to wait {error.retry_after:.0f} s, longer than the "
                f"{longest:.0f} s that are waited at most: {error}",
                status=error.status,
                retry_after=error.retry_after,
            ) from error

    try:
        try:
            result = attempt()
        except ProviderError as error:
            if not error.retry or retries < 1:
                raise
            result = _again(
                attempt,
                error,
                retries=retries,
                breaker=breaker,
                on_retry=on_retry,
                base=base,
                cap=cap,
                uniform=uniform,
            )
    except ProviderError as error:
        if error.status is Status.API_ERROR:
            breaker.failure(str(error))
        elif error.status is Status.REFUSED:
            breaker.success()
        raise
    breaker.success()
    return result


def _again(
    attempt: Callable[[], T],
    first: ProviderError,
    *,
    retries: int,
    breaker: Breaker,
    on_retry: Callable[[ProviderError, float], None],
    base: float,
    cap: float,
    uniform: Callable[[float, float], float],
) -> T:
    """The retries. Only those go through tenacity: it costs more than all else on a call's way."""
    import tenacity

    unseen = [first]  # replayed to tenacity as its first attempt
    ceiling = tenacity.wait_exponential(multiplier=base, max=cap)

    def replayed() -> T:
        if unseen:
            raise unseen.pop()
        return attempt()

    def seconds(state: RetryCallState) -> float:
        return max(0.0, _error(state).retry_after or 0.0) + uniform(0.0, ceiling(state))

    def pause(state: RetryCallState) -> None:
        error = _error(state)
        if breaker.is_open:
            raise error
        on_retry(error, state.upcoming_sleep)
        if not breaker.wait(state.upcoming_sleep):
            raise error

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(lambda e: isinstance(e, ProviderError) and e.retry),
        stop=tenacity.stop_after_attempt(retries + 1),
        wait=seconds,
        before_sleep=pause,  # unlike `sleep` it knows the error, which an opened breaker raises
        sleep=lambda _: None,
        reraise=True,
    )(replayed)


def _error(state: RetryCallState) -> ProviderError:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, ProviderError)  # tenacity waits only for what `retry` above let pass
    return error
