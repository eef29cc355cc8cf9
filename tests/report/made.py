"""Saved runs of the packaged sample, made without the host."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lmms_eval_tasks import registry
from lmms_eval_tasks.benchmark import Doc, Task
from lmms_eval_tasks.judges.asking import VerdictSource, usable
from lmms_eval_tasks.models import fake_replies
from lmms_eval_tasks.runs import messages, prepare, scoring

Reply = Callable[[Task, Doc, int], str]


def recorded(root: Path, file: Path) -> str:
    """The judge of all benchmarks of the sample, as recorded with it."""
    texts = (one.read_text(encoding="utf-8") for one in sorted(root.glob("*/replay.jsonl")))
    file.write_text("".join(texts), encoding="utf-8")
    return f"replay:{file}"


def right(task: Task, doc: Doc, number: int) -> str:
    return fake_replies.known_replies(doc).right


def any_reply(task: Task, doc: Doc, number: int) -> str:
    """The key's replies in turn: some right, some wrong."""
    known = fake_replies.known_replies(doc)
    replies = [known.right, *known.random_replies]
    return replies[number % len(replies)]


def saved_run(
    folder: Path,
    model: str,
    names: list[str],
    reply: Reply,
    judge: str,
    most: int | None = None,
) -> Path:
    """A run's samples, of each task the first ones or all, and results, as the host writes them."""
    folder.mkdir(parents=True)
    for name in names:
        benchmark = registry.of(name)
        task = benchmark.tasks[name]
        asker = VerdictSource(
            usable(lambda benchmark=benchmark: prepare.judge_config(benchmark, judge))
        )
        lines = []
        for number, doc in enumerate(prepare.usable_docs(benchmark, name)[:most]):
            kept = {**task.log_entry(doc), **task.media_log(doc)}
            item = scoring.scored(task, kept, reply(task, doc, number), asker)
            text = messages.text_of(task.prompt(doc))
            lines.append({"doc_id": number, "failed": item, "input": text})
        text = "\n".join(json.dumps(line) for line in lines)
        (folder / f"20260101_000000_samples_{name}.jsonl").write_text(text, encoding="utf-8")
    results: dict[str, Any] = {"model_name": model, "results": {}, "date": "20260101_000000"}
    results["config"] = {"model": model, "model_args": "seed=0", "limit": 3}
    (folder / "20260101_000000_results.json").write_text(json.dumps(results))
    return folder
