"""One answer before a judge at a local endpoint, for every benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from lmms_eval_tasks import judges
from lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_tasks.judges import Judge, Verdict, run
from lmms_eval_tasks.judges.asking import VerdictSource, run_scoring
from lmms_eval_tasks.judges.verdict import ScoringSteps
from lmms_eval_tasks.runs import prepare
from lmms_eval_tasks.settings import JudgeLimits
from tests.local_endpoint import Fault, LocalEndpoint

Answer = str | Fault
Request = dict[str, Any]
Item = dict[str, Any]
Script = Callable[[Request], Answer]


@contextmanager
def at(
    benchmark: Benchmark, script: Script
) -> Iterator[tuple[Judge, LocalEndpoint, run.JudgeSession]]:
    """A benchmark's judge at an endpoint, in a run of its own."""
    with LocalEndpoint(script) as endpoint, run.use(run.JudgeSession(JudgeLimits())) as current:
        config = prepare.judge_config(benchmark, f"m@{endpoint.url}", {})
        yield judges.make_judge(replace(config, retries=0)), endpoint, current


def scored(
    benchmark: Benchmark,
    script: Script,
    scoring: ScoringSteps[Any],
    saved: Mapping[str, Verdict] | None = None,
) -> tuple[Item, list[Request]]:
    """The item of a scoring, and what was asked; saved verdicts stand."""
    with at(benchmark, script) as (judge, endpoint, _):
        return run_scoring(scoring, VerdictSource(judge, saved)), [
            chat.json for chat in endpoint.chats
        ]
