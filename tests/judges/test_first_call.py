"""The gate before calls that begin with the same bytes."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from forking import in_child

from lmms_eval_tasks.judges import Verdict, run
from lmms_eval_tasks.judges.asking import WARM, Gate, ahead
from lmms_eval_tasks.judges.replay import NoJudge
from lmms_eval_tasks.judges.verdict import NONE, JudgeConfig
from lmms_eval_tasks.settings import JudgeLimits


def entered(one: Gate, *, sent: bool = True) -> bool:
    with one.turn() as turn:
        turn.sent = sent
        return turn.first


def test_the_first_one_is_alone_and_all_others_wait_for_it():
    one, inside, most = Gate(), [0], [0]
    firsts: list[bool] = []
    together = threading.Barrier(5)

    def call() -> None:
        with one.turn() as turn:
            inside[0] += 1
            if turn.first:
                time.sleep(0.1)
                most.append(inside[0])
            else:
                together.wait(10)  # all five at once
            firsts.append(turn.first)
            inside[0] -= 1

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert firsts == [True] + [False] * 5
    assert max(most) == 1


def test_after_a_long_pause_one_goes_alone_again():
    now = [1000.0]
    one = Gate(lambda: now[0])
    assert entered(one, sent=False)  # what sent nothing leaves the next one alone
    with pytest.raises(KeyError), one.turn() as turn:
        raise KeyError  # a failure opens it
    assert turn.first
    assert not entered(one)
    now[0] += WARM - 1
    assert not entered(one)  # which keeps the provider's copy alive
    now[0] += WARM - 1
    assert not entered(one)
    now[0] += WARM
    assert entered(one)


JUDGE = NoJudge(JudgeConfig(NONE))
FAILED = Verdict(None, "api_error")


def alone(prefix: str) -> bool:
    """Whether a call goes ahead of another one that begins meanwhile; leaves a gate open."""
    begun = threading.Event()

    def second() -> Verdict:
        begun.set()
        return FAILED

    thread = threading.Thread(target=lambda: ahead(prefix)(JUDGE, second))
    found = []

    def first() -> Verdict:
        thread.start()
        found.append(not begun.wait(0.2))
        return FAILED

    ahead(prefix)(JUDGE, first)
    thread.join(10)
    return found[0]


def test_gates_are_of_a_run_and_a_prefix():
    first, second = run.Run(JudgeLimits()), run.Run(JudgeLimits())
    for current in (first, second):
        with run.use(current):
            assert alone("segment")
            assert not alone("segment")
            assert alone("another")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_does_not_wait_for_a_thread_of_its_parent():
    held, done = threading.Event(), threading.Event()

    def wait() -> Verdict:
        held.set()
        done.wait(20)
        return FAILED

    def hold() -> None:
        ahead("held")(JUDGE, wait)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(hold)
        assert held.wait(10)
        said = in_child(lambda: ahead("held")(JUDGE, lambda: FAILED).status)
        done.set()
    assert said == "api_error"
