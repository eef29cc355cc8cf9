"""Retries, with a breaker that notes the waits instead of sleeping."""

import sys

import pytest

from lmms_eval_tasks.judges.exchange import ProviderError
from lmms_eval_tasks.judges.limits import Breaker
from lmms_eval_tasks.judges.retry import call_with_retries
from lmms_eval_tasks.judges.verdict import Status


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


def test_the_first_reply_needs_no_tenacity(monkeypatch):
    monkeypatch.setitem(sys.modules, "tenacity", None)  # an import would fail
    endpoint, breaker = Endpoint("reply"), FakeBreaker()
    assert run(endpoint, breaker) == "reply"
    assert (endpoint.calls, breaker.waits, breaker.events) == (1, [], ["success"])


def test_retries_until_it_works():
    endpoint, breaker, noted = Endpoint(busy("a"), busy("b"), "reply"), FakeBreaker(), []
    assert run(endpoint, breaker, noted=noted) == "reply"
    assert endpoint.calls == 3
    assert noted == [("a", 0.5), ("b", 1.0)]
    assert (breaker.waits, breaker.events) == ([0.5, 1.0], ["success"])


def test_waits_double_up_to_the_cap_and_the_last_error_is_raised():
    errors = [busy(str(number)) for number in range(9)]
    endpoint, breaker = Endpoint(*errors), FakeBreaker()
    with pytest.raises(ProviderError) as caught:
        run(endpoint, breaker, retries=8)
    assert caught.value is errors[8]
    assert endpoint.calls == 9
    assert breaker.waits == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert breaker.events == ["failure: 8"]


def test_base_and_cap_are_parameters():
    breaker = FakeBreaker()
    with pytest.raises(ProviderError):
        run(Endpoint(busy()), breaker, retries=4, base=2, cap=7)
    assert breaker.waits == [2, 4, 7, 7]


def test_full_jitter_comes_from_the_given_source():
    asked, breaker = [], FakeBreaker()

    def uniform(low, high):
        asked.append((low, high))
        return 0.25 * high

    with pytest.raises(ProviderError):
        run(Endpoint(busy()), breaker, retries=3, uniform=uniform)
    assert asked[:3] == [(0, 0.5), (0, 1), (0, 2)]  # tenacity also asks after the last attempt
    assert breaker.waits == [0.125, 0.25, 0.5]


def test_retry_after_is_a_minimum():
    outcomes = (busy(after=7.0), busy(after=0.0), busy(after=-5.0), "reply")
    breaker = FakeBreaker()
    assert run(Endpoint(*outcomes), breaker) == "reply"
    assert breaker.waits == [7.5, 1.0, 2.0]
    breaker = FakeBreaker()
    assert run(Endpoint(*outcomes), breaker, uniform=lambda low, high: low) == "reply"
    assert breaker.waits == [7.0, 0.0, 0.0]


@pytest.mark.parametrize("before", [0, 1])
def test_a_longer_retry_after_ends_the_retries_with_a_reason(before):
    endpoint, breaker = Endpoint(*[busy()] * before, busy("quota", after=3600.0)), FakeBreaker()
    with pytest.raises(ProviderError, match=r"wait 3600 s.*300 s.*: quota") as caught:
        run(endpoint, breaker)
    assert (caught.value.status, caught.value.retry_after) == (Status.API_ERROR, 3600.0)
    assert (endpoint.calls, len(breaker.waits)) == (before + 1, before)
    assert len(breaker.events) == 1


def test_the_longest_retry_after_is_a_parameter():
    breaker = FakeBreaker()
    assert run(Endpoint(busy(after=3600.0), "reply"), breaker, longest=3600) == "reply"
    assert breaker.waits == [3600.5]


@pytest.mark.parametrize(
    ("status", "events"),
    [
        (Status.API_ERROR, ["failure: no"]),
        (Status.REFUSED, ["success"]),  # the endpoint is alive
        (Status.SKIPPED, []),  # nobody was asked
    ],
)
@pytest.mark.parametrize("before", [0, 1])
def test_what_may_not_succeed_later_is_not_tried_again(status, events, before):
    error = ProviderError("no", status=status)
    endpoint, breaker = Endpoint(*[busy()] * before, error), FakeBreaker()
    with pytest.raises(ProviderError) as caught:
        run(endpoint, breaker)
    assert caught.value is error
    assert (endpoint.calls, breaker.events) == (before + 1, events)


def test_no_retries():
    endpoint, breaker = Endpoint(busy()), FakeBreaker()
    with pytest.raises(ProviderError):
        run(endpoint, breaker, retries=0)
    assert (endpoint.calls, breaker.waits, breaker.events) == (1, [], ["failure: busy"])


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("error", [KeyError("bug"), KeyboardInterrupt()])
def test_other_exceptions_pass_through(error, before):
    endpoint, breaker = Endpoint(*[busy()] * before, error), FakeBreaker(after=1)
    with pytest.raises(type(error)) as caught:
        run(endpoint, breaker)
    assert caught.value is error
    assert (endpoint.calls, breaker.events) == (before + 1, [])


def test_a_breaker_that_opens_during_a_wait_ends_the_retries():
    errors = [busy("1"), busy("2"), busy("3")]
    endpoint, breaker = Endpoint(*errors), FakeBreaker(opens_at=2)
    with pytest.raises(ProviderError) as caught:
        run(endpoint, breaker)
    assert caught.value is errors[1]
    assert endpoint.calls == 2
    assert breaker.reason == "down"


def test_a_breaker_that_opens_during_an_attempt_ends_the_retries_without_a_wait():
    breaker, noted = FakeBreaker(), []

    def call():
        breaker.open("down")
        raise busy()

    with pytest.raises(ProviderError, match="busy"):
        run(call, breaker, noted=noted)
    assert (breaker.waits, noted) == ([], [])


def test_an_open_breaker_asks_nobody():
    endpoint, breaker = Endpoint("reply"), FakeBreaker()
    breaker.open("10 requests in a row failed")
    with pytest.raises(ProviderError, match="10 requests") as caught:
        run(endpoint, breaker)
    assert caught.value.status is Status.SKIPPED
    assert endpoint.calls == 0


def test_a_dead_endpoint_is_given_up_after_its_last_retries():
    endpoint, breaker = Endpoint(busy("connection refused")), FakeBreaker(after=3)
    for _ in range(5):
        with pytest.raises(ProviderError):
            run(endpoint, breaker, retries=2)
    assert endpoint.calls == 3 * 3
    assert breaker.reason == "3 requests in a row failed, the last with: connection refused"
