"""The estimate of a judge's work without any request: calls, tokens, dollars and time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from lmms_eval_tasks import settings
from lmms_eval_tasks.judges import run
from lmms_eval_tasks.judges.config import is_reasoning
from lmms_eval_tasks.judges.engine import render
from lmms_eval_tasks.judges.prices import count_messages, counter
from lmms_eval_tasks.judges.report import duration, price
from lmms_eval_tasks.judges.verdict import DEBATE, Criterion, JudgeConfig, sum_known

REPLY_TOKENS = 60  # tokens of a verdict with one short reason
REASONING_TOKENS = 600  # further tokens of a model that reasons first
SECONDS_PER_CALL = 2.0  # seconds of one request, if there is no rate

# A criterion, its fields, and a reply of likely length; "" stands for a verdict and a short reason.
LikelyRequest = tuple[Criterion, Mapping[str, object], str]


@dataclass
class CostEstimate:
    """The work of a task's, a step's or a model's judge. Dollars are None if a price is unknown."""

    verdicts: int = 0
    calls: int = 0
    judge_tokens: int = 0
    reply_tokens: int = 0
    cost: float | None = 0.0
    batch_cost: float | None = 0.0
    notes: list[str] = field(default_factory=list)

    def add(self, other: CostEstimate) -> None:
        """Add the numbers of another estimate."""
        for name in _NUMBERS:
            setattr(self, name, sum_known([getattr(self, name), getattr(other, name)]))


_NUMBERS = [one.name for one in fields(CostEstimate) if one.name != "notes"]


def plan(
    config: JudgeConfig, requests: Sequence[LikelyRequest], picture_tokens: int = 0
) -> CostEstimate:
    """Return the work of a judge with one request for each of `requests`, over all its models.

    Repairs and cached replies are not counted. A debate's agents get two requests each, and their
    messages to each other are not counted.

    Args:
        config: the judge.
        requests: the requests.
        picture_tokens: tokens of all pictures in `requests`, whose fields leave them out.
    """
    found = CostEstimate(verdicts=len(requests))
    for model in config.endpoints if requests else ():
        number = counter(model.model)
        # MAIA's judge replies with one word.
        short = min(REPLY_TOKENS, model.sampling.max_tokens or REPLY_TOKENS)
        thought = _thought(model)
        prompt = picture_tokens + sum(
            count_messages(render(*one[:2]), number.count) for one in requests
        )
        reply = sum((number.count(text) if text else short) + thought for *_, text in requests)
        _add_model(found, config, model, CostEstimate(0, len(requests), prompt, reply))
        note = f"{model.label}: tokens by {number.name}"
        if all(text for *_, text in requests):
            note += f"; {thought} tokens of reasoning assumed per reply" if thought else ""
        else:
            error = f"within {number.error:.0%} of a total" if number.error else "exact"
            error = "error unknown" if number.error is None else error
            note += f" ({error}); replies: {short + thought} tokens assumed"
            note += ", most of them reasoning" if thought else ""
        found.notes.append(note)
    return _noted(found, config)


def plan_sizes(config: JudgeConfig, calls: int, prompt: float, reply: float) -> CostEstimate:
    """Return the work of a judge with so many requests, over all its models, as `plan` does.

    Args:
        config: the judge.
        calls: number of requests to each model.
        prompt: mean tokens of a request.
        reply: mean tokens of a reply, without reasoning.
    """
    found = CostEstimate(verdicts=calls)
    for model in config.endpoints if calls else ():
        replies = round(calls * (reply + _thought(model)))
        _add_model(found, config, model, CostEstimate(0, calls, round(calls * prompt), replies))
    return _noted(found, config)


def _thought(model: JudgeConfig) -> int:
    return REASONING_TOKENS if is_reasoning(model.model) else 0


def _noted(estimate: CostEstimate, config: JudgeConfig) -> CostEstimate:
    """Add the notes about a judge."""
    if not config.endpoints:
        estimate.notes = [f"{config.label} sends no requests"]
    if config.provider == DEBATE and estimate.verdicts:
        estimate.notes.append(
            f"{config.label}: messages between the agents are not counted; "
            "expect up to twice the tokens"
        )
    return estimate


def _add_model(
    estimate: CostEstimate, config: JudgeConfig, model: JudgeConfig, work: CostEstimate
) -> None:
    """Add the work of one of a judge's models, with its price."""
    known, tokens = run.current().endpoint(model).price, (work.judge_tokens, work.reply_tokens)
    work.cost = known.cost(*tokens) if known else None
    work.batch_cost = known.cost(*tokens, batch=True) if known else None
    for _ in range(2 if config.provider == DEBATE and model is not config.endpoints[-1] else 1):
        estimate.add(work)


def default_rate() -> tuple[float, str]:
    """Return the calls a second that the user's limits allow, and the limit that decides."""
    limits = settings.judge_limits()
    flight = limits.concurrency or run.CONCURRENCY
    rate, why = (
        flight / SECONDS_PER_CALL,
        f"{flight} requests at a time, {SECONDS_PER_CALL:g} s each",
    )
    per_minute = limits.requests_per_minute
    if per_minute is not None and per_minute / 60 < rate:
        rate, why = per_minute / 60, f"{settings.JUDGE_RPM.option} {per_minute:g}"
    return rate, why


def summary(estimate: CostEstimate) -> str:
    """Return the estimate in words, in one line."""
    if not estimate.calls:
        return f"{estimate.verdicts:,} verdicts, no requests"
    rate, why = default_rate()
    took = f"{duration(estimate.calls / rate)} at {rate:g} calls per second ({why})"
    return (
        f"{estimate.verdicts:,} verdicts, {estimate.calls:,} calls, "
        f"about {estimate.judge_tokens:,} + "
        f"{estimate.reply_tokens:,} tokens, {price(estimate.cost)}, {took}"
    )
