"""Whose trouble it is: the candidate's replies that are no answers, and the judge's failures."""

import json
import math
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from pydantic import BaseModel

from lmms_eval_tasks.judges import Criterion, JudgeConfig, Status, Verdict
from lmms_eval_tasks.judges.asking import VerdictSource, judge_reply, run_scoring
from lmms_eval_tasks.judges.verdict import JudgedAnswer
from lmms_eval_tasks.utils.metrics import aggregate
from tests.checks import refused, table


class Reply(BaseModel):
    correct: bool


CRITERION = Criterion("test", "", "{candidate}", Reply, lambda reply: float(reply.correct), "0")
OK = Verdict(1.0, "ok", "agrees")


class Scripted:
    """Gives one verdict and remembers what it was asked."""

    config = JudgeConfig("openai", "m")

    def __init__(self, verdict: Verdict) -> None:
        self.given, self.asked = verdict, []

    def verdict(self, criterion: Criterion, fields: Mapping[str, Any]) -> Verdict:
        self.asked.append(dict(fields))
        return self.given


def scoring(fields: Mapping[str, Any], reply: str) -> Any:
    """A scoring whose item is what became of the answer."""
    answer = yield from judge_reply("agrees", CRITERION, fields, reply)
    return answer._asdict()


def done(judge: Scripted, reply: str, saved: Verdict | None = None, **fields: str) -> JudgedAnswer:
    """What becomes of a reply; `saved` is its verdict of an earlier run."""

    asker = VerdictSource(judge, {"agrees": saved} if saved else {})
    found = run_scoring(scoring(fields, reply), asker)
    said = found.pop("verdicts")
    assert said == ({} if found["verdict"] is None else {"agrees": found["verdict"].as_dict()})
    return JudgedAnswer(**found)


@table("reply, status")
def test_what_is_no_answer_costs_no_call(reply, status):
    judge = Scripted(OK)
    assert done(judge, reply, question="q") == JudgedAnswer("", status, 0.0, None)
    # Nor does a saved verdict turn it into one; what looks like a refusal is an answer.
    assert done(judge, reply, saved=OK).verdict is None
    assert done(Scripted(OK), "I'm sorry, but I can't help with that.").score == 1.0
    assert judge.asked == []


def test_the_answer_is_judged_without_its_reasoning_unless_a_verdict_was_saved():
    judge = Scripted(OK)
    found = done(judge, "<think>hm</think> rosso \n", question="q")
    assert judge.asked == [{"question": "q", "candidate": "rosso"}]
    assert found == JudgedAnswer("rosso", "ok", 1.0, OK)
    assert done(judge, "rosso", saved=Verdict(0.0, "ok")).score == 0.0
    assert len(judge.asked) == 1


@table("status", ["parse_failure", "api_error", "refused", "truncated", "skipped", "tie"])
def test_the_judges_failures_have_no_score(status):
    found = done(Scripted(Verdict(None, status)), "rosso")
    assert (found.status, found.score) == (f"judge_{status}", None)
    refused(ValueError, "no score", Verdict, 0.0, status)


def test_judge_none_leaves_no_number_and_a_skipped_verdict_is_a_failure():
    waiting = done(Scripted(Verdict(None, "skipped", judge="none")), "x")
    over = done(Scripted(Verdict(None, "skipped", judge="m")), "x")
    assert (waiting.status, over.status) == ("unjudged", "judge_skipped")
    items = [{"right": None, "status": over.status, "category": "a"}]
    items += [{"right": 1, "status": "ok", "category": "b"}]
    # A category of which nothing was judged in a judged run is 0, or skipping would pay.
    assert aggregate.mean_of_groups(aggregate.accuracy, itemgetter("category"), items) == 0.5
    assert aggregate.accuracy([{"right": None, "status": waiting.status}]) is None


def test_a_verdict_as_plain_types():
    zero = Verdict(0.0, Status.OK, "r", "raw", "j", "m", expected=0.0)  # a number, nothing empty
    value = json.loads(json.dumps(zero.as_dict()))
    wanted = {"score": 0.0, "status": "ok", "reason": "r", "raw": "raw", "judge": "j", "model": "m"}
    assert value == {**wanted, "expected": 0.0}
    assert Verdict.from_dict(value) == zero
    for score in (None, math.nan, math.inf):
        refused(ValueError, "finite", Verdict, score, "ok")
