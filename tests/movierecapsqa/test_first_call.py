"""The gate before calls that begin with the same bytes."""

from __future__ import annotations

import os
import threading
import time

import pytest

from lmms_eval_tasks.judges import run
from lmms_eval_tasks.movierecapsqa.first_call import WARM, Gate, gate
from lmms_eval_tasks.settings import JudgeLimits


def entered(one: Gate, *, sent: bool = True) -> bool:
    with one.turn() as turn:
        turn.sent = sent
        return turn.first


def test_the_first_one_is_alone_and_all_others_wait_for_it() -> None:
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


def test_a_failure_opens_it() -> None:
    one = Gate()
    with pytest.raises(KeyError), one.turn():
        raise KeyError
    assert not entered(one)


def test_a_call_that_sent_nothing_leaves_the_next_one_alone() -> None:
    one = Gate()
    assert entered(one, sent=False)
    assert entered(one)
    assert not entered(one)
    assert not entered(one, sent=False)


def test_after_a_long_pause_one_goes_alone_again() -> None:
    now = [1000.0]
    one = Gate(lambda: now[0])
    assert entered(one)
    now[0] += WARM - 1
    assert not entered(one)  # which keeps the provider's copy alive
    now[0] += WARM - 1
    assert not entered(one)
    now[0] += WARM
    assert entered(one)


def test_gates_are_a_runs_own() -> None:
    first, second = run.Run(JudgeLimits()), run.Run(JudgeLimits())
    with run.use(first):
        mine = gate("segment")
        assert gate("segment") is mine
        assert gate("another") is not mine
    with run.use(second):
        assert gate("segment") is not mine


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_child_does_not_wait_for_a_thread_of_its_parent() -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with gate("segment").turn():
            held.set()
            done.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(10)
    try:
        child = os.fork()
        if child == 0:
            with gate("segment").turn() as turn:
                os._exit(0 if turn.first else 1)
        deadline = time.monotonic() + 10
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(child, 9)
                os.waitpid(child, 0)
                pytest.fail("the child waits at its parent's gate")
            time.sleep(0.001)
        assert ended[1] == 0
    finally:
        done.set()
        thread.join()
