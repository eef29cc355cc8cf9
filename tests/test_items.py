"""Docs and items of every packaged sample are of the types in the benchmark's items.py."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from pydantic import TypeAdapter

from lmms_eval_tasks import judges, registry, settings
from lmms_eval_tasks.benchmark import Benchmark, Task
from lmms_eval_tasks.cvrr_es.items import CvrrItem, RatingItem
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.haven.items import HavenItem
from lmms_eval_tasks.judges.asking import VerdictSource
from lmms_eval_tasks.judges.providers.replay import NoJudge
from lmms_eval_tasks.judges.verdict import Judge
from lmms_eval_tasks.maia.items import OevqaItem, PairItem
from lmms_eval_tasks.maverix.items import ChoiceItem, OpenItem
from lmms_eval_tasks.models import fake_replies
from lmms_eval_tasks.movierecapsqa.items import RecapItem
from lmms_eval_tasks.movierecapsqa.settings import BASELINES, JUDGED_BASELINES
from lmms_eval_tasks.runs import rescore, scoring
from lmms_eval_tasks.utils.saved_runs import SavedRun
from tests.checks import refused, table

ITEMS = (PairItem, OevqaItem, ChoiceItem, OpenItem, RecapItem, HavenItem, CvrrItem, RatingItem)
# Fields that the run adds to items; not every task declares them (host/task_functions.py).
OF_THE_RUN = {"media", "asked_hash", "arrived", "at_limit"}


def type_of(function: Any, name: str) -> type:
    """The annotation of a parameter, or of what is returned; or the fields that are selected."""
    if isinstance(function, partial):
        if kind := function.keywords.get("kind"):
            return kind
        function = function.func
    found: type = get_type_hints(function)[name]
    return found


def item_type(task: Task) -> type:
    """The one whose fields are those that are kept."""
    kept = type_of(task.log_fields, "return").__annotations__
    (found,) = (one for one in ITEMS if kept.items() <= one.__annotations__.items())
    return found


@cache
def adapter(kind: type) -> TypeAdapter[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pydantic cannot hold a dict to ReadOnly
        return TypeAdapter(kind)


def check(kind: type, value: Mapping[str, Any], more: frozenset[str] = frozenset()) -> None:
    adapter(kind).validate_python(dict(value), strict=True)
    assert value.keys() - kind.__annotations__.keys() <= more, kind


def docs_of(benchmark: Benchmark, task: Task) -> list[Mapping[str, Any]]:
    docs = list(benchmark.docs(benchmark.load([task.name], videos=False), task.name))
    return docs[:: max(1, len(docs) // 5)]


def replies_to(task: Task, doc: Mapping[str, Any]) -> Iterator[str]:
    yield from ("", task.example_reply(doc, 0), "I cannot help with that.", '{"lm_pairs": 1}')
    with suppress(TasksError):
        known = fake_replies.known_replies(doc)
        yield from (known.right, known.wrong, known.unreadable)


def judge_of(root: Path, benchmark: Benchmark) -> Judge:
    """The recorded one, where the sample has one."""
    file = root / benchmark.name / "replay.jsonl"
    if not file.is_file():
        return NoJudge()
    return judges.make_judge(judges.resolve(f"replay:{file}", {}, default_model=""))


@table("name", registry.NAMES)
def test_docs_and_items_are_of_their_types(
    name: str, sample_root: Path, on_sample: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BASELINES, ",".join(JUDGED_BASELINES))
    monkeypatch.setenv(settings.JUDGE, "none")
    benchmark = registry.load_benchmark(name)
    judge, statuses = judge_of(sample_root, benchmark), set()
    for task in benchmark.tasks.values():
        whole = item_type(task)
        for doc in docs_of(benchmark, task):
            check(type_of(task.prompt, "doc"), doc)
            kept = task.log_fields(doc)
            check(type_of(task.log_fields, "return"), kept)
            for reply in replies_to(task, doc):
                item = scoring.scored(task, kept, reply, VerdictSource(judge))
                check(whole, {"media": None, **item}, frozenset(OF_THE_RUN))
                statuses.add(item["status"])
            broken = {"media": None, **kept, **task.failed_item, "status": "error", "reply": ""}
            check(whole, broken, frozenset(OF_THE_RUN))
    assert {"ok", "empty"} <= statuses, statuses
    assert "error" not in statuses


@table("name", registry.NAMES)
def test_a_saved_item_that_lacks_a_field_is_named(
    name: str, on_sample: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line with the file, before anything is scored again."""
    monkeypatch.setenv(settings.JUDGE, "none")
    benchmark = registry.load_benchmark(name)
    for task in {
        (one.score, tuple(one.required_fields)): one for one in benchmark.tasks.values()
    }.values():
        docs = [task.log_fields(doc) for doc in docs_of(benchmark, task)[:2]]
        items = [scoring.scored(task, doc, "", VerdictSource(NoJudge())) for doc in docs]
        for field in {*task.required_fields, task.cluster_field} - {"id"}:
            without = {key: one for key, one in items[1].items() if key != field}
            samples = [{"doc_id": n, "failed": one} for n, one in enumerate([items[0], without])]
            run = SavedRun(
                task.name, Path(f"out/1_samples_{task.name}.jsonl"), samples, "m (x)", {}
            )
            told = rf"^{run.file}: {re.escape(items[1]['id'])} has no `{field}`; delete its line"
            refused(DataError, told, rescore.rescore_saved, benchmark, [run], None)
            without[field] = None  # as some fields of earlier versions
            refused(DataError, f"{field}`", rescore.rescore_saved, benchmark, [run], None)


@table("name", registry.NAMES)
def test_names_of_fields_are_fields(name: str) -> None:
    """Those that tasks and metrics name as text, which mypy does not see."""
    for task in registry.load_benchmark(name).tasks.values():
        known = item_type(task).__annotations__.keys()
        named = {*task.failed_item, *task.required_fields, task.cluster_field, *task.splits}
        for metric in task.metrics:
            named |= {one.partition(".")[0] for one in metric.host_fields or ()} | {
                metric.mean_field
            }
        assert named - {""} <= known, task.name
        # Of items of several kinds, not each has all: a pair has no references.
        assert known & set(task.identity), task.name
    every = {name for one in ITEMS for name in one.__annotations__}
    assert {
        one for task in registry.load_benchmark(name).tasks.values() for one in task.identity
    } <= every
