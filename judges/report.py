"""Counts of calls, tokens and dollars by task and judge, and lines about them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, fields

from lmms_eval_tasks.judges.providers.exchange import JudgeReply
from lmms_eval_tasks.judges.verdict import Status, Verdict, sum_known
from lmms_eval_tasks.utils.json_files import Json, JsonObject

_MAX_REASON = 160  # characters
EVERY = 30.0  # seconds between two lines of progress
_TASK: ContextVar[str] = ContextVar("lmms_eval_tasks_task", default="")


@contextmanager
def task(name: str) -> Iterator[None]:
    """Context manager: verdicts in the block belong to task `name`, in the calling thread only."""
    token = _TASK.set(name)
    try:
        yield
    finally:
        _TASK.reset(token)


current_task = _TASK.get


@dataclass
class UsageRow:
    """The sums of one task and judge. Dollars are rounded to 1e-12, so that order has no effect.

    `calls` are replies: a request for n choices counts n. Tokens are those that the endpoint
    reported. A cost is None as soon as one reply's is unknown: a partial sum would pass for the
    whole.
    """

    task: str = ""
    judge: str = ""
    verdicts: int = 0
    by_status: dict[str, int] = field(default_factory=dict)
    # Status -> reason of the latest such verdict.
    reasons: dict[str, str] = field(default_factory=dict)
    repaired: int = 0
    paid_calls: int = 0  # in this run
    cached_calls: int = 0  # replies from our cache
    retries: int = 0
    prompt_tokens: int = 0  # of all used replies, paid now or before
    completion_tokens: int = 0
    prefix_tokens: int = 0  # part of prompt_tokens that the endpoint read from its cache
    unknown_tokens: int = 0  # used replies without token counts from the endpoint
    cost: float | None = 0.0  # dollars of all used replies
    paid_cost: float | None = 0.0
    models: dict[str, int] = field(default_factory=dict)  # names in the replies

    def add(self, other: UsageRow) -> None:
        """Add the sums of another row; task and judge stay."""
        for name, more in vars(other).items():
            mine = getattr(self, name)
            if isinstance(more, dict):
                for key, value in more.items():
                    mine[key] = value if name == "reasons" else mine.get(key, 0) + value
            elif more != 0 and name not in ("task", "judge"):
                total = sum_known([mine, more])
                setattr(self, name, round(total, 12) if isinstance(total, float) else total)

    @property
    def calls(self) -> int:
        """The number of used replies."""
        return self.paid_calls + self.cached_calls


class UsageCounter:
    """Counts by task and judge; thread-safe."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], UsageRow] = {}
        self._lock = threading.Lock()

    def reply(self, judge: str, reply: JudgeReply, *, paid: bool, cost: float | None) -> None:
        """Count a used reply: paid now, or from our cache; `cost` in dollars, None if unknown."""
        known = None not in (reply.prompt_tokens, reply.completion_tokens)
        used = UsageRow(
            paid_calls=int(paid),
            cached_calls=int(not paid),
            prompt_tokens=reply.prompt_tokens or 0,
            completion_tokens=reply.completion_tokens or 0,
            prefix_tokens=reply.cached_tokens,
            unknown_tokens=int(not known),
            cost=cost,
            paid_cost=cost if paid else 0.0,
            models={reply.model: 1} if reply.model else {},
        )
        self._add(judge, used)

    def verdict(self, judge: str, verdict: Verdict) -> None:
        """Count a judge's verdict."""
        status, failed = verdict.status, verdict.score is None and verdict.reason
        reasons = {status: verdict.reason[:_MAX_REASON]} if failed else {}
        self._add(judge, UsageRow("", "", 1, {status: 1}, reasons, int(verdict.repaired)))

    def retry(self, judge: str) -> None:
        """Count a request that is sent again after an error."""
        self._add(judge, UsageRow(retries=1))

    def rows(self) -> list[UsageRow]:
        """Return copies of the sums, sorted by task and judge."""
        with self._lock:
            return [_sum([row], row.task, row.judge) for _, row in sorted(self._rows.items())]

    def total(self) -> UsageRow:
        """Return the sum over all tasks and judges."""
        return _sum(self.rows())

    def as_dicts(self) -> list[JsonObject]:
        """Return the rows as plain types, for other processes and for results."""
        return [asdict(row) for row in self.rows()]

    def merge(self, rows: Iterable[Mapping[str, Json]]) -> None:
        """Add rows from `as_dicts` of another process or version; unknown fields are ignored.

        A process must not merge its own rows.
        """
        known = {one.name for one in fields(UsageRow)}
        for values in rows:
            row = UsageRow(**{name: value for name, value in values.items() if name in known})
            self._add(row.judge, row, row.task)

    def _add(self, judge: str, more: UsageRow, task: str | None = None) -> None:
        name = current_task() if task is None else task, judge
        with self._lock:
            self._rows.setdefault(name, UsageRow(*name)).add(more)


def _sum(rows: Iterable[UsageRow], task: str = "", judge: str = "") -> UsageRow:
    total = UsageRow(task, judge)
    for row in rows:
        total.add(row)
    return total


class Progress:
    """The progress of verdicts: a line on stderr every half minute, and a last one. Thread-safe.

    An error of stderr ends the lines, never the run. It is not tqdm, whose lock is shared by all
    forked processes: one that is killed while it holds the lock would stop the judges of all
    others.

    Attributes:
        done: verdicts that tasks got.
        failed: those without a score.
    """

    def __init__(
        self, usage: UsageCounter, in_flight: Callable[[], int] = int, *, enabled: bool = True
    ) -> None:
        self._usage, self._in_flight = usage, in_flight
        self._enabled, self._lock = enabled, threading.Lock()
        self._ticker: threading.Thread | None = None
        self._closed = threading.Event()
        self.n_done = self.failed = self._expected = self._shown = 0

    def expect(self, verdicts: int) -> None:
        """Add verdicts to the expected number, and begin the lines of progress."""
        with self._lock:
            self._expected += verdicts
            if self._enabled and self._ticker is None:
                self._ticker = threading.Thread(target=self._tick, daemon=True)
                self._ticker.start()

    def _tick(self) -> None:
        while not self._closed.wait(EVERY):
            self._show(self._expected)

    def count(self, failed: int, verdicts: int = 1) -> None:
        """Count verdicts that a task got, and how many of them have no score."""
        with self._lock:
            self.n_done += verdicts
            self.failed += failed

    def close(self) -> None:
        """Print the last line, unless it was printed."""
        self._closed.set()
        self._show()

    def _show(self, expected: int = 0) -> None:
        """Print the line if there is news, or if one of `expected` verdicts is still missing."""
        with self._lock:
            if self._shown < self.n_done or self.n_done < expected:
                self._print()

    def _print(self) -> None:
        self._shown, total = self.n_done, self._usage.total()
        of = f" of {self._expected:,}" if self._expected >= self.n_done else ""
        told = f"judging: {self.n_done:,}{of} verdicts, {self.failed:,} without a score"
        told += f", {total.cached_calls:,} replies from the cache, {price(total.cost)}"
        told += f", {_number(total.retries, 'retry', 'retries')}" if total.retries else ""
        told += f", {flying:,} running" if (flying := self._in_flight()) else ""
        if self._enabled:
            with suppress(OSError, ValueError):  # a closed pipe, a replaced stream
                print(told, file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Return seconds in words, with the precision of an estimate."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def dollars(amount: float) -> str:
    """Return `$1,234.50`, `$0.16`, `$0.0042`; below a hundredth of a cent `under $0.0001`."""
    if 0 < amount < 0.0001:
        return "under $0.0001"
    return f"${amount:,.2f}" if amount >= 0.1 or amount == 0 else f"${amount:.4f}"


def price(amount: float | None) -> str:
    """Return `dollars`, or "unknown price"."""
    return "unknown price" if amount is None else dollars(amount)


def usage_lines(rows: Sequence[UsageRow], prices: str = "") -> list[str]:
    """Return the lines after a run: one for each task and judge, and their total if several.

    If a judge's replies name more than one model, the lines show these: the model changed in the
    run.
    """
    answered: dict[str, set[str]] = {}
    for row in rows:
        answered.setdefault(row.judge, set()).update(row.models)
    told = []
    for row in rows:
        others = sorted(row.by_status.items(), key=lambda item: (-item[1], item[0]))
        counts = {Status.OK.value: row.by_status.get(Status.OK.value, 0), **dict(others)}
        statuses = ", ".join(f"{number:,} {name}" for name, number in counts.items())
        parts = [f"{_number(row.verdicts, 'verdict')} ({statuses})", *_calls(row, prices)]
        name = f"judge {row.judge}" + (f", {row.task}" if row.task else "")
        why = "".join(f"; last {status}: {said}" for status, said in sorted(row.reasons.items()))
        models = ", ".join(f"{model} ({n:,})" for model, n in sorted(row.models.items()))
        drift = f", answered by {models}" if len(answered[row.judge]) > 1 else ""
        told.append(f"{name}: {', '.join(parts)}{why}{drift}")
    if len(rows) > 1 and (calls := _calls(_sum(rows), prices)):  # empty if no request was sent
        told.append(f"all judges: {', '.join(calls)}")
    return told


def of_results(results: Mapping[str, Json], *, by_task: bool = True) -> list[str]:
    """Return lines about the judges of a saved run, from our section of its results."""
    if not (work := results.get("lmms_eval_tasks", {}).get("judges")):
        return []
    usage = UsageCounter()
    usage.merge(work["usage"] if by_task else [{**row, "task": ""} for row in work["usage"]])
    return usage_lines(usage.rows(), work["prices"])


def departures(departed: Iterable[Sequence[str]]) -> list[str]:
    """Return a line for each judge and kind of departure of its endpoint from the requests."""
    names: dict[tuple[str, str], list[str]] = {}
    for label, how, name in sorted(set(map(tuple, departed))):
        names.setdefault((label, how), []).append(name)
    words = {"ignored": "accepts but ignores", "left out": "rejects"}
    return [f"the judge {one} {words[how]} {', '.join(own)}" for (one, how), own in names.items()]


def _calls(row: UsageRow, prices: str) -> list[str]:
    if not (row.calls or row.retries):
        return []
    parts = [f"{_number(row.paid_calls, 'call')} paid", f"{row.cached_calls:,} from the cache"]
    parts += [_number(row.retries, "retry", "retries")] if row.retries else []
    parts += [_number(row.repaired, "repair")] if row.repaired else []
    if row.calls:
        prefix = f"{row.prefix_tokens:,} of the prompts' from the endpoint's own cache"
        unknown = f"{row.unknown_tokens:,} replies without a token count"
        tokens = {prefix: row.prefix_tokens, unknown: row.unknown_tokens}
        parts.append(f"{row.prompt_tokens:,} + {row.completion_tokens:,} tokens{_notes(tokens)}")
        dollars = {f"{price(row.paid_cost)} paid in this run": row.cached_calls, prices: prices}
        parts.append(price(row.cost) + ("" if row.cost is None else _notes(dollars)))
    return parts


def _notes(notes: Mapping[str, object]) -> str:
    told = "; ".join(note for note, holds in notes.items() if holds)
    return f" ({told})" if told else ""


def _number(count: int, singular: str, many: str = "") -> str:
    return f"{count:,} {singular if count == 1 else many or singular + 's'}"
