"""What judging took, counted while it goes on and told: by task and judge, in words, on stderr."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TextIO

from lmms_eval_tasks.judges.verdict import Reply, Status, Verdict

_MAX_REASON = 160  # characters
_TASK: ContextVar[str] = ContextVar("lmms_eval_tasks_task", default="")


@contextmanager
def task(name: str) -> Iterator[None]:
    """Verdicts asked for inside the block belong to task `name`.

    Holds for the calling thread only: a thread started inside has to set it again.
    """
    token = _TASK.set(name)
    try:
        yield
    finally:
        _TASK.reset(token)


def current_task() -> str:
    """The task whose verdicts are being asked for; '' outside of `task`."""
    return _TASK.get()


@dataclass
class Row:
    """The sums of one task and judge. Dollars are rounded to 1e-12, so that order cannot matter.

    `calls` are replies: a request for n choices counts n. Tokens are those the endpoint reported.
    """

    task: str = ""
    judge: str = ""
    verdicts: int = 0
    by_status: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)  # status -> the latest one's reason
    repaired: int = 0
    paid_calls: int = 0  # in this run
    cached_calls: int = 0  # answered by our own cache
    retries: int = 0
    prompt_tokens: int = 0  # of all replies used, paid now or before
    completion_tokens: int = 0
    prefix_tokens: int = 0  # of prompt_tokens: read from the endpoint's own cache
    paid_prompt_tokens: int = 0
    paid_completion_tokens: int = 0
    unknown_tokens: int = 0  # replies used whose token counts the endpoint did not report
    cost: float = 0.0  # dollars; of all replies used, the unknown ones left out
    paid_cost: float = 0.0
    unknown_cost: int = 0  # replies used whose cost is unknown
    paid_unknown_cost: int = 0
    models: dict[str, int] = field(default_factory=dict)  # as named in the replies

    def add(self, other: Row) -> None:
        """Add the sums of another row; task and judge stay."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.cost, self.paid_cost = round(self.cost, 12), round(self.paid_cost, 12)
        self.by_status = dict(Counter(self.by_status) + Counter(other.by_status))
        self.reasons = {**self.reasons, **other.reasons}
        self.models = dict(Counter(self.models) + Counter(other.models))

    def as_dict(self) -> dict[str, Any]:
        """The same as plain types; dollars are None where no reply's price is known."""
        values = asdict(self)
        if self.calls and self.unknown_cost == self.calls:
            values["cost"] = None
        if self.paid_calls and self.paid_unknown_cost == self.paid_calls:
            values["paid_cost"] = None
        return values

    @property
    def calls(self) -> int:
        """Replies used."""
        return self.paid_calls + self.cached_calls


# Annotations are strings here.
_SUMS = [number.name for number in fields(Row) if number.type in ("int", "float")]


def from_dicts(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Rows that `as_dicts` wrote; what an older version did not count is 0."""
    found: list[dict[str, Any]] = [
        {name: 0.0 if value is None else value for name, value in row.items()} for row in rows
    ]
    return [Row(**row) for row in found]


class Ledger:
    """Counts by task and judge; thread-safe."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], Row] = {}
        self._lock = threading.Lock()

    def reply(self, judge: str, reply: Reply, *, paid: bool, cost: float | None) -> None:
        """A reply was used: paid for now, or from our cache; `cost` in dollars, None: unknown."""
        prompt, completion = reply.prompt_tokens or 0, reply.completion_tokens or 0
        used = Row(
            prompt_tokens=prompt,
            completion_tokens=completion,
            prefix_tokens=reply.cached_tokens,
            unknown_tokens=int(reply.prompt_tokens is None or reply.completion_tokens is None),
            unknown_cost=int(cost is None),
            cost=cost or 0.0,
            models={reply.model: 1} if reply.model else {},
        )
        if paid:
            used.paid_calls, used.paid_cost = 1, used.cost
            used.paid_prompt_tokens, used.paid_completion_tokens = prompt, completion
            used.paid_unknown_cost = used.unknown_cost
        else:
            used.cached_calls = 1
        self._add(judge, used)

    def verdict(self, judge: str, verdict: Verdict) -> None:
        """A judge gave a verdict."""
        told = {} if verdict.score is not None else {verdict.status: verdict.reason[:_MAX_REASON]}
        self._add(
            judge,
            Row(
                verdicts=1,
                by_status={verdict.status: 1},
                reasons={status: reason for status, reason in told.items() if reason},
                repaired=int(verdict.repaired),
            ),
        )

    def retry(self, judge: str) -> None:
        """A request is sent again after an error."""
        self._add(judge, Row(retries=1))

    def rows(self) -> list[Row]:
        """Copies of the sums, sorted by task and judge."""
        with self._lock:
            return [_sum([row], row.task, row.judge) for _, row in sorted(self._rows.items())]

    def total(self) -> Row:
        """The sum over all tasks and judges."""
        return _sum(self.rows())

    def as_dicts(self) -> list[dict[str, Any]]:
        """The rows as plain types, to gather from other ranks and for results."""
        return [row.as_dict() for row in self.rows()]

    def merge(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows that `as_dicts` of another process gave; a rank must not merge its own.

        Raises:
            TypeError: a row has keys that are none of Row's.
        """
        for row in from_dicts(rows):
            self._add(row.judge, row, row.task)

    def _add(self, judge: str, more: Row, task: str | None = None) -> None:
        name = current_task() if task is None else task, judge
        with self._lock:
            self._rows.setdefault(name, Row(*name)).add(more)


def _sum(rows: Iterable[Row], task: str = "", judge: str = "") -> Row:
    total = Row(task, judge)
    for row in rows:
        total.add(row)
    return total


# --- while it goes on -----------------------------------------------------------------------------


class Progress:
    """How far verdicts are, on stderr: one line that is written over on a terminal, else a line
    every half minute. Thread-safe. Trouble with stderr ends it, never the run.

    Attributes:
        done: verdicts that tasks got, of them `failed` without a score.

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
        self._ledger, self._clock, self._lock = ledger, clock, threading.Lock()
        self._stream = sys.stderr if stream is None else stream
        self._on = enabled and rank == 0 and self._stream is not None
        self._what = "judging" if world == 1 else f"judging (rank 0 of {world}, its share)"
        self._next: float | None = None  # when a line is due; None: nothing is under way
        self.done = self.failed = self._expected = 0

    def expect(self, verdicts: int) -> None:
        """That many more verdicts will be given."""
        with self._lock:
            self._expected += verdicts

    def given(self, failed: int, verdicts: int = 1) -> None:
        """A task got verdicts, of them some without a score."""
        with self._lock:
            self.done += verdicts
            self.failed += failed
            if self._on and self._clock() >= (self._next or 0.0):
                self._show(first=self._next is None)

    def close(self) -> None:
        """The last line."""
        with self._lock:
            if self._on and self._next is not None:
                self._show(last=True)
            self._next = None

    def _show(self, *, first: bool = False, last: bool = False) -> None:
        try:
            terminal = self._stream.isatty()
            self._next = self._clock() + (0.5 if terminal else 30.0)
            if terminal:
                self._stream.write(f"\r{self.line()}\x1b[K" + "\n" * last)
            elif not first:
                self._stream.write(f"{self.line()}\n")
            self._stream.flush()
        except (OSError, ValueError, AttributeError):  # a closed pipe, a replaced stderr
            self._on = False

    def line(self) -> str:
        """The state in one line."""
        total = self._ledger.total()
        of = f" of {self._expected:,}" if self._expected >= self.done else ""
        cost = f", {cost_text(total)}" if total.calls else ""
        return (
            f"{self._what}: {self.done:,}{of} verdicts, {total.cached_calls:,} replies from the "
            f"cache, {self.failed:,} failed{cost}"
        )


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
        models = ", ".join(f"{model} ({n:,})" for model, n in sorted(row.models.items()))
        drift = f", answered by {models}" if len(answered[row.judge]) > 1 else ""
        told.append(f"{name}: {_line(row, prices)}{drift}")
    if len(rows) > 1 and (calls := _calls(_sum(rows), prices)):  # none where nobody was asked
        told.append(f"all judges: {', '.join(calls)}")
    return told


def _line(row: Row, prices: str) -> str:
    ok = Status.OK.value
    others = sorted(row.by_status.items(), key=lambda item: (-item[1], item[0]))
    counts = [(ok, row.by_status.get(ok, 0)), *(one for one in others if one[0] != ok)]
    statuses = ", ".join(f"{number:,} {name}" for name, number in counts)
    parts = [f"{_number(row.verdicts, 'verdict')} ({statuses})", *_calls(row, prices)]
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
        notes = []
        if row.prefix_tokens:
            notes.append(f"{row.prefix_tokens:,} of the prompts' from the endpoint's own cache")
        if row.unknown_tokens:
            notes.append(f"{row.unknown_tokens:,} replies without a count")
        tokens = f"{row.prompt_tokens:,} + {row.completion_tokens:,} tokens"
        parts.append(tokens + (f" ({'; '.join(notes)})" if notes else ""))
        parts.append(_money(row, prices))
    return parts


def _money(row: Row, prices: str) -> str:
    if row.unknown_cost == row.calls:
        return cost_text(row)
    paid = ("at least " if row.paid_unknown_cost else "") + dollars(row.paid_cost)
    if row.paid_unknown_cost == row.paid_calls:
        paid = "an unknown amount" if row.paid_calls else "nothing"
    notes = [f"{paid} paid in this run"] if row.cached_calls else []
    notes += [prices] if prices else []
    return cost_text(row) + (f" ({'; '.join(notes)})" if notes else "")


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


def _number(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
