"""Our order, grounding and keyframe tasks of HAVEN and those for the host, on the sample."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.benchmark import Doc
from lmms_eval_tasks.haven.tasks import BENCHMARK
from lmms_eval_tasks.host import task_functions
from lmms_eval_tasks.report import aggregation
from lmms_eval_tasks.runs import prepare
from lmms_eval_tasks.utils.replies import alignments, orders, summaries
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


# Orders of five shots, clips of three sentences, and frames of ten, as models write them.
ODD_REPLIES = {
    "temporal": (
        *(
            "{}",
            "**{}**",
            "`{}`",
            "```\n{}\n```",
            "Order: {}.",
            "Final answer: {}",
            "\\boxed{{{}}}",
        ),
        *("{}\n\nShot 3 shows a man.", "{} (chronological)", "{} > ...", "{} > Shot 3", "{} > Sho"),
        *("Shot 1 > Shot 2 > Shot 3 > Shot 4 > Shot 5 is how they came. The right order is {}",),
        *("{}\nNot: Shot 1 > Shot 2 > Shot 3", "{} (3 > 1 because the man is older)"),
        *("{}. Shot 2 > Shot 1 would be wrong.", "The order is not {}.", "{}, from last to first"),
        *(
            "From last to first: {}",
            "Reversed: {}",
            "{}\nShot 1 > Shot 2 > Shot 3 > Shot 4 > Shot 5",
        ),
        *("3 > 1 > 2 > 5 > 4", "Shot 3 -> Shot 1 -> Shot 2", "Shot 3 → Shot 1 → Shot 2"),
        *(
            "3, 1, 2, 5, 4",
            "[3, 1, 2, 5, 4]",
            '["Shot 3", "Shot 1"]',
            '{{"order": [3, 1, 2, 5, 4]}}',
        ),
        *("Shot #3 > Shot #1", "Shot_3 > Shot_1", '"Shot 3" > "Shot 1"', "[Shot 3] > [Shot 1]"),
        *(
            "1. Shot 3\n2. Shot 1\n3. Shot 2",
            "Shot 3\nShot 1\nShot 2",
            "Shot 3 >\nShot 1 >\nShot 2",
        ),
        *("Shot 3 (a man) > Shot 1 (a dog)", "Shot 3 > Shot 1, Shot 2", "Shot 3 > Shot 1 = Shot 2"),
        *("5 > 3 is true", "Shot X > Shot Y", "Shot 13 > Shot 1 > Shot 2", "NaN > NaN", "Shot 3"),
        *("Shot 3 comes first, then Shot 1.", "C > A > B", "Shot ３ ＞ Shot １"),
    ),
    "grounding": (
        "Summary 1: Clip 1, 2\nSummary 2: 3\nSummary 3: none",
        "Summary 1: Clips 1-2\nSummary 2: Clip 3\nSummary 3: N/A",
        "Summary 1: Clip 1 to Clip 2\nSummary 2: Clip 3\nSummary 3:",
        "Summary 1: Clips 1 through 4\nSummary 2: Clip 99, Clip 0",
        "**Summary 1**: Clip 1, Clip 2\n**Summary 2**: Clip 3",
        "1. Summary 1: Clip 1, Clip 2\n2. Summary 2: Clip 3",
        "Summary 1: Clip 1, Clip 2; Summary 2: Clip 3; Summary 3: Clip 4",
        "Summary 1: Clip 1, Clip 2 (2 people)\nSummary 2: Clip 3 (at 0:05)",
        "Summary 1: Clip 1, Clip 1, Clip 2\nSummary 2: Clip 3, 3",
        "Summary 1 -> Clip 1 and Clip 2.\nSummary 2 -> Clip 3.",
        "Summary 1:\n- Clip 1\n- Clip 2\nSummary 2:\n- Clip 3",
        "Summary 1\nClip 1, Clip 2\nSummary 2\nClip 3",
        "Summary sentence #1: Clip 1\nSentence 2: Clip 3\nsummary3: clip 4",
        "Summary 2: Clip 3\nSummary 1: Clip 1\nSummary 1: Clip 2",
        "Summary 1: Clip 4\n\nCorrection:\nSummary 1: Clip 1, Clip 2",
        'Summary 1: "One." - Clip 1\nSummary 2 (Two.): Clip 3',
        "Summary 1: not Clip 3, but Clip 1\nSummary 2: None of the clips 1 to 5",
        "Summary 1: Clip 2-1\nSummary 2: Clip 1.5\nSummary 3: Clip NaN",
        '{"Summary 1": ["Clip 1", "Clip 2"], "Summary 2": ["Clip 3"]}',
        "| Summary 1 | Clip 1, Clip 2 |\n| Summary 2 | Clip 3 |",
        "Summary 1: The man walks for 10 seconds (Clip 1, Clip 2)\nSummary 2: Clip 3 of 5",
        *("Clip 1, Clip 2\nClip 3", "Clip 1: Summary 1", "I cannot tell.", "Summary 1: Clip X"),
    ),
    "v2v": (
        *(
            "[3,4,]",
            "['3', '4']",
            "[3.0, 4.0]",
            "The 2 frames of the 10 are 3 and 4",
            "K = 2: [3, 4]",
        ),
        *("[3, 4, 3, 4]", "[]", "[0, 3]", "[999, 3, 4]", "[-3, 4]", "[NaN, 3]", "3\n4", "[[3, 4]]"),
        *("[3-4]", "[0:03, 0:04]", '{"frames": [3, 4]}', "I choose [1, 2]. Wait, no: [3, 4]"),
        *(
            "<think>[1, 2]</think>[3, 4]",
            "<think>[3, 4]",
            "[３, ４]",
            "[10000000000, 3]",
            "[03, 04]",
        ),
    ),
}


@pytest.fixture(scope="module")
def theirs() -> Iterator[Any]:
    """The module of the contribution, on the one that it imports."""
    upstream, tasks = host_copy.UPSTREAM, "lmms_eval/tasks"
    name = "lmms_eval.tasks._task_utils.open_answers"
    with pytest.MonkeyPatch.context() as patch:
        file = upstream / "task_utils" / tasks / "_task_utils/open_answers.py"
        patch.setitem(sys.modules, name, host_copy.module(file))
        yield host_copy.module(upstream / "haven" / tasks / "haven/utils.py")


@pytest.mark.parametrize(
    ("kind", "reply"), [(kind, reply) for kind, own in ODD_REPLIES.items() for reply in own]
)
def test_odd_replies_are_read_as_ours(theirs: Any, kind: str, reply: str) -> None:
    """Both read the same, or neither reads anything."""
    if kind == "temporal":
        reply = reply.format("Shot 3 > Shot 1 > Shot 2 > Shot 5 > Shot 4")
    doc = {"id": "a/1", "source": "a", "kind": kind, "units": [2, 3, 1, 5, 4]}
    doc |= {"sentences": ["One."] * 3, "sentence_shots": [[1, 2], [3], []]}
    doc |= {"picks": [*range(10)], "key_frames": [3, 4]}
    read = theirs.haven_process_results(doc, [reply])["haven_failed"]["read"]
    if kind == "temporal":
        assert tuple(read) == orders.read_order(reply, 5, "Shot").units
    elif kind == "grounding":
        assert [*map(frozenset, read)] == [*alignments.read_alignment(reply, 3, 5).sets]
    else:
        assert tuple(read) == summaries.read_leniently(reply, 10, 2)
