"""What `lmms-eval-tasks agreement` would cost: calls, tokens and dollars, asking nobody."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.judges import Criterion, JudgeConfig
from lmms_eval_tasks.runs.estimate import REASONING_TOKENS, Estimate

if TYPE_CHECKING:
    from lmms_eval_tasks.judges.tokens import Counter

# A criterion, its fields, and a reply of the likely length.
Asked = tuple[Criterion, Mapping[str, Any], str]

# OpenAI's prompt cache takes prefixes of at least so many tokens; other endpoints have other rules.
CACHED_PREFIX = 1024


@dataclass
class Plan(Estimate):
    """The work, and what it costs if an endpoint's prompt cache has all that it may have."""

    repeated: int = 0  # tokens that begin a request which began alike before
    least: float | None = None  # dollars; None: unknown, or nothing is repeated


def plan(config: JudgeConfig, asked: Sequence[Asked]) -> Plan:
    """The work of a judge that is asked once for each of `asked`; none for one that asks nobody.

    Without repairs and without what is in our own cache already.

    Args:
        config: one judge.
        asked: all requests, with stand-ins for what is not known before.
    """
    from lmms_eval_tasks.judges import run
    from lmms_eval_tasks.judges.config import is_reasoning
    from lmms_eval_tasks.judges.prompts import render
    from lmms_eval_tasks.judges.tokens import count_messages, counter

    found = Plan("agreement", 0, 0, verdicts=len(asked))
    if not config.endpoints:
        found.notes.append(f"{config.label} sends no requests")
        return found
    count = counter(config.model)
    thought = REASONING_TOKENS if is_reasoning(config.model) else 0
    messages = [render(criterion, fields) for criterion, fields, _ in asked]
    found.calls = len(asked)
    found.judge_tokens = sum(count_messages(one, count) for one in messages)
    found.reply_tokens = sum(count.count(reply) + thought for _, _, reply in asked)
    found.notes.append(
        f"{config.label}: tokens by {count.name}"
        + (f"; {thought} tokens of reasoning assumed for each reply" if thought else "")
    )
    texts = ["\n".join(m["content"] for m in one) for one in messages]
    found.repeated = repeated_tokens(texts, count)
    price = run.current().price(config)
    if price is None:
        found.cost = None
        return found
    tokens = found.judge_tokens, found.reply_tokens
    found.cost = price.cost(*tokens)
    if found.repeated:
        found.least = price.cost(*tokens, cached_tokens=found.repeated)
    return found


def enlarged(found: Plan, factor: float) -> Plan:
    """The work if there were `factor` times as many answers like these; without its notes."""
    counts = ("verdicts", "calls", "judge_tokens", "reply_tokens", "repeated")
    return replace(
        found,
        **{name: round(factor * getattr(found, name)) for name in counts},
        cost=None if found.cost is None else factor * found.cost,
        least=None if found.least is None else factor * found.least,
        notes=[],
    )


def summary(found: Plan) -> str:
    """The estimate in words, in one line."""
    from lmms_eval_tasks.judges.ledger import dollars
    from lmms_eval_tasks.runs.estimate import default_rate, duration

    if not found.calls:
        return f"{found.verdicts:,} verdicts, no requests"
    rate, why = default_rate()
    cost = "unknown price" if found.cost is None else dollars(found.cost)
    if found.least is not None:
        cost += f" (at best {dollars(found.least)})"
    return (
        f"{found.verdicts:,} verdicts, {found.calls:,} calls, about {found.judge_tokens:,} + "
        f"{found.reply_tokens:,} tokens, {cost}, {duration(found.calls / rate)} at {rate:g} calls "
        f"a second ({why})"
    )


def at_best(found: Plan) -> list[str]:
    """What the lower price rests on; no line where there is none."""
    if found.least is None:
        return []
    return [
        f"at best: {found.repeated:,} of these tokens begin a request that began alike before, and "
        "OpenAI's prompt cache may have them"
    ]


def repeated_tokens(texts: Sequence[str], count: Counter) -> int:
    """Tokens at the beginning of requests that an earlier one began with as well.

    In sorted order the longest such beginning is the one shared with the neighbour before.

    Args:
        texts: all requests.
        count: how tokens are counted.
    """
    ordered, total = sorted(texts), 0
    for neighbours in itertools.pairwise(ordered):
        # The function is about characters of any texts, and so is this.
        tokens = count.count(os.path.commonprefix(neighbours))  # noqa: RUF071
        total += tokens if tokens >= CACHED_PREFIX else 0
    return total
