"""The bar says what a user waits for, costs next to nothing and never ends a run."""

import io
import os
import subprocess
import sys
import threading
import time

import pytest

from lmms_eval_tasks.judges import progress as module
from lmms_eval_tasks.judges.exchange import Reply
from lmms_eval_tasks.judges.ledger import Ledger
from lmms_eval_tasks.judges.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def paid(ledger, cost=0.04):
    ledger.reply("t", "j", Reply("x", prompt_tokens=10, completion_tokens=1), paid=True, cost=cost)


def test_line(clock):
    ledger, stream = Ledger(), io.StringIO()
    bar = Progress(ledger, stream=stream, clock=clock)
    bar.expect(300)
    bar.expect(100)
    bar.start()
    for number in range(120):
        if number >= 90:
            paid(ledger)
        bar.done(cached=number < 90, failed=number < 2)
    clock.now += 30
    bar.done(cached=False, failed=True)
    bar.refresh()
    # 31 verdicts took a call, 30 s in all; 279 are left.
    assert stream.getvalue() == (
        "judging: 121 of 400 verdicts, 90 cached, 3 failed, $1.20, about 4 min left\n"
    )
    clock.now += 45
    bar.refresh()
    assert stream.getvalue().splitlines()[1].endswith("$1.20, none for 45 s")
    bar.close()
    assert len(stream.getvalue().splitlines()) == 2  # nothing new to say


def test_no_call_no_cost_and_no_guess_at_the_time(clock):
    stream = io.StringIO()
    bar = Progress(Ledger(), stream=stream, clock=clock)
    bar.done(cached=True, failed=False)
    bar.close()
    assert stream.getvalue() == "judging: 1 verdicts, 1 cached, 0 failed\n"


def test_an_unknown_price_is_shown_as_such(clock):
    ledger, stream = Ledger(), io.StringIO()
    paid(ledger, cost=None)
    bar = Progress(ledger, stream=stream, clock=clock)
    bar.done(cached=False, failed=False)
    bar.close()
    assert stream.getvalue().endswith("unknown price\n")


def test_nothing_before_the_first_verdict(clock):
    """Generation comes first and may take hours."""
    stream = io.StringIO()
    bar = Progress(Ledger(), stream=stream, clock=clock)
    bar.expect(4)
    clock.now += 7200
    bar.done(cached=False, failed=False)
    clock.now += 10
    bar.refresh()
    assert stream.getvalue().endswith("about 30 s left\n")
    bar.close()


def test_the_pace_after_a_restart_is_of_the_new_verdicts(clock):
    stream = io.StringIO()
    bar = Progress(Ledger(), stream=stream, clock=clock)
    for _ in range(100):
        bar.done(cached=False, failed=False)
    bar.close()
    bar.expect(120)
    clock.now += 1000
    bar.done(cached=False, failed=False)
    clock.now += 2
    bar.refresh()
    assert stream.getvalue().endswith("101 of 120 verdicts, 0 cached, 0 failed, about 38 s left\n")
    bar.close()


def test_no_thread_to_be_had(monkeypatch, clock):
    def start(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    bar = Progress(Ledger(), stream=io.StringIO(), clock=clock)
    bar.done(cached=False, failed=False)
    bar.close()


def test_bar_on_a_terminal(monkeypatch):
    monkeypatch.setattr(module, "BAR_SECONDS", 0.01)
    ledger, stream = Ledger(), Terminal()
    bar = Progress(ledger, stream=stream)
    bar.expect(8)
    paid(ledger, cost=0.16)
    for number in range(8):
        bar.done(cached=number > 3, failed=number == 5)
        time.sleep(0.01)
    bar.close()
    drawn = stream.getvalue().split("\r")
    assert len(drawn) > 3
    assert "8/8" in drawn[-1]
    assert "4 cached, 1 failed, $0.16" in drawn[-1]
    assert drawn[-1].endswith("\n")


def test_the_thread_writes_and_ends(monkeypatch):
    monkeypatch.setattr(module, "LINE_SECONDS", 0.01)
    stream = io.StringIO()
    bar = Progress(Ledger(), stream=stream)
    bar.expect(2)
    bar.done(cached=False, failed=False)
    deadline = time.monotonic() + 5
    while not stream.getvalue() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert stream.getvalue().startswith("judging: 1 of 2 verdicts")
    bar.close()
    length = len(stream.getvalue())
    time.sleep(0.05)
    assert len(stream.getvalue()) == length
    bar.done(cached=False, failed=False)  # a second task
    bar.close()
    assert stream.getvalue().splitlines()[-1].startswith("judging: 2 of 2 verdicts")


@pytest.mark.parametrize(("enabled", "rank"), [(False, 0), (True, 1)])
def test_silent(enabled, rank):
    stream = Terminal()
    bar = Progress(Ledger(), enabled=enabled, rank=rank, world=2, stream=stream)
    bar.expect(1)
    bar.done(cached=False, failed=False)
    bar.refresh()
    bar.close()
    assert stream.getvalue() == ""
    assert "judge-progress" not in {thread.name for thread in threading.enumerate()}


def test_rank_0_says_that_it_shows_its_share():
    stream = io.StringIO()
    bar = Progress(Ledger(), rank=0, world=4, stream=stream)
    bar.done(cached=True, failed=False)
    bar.close()
    assert stream.getvalue().startswith("judging (rank 0 of 4, its share): 1 verdicts")


class Broken(io.StringIO):
    def __init__(self, error, terminal):
        super().__init__()
        self.error, self.terminal, self.writes = error, terminal, 0

    def isatty(self):
        return self.terminal

    def write(self, text):
        self.writes += 1
        raise self.error


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(
    "error",
    [BrokenPipeError(), ValueError("file is closed"), UnicodeEncodeError("a", "b", 0, 1, "c")],
)
def test_broken_stderr_ends_the_bar_only(error, terminal):
    stream = Broken(error, terminal)
    bar = Progress(Ledger(), stream=stream)
    bar.done(cached=False, failed=False)
    bar.refresh()
    assert stream.writes > 0
    written = stream.writes
    bar.done(cached=False, failed=False)
    bar.refresh()
    bar.close()
    if not terminal:  # tqdm tries again, and swallows what it gets
        assert stream.writes == written


def test_no_stderr_at_all(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    bar = Progress(Ledger())
    bar.done(cached=False, failed=False)
    bar.close()
    closed = io.StringIO()
    closed.close()
    bar = Progress(Ledger(), stream=closed)
    bar.done(cached=False, failed=False)
    bar.close()


def test_cheap():
    bar = Progress(Ledger(), stream=io.StringIO())
    started = time.perf_counter()
    for _ in range(20_000):
        bar.done(cached=True, failed=False)
    each = (time.perf_counter() - started) / 20_000
    bar.close()
    assert each < 20e-6  # about 1e-6 on an idle machine


def test_threads_lose_nothing(clock):
    stream = io.StringIO()
    bar = Progress(Ledger(), stream=stream, clock=clock)

    def work():
        for _ in range(500):
            bar.done(cached=True, failed=True)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bar.close()
    assert stream.getvalue() == "judging: 4,000 verdicts, 4,000 cached, 4,000 failed\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_forgotten_bar_and_forked_child():
    """A run that forgot to close ends with the last state, said once, and a child says nothing."""
    code = (
        "import os, sys\n"
        "from lmms_eval_tasks.judges.ledger import Ledger\n"
        "from lmms_eval_tasks.judges.progress import Progress\n"
        "bar = Progress(Ledger())\n"
        "bar.done(cached=True, failed=False)\n"
        "child = os.fork()\n"
        "bar.done(cached=True, failed=False)\n"
        "if child: os.waitpid(child, 0)\n"
        "sys.exit(0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "judging: 2 verdicts, 2 cached, 0 failed\n")
