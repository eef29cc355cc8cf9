"""No lock of the judges' layer is inherited held: a forked child would wait for ever."""

import threading
import time

import pytest
from forking import in_child

from lmms_eval_tasks.judges import limits, openai_provider, run
from tests.checks import table


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
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
