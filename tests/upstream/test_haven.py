"""Our order, grounding and keyframe tasks of HAVEN and those for the host, on the sample."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.benchmark import Doc
from lmms_eval_tasks.haven.tasks import BENCHMARK
from lmms_eval_tasks.host import task_functions
from lmms_eval_tasks.report import aggregation
from lmms_eval_tasks.runs import prepare
from tests import warm
from tests.upstream import host_copy

pytestmark = pytest.mark.host

SCORES = {
    "temporal": ("spearman", "kendall"),
    "grounding": ("f1", "iou", "hit1"),
    "v2v": ("precision", "recall", "f1"),
}
TASKS = [f"haven_{kind}{end}" for kind in SCORES for end in ("", "_text")]
REPLIES = {
    "temporal": ("{chain}", "**{chain}**", "<think>{chain}</think>{back}", "Shot 2 > Shot 1", "?"),
    "grounding": (
        "Summary 1: Clip 1, Clip 2\nSummary 2: Clip 3\nSummary 3: Clip 4",
        "Summary 1: Clip 1\nSummary 2: Clip 2, Clip 99",
        "I cannot tell.",
    ),
    "v2v": ("[1, 2]", "```json\n[3, 4, 3, 999]\n```", "Frames 1, 5 and 6", "none of them"),
}


def reply(task: str, number: int, doc: Doc) -> str:
    kind = task.split("_")[1]
    names = [f"Shot {place}" for place, _ in enumerate(doc["units"], 1)]
    forms = {"chain": " > ".join(names), "back": " > ".join(reversed(names))}
    form = REPLIES[kind][number % len(REPLIES[kind])]
    return form.format(**forms) if kind == "temporal" else form


def ours(name: str) -> tuple[dict[str, str], dict[str, Any]]:
    """The replies to a task's docs, and what this package makes of them."""
    docs = {doc["id"]: doc for doc in prepare.usable_docs(BENCHMARK, name)}
    replies = {one: reply(name, number, doc) for number, (one, doc) in enumerate(docs.items())}
    rows = [task_functions.process_results(doc, [replies[one]]) for one, doc in docs.items()]
    items = [json.loads(json.dumps(row["failed"])) for row in rows]
    messages = {one: sent(task_functions.doc_to_messages(doc)) for one, doc in docs.items()}
    return replies, {
        "messages": messages,
        "items": {item["id"]: item["scores"] for item in items},
        "numbers": aggregation.numbers(BENCHMARK.tasks[name], items),
    }


def sent(messages: list[dict[str, Any]]) -> list[str]:
    """The texts of a message; of a picture only its type, since its pixels went through JPEG."""
    return [part.get("text", part["type"]) for part in messages[0]["content"]]


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory, sample_root: Path, cache: Path, server: warm.Server
) -> tuple[dict[str, Any], dict[str, Any]]:
    """By task: ours, and that of the host's copy with the contribution."""
    place = sample_root / "haven"
    made, jobs = {}, []
    env = {"HAVEN_DIR": str(place / "processed"), "HAVEN_VIDEO_DIR": str(place / "videos")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(settings.CACHE, str(cache))
        patch.setenv(settings.DATA, str(sample_root))
        patch.setenv(settings.JUDGE, "none")
        with context.begun():
            for name in TASKS:
                replies, made[name] = ours(name)
                jobs.append({"root": str(place), "env": env, "tasks": [name], "replies": replies})
    folder = tmp_path_factory.mktemp("jobs")
    found, _ = host_copy.scored("haven", jobs, lambda _: "", folder, server)
    return made, {name: task for one in found for name, task in one.items()}


@pytest.mark.parametrize("name", TASKS)
def test_messages_scores_and_numbers_are_equal(both: tuple[Any, Any], name: str) -> None:
    """Every text around the same number of pictures, every video's scores, and their means."""
    own, theirs = both[0][name], both[1][name]
    assert len(own["items"]) > 1
    texts = {
        one: [part if isinstance(part, str) else "image" for part in parts]
        for one, parts in theirs["messages"].items()
    }
    assert texts == own["messages"]
    for metric in SCORES[name.split("_")[1]]:
        records = {one: record[f"haven_{metric}"] for one, record in theirs["records"].items()}
        scores = {one: record["score"] for one, record in records.items()}
        assert scores == pytest.approx({one: item[metric] for one, item in own["items"].items()})
        assert theirs["numbers"][f"haven_{metric}"] == pytest.approx(own["numbers"][metric])
    assert theirs["numbers"]["haven_failed"] == 0
