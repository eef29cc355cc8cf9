"""How far a run's verdicts are: a bar on a terminal, else a line every half minute. On stderr.

A thread of its own draws it, so that it goes on while every judge's thread waits, and giving a
verdict costs a counter. Trouble with stderr ends the bar, never the run.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from lmms_eval_tasks.judges.ledger import Ledger

BAR_SECONDS, LINE_SECONDS = 0.5, 30.0  # between two refreshes on a terminal, and elsewhere
_STALLED = 30.0  # seconds without a verdict after which that is said


class Progress:
    """Counts verdicts and shows them; thread-safe. Silent in processes forked off this one.

    Args:
        ledger: where the cost so far is read.
        enabled: False shows nothing.
        rank: this process's rank; only rank 0 shows anything, and of its own share only.
        world: number of ranks.
        stream: where to; None is stderr.
        clock: seconds, for tests.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        enabled: bool = True,
        rank: int = 0,
        world: int = 1,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger, self._clock = ledger, clock
        self._stream = sys.stderr if stream is None else stream
        self._on = enabled and rank == 0 and self._stream is not None
        self._what = "judging" if world == 1 else f"judging (rank 0 of {world}, its share)"
        self._expected = self._done = self._cached = self._failed = 0
        self._called_before = 0  # verdicts that took a call before the bar was started
        self._shown = -1  # verdicts in what was shown last
        self._started = self._last = clock()  # of the bar; of the last verdict
        self._process, self._lock = os.getpid(), threading.Lock()  # of the counts
        self._drawing = threading.Lock()
        self._stop: threading.Event | None = None
        self._thread: threading.Thread | None = None
        self._bar: Any = None

    def expect(self, verdicts: int) -> None:
        """That many more verdicts will be given. Starts nothing: generation may come first."""
        if self._process != os.getpid():
            return
        with self._lock:
            self._expected += verdicts

    def start(self) -> None:
        """Show the bar from now on; the first verdict does it too."""
        if not self._on or self._process != os.getpid():
            return
        with self._lock:
            if self._stop is not None:
                return
            self._started = self._last = self._clock()
            self._called_before = self._done - self._cached
            stop = self._stop = threading.Event()
        # Otherwise the thread could hold stderr's lock when the interpreter ends, which is fatal.
        atexit.register(self.close)
        self._thread = threading.Thread(
            target=self._watch, args=(stop,), name="judge-progress", daemon=True
        )
        self._guarded(self._thread.start)  # a process may be out of threads

    def done(self, cached: bool, failed: bool) -> None:
        """A verdict was given: without any call, or not; without a score, or with one."""
        if not self._on or self._process != os.getpid():
            return
        if self._stop is None:
            self.start()
        with self._lock:
            self._done += 1
            self._cached += cached
            self._failed += failed
            self._last = self._clock()

    def close(self) -> None:
        """End the bar with the final state. A later verdict starts it again."""
        if self._process != os.getpid():
            return
        with self._lock:
            stop, self._stop = self._stop, None
        if stop is None:
            return
        stop.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(1.0)  # not longer: it may be stuck in a write
        atexit.unregister(self.close)
        with self._drawing:
            if self._on and (self._bar is not None or self._shown != self._done):
                self._guarded(self._draw)
            if self._bar is not None:
                self._guarded(self._bar.close)
                self._bar = None

    def _watch(self, stop: threading.Event) -> None:
        while not stop.wait(BAR_SECONDS if self._is_terminal() else LINE_SECONDS):
            with self._drawing:
                if self._on and not stop.is_set():
                    self._guarded(self._draw)

    def _guarded(self, draw: Callable[[], object]) -> None:
        try:
            draw()
        except Exception:
            # A closed pipe, a replaced stderr, an encoding without our characters: the run is worth
            # more than its bar.
            self._on = False

    def _is_terminal(self) -> bool:
        try:
            return self._stream.isatty()
        except (AttributeError, ValueError, OSError):
            return False

    def _draw(self) -> None:
        if self._is_terminal():
            bar = self._bar = self._bar or _bar(self._stream, self._what, self._expected)
            bar.n, bar.total = self._done, max(self._expected, self._done)
            bar.set_postfix_str(self._details())  # refreshes
        else:
            self._stream.write(self.line() + "\n")
            self._stream.flush()
        self._shown = self._done

    def line(self) -> str:
        """The state in one line."""
        of = f" of {self._expected:,}" if self._expected >= self._done else ""
        return f"{self._what}: {self._done:,}{of} verdicts, {self._details()}"

    def _details(self) -> str:
        total = self._ledger.total()
        parts = [f"{self._cached:,} cached", f"{self._failed:,} failed"]
        parts += [total.cost_text()] if total.calls else []
        waiting, left = self._clock() - self._last, self._left()
        if waiting >= _STALLED and self._done < self._expected:
            parts.append(f"none for {_duration(waiting)}")
        elif left is not None:
            parts.append(f"about {_duration(left)} left")
        return ", ".join(parts)

    def _left(self) -> float | None:
        """Seconds until the expected verdicts are given at the pace of those that took a call."""
        called = self._done - self._cached - self._called_before
        left = self._expected - self._done
        if called <= 0 or left <= 0:
            return None
        return (self._clock() - self._started) / called * left


def _bar(stream: TextIO, what: str, total: int) -> Any:
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[misc]  # tqdm has no types
        monitor_interval = 0  # tqdm's own thread would write to a broken stderr unguarded

    form = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"  # its rate counts cached ones
    return Bar(desc=what, file=stream, dynamic_ncols=True, bar_format=form, total=total)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
