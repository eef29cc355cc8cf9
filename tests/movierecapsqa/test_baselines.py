"""The judged baselines against a local endpoint, with and without log-probabilities."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lmms_eval_tasks.judges import Verdict
from lmms_eval_tasks.judges.asking import Asker, settle
from lmms_eval_tasks.judges.verdict import Scoring
from lmms_eval_tasks.movierecapsqa import baselines
from lmms_eval_tasks.movierecapsqa.baselines import GEVAL_NAMES, HELMET_NAMES
from lmms_eval_tasks.settings import JUDGED_BASELINES
from tests.local_endpoint import drawn, error, last_user_text, refused, stated, truncated
from tests.movierecapsqa.asking import Answer, Request, Script, asked_for, at, graded

QUESTION, REFERENCE = "What does he regret?", "How he lived before Pandora."
REPLY = "<think>hm</think> He regrets «everything» before {that}."
NAMES = (*GEVAL_NAMES, *HELMET_NAMES)


def judged(
    script: Script,
    which: Sequence[str] = ("geval",),
    reply: str = REPLY,
    reference: str = REFERENCE,
    saved: Mapping[str, Any] | None = None,
) -> Any:
    """What the baselines say, the verdicts as an item has them, and what was asked."""

    def scoring() -> Scoring:
        made = yield from baselines.rated(which, QUESTION, reference, reply)
        return {"made": made}

    given = {name: Verdict.from_dict(one) for name, one in (saved or {}).items()}
    with at(script) as (judge, endpoint, _):
        found = json.loads(json.dumps(settle(scoring(), Asker(judge, given))))
        return found["made"], found["verdicts"], [chat.json for chat in endpoint.chats]


def replies(**given: Answer) -> Script:
    """A judge with log-probabilities for G-Eval, unless told otherwise."""

    def answer(request: Request) -> Answer:
        name = asked_for(request)
        return given[name] if name in given else GOOD[name]

    return answer


# 0.6 on 4, 0.3 on 5, 0.1 on 3: 4.2; 0.5 on 2 and 0.25 on 1, a quarter on no number: 5/3
GOOD: dict[str, Answer] = {
    "geval_coherence": stated(4, {"4": 0.6, "5": 0.3, "3": 0.1}),
    "geval_consistency": stated(2, {"2": 0.5, "1": 0.25, "x": 0.25}),
    "helmet_fluency": graded(1),
    "helmet_correctness": graded(2),
}
SAMPLES = {"geval_coherence": [4, 5, 4, 3, 4], "geval_consistency": [2, 2, 1, 2, 2]}


def test_g_eval_on_the_scale_of_table_4() -> None:
    """Both dimensions by log-probabilities, or both by samples: a mean of the two is no number."""
    made, _, chats = judged(replies())
    result = made["geval"]
    assert (result["mode"], result["status"], len(chats)) == ("logprobs", "ok", 2)
    found = [(one["score"], one["mass"]) for one in result["dimensions"].values()]
    assert found == [pytest.approx((4.2, 1.0)), pytest.approx((5 / 3, 0.75))]
    assert list(result["dimensions"]) == ["coherence", "consistency"]
    assert result["score"] == pytest.approx(((4.2 + 5 / 3) / 2 - 1) / 4)

    def sampled(request: Request) -> Answer:
        return drawn(request, SAMPLES[asked_for(request)])

    def for_one(request: Request) -> Answer:
        first = asked_for(request) == "geval_coherence" and request.get("n", 1) == 1
        return GOOD["geval_coherence"] if first else sampled(request)

    for script in (for_one, sampled):
        made, _, chats = judged(script)
        result = made["geval"]
        assert (result["mode"], result["status"]) == ("samples", "ok")
        assert result["score"] == pytest.approx(((4.0 + 1.8) / 2 - 1) / 4)
        assert [chat.get("n", 1) for chat in chats] == [1, 1, 5, 5]


def test_grades_of_helmet_and_failures_that_are_none() -> None:
    for fluency, correctness in ((0, 0), (1, 3)):
        given = replies(helmet_fluency=graded(fluency), helmet_correctness=graded(correctness))
        made, _, chats = judged(given, ["helmet"])
        assert [one["score"] for one in made.values()] == [fluency, correctness]
        assert [one["status"] for one in made.values()] == ["ok", "ok"]
        assert len(chats) == 2
        assert not any("logprobs" in chat for chat in chats)
    made, _, _ = judged(lambda _: "Score: 1", ["helmet"])  # a bare grade is read
    assert [one["score"] for one in made.values()] == [1, 1]
    failures: list[tuple[str, Answer, str]] = [
        ("helmet_fluency", graded(2), "parse_failure"),
        ("helmet_correctness", graded(4), "parse_failure"),
        ("helmet_correctness", graded(None), "parse_failure"),
        ("helmet_correctness", truncated('{"reason": "'), "truncated"),
        ("helmet_correctness", refused(), "refused"),
        ("helmet_fluency", error(400), "api_error"),
    ]
    for name, reply, status in failures:
        made, _, _ = judged(replies(**{name: reply}), ["helmet"])
        assert made.pop(name) == {"score": None, "status": f"judge_{status}"}
        assert [one["status"] for one in made.values()] == ["ok"]


def test_what_is_asked_and_saved_failures_stand() -> None:
    script = replies(geval_consistency="?", helmet_fluency=error(400))
    made, found, chats = judged(script, JUDGED_BASELINES)
    # A dimension that failed costs no samples of the other; it was asked for once more.
    shown = {asked_for(chat): last_user_text(chat) for chat in chats}
    assert (sorted(shown), len(chats)) == (sorted(NAMES), len(NAMES) + 1)
    assert (made["geval"]["score"], made["geval"]["status"]) == (None, "judge_parse_failure")
    assert judged(replies(), JUDGED_BASELINES, saved=found) == (made, found, [])
    for name, text in shown.items():
        assert QUESTION in text
        assert "He regrets «everything» before {that}." in text
        assert "hm" not in text
        assert (REFERENCE in text) == (name != "helmet_fluency")


def test_what_is_no_answer_costs_no_call() -> None:
    for reply, status in (
        ("", "empty"),
        ("<think>never closed", "truncated"),
        ("[LMMS_EVAL_REQUEST_FAILED after 3 retries] x", "model_error"),
    ):
        made, found, chats = judged(replies(), JUDGED_BASELINES, reply=reply)
        assert (found, chats) == ({}, [])
        assert {(one["score"] or 0, one["status"]) for one in made.values()} == {(0, status)}
        assert made["geval"]["mode"] is None
    for reply in (REPLY, ""):
        made, _, chats = judged(replies(), JUDGED_BASELINES, reply=reply, reference=" ")
        assert chats == []
        assert {(one["score"], one["status"]) for one in made.values()} == {(None, "no_reference")}
