"""Reasons why numbers are invalid: too many failures of the judge or of the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from lmms_eval_tasks import settings
from lmms_eval_tasks.benchmark import Items
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.utils.json_files import Json, JsonObject
from lmms_eval_tasks.utils.metrics import aggregate
from lmms_eval_tasks.utils.replies import refusals

INVALID = 3  # exit code of a command whose numbers are invalid
MANY_CUT = 0.05  # share of replies at the token limit above which a run warns


@dataclass
class Lengths:
    """The number of a task's replies with known length, and of those at the limit."""

    known: int = 0
    at_limit: int = 0
    limit: int = 0

    @classmethod
    def of(cls, details: Mapping[str, Json]) -> Lengths | None:
        """Return the lengths in a task's details of a results file; None if they are unknown."""
        found = details.get("token_limit")
        return cls(**found) if found else None

    def add(self, tokens: int, limit: int) -> None:
        """Count one reply with its tokens and its limit."""
        self.known += 1
        self.at_limit += tokens >= limit
        self.limit = limit


@dataclass
class Throughput:
    """The speed at which a model answered, in one process of a run."""

    replies: int = 0  # replies of this run; failures do not count
    seconds: float = 0.0  # with the reading of media, without judging
    tokens: int = 0  # tokens of the replies, as far as known
    processes: int = 1  # processes of the run

    def __str__(self) -> str:
        """Return one line for the user; "" for a run without requests."""
        if not self.replies or not self.seconds:
            return ""
        rates = f"{self.replies / self.seconds:,.2f} a second"
        if self.tokens:
            rates += f", {self.tokens / self.seconds:,.1f} tokens a second"
        several = self.processes > 1
        each = f" in each of {self.processes} processes" if several else " in one process"
        return f"answered: {self.replies:,} replies in {self.seconds:,.1f} s{each}: {rates}"


def of_judge(usage: Iterable[Mapping[str, Json]], labels: Collection[str]) -> dict[str, str]:
    """Return the reason for each task in which too many verdicts failed through the judge.

    Args:
        usage: a row for each task and judge.
        labels: judges that tasks ask, without the judges inside panels and debates.
    """
    from lmms_eval_tasks.judges.verdict import NONE, Status

    reasons: dict[str, str] = {}
    for row in usage:
        failed = {status: n for status, n in row["by_status"].items() if status != Status.OK}
        if row["judge"] == NONE or row["judge"] not in labels:
            continue
        by_status = ", ".join(f"{n} {status}" for status, n in sorted(failed.items()))
        number, total = sum(failed.values()), row["verdicts"]
        message = f"{row['task']}: {number} of {total} verdicts failed ({by_status})"
        reasons |= _above_limit(row["task"], number, total, message)
    return reasons


def judge_rows(label: str, items: Items) -> list[JsonObject]:
    """Return a row for each judge that counts its verdicts by status, including kept verdicts."""
    by_judge: dict[str, Counter[str]] = {}
    for item in items:
        for verdict in (item.get("verdicts") or {}).values():
            by_judge.setdefault(verdict["judge"], Counter())[verdict["status"]] += 1
    return [
        {"task": label, "judge": judge, "verdicts": counts.total(), "by_status": dict(counts)}
        for judge, counts in by_judge.items()
    ]


def of_items(name: str, items: Items) -> dict[str, str]:
    """Return the reason why a task is invalid: too many failed requests, or a sign in all items.

    Classes that hide a failure return an empty text, and a judge that fails finds no claims. One
    such reply proves nothing, but all replies together do.
    """
    lost = sum(item["status"] == refusals.LOST for item in items)
    if found := _above_limit(name, lost, len(items), requests_failed(name, items)):
        return found
    if items and not any(str(item.get("reply", "")).strip() for item in items):
        why = "replies are empty: the model's class or endpoint failed, or the answers were cut off"
        return {name: f"{name}: all {len(items)} {why}"}
    if aggregate.is_claimless(items):
        why = "answers: the judge or its prompt does not work"
        return {name: f"{name}: the judge found no claim in any of {len(items)} {why}"}
    return {}


def _above_limit(name: str, failed: int, total: int, reason: str) -> dict[str, str]:
    limit = settings.may_fail()
    if failed <= limit * total:
        return {}
    return {name: f"{reason}, more than the {limit:.0%} allowed by {settings.MAX_FAILED.option}"}


def requests_failed(name: str, items: Items) -> str:
    """Return a line with the number of failed requests to the model and the last reason.

    The line is "" if no request failed.
    """
    lost = [item for item in items if item["status"] == refusals.LOST]
    if not lost:
        return ""
    last = " ".join(str(lost[-1].get("reply", "")).split())[:200]
    return (
        f"{name}: {len(lost)} of {len(items)} requests to the model failed (last failure: {last})"
    )


def replies_cut(name: str, items: Items, lengths: Lengths | None) -> str:
    """Return a line if the limit of tokens cut many replies, with the cure; else "".

    It counts replies whose reasoning has no end, and replies whose number of tokens is known.
    """
    number, total = sum(item["status"] == "truncated" for item in items), len(items)
    why = "end inside their reasoning"
    if lengths and lengths.at_limit * total > number * lengths.known:
        number, total = lengths.at_limit, lengths.known
        why = f"reach the limit of {lengths.limit} tokens"
    if not total or number <= MANY_CUT * total:
        return ""
    room = f"--gen_kwargs max_new_tokens={4 * lengths.limit if lengths else 4096}"
    return f"{name}: {number} of {total} replies {why} and may be cut; for longer replies: {room}"


def together(*reasons: Mapping[str, str]) -> dict[str, str]:
    """Join the reasons why tasks are invalid, by task."""
    joined: dict[str, str] = {}
    for problems in reasons:
        for name, why in problems.items():
            joined[name] = f"{joined[name]}; {why}" if name in joined else why
    return joined


def stop(problems: Mapping[str, str]) -> None:
    """End a command with a line for each problem, if there are any.

    Raises:
        SystemExit: there are problems; the code is INVALID.
    """
    for line in problems.values():
        notify(f"INVALID: {line}")
    if problems:
        raise SystemExit(INVALID)
