"""What the user is told of judging: how far it is, and what it took.

While it goes on, a bar on a terminal, else a line every half minute, on stderr. A thread of its own
draws it, so that it goes on while every judge's thread waits. Trouble with stderr ends the bar,
never the run.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from lmms_eval_tasks.judges.verdict import Status

if TYPE_CHECKING:
    from lmms_eval_tasks.judges.run import Ledger, Row

BAR_SECONDS, LINE_SECONDS = 0.5, 30.0  # between two refreshes on a terminal, and elsewhere
_STALLED = 30.0  # seconds without a verdict after which that is said


class Progress:
    """Shows how far verdicts are; thread-safe.

    Attributes:
        waits: it is to be shown, and the next verdict starts it.

    Args:
        rank: this process's rank; only rank 0 shows anything, and of its own share only.
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
        self._on = self.waits = enabled and rank == 0 and self._stream is not None
        self._what = "judging" if world == 1 else f"judging (rank 0 of {world}, its share)"
        self._expected = 0
        self._called_before = 0  # verdicts that took a call before the bar was started
        self._shown = -1  # verdicts in what was shown last
        self._started = clock()
        self._lock = threading.Lock()
        self._drawing = threading.Lock()
        self._stop: threading.Event | None = None
        self._thread: threading.Thread | None = None
        self._bar: Any = None

    def expect(self, verdicts: int) -> None:
        """That many more verdicts will be given. Starts nothing: generation may come first."""
        with self._lock:
            self._expected += verdicts

    def start(self) -> None:
        """Show the bar from now on."""
        if not self._on:
            return
        with self._lock:
            if self._stop is not None:
                return
            self.waits = False
            self._started = self._clock()
            self._called_before = self._ledger.done - self._ledger.cached
            stop = self._stop = threading.Event()
        # Otherwise the thread could hold stderr's lock when the interpreter ends, which is fatal.
        atexit.register(self.close)
        self._thread = threading.Thread(
            target=self._watch, args=(stop,), name="judge-progress", daemon=True
        )
        self._guarded(self._thread.start)  # a process may be out of threads

    def close(self) -> None:
        """End the bar with the final state. A later verdict starts it again."""
        with self._lock:
            stop, self._stop = self._stop, None
        if stop is None:
            return
        self.waits = self._on
        stop.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join(1.0)  # not longer: it may be stuck in a write
        atexit.unregister(self.close)
        with self._drawing:
            if self._on and (self._bar is not None or self._shown != self._ledger.done):
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
            self._on = self.waits = False

    def _is_terminal(self) -> bool:
        try:
            return self._stream.isatty()
        except (AttributeError, ValueError, OSError):
            return False

    def _draw(self) -> None:
        if self._is_terminal():
            bar = self._bar = self._bar or _bar(self._stream, self._what, self._expected)
            bar.n = self._ledger.done
            bar.total = max(self._expected, bar.n)
            bar.set_postfix_str(self._details())  # refreshes
        else:
            self._stream.write(self.line() + "\n")
            self._stream.flush()
        self._shown = self._ledger.done

    def line(self) -> str:
        """The state in one line."""
        done = self._ledger.done
        of = f" of {self._expected:,}" if self._expected >= done else ""
        return f"{self._what}: {done:,}{of} verdicts, {self._details()}"

    def _details(self) -> str:
        ledger, total = self._ledger, self._ledger.total()
        parts = [f"{ledger.cached:,} cached", f"{ledger.failed:,} failed"]
        parts += [cost_text(total)] if total.calls else []
        waiting = self._clock() - max(ledger.last, self._started)
        left = self._left()
        if waiting >= _STALLED and ledger.done < self._expected:
            parts.append(f"none for {duration(waiting)}")
        elif left is not None:
            parts.append(f"about {duration(left)} left")
        return ", ".join(parts)

    def _left(self) -> float | None:
        """Seconds until the expected verdicts are given at the pace of those that took a call."""
        called = self._ledger.done - self._ledger.cached - self._called_before
        left = self._expected - self._ledger.done
        if called <= 0 or left <= 0:
            return None
        return (self._clock() - self._started) / called * left


def _bar(stream: TextIO, what: str, total: int) -> Any:
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[misc]  # tqdm has no types
        monitor_interval = 0  # tqdm's own thread would write to a broken stderr unguarded

    form = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"  # its rate counts cached ones
    return Bar(desc=what, file=stream, dynamic_ncols=True, bar_format=form, total=total)


def duration(seconds: float) -> str:
    """Seconds in words, to the precision of an estimate."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


# --- after a run ----------------------------------------------------------------------------------


def lines(rows: Sequence[Row], prices: str = "") -> list[str]:
    """What is printed after a run: a line for each task and judge, and their total if several.

    A judge whose replies name more than one model has them in its lines: it changed in the run.
    """
    answered: dict[str, Counter[str]] = {}
    for row in rows:
        answered.setdefault(row.judge, Counter()).update(row.models)
    told = []
    for row in rows:
        name = f"judge {row.judge}" + (f", {row.task}" if row.task else "")
        drift = f", answered by {_counts(row.models)}" if len(answered[row.judge]) > 1 else ""
        told.append(f"{name}: {_line(row, prices)}{drift}")
    if len(rows) > 1:
        total = rows[0].copy()
        for row in rows[1:]:
            total.add(row)
        if calls := _calls(total, prices):  # none where nobody was asked
            told.append(f"all judges: {', '.join(calls)}")
    return told


def _line(row: Row, prices: str) -> str:
    statuses = {Status.OK.value: row.by_status.get(Status.OK.value, 0)} | row.by_status
    parts = [f"{_number(row.verdicts, 'verdict')} ({_statuses(statuses)})", *_calls(row, prices)]
    why = [f"last {status}: {reason}" for status, reason in sorted(row.reasons.items())]
    return "; ".join([", ".join(parts), *why])


def _calls(row: Row, prices: str) -> list[str]:
    """Replies, tokens and dollars; verdicts are not added up over judges that ask each other."""
    parts = []
    if row.calls or row.retries:
        parts.append(f"{_number(row.paid_calls, 'call')} paid")
        parts.append(f"{row.cached_calls:,} from the cache")
        parts += [_number(row.retries, "retry", "retries")] if row.retries else []
        parts += [_number(row.repaired, "repair")] if row.repaired else []
    if row.calls:
        parts.append(f"{row.prompt_tokens:,} + {row.completion_tokens:,} tokens{_notes(row)}")
        parts.append(_money(row, prices))
    return parts


def _money(row: Row, prices: str) -> str:
    if row.unknown_cost == row.calls:
        return cost_text(row)
    notes = [f"{_paid(row)} paid in this run"] if row.cached_calls else []
    notes += [prices] if prices else []
    return cost_text(row) + (f" ({'; '.join(notes)})" if notes else "")


def _paid(row: Row) -> str:
    if row.paid_calls == 0:
        return "nothing"
    if row.paid_unknown_cost == row.paid_calls:
        return "an unknown amount"
    return ("at least " if row.paid_unknown_cost else "") + dollars(row.paid_cost)


def _notes(row: Row) -> str:
    notes = []
    if row.prefix_tokens:
        notes.append(f"{row.prefix_tokens:,} of the prompts' from the endpoint's own cache")
    if row.unknown_tokens:
        notes.append(f"{row.unknown_tokens:,} replies without a count")
    return f" ({'; '.join(notes)})" if notes else ""


def cost_text(row: Row) -> str:
    """The cost of all replies used: `$0.16`, `at least $0.16, ...`, or that it is unknown."""
    if row.unknown_cost == 0:
        return dollars(row.cost)
    if row.unknown_cost == row.calls:
        return "unknown price"
    replies = _number(row.unknown_cost, "reply", "replies")
    return f"at least {dollars(row.cost)}, {replies} of unknown price"


def dollars(amount: float) -> str:
    """`$1,234.50`, `$0.16`, `$0.0042`; below a hundredth of a cent: `under $0.0001`."""
    if 0 < amount < 0.0001:
        return "under $0.0001"
    return f"${amount:,.2f}" if amount >= 0.1 or amount == 0 else f"${amount:.4f}"


def _statuses(counts: Mapping[str, int]) -> str:
    def place(item: tuple[str, int]) -> tuple[bool, int, str]:
        return item[0] != Status.OK.value, -item[1], item[0]

    others = sorted(counts.items(), key=place)
    return ", ".join(f"{number:,} {name}" for name, number in others)


def _counts(models: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({number:,})" for name, number in sorted(models.items()))


def _number(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
