"""The line says what a user waits for, and never ends a run."""

import io

from lmms_eval_tasks.judges.report import Ledger, Progress
from lmms_eval_tasks.judges.verdict import Reply
from tests.checks import table


class Stream(io.StringIO):
    def __init__(self, terminal=False, error=None):
        super().__init__()
        self.terminal, self.error, self.writes = terminal, error, 0

    def isatty(self):
        return self.terminal

    def write(self, text):
        self.writes += 1
        if self.error:
            raise self.error
        return super().write(text)


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def test_a_line_every_half_minute_and_at_the_end():
    ledger, clock, stream = Ledger(), Clock(), Stream()
    line = Progress(ledger, stream=stream, clock=clock)
    line.expect(300)
    line.expect(100)
    clock.now += 7200  # generation comes first and may take hours
    for number in range(40):
        ledger.reply("j", Reply("x", prompt_tokens=1), paid=number > 9, cost=0.04)
        line.given(failed=number < 3)
        clock.now += 1
    state = "judging: {} of 400 verdicts, 10 replies from the cache, 3 failed, ${}"
    assert stream.getvalue().splitlines() == [state.format(31, "1.24")]
    line.close()
    line.close()  # nothing new to say
    assert stream.getvalue().splitlines()[1:] == [state.format(40, "1.60")]


def test_a_terminals_line_is_written_over():
    stream = Stream(terminal=True)
    line = Progress(Ledger(), stream=stream, world=2)
    line.given(failed=0)
    line.close()
    shown = "judging (rank 0 of 2, its share): 1 verdicts, 0 replies from the cache, 0 failed"
    assert stream.getvalue() == f"\r{shown}\x1b[K" * 2 + "\n"


@table("options", [{"enabled": False}, {"rank": 1, "world": 2}])
def test_silent(options):
    stream = Stream(terminal=True)
    line = Progress(Ledger(), stream=stream, **options)
    line.given(failed=0)
    line.close()
    assert stream.getvalue() == ""


@table("error", [BrokenPipeError(), UnicodeEncodeError("a", "b", 0, 1, "c")])
@table("terminal", [False, True])
def test_a_broken_stderr_ends_the_line_only(error, terminal):
    stream, clock = Stream(terminal, error), Clock()
    line = Progress(Ledger(), stream=stream, clock=clock)
    for _ in range(3):
        line.given(failed=0)
        clock.now += 60
    line.close()
    assert stream.writes == 1
    assert line.done == 3
