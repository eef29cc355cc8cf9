"""What a run's verdicts took: calls, tokens and dollars by task and judge. Counts, no texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from lmms_eval_tasks.judges.exchange import Reply
from lmms_eval_tasks.judges.locks import fork_safe_lock
from lmms_eval_tasks.judges.verdict import Status, Verdict

_MAX_REASON = 160  # characters

_TASK: ContextVar[str] = ContextVar("lmms_eval_tasks_task", default="")

_LOCK = fork_safe_lock()  # one for all ledgers: held for about a microsecond


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

    def copy(self) -> Row:
        """A row that no thread changes any more."""
        new = Row(self.task, self.judge)
        new.add(self)
        return new

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

    def cost_text(self) -> str:
        """The cost of all replies used: `$0.16`, `at least $0.16, ...`, or that it is unknown."""
        if self.unknown_cost == 0:
            return dollars(self.cost)
        if self.unknown_cost == self.calls:
            return "unknown price"
        replies = _number(self.unknown_cost, "reply", "replies")
        return f"at least {dollars(self.cost)}, {replies} of unknown price"


# Annotations are strings here.
_SUMS = [number.name for number in fields(Row) if number.type in ("int", "float")]


class Ledger:
    """Counts by task and judge; thread-safe. A forked process goes on with a copy of the counts."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], Row] = {}

    def reply(self, task: str, judge: str, reply: Reply, *, paid: bool, cost: float | None) -> None:
        """A reply was used: paid for now, or from our cache; `cost` in dollars, None: unknown."""
        prompt, completion = reply.prompt_tokens or 0, reply.completion_tokens or 0
        with _LOCK:
            row = self._row(task, judge)
            row.prompt_tokens += prompt
            row.completion_tokens += completion
            row.prefix_tokens += reply.cached_tokens
            row.unknown_tokens += reply.prompt_tokens is None or reply.completion_tokens is None
            row.unknown_cost += cost is None
            row.cost = round(row.cost + (cost or 0), 12)
            if reply.model:
                row.models[reply.model] = row.models.get(reply.model, 0) + 1
            if not paid:
                row.cached_calls += 1
                return
            row.paid_calls += 1
            row.paid_prompt_tokens += prompt
            row.paid_completion_tokens += completion
            row.paid_unknown_cost += cost is None
            row.paid_cost = round(row.paid_cost + (cost or 0), 12)

    def verdict(self, task: str, judge: str, verdict: Verdict) -> None:
        """A verdict was given."""
        with _LOCK:
            row = self._row(task, judge)
            row.verdicts += 1
            row.by_status[verdict.status] = row.by_status.get(verdict.status, 0) + 1
            row.repaired += verdict.repaired
            if verdict.score is None and verdict.reason:
                row.reasons[verdict.status] = verdict.reason[:_MAX_REASON]

    def retry(self, task: str, judge: str) -> None:
        """A request is sent again after an error."""
        with _LOCK:
            self._row(task, judge).retries += 1

    def rows(self) -> list[Row]:
        """Copies of the sums, sorted by task and judge."""
        with _LOCK:
            return [row.copy() for _, row in sorted(self._rows.items())]

    def total(self) -> Row:
        """The sum over all tasks and judges."""
        total = Row()
        for row in self.rows():
            total.add(row)
        return total

    def as_dicts(self) -> list[dict[str, Any]]:
        """The rows as plain types, to gather from other ranks and for results."""
        return [row.as_dict() for row in self.rows()]

    def merge(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows that `as_dicts` of another process gave; a rank must not merge its own.

        Raises:
            TypeError: a row has keys that are none of Row's.
        """
        for row in from_dicts(rows):
            with _LOCK:
                self._row(row.task, row.judge).add(row)

    def _row(self, task: str, judge: str) -> Row:
        return self._rows.setdefault((task, judge), Row(task, judge))


def from_dicts(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Rows that `as_dicts` wrote; what an older version did not count is 0."""
    found: list[dict[str, Any]] = [
        {name: 0.0 if value is None else value for name, value in row.items()} for row in rows
    ]
    return [Row(**row) for row in found]


def lines(rows: Sequence[Row], prices: str = "") -> list[str]:
    """What is printed after a run: a line for each task and judge, and their total if several.

    A judge whose replies name more than one model has them in its lines: it changed in the run.

    Args:
        rows: `Ledger.rows()`.
        prices: where prices are from (`PriceList.origin`), added to known costs.
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
        total = Row()
        for row in rows:
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
        return row.cost_text()
    notes = [f"{_paid(row)} paid in this run"] if row.cached_calls else []
    notes += [prices] if prices else []
    return row.cost_text() + (f" ({'; '.join(notes)})" if notes else "")


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


def dollars(amount: float) -> str:
    """`$1,234.50`, `$0.16`, `$0.0042`; below a hundredth of a cent: `under $0.0001`."""
    if 0 < amount < 0.0001:
        return "under $0.0001"
    return f"${amount:,.2f}" if amount >= 0.1 or amount == 0 else f"${amount:.4f}"


def _statuses(counts: Mapping[str, int]) -> str:
    others = sorted(
        counts.items(), key=lambda item: (item[0] != Status.OK.value, -item[1], item[0])
    )
    return ", ".join(f"{number:,} {name}" for name, number in others)


def _counts(models: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({number:,})" for name, number in sorted(models.items()))


def _number(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"
