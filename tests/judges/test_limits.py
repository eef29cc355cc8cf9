"""Limits of a run, with a clock that only the test moves; the threads' tests hold for any order."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lmms_eval_tasks.judges.limits import (
    Breaker,
    Budget,
    Flight,
    Rate,
)
from lmms_eval_tasks.judges.providers.endpoint import call_with_retries
from lmms_eval_tasks.judges.providers.exchange import BUSY, SLOW, ProviderError
from lmms_eval_tasks.judges.providers.retry_after import asked_wait
from lmms_eval_tasks.judges.verdict import Status
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
    # Eight processes share one request a minute: each begins a minute after the one before.
    assert [Rate(1 / 8, clock, after=60.0 * rank).reserve() for rank in (0, 3)] == [0.0, 180.0]
    assert waits == pytest.approx([max(0.0, 0.1 * (turn - 9)) for turn in range(2000)], abs=1e-6)
    assert [Rate(None).reserve() for _ in range(3)] == [0.0] * 3


def test_what_one_request_is_told_to_wait_all_wait():
    for limit in (None, 600):
        clock = Clock()
        rate = Rate(limit, clock)
        rate.pause(7.0)
        rate.pause(3.0)
        assert rate.reserve() == 7.0
        clock.now += 8
        assert rate.reserve() == 0.0


# Flight


def grown(flight, rounds, load=None):
    """How many may be in flight after each round of as many requests as may go out together."""
    found = []
    for _ in range(rounds):
        together, done = threading.Barrier(flight.allowed), []

        def one(together=together, done=done):
            try:
                with flight.turn(Breaker(0)):
                    together.wait(30)
                    done.append(flight.now)
                    if load:
                        raise ProviderError("no", load=load)
            except ProviderError:
                pass

        with ThreadPoolExecutor(together.parties) as pool:
            list(pool.map(lambda _, one=one: one(), range(together.parties)))
        assert len(done) == together.parties
        found.append(flight.allowed)
    return found


def test_in_flight_doubles_and_halves_once_a_round_and_grows_by_one():
    flight = Flight(64)
    assert grown(flight, 5) == [8, 16, 32, 64, 64]
    assert grown(flight, 1, SLOW) == [32]
    assert grown(flight, 4, BUSY) == [16, 8, 4, 2]
    assert grown(flight, 3, "") == [3, 4, 5]
    assert grown(flight, 5, SLOW) == [2, 1, 1, 1, 1]
    assert (flight.now, Flight(2).allowed, Flight(64, 1).allowed) == (0, 2, 1)


def test_a_reply_that_waited_in_a_queue_lets_none_out():
    flight = Flight(64, timeout=0.25)

    def one(seconds):
        with flight.turn(Breaker(0)):
            time.sleep(seconds)
        return flight.allowed

    assert [one(0.01), one(0.01)] == [5, 6]
    assert [one(0.15), one(0.01), one(0.15)] == [6, 6, 6]  # and ends the doubling
    assert flight.quiet < 5


def test_an_error_of_another_kind_neither_halves_nor_grows():
    flight = Flight(64)
    with pytest.raises(ProviderError), flight.turn(Breaker(0)):
        raise ProviderError("401")
    assert flight.allowed == 4


def test_who_waits_for_room_is_let_go_when_the_endpoint_is_given_up():
    flight, breaker = Flight(1), Breaker(0)

    def wait():
        with pytest.raises(ProviderError, match="interrupted") as caught, flight.turn(breaker):
            raise AssertionError
        return caught.value.status

    with ThreadPoolExecutor(1) as pool, flight.turn(breaker):
        waiting = pool.submit(wait)
        time.sleep(0.05)
        breaker.open("interrupted")
        assert waiting.result(5) is Status.SKIPPED


# How long an endpoint asks to wait

NOW = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT


@table("headers, text, seconds")
def test_how_long_an_endpoint_asks_to_wait(headers, text, seconds):
    found = asked_wait(headers, text, NOW)
    assert found == (None if seconds is None else pytest.approx(seconds, abs=1e-6))


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


def test_a_bill_above_its_bound_lifts_the_bounds_after_it():
    budget = Budget(None, 1.0)
    assert pay(budget, 0.01, cost=0.3) == ""  # 30 times its bound
    assert budget.excess == {"": pytest.approx(30)}
    with budget.hold(1, 0.5, "another judge") as bill:  # its bounds are its own
        bill.cost = 0.0
    assert [pay(budget, 0.01, cost=0.3), pay(budget, 0.01, cost=0.05)] == ["", ""]
    assert pay(budget, 0.02, cost=0.3) == "over the budget of $1"  # it may cost $0.60
    assert pay(budget, 0.01, cost=0.3) == ""
    assert pay(budget, 0.01, cost=0.3) == "over the budget of $1"
    assert budget.cost == pytest.approx(0.95)


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


# What an attempt ends with, by its first word; behind it the seconds that the endpoint asks for.
ENDS = {
    "failed": {"retry": True},
    "full": {"retry": True, "load": BUSY},
    "late": {"retry": True, "load": SLOW},
    "wrong": {},
    "filtered": {"status": Status.REFUSED},
    "skipped": {"status": Status.SKIPPED},
}


def tried(breaker, *outcomes, **options):
    """How the retries of a call with these outcomes end: its reply or error, and the attempts."""
    left = list(outcomes)

    def call():
        outcome = left.pop(0)
        if outcome == "interrupt":
            raise KeyboardInterrupt
        word, _, asked = outcome.partition(" ")
        if word in ENDS:
            raise ProviderError(outcome, retry_after=float(asked) if asked else None, **ENDS[word])
        return outcome

    told = {"retries": 5, "breaker": breaker, "uniform": max, **options}
    try:
        end = call_with_retries(call, **told)
    except BaseException as error:  # also the user's interrupt
        end = error
    return end, len(outcomes) - len(left)


@table("outcomes, options, attempts, waits, events")
def test_attempts_and_the_waits_between_them(outcomes, options, attempts, waits, events):
    """The last outcome counts; the breaker hears of it."""
    breaker, every = FakeBreaker(), [one for one, times in outcomes for _ in range(times)]
    end, made = tried(breaker, *every, **options)
    assert (made, breaker.waits, breaker.events) == (attempts, waits, events)
    assert str(end) == ("" if every[made - 1] == "interrupt" else every[made - 1])


def test_what_an_endpoint_asks_for_is_a_minimum_and_backoff_may_be_none():
    breaker = FakeBreaker()
    assert tried(breaker, "failed 7", "failed 0", "reply", uniform=min) == ("reply", 3)
    assert breaker.waits == [7.0, 0.0]


def test_patience_is_with_an_endpoint_that_replies_to_nobody():
    """64 threads at ten a minute: the last is served after six minutes, and all get a reply."""
    breaker = FakeBreaker()
    assert tried(breaker, *["full"] * 20, "reply", quiet=lambda: 5.0) == ("reply", 21)
    assert sum(breaker.waits) > 300


def test_a_stop_opens_the_breaker_only_if_it_lasts():
    for seconds, is_open in ((120.0, False), (301.0, True)):
        breaker = Breaker(1)
        tried(breaker, "late", "late", quiet=lambda: seconds, base=0.0)  # noqa: B023
        assert breaker.is_open is is_open


def test_what_ends_the_retries():
    error, attempts = tried(FakeBreaker(), "failed", "failed 3600", "reply")
    assert str(error) == (
        "the endpoint asks to wait 3600 s, over the 300 s of --judge-patience: failed 3600"
    )
    assert (error.status, attempts) == (Status.API_ERROR, 2)
    breaker = FakeBreaker(opens_at=2)  # during a wait
    assert tried(breaker, *["failed"] * 9)[1] == 2
    error, attempts = tried(breaker, "reply")  # before an attempt
    assert (error.status, attempts, str(error)) == (Status.SKIPPED, 0, "down")
