"""The gate before calls that begin with the same bytes."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from forking import in_child

from lmms_eval_tasks.judges import Verdict
from lmms_eval_tasks.judges.asking import WARM, Gate, ahead
from lmms_eval_tasks.judges.replay import NoJudge
from lmms_eval_tasks.judges.verdict import NONE, JudgeConfig


def entered(one: Gate, *, sent: bool = True) -> bool:
    with one.turn() as turn:
        turn.sent = sent
        return turn.first


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
