"""Limits of a run, with a clock that only the test moves; the threads' tests hold for any order."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lmms_eval_tasks.judges.limits import Breaker, Budget, Rate, call_with_retries
from lmms_eval_tasks.judges.verdict import ProviderError, Status
from tests.checks import table


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


# Rate


def test_a_burst_of_a_second_then_evenly_and_no_more_after_a_pause():
    clock = Clock()
    rate = Rate(600, clock)
    waits = [rate.reserve() for _ in range(30)]
    assert waits == pytest.approx([0.0] * 10 + [0.1 * turn for turn in range(1, 21)], abs=1e-9)
    clock.now += 3600
    with ThreadPoolExecutor(16) as pool:  # one schedule for all threads
        waits = sorted(pool.map(lambda _: rate.reserve(), range(2000)))
    assert waits == pytest.approx([max(0.0, 0.1 * (turn - 9)) for turn in range(2000)], abs=1e-6)
    assert [Rate(None).reserve() for _ in range(3)] == [0.0] * 3


# Breaker


def test_it_opens_after_failures_in_a_row_and_stays_open():
    breaker = Breaker(3)
    for reason in ("a", "b"):
        breaker.failure(reason)
    breaker.success()
    for reason in ("c", "d"):
        breaker.failure(reason)
    assert (breaker.is_open, breaker.reason) == (False, "")
    breaker.failure("503 overloaded\nmore text")
    breaker.success()
    breaker.open("interrupted")
    opened = "3 requests in a row failed, the last with: 503 overloaded"
    assert (breaker.is_open, breaker.reason) == (True, opened)
    off = Breaker(0)
    for _ in range(1000):
        off.failure("down")
    assert not off.is_open


# Budget


def pay(budget, most, calls=1, cost=None):
    """A call that may cost so much, and what was paid; why it was not made, or ''."""
    try:
        with budget.hold(1, most) as bill:
            bill.calls, bill.cost = calls, cost
    except ProviderError as error:
        return str(error) if error.status is Status.SKIPPED else repr(error)
    return ""


def test_what_was_paid_and_what_is_refused():
    budget = Budget(3, 5.0)
    assert [pay(budget, 2.0, cost=cost) for cost in (0.5, 1.5)] == ["", ""]
    assert (budget.calls, budget.cost) == (2, 2.0)
    assert pay(budget, 3.5) == "over the budget of $5"
    assert pay(budget, 3.0, cost=0.1) == ""  # exactly what was left
    assert pay(budget, 1.0) == "over the budget of 3 calls"
    for limits, words in (((0, None), "0 calls"), ((None, 0.0), "$0"), ((None, 0.004), "$0.004")):
        assert pay(Budget(*limits), 20.0) == f"over the budget of {words}"
    budget = Budget(1, 1.0)  # a failed call is not paid
    with pytest.raises(KeyError), budget.hold(1, 1.0):
        raise KeyError
    assert (budget.calls, budget.cost) == (0, 0.0)
    budget = Budget(None, 1.0)  # a reply without usage costs its upper bound
    pay(budget, 0.25)
    assert budget.cost == 0.25
    budget = Budget(None, 0.3)  # 0.1 + 0.1 + 0.1 > 0.3 for floats
    assert [bool(pay(budget, one, cost=one)) for one in (0.1, 0.1, 0.1, 1e-7)] == [0, 0, 0, 1]
    budget = Budget(10, None)  # an unknown cost is never 0
    for bound in (0.25, None, 0.25):
        pay(budget, bound, cost=bound)
    assert (budget.calls, budget.cost) == (3, None)


@table("paid", [0, 1])
def test_who_waits_for_what_others_hold(paid):
    budget = Budget(1, 1.0)
    with ThreadPoolExecutor(1) as pool:
        with budget.hold(1, 0.9) as bill:
            assert pool.submit(pay, budget, 1.1).result(60)  # nobody for what can never fit
            asked = pool.submit(pay, budget, 0.5)
            time.sleep(0.05)
            assert not asked.done()
            bill.calls = paid
        assert bool(asked.result(60)) is bool(paid)


# Retries, with a breaker that notes the waits instead of sleeping


class FakeBreaker(Breaker):
    """Opens in wait number `opens_at` if that is given."""

    def __init__(self, opens_at=0):
        super().__init__(0)
        self.waits, self.opens_at, self.events = [], opens_at, []

    def wait(self, seconds):
        self.waits.append(seconds)
        if len(self.waits) == self.opens_at:
            self.open("down")
        return not self.is_open

    def failure(self, reason):
        self.events.append(f"failure: {reason}")

    def success(self):
        self.events.append("success")


def busy(text="busy", after=None):
    return ProviderError(text, retry=True, retry_after=after)


def tried(breaker, *outcomes, **options):
    """How the retries of a call with these outcomes end: its reply or error, and the attempts."""
    left = list(outcomes)

    def call():
        outcome = left.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    told = {"retries": 5, "breaker": breaker, "uniform": max, **options}
    try:
        end = call_with_retries(call, **told)
    except BaseException as error:  # also the user's interrupt
        end = error
    return end, len(outcomes) - len(left)


ERRORS = [busy(str(number)) for number in range(9)]


@table(
    "outcomes, options, waits",
    [
        ([*ERRORS[:2], "reply"], {}, [0.5, 1.0]),
        (ERRORS, {"retries": 8}, [0.5, 1, 2, 4, 8, 16, 30, 30]),
        (ERRORS[:1], {"retries": 0}, []),
        # What the endpoint asks for is a minimum.
        ([busy(after=7.0), busy(after=0.0), busy(after=-5.0), "reply"], {}, [7.5, 1.0, 2.0]),
        ([busy(after=7.0), busy(after=0.0), "reply"], {"uniform": min}, [7.0, 0.0]),
    ],
)
def test_waits_double_up_to_the_cap_and_the_last_outcome_counts(outcomes, options, waits):
    breaker, last = FakeBreaker(), outcomes[-1]
    assert tried(breaker, *outcomes, **options) == (last, len(outcomes))
    assert breaker.waits == waits
    assert breaker.events == ["success" if last == "reply" else f"failure: {last}"]


@table(
    "error, events",
    [
        (ProviderError("no"), ["failure: no"]),
        (ProviderError("no", Status.REFUSED), ["success"]),  # the endpoint is alive
        (ProviderError("no", Status.SKIPPED), []),  # nobody was asked
        (KeyboardInterrupt(), []),
    ],
)
@table("before", [0, 1])
def test_what_may_not_succeed_later_is_not_tried_again(error, events, before):
    breaker = FakeBreaker()
    assert tried(breaker, *[busy()] * before, error, "reply") == (error, before + 1)
    assert breaker.events == events


def test_what_ends_the_retries():
    error, attempts = tried(FakeBreaker(), busy(), busy("quota", after=3600.0), "reply")
    assert str(error) == "the endpoint asks to wait 3600 s, over 300 s: quota"
    assert (error.status, attempts) == (Status.API_ERROR, 2)
    breaker = FakeBreaker(opens_at=2)  # during a wait
    assert tried(breaker, *ERRORS) == (ERRORS[1], 2)
    error, attempts = tried(breaker, "reply")  # before an attempt
    assert (error.status, attempts, str(error)) == (Status.SKIPPED, 0, "down")
