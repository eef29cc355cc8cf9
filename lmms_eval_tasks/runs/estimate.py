"""The costs of a run before it starts: generations, verdicts, tokens, dollars and time.

They are measured on the texts of the data. The model's answers and the judge's reasons are unknown
before a run. Their lengths are assumptions, which the output states.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from lmms_eval_tasks import registry
from lmms_eval_tasks.benchmark import Doc, Item, Task
from lmms_eval_tasks.judges import JudgeConfig
from lmms_eval_tasks.judges.asking import run_scoring
from lmms_eval_tasks.judges.costs import CostEstimate, plan
from lmms_eval_tasks.judges.prices import counter
from lmms_eval_tasks.judges.verdict import Criterion, JudgeRequest, JudgeRequests, Verdict
from lmms_eval_tasks.runs import media
from lmms_eval_tasks.runs.messages import text_of
from lmms_eval_tasks.tables.paper_tables import by_row
from lmms_eval_tasks.utils.json_files import Json

if TYPE_CHECKING:
    from rich.table import Table


def estimate(task: str, config: JudgeConfig | None, limit: int | None = None) -> CostEstimate:
    """Return the work of one task: its requests to the model and, with a judge, to the judge.

    Args:
        task: name of the task.
        config: the judge; None leaves out the judge's work.
        limit: lmms-eval's `--limit`.
    """
    benchmark = registry.of(task)
    own = benchmark.tasks[task]
    docs = benchmark.docs(benchmark.load([task], videos=False), task)
    docs = docs[: media.docs_per_task([len(docs)], limit)[0]]
    plain = counter("")
    tokens = sum(plain.count(text_of(own.prompt(doc))) for doc in docs)
    found = CostEstimate(task, len(docs), tokens)
    judged = requests(own, docs) if config is not None else []
    if config is not None and judged and config.endpoints:
        work = plan(config, [(*one, "") for one in judged])
        found.add(work)
        found.notes = work.notes
    found.verdicts = len(judged)
    return found


def requests(task: Task, docs: Sequence[Doc]) -> list[tuple[Criterion, Mapping[str, Json]]]:
    """Return the requests to the judge about example replies to docs.

    The list is empty if nothing is judged, for example if the reference is withheld.
    """
    collected: list[JudgeRequest] = []
    items = []
    for number, doc in enumerate(docs if task.judgements else ()):
        log_item = task.log_fields(doc)
        scoring = task.score(log_item, task.example_reply(doc, number))
        # The work after the last request, such as metrics of texts, takes time and is not needed.
        last = task.judgements if task.score_jointly is None else ()
        with contextlib.suppress(_AllAsked):
            items.append({**log_item, **run_scoring(scoring, _stand_ins(collected, last))})
    for _, scoring in task.score_jointly(items) if task.score_jointly else ():
        run_scoring(scoring, _stand_ins(collected))
    return [(request.criterion, request.fields) for request in collected]


class _AllAsked(Exception):  # noqa: N818 - no error
    """The signal that a scoring has made all its requests."""


def judge_requests(task: Task, log_item: Item, reply: str) -> list[JudgeRequest]:
    """Return the requests to the judge about one reply."""
    collected: list[JudgeRequest] = []
    run_scoring(task.score(log_item, reply), _stand_ins(collected))
    return collected


def _stand_ins(
    requests: list[JudgeRequest], names: Collection[str] = ()
) -> Callable[[JudgeRequests], list[Verdict]]:
    """Return a function that gives made-up verdicts and appends the requests to `found`.

    It raises `_AllAsked` once all requests of these names were made.
    """
    left = set(names)

    def answer(batch: JudgeRequests) -> list[Verdict]:
        requests.extend(batch)
        left.difference_update(request.name for request in batch)
        if names and not left:
            raise _AllAsked
        # An expected value stops the drawing of samples. Later requests rest on the reply
        # `stand_in`.
        return [Verdict(1.0, "ok", raw=request.stand_in, expected=1.0) for request in batch]

    return answer


def estimate_tables(estimates: Sequence[CostEstimate], rate: float) -> list[Table]:
    """Return the table of the estimates with their sum.

    `rate` is the number of requests to the judge per second.
    """
    from lmms_eval_tasks.judges.report import dollars, duration

    total = CostEstimate("all")
    for one in estimates:
        total.add(one)
    columns = (
        *("generations", "prompt tokens\n(text only)", "verdicts", "judge calls"),
        *("judge tokens\nin + out", "cost", "as a batch", "judging\ntakes"),
    )
    rows = [
        (
            (one.task,),
            (
                *(f"{n:,}" for n in (one.generations, one.prompt_tokens, one.verdicts, one.calls)),
                f"{one.judge_tokens:,} + {one.reply_tokens:,}",
                *("unknown" if n is None else dollars(n) for n in (one.cost, one.batch_cost)),
                duration(one.calls / rate),
            ),
        )
        for one in ([*estimates, total] if len(estimates) > 1 else estimates)
    ]
    return by_row("Estimate", ["task"], columns, rows)
