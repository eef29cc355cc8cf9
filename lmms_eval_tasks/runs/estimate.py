"""Costs of a run before it is started: generations, verdicts, tokens, dollars, time.

Measured on the data's own texts. What cannot be known before (the model's answers, the judge's
reasons) is assumed and said.
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
    """The work of one task."""
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
    """The requests to the judge on replies to docs; replies and verdicts are stand-ins.

    Empty where nothing is judged, as where the reference is withheld.
    """
    asked: list[JudgeRequest] = []
    items = []
    for number, doc in enumerate(docs if task.judgements else ()):
        kept = task.log_fields(doc)
        scoring = task.score(kept, task.example_reply(doc, number))
        # What comes of the last verdicts, metrics of texts too, takes time and is not needed.
        last = task.judgements if task.score_jointly is None else ()
        with contextlib.suppress(_AllAsked):
            items.append({**kept, **run_scoring(scoring, _stand_ins(asked, last))})
    for _, scoring in task.score_jointly(items) if task.score_jointly else ():
        run_scoring(scoring, _stand_ins(asked))
    return [(request.criterion, request.fields) for request in asked]


class _AllAsked(Exception):  # noqa: N818 - no error
    """A scoring has asked all that it may ask."""


def judge_requests(task: Task, log_item: Item, reply: str) -> list[JudgeRequest]:
    """The requests to the judge about one reply."""
    found: list[JudgeRequest] = []
    run_scoring(task.score(log_item, reply), _stand_ins(found))
    return found


def _stand_ins(
    requests: list[JudgeRequest], names: Collection[str] = ()
) -> Callable[[JudgeRequests], list[Verdict]]:
    """Verdicts that nobody gave, until all of these names were asked; what was asked is found."""
    left = set(names)

    def answer(batch: JudgeRequests) -> list[Verdict]:
        requests.extend(batch)
        left.difference_update(request.name for request in batch)
        if names and not left:
            raise _AllAsked
        # With an expectation no samples are drawn; `stand_in` is what the next list rests on.
        return [Verdict(1.0, "ok", raw=request.stand_in, expected=1.0) for request in batch]

    return answer


def estimate_tables(estimates: Sequence[CostEstimate], rate: float) -> list[Table]:
    """The estimates with their sum, at so many calls a second."""
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
