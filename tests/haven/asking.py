"""A judge of HAVEN's summaries at a local endpoint, with scripted replies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from lmms_eval_tasks import judges
from lmms_eval_tasks.haven.tasks import BENCHMARK
from lmms_eval_tasks.judges import Judge, run
from lmms_eval_tasks.runs import before
from lmms_eval_tasks.settings import JudgeLimits
from tests.local_endpoint import Fault, LocalEndpoint, choice, completion

Request = dict[str, Any]
Script = Callable[[Request], "str | Fault"]


def stated(score: int, top: Mapping[str, float]) -> Fault:
    """A reply whose score's token has these probabilities."""

    def token(text: str, listed: Mapping[str, float]) -> dict[str, Any]:
        others = [{"token": t, "logprob": math.log(p)} for t, p in listed.items()]
        return {"token": text, "logprob": math.log(listed[text]), "top_logprobs": others}

    content = [token('{"score": ', {'{"score": ': 1.0}), token(str(score), top)]
    content.append(token("}", {"}": 1.0}))
    one = choice(f'{{"score": {score}}}', logprobs={"content": content})
    return completion([one], {"prompt_tokens": 9, "completion_tokens": 3})


def drawn(request: Request, scores: Sequence[object]) -> Fault:
    """As many choices as were asked for, without log-probabilities."""
    picked = [scores[place % len(scores)] for place in range(request.get("n", 1))]
    return completion(
        [choice(f'{{"score": {score}}}') for score in picked],
        {"prompt_tokens": 9, "completion_tokens": 3 * len(picked)},
    )


@contextmanager
def asked(script: Script) -> Iterator[tuple[Judge, LocalEndpoint]]:
    """HAVEN's judge at an endpoint, without repairs, in a run of its own; and the endpoint."""
    with LocalEndpoint(script, model="local") as endpoint, run.use(run.Run(JudgeLimits())):
        config = before.judge_config(BENCHMARK, f"rater@{endpoint.url}", {})
        yield judges.make(replace(config, repairs=0, retries=0)), endpoint
