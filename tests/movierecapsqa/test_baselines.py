"""The judged baselines against a local endpoint, with and without log-probabilities."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from lmms_eval_tasks import judges
from lmms_eval_tasks.judges import Judge, Verdict, geval, run
from lmms_eval_tasks.judges.asking import Asker, settle
from lmms_eval_tasks.judges.verdict import Scoring
from lmms_eval_tasks.movierecapsqa import baselines
from lmms_eval_tasks.movierecapsqa.baselines import GEVAL_NAMES, HELMET_NAMES, criteria
from lmms_eval_tasks.settings import JUDGED_BASELINES, JudgeLimits
from tests.local_endpoint import (
    Fault,
    LocalEndpoint,
    drawn,
    error,
    last_user_text,
    refused,
    stated,
    truncated,
)
from tests.movierecapsqa.asking import graded

QUESTION, REFERENCE = "What does he regret?", "How he lived before Pandora."
REPLY = "<think>hm</think> He regrets «everything» before {that}."
NAMES = (*GEVAL_NAMES, *HELMET_NAMES)

Request = dict[str, Any]
Answer = str | Fault
Script = Callable[[Request], Answer]


def name_of(request: Request) -> str:
    """The criterion that a request asks for."""
    system = request["messages"][0]["content"]
    (found,) = [name for name, one in criteria().items() if system == one.system]
    return found


def rate(
    judge: Judge,
    which: Sequence[str],
    reply: str = REPLY,
    saved: Mapping[str, Any] | None = None,
    reference: str = REFERENCE,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the baselines say, and the verdicts as an item has them."""

    def scoring() -> Scoring:
        made = yield from baselines.rated(which, QUESTION, reference, reply)
        return {"made": made}

    given = {name: Verdict.from_dict(one) for name, one in (saved or {}).items()}
    found = json.loads(json.dumps(settle(scoring(), Asker(judge, given))))
    return found["made"], found["verdicts"]


@contextmanager
def asked(script: Script) -> Iterator[tuple[Judge, LocalEndpoint]]:
    """The run's judge at an endpoint, without repairs, and the endpoint."""
    with LocalEndpoint(script, model="local") as endpoint, run.use(run.Run(JudgeLimits())):
        config = judges.resolve(f"rater@{endpoint.url}", {}, default_model="gpt-4.1-mini")
        yield judges.make(replace(config, repairs=0, retries=0)), endpoint


def judged(script: Script, which: Sequence[str] = ("geval",), **more: Any) -> Any:
    """What the baselines say, the verdicts, and what was asked."""
    with asked(script) as (judge, endpoint):
        made, found = rate(judge, which, **more)
    return made, found, [chat.json for chat in endpoint.chats]


GOOD = {
    "geval_coherence": '{"score": 4}',
    "geval_consistency": '{"score": 2}',
    "helmet_fluency": graded(1),
    "helmet_correctness": graded(2),
}
# 0.6 on 4, 0.3 on 5, 0.1 on 3: 4.2; 0.5 on 2 and 0.25 on 1, a quarter on no number: 5/3
COHERENCE, CONSISTENCY = {"4": 0.6, "5": 0.3, "3": 0.1}, {"2": 0.5, "1": 0.25, "x": 0.25}
SAMPLES = {"geval_coherence": [4, 5, 4, 3, 4], "geval_consistency": [2, 2, 1, 2, 2]}


def with_logprobs(request: Request) -> Answer:
    is_coherence = name_of(request) == "geval_coherence"
    return stated(4, COHERENCE) if is_coherence else stated(2, CONSISTENCY)


def without_logprobs(request: Request) -> Answer:
    return drawn(request, SAMPLES[name_of(request)])


# --- G-Eval -----------------------------------------------------------------------------------


def test_log_probabilities_give_the_mean_of_the_scale() -> None:
    made, _, chats = judged(with_logprobs)
    result = made["geval"]
    coherence, consistency = (result["dimensions"][n] for n in ("coherence", "consistency"))
    assert (coherence["score"], coherence["mass"]) == pytest.approx((4.2, 1.0))
    assert (consistency["score"], consistency["mass"]) == pytest.approx((5 / 3, 0.75))
    assert (result["mode"], result["status"]) == ("logprobs", "ok")
    assert result["score"] == pytest.approx(((4.2 + 5 / 3) / 2 - 1) / 4)
    # Two requests and no more, at temperature 0.
    assert sorted(map(name_of, chats)) == sorted(GEVAL_NAMES)
    for chat in chats:
        assert (chat["logprobs"], chat["top_logprobs"]) == (True, 20)
        assert (chat["temperature"], chat.get("n")) == (0.0, None)


def test_both_dimensions_have_one_mode() -> None:
    """A mean of two measurements would be none."""

    def for_one(request: Request) -> Answer:
        if name_of(request) == "geval_coherence" and request.get("n", 1) == 1:
            return stated(4, COHERENCE)
        return without_logprobs(request)

    for script in (for_one, without_logprobs):
        made, found, chats = judged(script)
        result = made["geval"]
        assert (result["mode"], result["status"]) == ("samples", "ok")
        ratings = [one["score"] for one in result["dimensions"].values()]
        assert ratings == [pytest.approx(4.0), pytest.approx(1.8)]
        assert result["score"] == pytest.approx(((4.0 + 1.8) / 2 - 1) / 4)
        assert [len(found[name]["parts"]) for name in GEVAL_NAMES] == [geval.SAMPLES] * 2
        assert [chat.get("n", 1) for chat in chats] == [1, 1, 5, 5]


# --- HELMET -----------------------------------------------------------------------------------


def test_grades() -> None:
    for fluency, correctness in ((0, 0), (1, 3)):
        replies = {"helmet_fluency": graded(fluency), "helmet_correctness": graded(correctness)}
        made, _, chats = judged(lambda one, r=replies: r[name_of(one)], ["helmet"])
        assert made == {
            "helmet_fluency": {"score": fluency, "status": "ok"},
            "helmet_correctness": {"score": correctness, "status": "ok"},
        }
        assert len(chats) == 2
        assert not any("logprobs" in chat for chat in chats)
    made, _, _ = judged(lambda _: "Score: 1", ["helmet"])  # a bare grade is read
    assert [one["score"] for one in made.values()] == [1, 1]


def test_a_judges_failure_is_no_grade() -> None:
    failures: list[tuple[str, Answer, str]] = [
        ("helmet_fluency", graded(2), "parse_failure"),
        ("helmet_correctness", graded(4), "parse_failure"),
        ("helmet_correctness", graded(None), "parse_failure"),
        ("helmet_correctness", truncated('{"reason": "'), "truncated"),
        ("helmet_correctness", refused(), "refused"),
        ("helmet_fluency", error(400), "api_error"),
    ]
    for name, reply, status in failures:
        replies: dict[str, Answer] = {**GOOD, name: reply}
        made, _, _ = judged(lambda one, r=replies: r[name_of(one)], ["helmet"])
        assert made.pop(name) == {"score": None, "status": f"judge_{status}"}
        assert [one["status"] for one in made.values()] == ["ok"]


# --- both -------------------------------------------------------------------------------------


def good(request: Request) -> Answer:
    return GOOD[name_of(request)]


def test_what_is_asked_and_saved_failures_stand() -> None:
    replies: dict[str, Answer] = {**GOOD, "geval_consistency": "?", "helmet_fluency": error(400)}
    made, found, chats = judged(lambda request: replies[name_of(request)], JUDGED_BASELINES)
    # A dimension that failed costs no samples of the other.
    shown = {name_of(chat): last_user_text(chat) for chat in chats}
    assert (sorted(shown), len(chats)) == (sorted(NAMES), len(NAMES))
    assert (made["geval"]["score"], made["geval"]["status"]) == (None, "judge_parse_failure")
    assert judged(with_logprobs, JUDGED_BASELINES, saved=found) == (made, found, [])
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
        made, found, chats = judged(with_logprobs, JUDGED_BASELINES, reply=reply)
        assert (found, chats) == ({}, [])
        assert {(one["score"] or 0, one["status"]) for one in made.values()} == {(0, status)}
        assert made["geval"]["mode"] is None
        for one in made["geval"]["dimensions"].values():
            assert one == {"score": None, "status": status, "mass": None}
    for reply in (REPLY, ""):
        made, _, chats = judged(with_logprobs, JUDGED_BASELINES, reply=reply, reference=" ")
        assert chats == []
        assert {(one["score"], one["status"]) for one in made.values()} == {(None, "no_reference")}
