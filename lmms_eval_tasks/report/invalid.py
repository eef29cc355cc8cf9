"""Reasons why numbers are invalid: too many failures of the judge or of the model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from lmms_eval_tasks import settings
from lmms_eval_tasks.benchmark import Items
from lmms_eval_tasks.notify import say
from lmms_eval_tasks.utils.json_files import Json
from lmms_eval_tasks.utils.metrics import aggregate
from lmms_eval_tasks.utils.replies import refusals

INVALID = 3  # exit code of a command whose numbers are
MANY_CUT = 0.05  # share of replies at the token limit above which a run warns


@dataclass
class Lengths:
    """The replies of one task whose length is known, and of these the ones at the limit."""

    known: int = 0
    at_limit: int = 0
    limit: int = 0

    @classmethod
    def of(cls, details: Mapping[str, Json]) -> Lengths | None:
        """Read them from a task's details in a results file; None where they are not known."""
        found = details.get("token_limit")
        return cls(**found) if found else None

    def add(self, tokens: int, limit: int) -> None:
        """Count one."""
        self.known += 1
        self.at_limit += tokens >= limit
        self.limit = limit


@dataclass
class Throughput:
    """The speed at which a model answered, in one process of a run."""

    replies: int = 0  # that it gave in this run; a failure is none
    seconds: float = 0.0  # reading media included, judging not
    tokens: int = 0  # of the replies, as far as they are known
    processes: int = 1  # of the run

    def __str__(self) -> str:
        """One line for the user; "" of a run that asked nothing."""
        if not self.replies or not self.seconds:
            return ""
        rates = f"{self.replies / self.seconds:,.2f} a second"
        if self.tokens:
            rates += f", {self.tokens / self.seconds:,.1f} tokens a second"
        each = f" in each of {self.processes} processes" if self.processes > 1 else ""
        return f"answered: {self.replies:,} replies in {self.seconds:,.1f} s{each}: {rates}"


def of_judge(usage: Iterable[Mapping[str, Json]], labels: Collection[str]) -> dict[str, str]:
    """Tasks whose share of verdicts that failed through the judge passes the user's limit.

    Args:
        usage: a row for each task and judge.
        labels: judges that were asked by tasks, not by other judges.
    """
    from lmms_eval_tasks.judges.verdict import NONE, Status

    found: dict[str, str] = {}
    for row in usage:
        failed = {status: n for status, n in row["by_status"].items() if status != Status.OK}
        if row["judge"] == NONE or row["judge"] not in labels:
            continue
        shown = ", ".join(f"{n} {status}" for status, n in sorted(failed.items()))
        number, total = sum(failed.values()), row["verdicts"]
        told = f"{row['task']}: {number} of {total} verdicts failed ({shown})"
        found |= _above_limit(row["task"], number, total, told)
    return found


def of_items(name: str, items: Items) -> dict[str, str]:
    """The task, if the share of requests that failed passes the limit, or all items tell of one.

    Classes that swallow a failure return an empty text, and a judge that fails finds no claims: of
    one such reply nothing can be told, of all of them it can.
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


def _above_limit(name: str, failed: int, total: int, told: str) -> dict[str, str]:
    limit = settings.may_fail()
    if failed <= limit * total:
        return {}
    return {name: f"{told}, more than the {limit:.0%} allowed by {settings.MAX_FAILED.option}"}


def requests_failed(name: str, items: Items) -> str:
    """Count the requests to the model that failed, with the last one's reason; "" if none."""
    lost = [item for item in items if item["status"] == refusals.LOST]
    if not lost:
        return ""
    last = " ".join(str(lost[-1].get("reply", "")).split())[:200]
    return (
        f"{name}: {len(lost)} of {len(items)} requests to the model failed (last failure: {last})"
    )


def replies_cut(name: str, items: Items, lengths: Lengths | None) -> str:
    """Say that the token limit cut many replies, and what gives them room; "" if few.

    Known are replies whose reasoning has no end, and those whose tokens somebody counts.
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


def together(*found: Mapping[str, str]) -> dict[str, str]:
    """Join the reasons why tasks are invalid."""
    made: dict[str, str] = {}
    for problems in found:
        for name, why in problems.items():
            made[name] = f"{made[name]}; {why}" if name in made else why
    return made


def stop(problems: Mapping[str, str]) -> None:
    """End a command with the code INVALID if there are problems, with a line for each."""
    for line in problems.values():
        say(f"INVALID: {line}")
    if problems:
        raise SystemExit(INVALID)
