"""What a run would cost before it is started: generations, verdicts, tokens, dollars, time.

Measured on the data's own texts. What cannot be known before (the model's answers, the judge's
reasons) is assumed and said.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import benchmarks, settings
from lmms_eval_tasks.benchmark import NOT_RUN, Benchmark
from lmms_eval_tasks.judges import JudgeConfig
from lmms_eval_tasks.judges.asking import Answer, settle
from lmms_eval_tasks.judges.config import DEBATE
from lmms_eval_tasks.judges.verdict import Asks, Criterion, Verdict
from lmms_eval_tasks.runs.given import text_of

if TYPE_CHECKING:
    from rich.table import Table

    from lmms_eval_tasks.judges.tokens import Counter

REPLY_TOKENS = 60  # of a verdict with one short reason, unless the cache has real ones
REASONING_TOKENS = 600  # more for a model that thinks first
SECONDS_PER_CALL = 2.0  # of one request, where no rate is given


@dataclass(frozen=True)
class Workload:
    """What a task would do over all its data."""

    prompts: Sequence[str]  # the text of each generation, media not included
    max_reply_tokens: int  # that the task lets the model write
    # Of each generation, in their order: what the judge is asked, with a stand-in for the model's
    # answer. Empty where nothing is judged, as where the reference is withheld.
    judged: Sequence[Sequence[tuple[Criterion, Mapping[str, Any]]]] = ()


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


def estimate(
    task: Mapping[str, Any], config: JudgeConfig | None, limit: int | None = None
) -> Estimate:
    """The work of one task.

    Args:
        task: its YAML.
        config: the judge; None if nothing is to be judged.
        limit: as the host's `--limit`.
    """
    from lmms_eval_tasks.judges.tokens import counter

    work = workload(benchmarks.of(task["task"]), task)
    prompts = list(itertools.islice(work.prompts, limit))
    judged = [one for asked in itertools.islice(work.judged, limit) for one in asked]
    plain = counter("")
    found = Estimate(task["task"], len(prompts), sum(plain.count(prompt) for prompt in prompts))
    if config is None or not judged:
        return found
    found.verdicts = len(judged)
    for model in config.endpoints:
        _add_judge(found, model, judged, _calls_per_verdict(config, model), counter(model.model))
    if config.provider == DEBATE:
        found.notes.append(
            f"{config.label}: what the agents tell each other is not counted; expect up to twice "
            "the tokens"
        )
    return found


def _calls_per_verdict(config: JudgeConfig, model: JudgeConfig) -> int:
    """A debate asks each agent once a round; everyone else is asked once."""
    is_agent = config.provider == DEBATE and model is not config.endpoints[-1]
    return config.rounds if is_agent else 1


def _add_judge(
    found: Estimate,
    model: JudgeConfig,
    judged: Sequence[tuple[Criterion, Mapping[str, Any]]],
    calls: int,
    count: Counter,
) -> None:
    from lmms_eval_tasks.judges import run
    from lmms_eval_tasks.judges.prompts import render
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
        found.cost = _plus(found.cost, plain)
        found.batch_cost = _plus(found.batch_cost, batch)


def reply_tokens(model: JudgeConfig, criteria: set[str]) -> tuple[float, str]:
    """Mean tokens of this judge's replies so far, or an assumption; and which of the two."""
    from lmms_eval_tasks.judges import run
    from lmms_eval_tasks.judges.cache_files import mean_reply_tokens
    from lmms_eval_tasks.judges.config import is_reasoning

    cache = run.current().cache
    if cache is not None and (seen := mean_reply_tokens(cache.path, model.label, criteria)):
        mean, number = seen
        return mean, f"{mean:.0f} tokens, the mean of {number:,} in the cache"
    if is_reasoning(model.model):
        assumed = REPLY_TOKENS + REASONING_TOKENS
        return assumed, f"{assumed} tokens assumed, most of them reasoning"
    return REPLY_TOKENS, f"{REPLY_TOKENS} tokens assumed"


def _plus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _error(count: Counter) -> str:
    if count.error is None:
        return " (error unknown)"
    return " (exact)" if count.error == 0 else f" (within {count.error:.0%} of a total)"


def table(estimates: Sequence[Estimate], rate: float) -> Table:
    """The estimates with their sum.

    Args:
        estimates: one for each task.
        rate: calls a second.
    """
    from rich import box
    from rich.table import Table

    from lmms_eval_tasks.judges.ledger import dollars

    made = Table(title="Estimate", title_justify="left", box=box.SIMPLE_HEAD)
    made.add_column("task", overflow="fold")
    for title in (
        "generations",
        "prompt tokens\n(text only)",
        "verdicts",
        "judge calls",
        "judge tokens\nin + out",
        "cost",
        "as a batch",
        "judging\ntakes",
    ):
        made.add_column(title, justify="right")
    total = Estimate("all", 0, 0)
    for one in estimates:
        for name in ("generations", "prompt_tokens", "verdicts", "calls", "judge_tokens"):
            setattr(total, name, getattr(total, name) + getattr(one, name))
        total.reply_tokens += one.reply_tokens
        total.cost = _plus(total.cost, one.cost)
        total.batch_cost = _plus(total.batch_cost, one.batch_cost)
    for one in [*estimates, total] if len(estimates) > 1 else estimates:
        made.add_row(
            one.task,
            f"{one.generations:,}",
            f"{one.prompt_tokens:,}",
            f"{one.verdicts:,}",
            f"{one.calls:,}",
            f"{one.judge_tokens:,} + {one.reply_tokens:,}",
            "unknown" if one.cost is None else dollars(one.cost),
            "unknown" if one.batch_cost is None else dollars(one.batch_cost),
            duration(one.calls / rate),
        )
    return made


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


def duration(seconds: float) -> str:
    """Seconds in words, to the precision of an estimate."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def workload(benchmark: Benchmark, task: Mapping[str, Any]) -> Workload:
    """What a run of a task would generate and ask, over all its data; nobody is asked.

    Replies are stand-ins (`Task.stand_in`), and so are verdicts.

    Args:
        benchmark: the task's.
        task: its YAML.
    """
    name = str(task["task"])
    found = benchmark.look([name], videos=False)
    own = benchmark.tasks[name]
    docs = [doc for doc in benchmark.docs(found, name) if not doc.get(NOT_RUN)]
    prompts = [text_of(own.prompt(doc)) for doc in docs]
    judged: list[list[tuple[Criterion, Mapping[str, Any]]]] = []
    for number, doc in enumerate(docs if own.asks else ()):
        asked: list[tuple[Criterion, Mapping[str, Any]]] = []
        settle(own.score(own.keep(doc), own.stand_in(doc, number)), _noting(asked))
        judged.append(asked)
    return Workload(prompts, task["generation_kwargs"]["max_new_tokens"], judged)


def _noting(asked: list[tuple[Criterion, Mapping[str, Any]]]) -> Answer:
    def answer(asks: Asks) -> list[Verdict]:
        asked.extend((ask.criterion, ask.fields) for ask in asks)
        # With an expectation no samples are drawn; `stand_in` is what the next list rests on.
        return [Verdict(1.0, "ok", raw=ask.stand_in, expected=1.0) for ask in asks]

    return answer
