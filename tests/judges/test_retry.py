"""Retries, with a breaker that notes the waits instead of sleeping."""

import pytest

from lmms_eval_tasks.judges.limits import Breaker, call_with_retries
from lmms_eval_tasks.judges.verdict import ProviderError, Status
from tests.checks import table


class FakeBreaker(Breaker):
    """Opens in wait number `opens_at` if that is given."""

    def __init__(self, after=0, opens_at=0):
        super().__init__(after)
        self.waits, self.opens_at, self.events = [], opens_at, []

    def wait(self, seconds):
        self.waits.append(seconds)
        if len(self.waits) == self.opens_at:
            self.open("down")
        return not self.is_open

    def failure(self, reason):
        self.events.append(f"failure: {reason}")
        super().failure(reason)

    def success(self):
        self.events.append("success")
        super().success()


class Endpoint:
    """Raises or returns what it was given, one each call; the last for ever."""

    def __init__(self, *outcomes):
        self.outcomes, self.calls = outcomes, 0

    def __call__(self):
        outcome = self.outcomes[min(self.calls, len(self.outcomes) - 1)]
        self.calls += 1
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome


def busy(text="busy", after=None):
    return ProviderError(text, retry=True, retry_after=after)


def run(endpoint, breaker, *, retries=5, noted=None, uniform=lambda low, high: high, **options):
    noted = [] if noted is None else noted
    return call_with_retries(
        endpoint,
        retries=retries,
        breaker=breaker,
        on_retry=lambda error, seconds: noted.append((str(error), seconds)),
        uniform=uniform,
        **options,
    )


def test_retries_until_it_works():
    endpoint, breaker, noted = Endpoint(busy("a"), busy("b"), "reply"), FakeBreaker(), []
    assert run(endpoint, breaker, noted=noted) == "reply"
    assert endpoint.calls == 3
    assert noted == [("a", 0.5), ("b", 1.0)]
    assert (breaker.waits, breaker.events) == ([0.5, 1.0], ["success"])


def test_waits_double_up_to_the_cap_and_the_last_error_is_raised():
    for retries, options, waits in (
        (8, {}, [0.5, 1, 2, 4, 8, 16, 30, 30]),
        (4, {"base": 2, "cap": 7}, [2, 4, 7, 7]),
        (0, {}, []),
    ):
        errors = [busy(str(number)) for number in range(retries + 1)]
        endpoint, breaker = Endpoint(*errors), FakeBreaker()
        with pytest.raises(ProviderError) as caught:
            run(endpoint, breaker, retries=retries, **options)
        assert caught.value is errors[-1]
        assert (endpoint.calls, breaker.waits) == (retries + 1, waits)
        assert breaker.events == [f"failure: {retries}"]


def test_retry_after_is_a_minimum():
    outcomes = (busy(after=7.0), busy(after=0.0), busy(after=-5.0), "reply")
    for uniform, waits in ((max, [7.5, 1.0, 2.0]), (min, [7.0, 0.0, 0.0])):
        breaker = FakeBreaker()
        assert run(Endpoint(*outcomes), breaker, uniform=uniform) == "reply"
        assert breaker.waits == waits
    breaker = FakeBreaker()
    assert run(Endpoint(busy(after=3600.0), "reply"), breaker, longest=3600) == "reply"
    assert breaker.waits == [3600.5]


@table("before", [0, 1])
def test_a_longer_retry_after_ends_the_retries_with_a_reason(before):
    endpoint, breaker = Endpoint(*[busy()] * before, busy("quota", after=3600.0)), FakeBreaker()
    with pytest.raises(ProviderError, match=r"wait 3600 s.*300 s.*: quota") as caught:
        run(endpoint, breaker)
    assert (caught.value.status, caught.value.retry_after) == (Status.API_ERROR, 3600.0)
    assert (endpoint.calls, len(breaker.waits)) == (before + 1, before)
    assert len(breaker.events) == 1


ENDS = [
    (ProviderError("no", status=Status.API_ERROR), ["failure: no"]),
    (ProviderError("no", status=Status.REFUSED), ["success"]),  # the endpoint is alive
    (ProviderError("no", status=Status.SKIPPED), []),  # nobody was asked
    (KeyError("bug"), []),
    (KeyboardInterrupt(), []),
]


@table("error, events", ENDS)
@table("before", [0, 1])
def test_what_may_not_succeed_later_is_not_tried_again(error, events, before):
    endpoint, breaker = Endpoint(*[busy()] * before, error), FakeBreaker(after=1)
    with pytest.raises(type(error)) as caught:
        run(endpoint, breaker)
    assert caught.value is error
    assert (endpoint.calls, breaker.events) == (before + 1, events)


def test_a_breaker_that_opens_ends_the_retries():
    errors, noted = [busy("1"), busy("2"), busy("3")], []
    endpoint, breaker = Endpoint(*errors), FakeBreaker(opens_at=2)  # during a wait
    with pytest.raises(ProviderError) as caught:
        run(endpoint, breaker)
    assert caught.value is errors[1]
    assert (endpoint.calls, breaker.reason) == (2, "down")
    breaker = FakeBreaker()

    def call():
        breaker.open("10 requests in a row failed")
        raise busy()

    with pytest.raises(ProviderError, match="busy"):  # during an attempt
        run(call, breaker, noted=noted)
    assert (breaker.waits, noted) == ([], [])
    endpoint = Endpoint("reply")
    with pytest.raises(ProviderError, match="10 requests") as caught:  # before it
        run(endpoint, breaker)
    assert (caught.value.status, endpoint.calls) == (Status.SKIPPED, 0)
