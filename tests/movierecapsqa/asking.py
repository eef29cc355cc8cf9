"""A judge of MovieRecapsQA at a local endpoint: what a request is about, and scripted replies."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.host import task_functions
from lmms_eval_tasks.judges import Verdict
from lmms_eval_tasks.movierecapsqa import judge as judging
from lmms_eval_tasks.movierecapsqa.baselines import GEVAL_NAMES as GEVAL
from lmms_eval_tasks.movierecapsqa.baselines import HELMET_NAMES as HELMET
from lmms_eval_tasks.movierecapsqa.baselines import criteria
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS, WORDS, SegmentContext
from lmms_eval_tasks.movierecapsqa.settings import BASELINES
from lmms_eval_tasks.movierecapsqa.tasks import BENCHMARK
from lmms_eval_tasks.runs import prepare, rescore
from lmms_eval_tasks.utils.saved_runs import SavedRun
from tests import judged
from tests.judged import Answer, Item, Request, Script
from tests.local_endpoint import Fault, LocalEndpoint, drawn, last_user_text

FACTS = ("Jake goes to Pandora.", "Jake regrets his life choices.", "Tommy was a scientist.")
DIALOGUE = "In cryo, you don't dream at all.\nTommy was the scientist, not me."
CONTEXT = SegmentContext("seg.1", FACTS, DIALOGUE)
QUESTION = "What does he regret?"
CLAIMS = ["Jake is sorry for how he lived.", "Tommy is a pilot."]
BEST = {name: labels[0] for name, labels in WORDS.items()}

_BLOCK = re.compile(r"<claims-([0-9a-f]{16})>\n(.*)\n</claims-\1>", re.DOTALL)
_TASK = re.compile(r"^Task: (\w+)\.", re.MULTILINE)


def kind(request: Mapping[str, Any]) -> str:
    """`claims`, or the dimension that a request is about."""
    text = last_user_text(dict(request))
    found = _TASK.search(text) if _BLOCK.search(text) else None
    return found[1] if found else "claims"


def claims_of(request: Mapping[str, Any]) -> list[str]:
    """The claims in a dimension's request."""
    block = _BLOCK.search(last_user_text(dict(request)))
    assert block is not None
    lines = block[2].split("\n")
    assert [int(line.partition(". ")[0]) for line in lines] == list(range(1, len(lines) + 1))
    return [line.partition(". ")[2] for line in lines]


def claimed(claims: Sequence[str]) -> str:
    """An extractor's reply."""
    return json.dumps({"claims": list(claims)})


def labelled(labels: Sequence[str], score: int = 3, reason: str = "so it is") -> str:
    """A dimension's reply; the labels in the claims' order."""
    given = [{"id": number, "label": label} for number, label in enumerate(labels, 1)]
    return json.dumps({"labels": given, "reason": reason, "score": score})


def graded(score: object, reason: str = "because") -> str:
    """A baseline's reply."""
    return json.dumps({"reason": reason, "score": score})


def script(
    claims: Sequence[str] | Answer = CLAIMS, **replies: Answer
) -> Callable[[dict[str, Any]], Answer]:
    """A judge that finds these claims and rates as told, else every claim with the best label."""

    def answer(request: dict[str, Any]) -> Answer:
        about = kind(request)
        if about in replies:
            return replies[about]
        if about == "claims":
            return claims if isinstance(claims, (str, Fault)) else claimed(claims)
        return labelled([BEST[about]] * len(claims_of(request)), 5)

    return answer


def judge_with(
    answer: Script,
    reply: str = "He regrets it.",
    saved: Mapping[str, Verdict] | None = None,
) -> tuple[Item, list[Request]]:
    """The item of an answer, and what was asked."""
    return judged.scored(BENCHMARK, answer, judging.judge_claims(CONTEXT, QUESTION, reply), saved)


def each(done: Item, what: str) -> dict[str, Any]:
    """A field of each dimension."""
    return {name: rated[what] for name, rated in done["dimensions"].items()}


def kinds(requests: Sequence[Request]) -> list[str]:
    return [kind(request) for request in requests]


# --- answers scored as the host does it, and saved runs of them -----------------------------------

TASK = "movierecapsqa_segment_dialogue"


def asked_for(request: Mapping[str, Any]) -> str:
    """`claims`, a dimension, or a judged baseline."""
    system = request["messages"][0]["content"]
    found = [name for name, one in criteria().items() if one.system == system]
    return found[0] if found else kind(request)


class Rater:
    """Two claims, or one of answers about 20; rates by what it reads; fails where it is told to."""

    def __init__(self, fails: str = "") -> None:
        self.fails = fails

    def __call__(self, request: dict[str, Any]) -> str | Fault:
        name, text = asked_for(request), last_user_text(request)
        if name == self.fails:
            return "nothing that could be read"
        drawn_score = len(text)
        if name == "claims":
            return claimed(["He waits."] if "20" in text else ["He waits.", "It snows."])
        if name in HELMET:
            return graded(drawn_score % (2 if name == "helmet_fluency" else 4))
        if name in GEVAL:
            return drawn(request, [1 + drawn_score % 5, 5])
        labels = [BEST[name] for _ in claims_of(request)]
        return labelled(labels, (drawn_score + DIMENSIONS.index(name)) % 6)


def reply(doc: dict[str, Any]) -> str:
    """An empty answer to one of the four questions."""
    return "" if doc["id"] == "talk.1/11" else f"It is said about {doc['id']}."


@contextmanager
def judged_at(
    script: Script, monkeypatch: pytest.MonkeyPatch, baselines: str = ""
) -> Iterator[LocalEndpoint]:
    """The user's judge is at an endpoint."""
    with LocalEndpoint(script) as endpoint, monkeypatch.context() as patch:
        patch.setenv(settings.JUDGE, f"one@{endpoint.url}")
        patch.setenv(BASELINES, baselines)
        with context.begun():
            yield endpoint


def score(task: str, reply: Callable[[dict[str, Any]], str]) -> list[Item]:
    """The items of a task's replies, through JSON as in the host's log."""
    made = [
        task_functions.process_results(doc, [reply(doc)])
        for doc in prepare.usable_docs(BENCHMARK, task)
    ]
    return [json.loads(json.dumps(one["failed"])) for one in made]


def saved_run(task: str, items: Sequence[Item]) -> SavedRun:
    """A saved run of one task."""
    samples = [{"doc_id": number, "failed": one} for number, one in enumerate(items)]
    return SavedRun(task, Path(f"out/20260101_samples_{task}.jsonl"), samples, "m (x)", {})


def items_of(saved: SavedRun) -> list[Item]:
    return [sample["failed"] for sample in saved.samples]


def again(*runs: SavedRun, judge: str | None = None) -> rescore.Rescored:
    return rescore.rescore_saved(BENCHMARK, runs, judge)


def judged_run(monkeypatch: pytest.MonkeyPatch, baselines: str = "") -> SavedRun:
    """A run of the host whose judge was at an endpoint that is gone by now."""
    with judged_at(Rater(), monkeypatch, baselines=baselines):
        return saved_run(TASK, score(TASK, reply))


def asked(endpoint: LocalEndpoint, since: int = 0) -> dict[str, int]:
    return dict(Counter(asked_for(chat.json) for chat in endpoint.chats[since:]))


EVERYTHING = dict.fromkeys(("claims", *DIMENSIONS), 3)  # of the three answers that are some
