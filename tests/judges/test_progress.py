"""The bar says what a user waits for, and never ends a run."""

import io
import threading

from lmms_eval_tasks.judges.report import Progress
from lmms_eval_tasks.judges.run import Ledger
from lmms_eval_tasks.judges.verdict import Reply
from tests.checks import table


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def started(stream=None, **options):
    """A bar, what it writes to, its clock and its ledger."""
    clock = Clock()
    ledger, stream = Ledger(clock), stream or io.StringIO()
    return Progress(ledger, stream=stream, clock=clock, **options), stream, clock, ledger


def done(bar, ledger, count=1, cached=False, failed=False):
    """As a run does it."""
    for _ in range(count):
        if bar.waits:
            bar.start()
        ledger.given(cached=cached, failed=failed)


def paid(ledger, cost=0.04):
    ledger.reply("j", Reply("x", prompt_tokens=10, completion_tokens=1), paid=True, cost=cost)


def test_line():
    bar, stream, clock, ledger = started()
    bar.expect(300)
    bar.expect(100)
    clock.now += 7200  # generation comes first and may take hours
    bar.start()
    done(bar, ledger, 2, cached=True, failed=True)
    done(bar, ledger, 88, cached=True)
    for _ in range(30):
        paid(ledger)
        done(bar, ledger)
    clock.now += 30
    done(bar, ledger, failed=True)
    # 31 verdicts took a call, 30 s in all; 279 are left.
    state = "judging: 121 of 400 verdicts, 90 cached, 3 failed, $1.20, "
    assert bar.line() == state + "about 4 min left"
    clock.now += 45
    assert bar.line() == state + "none for 45 s"
    assert stream.getvalue() == ""  # a line every half minute, by the bar's own thread
    bar.close()
    assert stream.getvalue() == state + "none for 45 s\n"
    bar.close()
    assert len(stream.getvalue().splitlines()) == 1  # nothing new to say
    bar.expect(100)
    clock.now += 1000
    done(bar, ledger)
    clock.now += 2  # the pace after a restart is that of the new verdicts
    assert bar.line() == (
        "judging: 122 of 500 verdicts, 90 cached, 3 failed, $1.20, about 13 min left"
    )
    bar.close()


@table("options", [{"enabled": False}, {"rank": 1, "world": 2}])
def test_silent(options):
    bar, stream, _, ledger = started(stream=Terminal(), **options)
    bar.expect(1)
    done(bar, ledger)
    bar.close()
    assert stream.getvalue() == ""
    assert "judge-progress" not in {thread.name for thread in threading.enumerate()}


class Broken(io.StringIO):
    def __init__(self, error, terminal):
        super().__init__()
        self.error, self.terminal, self.writes = error, terminal, 0

    def isatty(self):
        return self.terminal

    def write(self, text):
        self.writes += 1
        raise self.error


@table("error", [BrokenPipeError(), UnicodeEncodeError("a", "b", 0, 1, "c")])
@table("terminal", [False, True])
def test_broken_stderr_ends_the_bar_only(error, terminal):
    bar, stream, _, ledger = started(stream=Broken(error, terminal))
    done(bar, ledger)
    bar.close()
    assert stream.writes > 0
    written = stream.writes
    done(bar, ledger)
    bar.close()
    if not terminal:  # tqdm tries again, and swallows what it gets
        assert stream.writes == written
