"""The estimate of a judge's work: calls, tokens, dollars and time, asking nobody."""

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

REPLY_TOKENS = 60  # of a verdict with one short reason
REASONING_TOKENS = 600  # more for a model that thinks first
SECONDS_PER_CALL = 2.0  # of one request, where no rate is given

# A criterion, its fields, and a reply of the likely length; "" for a verdict and a short reason.
LikelyRequest = tuple[Criterion, Mapping[str, object], str]


@dataclass
class CostEstimate:
    """The work of a task, a step or a model. Dollars are None where the price is unknown."""

    task: str = ""
    generations: int = 0
    prompt_tokens: int = 0  # text of the model's own prompts
    verdicts: int = 0
    calls: int = 0
    judge_tokens: int = 0
    reply_tokens: int = 0
    cost: float | None = 0.0
    batch_cost: float | None = 0.0
    notes: list[str] = field(default_factory=list)

    def add(self, other: CostEstimate) -> None:
        """Add another one's numbers."""
        for name in _NUMBERS:
            setattr(self, name, sum_known([getattr(self, name), getattr(other, name)]))


_NUMBERS = [one.name for one in fields(CostEstimate) if one.name not in ("task", "notes")]


def plan(
    config: JudgeConfig, asked: Sequence[LikelyRequest], picture_tokens: int = 0
) -> CostEstimate:
    """The work of a judge that is asked once for each of `asked`, of all models behind it.

    Without repairs and without what is in our own cache already. A debate's agents are asked twice
    at most, and what they tell each other is not counted. `picture_tokens` are those of all
    pictures in `asked`, which leave them out.
    """
    found = CostEstimate(verdicts=len(asked))
    for model in config.endpoints if asked else ():
        times = 2 if config.provider == DEBATE and model is not config.endpoints[-1] else 1
        _add_model(found, model, asked, times, picture_tokens)
    if not config.endpoints:
        found.notes = [f"{config.label} sends no requests"]
    if config.provider == DEBATE and asked:
        found.notes.append(
            f"{config.label}: messages between the agents are not counted; "
            "expect up to twice the tokens"
        )
    return found


def _add_model(
    found: CostEstimate,
    model: JudgeConfig,
    asked: Sequence[LikelyRequest],
    times: int,
    picture_tokens: int,
) -> None:
    number, known = counter(model.model), run.current().endpoint(model).price
    short = min(REPLY_TOKENS, model.sampling.max_tokens or REPLY_TOKENS)  # MAIA's says one word
    thought = REASONING_TOKENS if is_reasoning(model.model) else 0
    prompt = picture_tokens + sum(count_messages(render(*one[:2]), number.count) for one in asked)
    reply = sum((number.count(text) if text else short) + thought for *_, text in asked)
    work = CostEstimate(calls=len(asked), judge_tokens=prompt, reply_tokens=reply)
    work.cost = known.cost(prompt, reply) if known else None
    work.batch_cost = known.cost(prompt, reply, batch=True) if known else None
    for _ in range(times):
        found.add(work)
    note = f"{model.label}: tokens by {number.name}"
    if all(text for *_, text in asked):
        note += f"; {thought} tokens of reasoning assumed per reply" if thought else ""
    else:
        error = f"within {number.error:.0%} of a total" if number.error else "exact"
        error = "error unknown" if number.error is None else error
        note += f" ({error}); replies: {short + thought} tokens assumed"
        note += ", most of them reasoning" if thought else ""
    found.notes.append(note)


def default_rate() -> tuple[float, str]:
    """Calls a second that the user's limits allow, and how that was found."""
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


def summary(found: CostEstimate) -> str:
    """The estimate in words, in one line."""
    if not found.calls:
        return f"{found.verdicts:,} verdicts, no requests"
    rate, why = default_rate()
    took = f"{duration(found.calls / rate)} at {rate:g} calls per second ({why})"
    return (
        f"{found.verdicts:,} verdicts, {found.calls:,} calls, about {found.judge_tokens:,} + "
        f"{found.reply_tokens:,} tokens, {price(found.cost)}, {took}"
    )
