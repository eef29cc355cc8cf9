"""A judge of MovieRecapsQA at a local endpoint: what a request is about, and scripted replies."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.judges import Criterion, Judge, Verdict, run
from lmms_eval_tasks.judges.asking import Asker, settle
from lmms_eval_tasks.judges.reader import judged
from lmms_eval_tasks.judges.verdict import OPENAI, JudgeConfig, Reply
from lmms_eval_tasks.movierecapsqa import judge as judging
from lmms_eval_tasks.movierecapsqa import tasks
from lmms_eval_tasks.movierecapsqa.judge import WORDS, Context
from lmms_eval_tasks.runs import before
from lmms_eval_tasks.settings import JudgeLimits
from lmms_eval_tasks.utils import prompts
from tests.local_endpoint import Fault, LocalEndpoint, last_user_text

FACTS = ("Jake goes to Pandora.", "Jake regrets his life choices.", "Tommy was a scientist.")
DIALOGUE = "In cryo, you don't dream at all.\nTommy was the scientist, not me."
CONTEXT = Context("seg.1", FACTS, DIALOGUE)
QUESTION = "What does he regret?"
CLAIMS = ["Jake is sorry for how he lived.", "Tommy is a pilot."]
BEST = {name: labels[0] for name, labels in WORDS.items()}

_BLOCK = re.compile(r"<claims-([0-9a-f]{16})>\n(.*)\n</claims-\1>", re.DOTALL)
_TASK = re.compile(r"^Task: (\w+)\.", re.MULTILINE)
Answer = str | Fault
Request = dict[str, Any]
Item = dict[str, Any]
Script = Callable[[Request], Answer]


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


@contextmanager
def at(answer: Script, **limits: Any) -> Iterator[tuple[Judge, LocalEndpoint, run.Run]]:
    """A judge at an endpoint, in a run of its own."""
    with (
        LocalEndpoint(answer) as endpoint,
        run.use(run.Run(JudgeLimits(**limits))) as current,
    ):
        config = before.judge_config(tasks.BENCHMARK, f"m@{endpoint.url}")
        yield judges.make(config), endpoint, current


def judge_reply(
    judge: Judge,
    reply: str,
    saved: Mapping[str, Verdict] | None = None,
    *,
    context: Context = CONTEXT,
    question: str = QUESTION,
) -> Item:
    """An answer before a judge; saved verdicts stand."""
    return settle(judging.judged(context, question, reply), Asker(judge, saved))


def judge_with(answer: Script, reply: str = "He regrets it.") -> tuple[Item, list[Request]]:
    with at(answer) as (judge, endpoint, _):
        return judge_reply(judge, reply), [chat.json for chat in endpoint.chats]


def use_prompts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's prompts, of which a process reads one folder's."""
    monkeypatch.setenv(settings.PROMPTS, str(folder))
    prompts.forget()


def each(done: Item, what: str) -> dict[str, Any]:
    """A field of each dimension."""
    return {name: rated[what] for name, rated in done["dimensions"].items()}


def kinds(requests: Sequence[Request]) -> list[str]:
    return [kind(request) for request in requests]


class Unasked:
    """A judge whom nobody may ask."""

    config = JudgeConfig(OPENAI, "unasked")

    def supports(self, criterion: str) -> bool:
        return bool(criterion)

    def verdict(self, criterion: Criterion, fields: Mapping[str, Any]) -> Verdict:
        raise AssertionError(f"asked {criterion.name}")

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, Any], samples: int
    ) -> list[Verdict]:
        return [self.verdict(criterion, fields)] * samples


class Told(Unasked):
    """A judge whose replies a function makes; read as a model's are."""

    config = JudgeConfig(OPENAI, "told")

    def __init__(self, reply: Callable[[Criterion, Mapping[str, Any]], str]) -> None:
        self.reply = reply

    def verdict(self, criterion: Criterion, fields: Mapping[str, Any]) -> Verdict:
        return judged(criterion, fields, Reply(self.reply(criterion, fields)), "told")
