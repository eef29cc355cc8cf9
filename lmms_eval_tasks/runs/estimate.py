"""What a run would cost before it is started: generations, verdicts, tokens, dollars, time.

Measured on the data's own texts. What cannot be known before (the model's answers, the judge's
reasons) is assumed and said.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import benchmarks
from lmms_eval_tasks.benchmark import NOT_RUN, Benchmark
from lmms_eval_tasks.judges import JudgeConfig
from lmms_eval_tasks.judges.asking import Answer, settle
from lmms_eval_tasks.judges.costs import (
    Estimate,
    add_judge,
    calls_per_verdict,
    plus,
)
from lmms_eval_tasks.judges.verdict import DEBATE, Asks, Criterion, Verdict
from lmms_eval_tasks.report.paper_tables import empty
from lmms_eval_tasks.runs.given import text_of

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Workload:
    """What a task would do over all its data."""

    prompts: Sequence[str]  # the text of each generation, media not included
    # Of each generation, in their order: what the judge is asked, with a stand-in for the model's
    # answer. Empty where nothing is judged, as where the reference is withheld.
    judged: Sequence[Sequence[tuple[Criterion, Mapping[str, Any]]]] = ()


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
        add_judge(found, model, judged, calls_per_verdict(config, model), counter(model.model))
    if config.provider == DEBATE:
        found.notes.append(
            f"{config.label}: what the agents tell each other is not counted; expect up to twice "
            "the tokens"
        )
    return found


def table(estimates: Sequence[Estimate], rate: float) -> Table:
    """The estimates with their sum.

    Args:
        estimates: one for each task.
        rate: calls a second.
    """
    from lmms_eval_tasks.judges.report import dollars, duration

    made = empty("Estimate")
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
        total.cost = plus(total.cost, one.cost)
        total.batch_cost = plus(total.batch_cost, one.batch_cost)
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
    return Workload(prompts, judged)


def _noting(asked: list[tuple[Criterion, Mapping[str, Any]]]) -> Answer:
    def answer(asks: Asks) -> list[Verdict]:
        asked.extend((ask.criterion, ask.fields) for ask in asks)
        # With an expectation no samples are drawn; `stand_in` is what the next list rests on.
        return [Verdict(1.0, "ok", raw=ask.stand_in, expected=1.0) for ask in asks]

    return answer
