"""The functions that task files name, for all benchmarks, and the tables of metrics.

lmms-eval resolves `!function` by a plain getattr. So names with a task or group in them are made
when a selected task uses them (PEP 562): `docs_TASK`, `metrics_TASK`, `data_BENCHMARK`,
`joined_GROUP__NUMBER`.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks import context, registry, sample, settings
from lmms_eval_tasks.benchmark import Benchmark, Doc, Task
from lmms_eval_tasks.host import needs
from lmms_eval_tasks.host.requests import delivery
from lmms_eval_tasks.judges import run as judge_run
from lmms_eval_tasks.judges.asking import VerdictSource, usable
from lmms_eval_tasks.runs import messages, prepare, scoring
from lmms_eval_tasks.utils.json_files import JsonObject

if TYPE_CHECKING:
    from datasets import Dataset

    from lmms_eval_tasks.judges.verdict import Judge, JudgeRequests, Verdict

Kwargs = Mapping[str, str] | None


def __getattr__(name: str) -> object:
    kind, _, rest = name.partition("_")
    if kind == "data" and rest in registry.NAMES:
        return str(_rows(rest))
    if kind == "docs":
        return _docs(rest)
    if kind == "metrics":
        benchmark, task = _of(rest)
        return scoring.metric_list(task, benchmark.joint_metrics)
    if kind == "joined":
        group, _, number = rest.partition("__")
        benchmark = registry.of(group)
        (joint,) = (one for one in benchmark.joint_metrics if one.group == group)
        return scoring.group_number(joint, number)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _of(task: str) -> tuple[Benchmark, Task]:
    benchmark = registry.of(task)
    return benchmark, benchmark.tasks[task]


def _rows(benchmark: str) -> Path:
    """Return a folder for lmms-eval's `load_from_disk`, whose split `test` has one row (`_docs`).

    The folder needs no dataset builder, no lock and no hub. It is written under another name and
    then renamed, which is safe with several processes.
    """
    target = settings.cache_dir() / "datasets" / benchmark
    if target.is_dir():
        return target
    from datasets import Dataset, DatasetDict

    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{benchmark}-", dir=target.parent) as temporary:
        rows = DatasetDict({"test": Dataset.from_list([{"benchmark": benchmark}])})
        rows.save_to_disk(f"{temporary}/rows")
        try:
            os.rename(f"{temporary}/rows", target)  # noqa: PTH104
        except OSError:  # another process was first
            if not target.is_dir():
                raise
    return target


def _docs(task: str) -> Callable[[Dataset], Dataset]:
    def process_docs(dataset: Dataset) -> Dataset:  # noqa: ARG001 - lmms-eval's row is empty
        from datasets import Dataset
        from datasets.table import InMemoryTable

        needs.met()  # reports missing parts, if this is our first code in the run
        sample.ready()
        docs = list(context.by_rank(prepare.usable_docs(_of(task)[0], task)))
        columns = {name: [doc.get(name) for doc in docs] for name in (docs[0] if docs else ())}
        # The fingerprint is not used here, and hashing all rows would take four fifths of the time.
        return Dataset(InMemoryTable.from_pydict(columns), fingerprint=uuid.uuid4().hex)

    return process_docs


# --- the request to the model -------------------------------------------------------------------


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Kwargs = None) -> str:
    """Return the prompt's text, for simple models."""
    return messages.text_of(_of(doc["task"])[1].prompt(doc), lmms_eval_specific_kwargs)


def doc_to_visual(doc: Doc) -> list[object]:
    """Return the prompt's pictures, files and sound in order, for simple models."""
    delivery.note_request(delivery.request_name(doc["task"], str(doc["id"])))
    return messages.visuals_of(_of(doc["task"])[1].prompt(doc))


def doc_to_messages(doc: Doc, lmms_eval_specific_kwargs: Kwargs = None) -> list[JsonObject]:  # noqa: ARG001
    """Return one user turn with the prompt's parts in order, for chat models.

    If the task has a system text, a system turn comes first.
    """
    delivery.note_request(delivery.request_name(doc["task"], str(doc["id"])))
    _, task = _of(doc["task"])
    return messages.messages_of(task.prompt(doc), task.system(doc))


# --- scores of the reply ------------------------------------------------------------------------


def process_results(doc: Doc, results: list[str]) -> Mapping[str, object]:
    """Return the scores of a reply by metric; an unreadable or unjudged reply has a status.

    Nothing raises an error here.
    """
    benchmark, task = _of(doc["task"])
    reply = results[0] if results and isinstance(results[0], str) else ""
    kept = {**task.log_entry(doc), **messages.media_log(task, doc)}
    request = task.name, str(doc["id"])
    known = context.current().instance_of(delivery.Deliveries)
    if seen := known.delivered.get(request):
        kept["arrived"] = {**seen, "of": task.frames(doc)}
    if request in known.at_limit:
        kept["at_limit"] = known.at_limit[request]
    # A task without judgements needs no usable judge.
    answer = VerdictSource(_judge(judge_run.current(), benchmark)) if task.judgements else _nobody
    return scoring.to_host_rows(
        task, benchmark.joint_metrics, scoring.scored(task, kept, reply, answer)
    )


@lru_cache(maxsize=len(registry.NAMES))
def _judge(run: judge_run.JudgeSession, benchmark: Benchmark) -> Judge:  # noqa: ARG001
    """Return the run's judge, looked up once, so that later changes of settings have no effect."""
    return usable(lambda: prepare.judge_config(benchmark))


def _nobody(requests: JudgeRequests) -> Sequence[Verdict]:
    raise TypeError(f"a task without judgements asks for {[one.name for one in requests]}")
