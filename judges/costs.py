"""What judging would cost: calls, tokens, dollars and time, asking nobody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from lmms_eval_tasks import settings
from lmms_eval_tasks.judges import run
from lmms_eval_tasks.judges.config import is_reasoning
from lmms_eval_tasks.judges.engine import render
from lmms_eval_tasks.judges.prices import Counter, count_messages, counter
from lmms_eval_tasks.judges.report import duration, price
from lmms_eval_tasks.judges.verdict import DEBATE, Criterion, JudgeConfig, sum_known

REPLY_TOKENS = 60  # of a verdict with one short reason
REASONING_TOKENS = 600  # more for a model that thinks first
SECONDS_PER_CALL = 2.0  # of one request, where no rate is given

# A criterion, its fields, and a reply of the likely length.
Asked = tuple[Criterion, Mapping[str, object], str]


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


def calls_per_verdict(config: JudgeConfig, model: JudgeConfig) -> int:
    """How often a verdict asks one of its models: a debate's agents twice at most, others once."""
    return 2 if config.provider == DEBATE and model is not config.endpoints[-1] else 1


def add_judge(
    found: CostEstimate,
    model: JudgeConfig,
    judged: Sequence[tuple[Criterion, Mapping[str, object]]],
    times: int,
) -> None:
    """Add to an estimate what one model is asked, `times` times each."""
    each = min(REPLY_TOKENS, model.sampling.max_tokens or REPLY_TOKENS)  # MAIA's says one word
    thinks = is_reasoning(model.model)
    each += REASONING_TOKENS if thinks else 0
    calls = times * len(judged)
    work, number = _priced(model, judged, calls * each, times)
    found.add(work)
    error = "error unknown" if number.error is None else f"within {number.error:.0%} of a total"
    found.notes.append(
        f"{model.label}: tokens by {number.name} ({error if number.error != 0 else 'exact'}); "
        f"replies: {each} tokens assumed{', most of them reasoning' if thinks else ''}"
    )


def plan(config: JudgeConfig, asked: Sequence[Asked], picture_tokens: int = 0) -> CostEstimate:
    """The work of a judge that is asked once for each of `asked`; none for one that asks nobody.

    Without repairs and without what is in our own cache already. `picture_tokens` are those of all
    their pictures, which they leave out.
    """
    if not config.endpoints:
        return CostEstimate(verdicts=len(asked), notes=[f"{config.label} sends no requests"])
    thought = REASONING_TOKENS if is_reasoning(config.model) else 0
    reply = sum(counter(config.model).count(text) + thought for _, _, text in asked)
    work, number = _priced(config, [one[:2] for one in asked], reply, more=picture_tokens)
    assumed = f"; {thought} tokens of reasoning assumed for each reply" if thought else ""
    note = f"{config.label}: tokens by {number.name}{assumed}"
    return replace(work, verdicts=len(asked), notes=[note])


def _priced(
    model: JudgeConfig,
    judged: Sequence[tuple[Criterion, Mapping[str, object]]],
    reply: int,
    times: int = 1,
    more: int = 0,
) -> tuple[CostEstimate, Counter]:
    number, known = counter(model.model), run.current().endpoint(model).price
    prompt = more + times * sum(count_messages(render(*one), number.count) for one in judged)
    work = CostEstimate(calls=times * len(judged), judge_tokens=prompt, reply_tokens=reply)
    work.cost = known.cost(prompt, reply) if known else None
    work.batch_cost = known.cost(prompt, reply, batch=True) if known else None
    return work, number


def default_rate() -> tuple[float, str]:
    """Calls a second that the user's limits allow, and how that was found."""
    limits = settings.judge_limits()
    flight = limits.concurrency or run.CONCURRENCY
    rate, why = flight / SECONDS_PER_CALL, f"{flight} in flight, {SECONDS_PER_CALL:g} s each"
    per_minute = limits.requests_per_minute
    if per_minute is not None and per_minute / 60 < rate:
        rate, why = per_minute / 60, f"{settings.JUDGE_RPM}={per_minute:g}"
    return rate, why


def summary(found: CostEstimate) -> str:
    """The estimate in words, in one line."""
    if not found.calls:
        return f"{found.verdicts:,} verdicts, no requests"
    rate, why = default_rate()
    took = f"{duration(found.calls / rate)} at {rate:g} calls a second ({why})"
    return (
        f"{found.verdicts:,} verdicts, {found.calls:,} calls, about {found.judge_tokens:,} + "
        f"{found.reply_tokens:,} tokens, {price(found.cost)}, {took}"
    )
