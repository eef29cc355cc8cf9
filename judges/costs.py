"""What judging would cost: calls, tokens, dollars and time, asking nobody."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.judges.verdict import DEBATE, Criterion, JudgeConfig

if TYPE_CHECKING:
    from lmms_eval_tasks.judges.tokens import Counter

REPLY_TOKENS = 60  # of a verdict with one short reason, unless the cache has real ones
REASONING_TOKENS = 600  # more for a model that thinks first
SECONDS_PER_CALL = 2.0  # of one request, where no rate is given


@dataclass
class Estimate:
    """One task's part. Dollars are None where the price is unknown."""

    task: str
    generations: int
    prompt_tokens: int  # text of the model's own prompts
    verdicts: int = 0
    calls: int = 0
    judge_tokens: int = 0
    reply_tokens: int = 0
    cost: float | None = 0.0
    batch_cost: float | None = 0.0
    notes: list[str] = field(default_factory=list)


def calls_per_verdict(config: JudgeConfig, model: JudgeConfig) -> int:
    """How often a verdict asks one of its models: a debate's agents once a round, others once.

    At most: as published (no rounds) a debate's agents are asked once where they agree, else twice.
    """
    is_agent = config.provider == DEBATE and model is not config.endpoints[-1]
    return (config.rounds or 2) if is_agent else 1


def add_judge(
    found: Estimate,
    model: JudgeConfig,
    judged: Sequence[tuple[Criterion, Mapping[str, Any]]],
    calls: int,
    count: Counter,
) -> None:
    """Add what one model is asked to an estimate."""
    from lmms_eval_tasks.judges import run
    from lmms_eval_tasks.judges.engine import render
    from lmms_eval_tasks.judges.tokens import count_messages

    asked = sum(count_messages(render(criterion, fields), count) for criterion, fields in judged)
    names = {criterion.name for criterion, _ in judged}
    each, source = reply_tokens(model, names | {f"{name}_debate" for name in names})
    prompt, reply = calls * asked, round(calls * each * len(judged))
    found.calls += calls * len(judged)
    found.judge_tokens += prompt
    found.reply_tokens += reply
    found.notes.append(f"{model.label}: tokens by {count.name}{_error(count)}; replies: {source}")
    price = run.current().price(model)
    if price is None:
        found.cost = found.batch_cost = None
    else:
        plain, batch = price.cost(prompt, reply), price.cost(prompt, reply, batch=True)
        found.cost = plus(found.cost, plain)
        found.batch_cost = plus(found.batch_cost, batch)


def reply_tokens(model: JudgeConfig, criteria: set[str]) -> tuple[float, str]:
    """Mean tokens of this judge's replies so far, or an assumption; and which of the two."""
    from lmms_eval_tasks.judges import run
    from lmms_eval_tasks.judges.cache import mean_reply_tokens
    from lmms_eval_tasks.judges.config import is_reasoning

    cache = run.current().cache
    if cache is not None and (seen := mean_reply_tokens(cache.path, model.label, criteria)):
        mean, number = seen
        return mean, f"{mean:.0f} tokens, the mean of {number:,} in the cache"
    if is_reasoning(model.model):
        assumed = REPLY_TOKENS + REASONING_TOKENS
        return assumed, f"{assumed} tokens assumed, most of them reasoning"
    assumed = min(REPLY_TOKENS, model.sampling.max_tokens or REPLY_TOKENS)  # MAIA's says one word
    return assumed, f"{assumed} tokens assumed"


def plus(one: float | None, other: float | None) -> float | None:
    """The sum of two amounts of dollars; None if one is unknown."""
    return None if one is None or other is None else one + other


def _error(count: Counter) -> str:
    if count.error is None:
        return " (error unknown)"
    return " (exact)" if count.error == 0 else f" (within {count.error:.0%} of a total)"


def default_rate() -> tuple[float, str]:
    """Calls a second that the user's limits allow, and how that was found."""
    from lmms_eval_tasks.judges.run import CONCURRENCY

    limits = settings.judge_limits()
    flight = limits.concurrency or CONCURRENCY
    rate, why = flight / SECONDS_PER_CALL, f"{flight} in flight, {SECONDS_PER_CALL:g} s each"
    per_minute = limits.requests_per_minute
    if per_minute is not None and per_minute / 60 < rate:
        rate, why = per_minute / 60, f"{settings.JUDGE_RPM}={per_minute:g}"
    return rate, why


# --- many requests to one judge -------------------------------------------------------------------

# A criterion, its fields, and a reply of the likely length.
Asked = tuple[Criterion, Mapping[str, Any], str]

# OpenAI's prompt cache takes prefixes of at least so many tokens; other endpoints have other rules.
CACHED_PREFIX = 1024


@dataclass
class Plan(Estimate):
    """The work, and what it costs if an endpoint's prompt cache has all that it may have."""

    repeated: int = 0  # tokens that begin a request which began alike before
    least: float | None = None  # dollars; None: unknown, or nothing is repeated


def plan(config: JudgeConfig, asked: Sequence[Asked], picture_tokens: int = 0) -> Plan:
    """The work of a judge that is asked once for each of `asked`; none for one that asks nobody.

    Without repairs and without what is in our own cache already.

    Args:
        picture_tokens: of all their pictures, which they leave out.
    """
    from lmms_eval_tasks.judges import run
    from lmms_eval_tasks.judges.config import is_reasoning
    from lmms_eval_tasks.judges.engine import render
    from lmms_eval_tasks.judges.tokens import count_messages, counter

    found = Plan("agreement", 0, 0, verdicts=len(asked))
    if not config.endpoints:
        found.notes.append(f"{config.label} sends no requests")
        return found
    count = counter(config.model)
    thought = REASONING_TOKENS if is_reasoning(config.model) else 0
    messages = [render(criterion, fields) for criterion, fields, _ in asked]
    found.calls = len(asked)
    found.judge_tokens = picture_tokens + sum(count_messages(one, count) for one in messages)
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
    from lmms_eval_tasks.judges.report import dollars, duration

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
    """
    ordered, total = sorted(texts), 0
    for neighbours in itertools.pairwise(ordered):
        # The function is about characters of any texts, and so is this.
        tokens = count.count(os.path.commonprefix(neighbours))  # noqa: RUF071
        total += tokens if tokens >= CACHED_PREFIX else 0
    return total
