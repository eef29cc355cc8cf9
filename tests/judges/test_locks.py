"""No lock, reservation or gate is inherited held: a forked child would wait for ever."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from forking import in_child

from lmms_eval_tasks.judges import Verdict, limits, openai_provider, run
from lmms_eval_tasks.judges.asking import ahead
from lmms_eval_tasks.judges.limits import Breaker, Budget, Rate
from lmms_eval_tasks.judges.replay import NoJudge
from lmms_eval_tasks.judges.verdict import NONE, JudgeConfig
from tests.checks import table

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@table("lock", [run._LOCK, limits._LOCK, openai_provider._LOCK, run._lock])
def test_a_lock_that_another_thread_holds_is_free_after_a_fork(lock):
    held = threading.Event()

    def hold():
        with lock:
            held.set()
            time.sleep(0.05)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert in_child(lambda: lock.acquire(timeout=5)) == "True"
    thread.join()
    assert lock.acquire(timeout=5)
    lock.release()


def test_a_fork_leaves_neither_a_lock_nor_a_reservation_behind():
    rate, breaker, budget, taken = Rate(600), Breaker(1), Budget(1, None), threading.Event()

    def hold():
        budget.reserve(1, None)
        with limits._LOCK:
            taken.set()
            time.sleep(0.05)

    def child():
        rate.reserve(1)
        breaker.failure("down")
        return not breaker.wait(60) and budget.reserve(1, None) is not None

    with ThreadPoolExecutor(1) as pool:
        pool.submit(hold)
        taken.wait()
        assert in_child(child) == "True"
    assert not breaker.is_open


JUDGE = NoJudge(JudgeConfig(NONE))
FAILED = Verdict(None, "api_error")


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
