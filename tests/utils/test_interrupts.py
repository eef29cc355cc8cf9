"""One signal ends a run: in processes of their own, whatever their threads do."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.checks import table

BEFORE = """
import hashlib, multiprocessing, os, signal, sys, threading, time
from lmms_eval_tasks.utils import interrupts
signal.signal(signal.SIGINT, signal.default_int_handler)  # pytest may run in the background
interrupts.GRACE = 0.4

def say(text):
    print(text, flush=True)
"""
SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


@contextmanager
def started(code: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs the code after `BEFORE`, and has written its first line."""
    pipe: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", BEFORE + code], **pipe) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


# What a command may be at. Each would go on for a minute.
AT = {
    "waiting": "say('ready'); time.sleep(60)",
    "waiting for a thread": (
        "thread = threading.Thread(target=time.sleep, args=[60]); thread.start(); say('ready'); "
        "thread.join()"
    ),
    "code that hears no signal": (
        "threading.Timer(0.2, say, ['ready']).start(); "
        "hashlib.pbkdf2_hmac('sha256', b'', b'', 300_000_000)"
    ),
    "code that takes every exception": (
        "say('ready')\n"
        "  for _ in range(600):\n"
        "   try: time.sleep(0.1)\n"
        "   except BaseException: pass"
    ),
}


@table("at", AT)
@table("number, code", SIGNALS)
def test_one_signal_ends_a_command(at, number, code):
    script = f"""
with interrupts.at_interrupt(lambda: '3 replies are kept'), interrupts.at_interrupt(lambda: 1 / 0):
 with interrupts.ending(exits=True):
  {AT[at]}
"""
    with started(script) as process:
        start = time.monotonic()
        process.send_signal(number)
        _, told = process.communicate(timeout=10)
        assert time.monotonic() - start < 3
    assert process.returncode == code
    assert told == (
        f"lmms-eval-tasks: interrupted by {number.name}: 3 replies are kept; run the same command "
        "again to continue from there\n"
    )


def test_a_second_signal_ends_it_at_once():
    code = """
interrupts.GRACE = 60
with interrupts.ending(exits=True):
    try:
        say('ready')
        time.sleep(60)
    finally:
        time.sleep(60)
"""
    with started(code) as process:
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(5) == 130


def test_a_childs_signals_are_its_own():
    """A pool of forked processes ends its workers with SIGTERM."""
    code = """
with interrupts.ending(exits=True):
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=[60])
    child.start()
    child.terminate()
    child.join()
    say('ready')
    time.sleep(0.5)
    say(child.exitcode)
"""
    with started(code) as process:
        assert process.communicate(timeout=10) == (f"{-signal.SIGTERM}\n", "")
    assert process.returncode == 0


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_children_end_with_the_command():
    code = """
with interrupts.ending(exits=True):
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=[60])
    child.start()
    say('ready')
    say(child.pid)
    child.join()
"""
    with started(code) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 143
        # Whoever adopts it may not have waited for it yet: what is left then is no process.
        until = time.monotonic() + 2
        while is_running(child) and time.monotonic() < until:
            time.sleep(0.05)
        assert not is_running(child)


def test_somebody_elses_process_stays():
    """A notebook: Ctrl-C is a KeyboardInterrupt, again and again; SIGTERM is not ours."""
    code = """
for _ in range(2):
    try:
        with interrupts.ending(exits=False), interrupts.at_interrupt(lambda: "all is kept"):
            say('ready')
            time.sleep(60)
    except KeyboardInterrupt:
        say(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
say(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
"""
    with started(code) as process:
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["True\n", "ready\n"]
        process.send_signal(signal.SIGINT)
        said, told = process.communicate(timeout=10)
    assert (said, process.returncode) == ("True\nTrue\n", 0)
    assert told.count("interrupted by SIGINT: all is kept") == 2


@table("handler", ["signal.SIG_IGN", "lambda *_: say('theirs')"])
def test_what_others_do_with_a_signal_stays_as_it_is(handler):
    """A job in the background ignores Ctrl-C."""
    code = f"""
signal.signal(signal.SIGINT, {handler})
with interrupts.ending(exits=True):
    say('ready')
    time.sleep(0.5)
"""
    with started(code) as process:
        process.send_signal(signal.SIGINT)
        said, told = process.communicate(timeout=10)
    assert (said in ("", "theirs\n"), told, process.returncode) == (True, "", 0)
