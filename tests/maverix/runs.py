"""Docs of the packaged sample, answered and scored as in a run, and saved runs of them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval_tasks.judges.asking import VerdictSource, usable
from lmms_eval_tasks.maverix import judge
from lmms_eval_tasks.maverix.labels import LETTERS
from lmms_eval_tasks.maverix.tasks import BENCHMARK
from lmms_eval_tasks.report import aggregation
from lmms_eval_tasks.runs import prepare, scoring

REFUSAL = "I'm sorry, but I can't watch videos."
Doc = dict[str, Any]
Item = dict[str, Any]


def edit(file: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """Change the items of a data file."""
    content = json.loads(file.read_text(encoding="utf-8"))
    change(content["items"])
    file.unlink()
    file.write_text(json.dumps(content), encoding="utf-8")


def without_sound(video: Path, target: Path) -> None:
    """A copy of a video with its picture alone."""
    import av

    with av.open(str(video)) as file, av.open(str(target), "w") as out:
        picture = out.add_stream_from_template(file.streams.video[0])
        for packet in file.demux(video=0):
            if packet.dts is not None:
                packet.stream = picture
                out.mux(packet)


def docs(task: str = "maverix_s") -> list[Doc]:
    """A task's docs, from the data that is set."""
    return [{**doc, "task": task} for doc in BENCHMARK.docs(BENCHMARK.load([task]), task)]


def right(doc: Doc) -> str:
    """The right letter, or a reference."""
    return doc.get("answer") or doc["reference"]


def wrong(doc: Doc) -> str:
    return LETTERS[(LETTERS.index(doc["answer"]) + 1) % 8] if "answer" in doc else "No."


def score(docs: Sequence[Doc], reply: Callable[[Doc], str]) -> list[Item]:
    """The items of the replies to docs of one task, through JSON as in the log."""
    made: list[Item] = []

    def asker(_: Any = None) -> VerdictSource:
        return VerdictSource(usable(lambda: prepare.judge_config(BENCHMARK)))

    for doc in docs:
        task = BENCHMARK.tasks[doc["task"]]
        kept = {**task.log_entry(doc), **task.media_log(doc)}
        made.append(scoring.scored(task, kept, reply(doc), asker()))
    found: list[Item] = json.loads(json.dumps(scoring.scored_together(task, made, asker)))
    return found


def numbers(task: str, items: Sequence[Item]) -> dict[str, Any]:
    return aggregation.numbers(BENCHMARK.tasks[task], items)


def fail(*_: object, **__: object) -> Any:
    raise RuntimeError("a bug of ours")


@functools.cache
def systems() -> dict[str, str]:
    """The judge's system prompt of each dimension and of consistency -> its name."""
    return {criterion.system: name for name, criterion in judge.criteria().items()}


def dimension_of(request: Mapping[str, Any]) -> str:
    """Which dimension, or consistency, a recorded request asks for."""
    system = request["messages"][0]["content"]
    (found,) = [name for text, name in systems().items() if text.strip() in system]
    return found
