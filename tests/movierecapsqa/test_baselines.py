"""The judged baselines against a local endpoint, with and without log-probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lmms_eval_tasks.movierecapsqa import baselines
from lmms_eval_tasks.movierecapsqa.settings import JUDGED_BASELINES
from lmms_eval_tasks.movierecapsqa.tasks import BENCHMARK
from tests.judged import Answer, Request, Script, scored
from tests.local_endpoint import drawn, error, last_user_text, refused, stated, truncated
from tests.movierecapsqa.asking import asked_for, graded

QUESTION, REFERENCE = "What does he regret?", "How he lived before Pandora."
REPLY = "<think>hm</think> He regrets «everything» before {that}."


def judged(
    script: Script, which: Sequence[str], reply: str = REPLY, reference: str = REFERENCE
) -> tuple[Any, list[Request]]:
    """What the baselines say, and what was asked."""

    rated = baselines.rated(which, QUESTION, reference, reply)
    made, chats = scored(BENCHMARK, script, rated)
    return {name: one for name, one in made.items() if name != "verdicts"}, chats


def replies(**given: Answer) -> Script:
    """A judge with log-probabilities for G-Eval, unless told otherwise."""
    return lambda request: (GOOD | given)[asked_for(request)]


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
    made, chats = judged(replies(), ["geval"])
    result = made["geval"]
    assert (result["mode"], result["status"], len(chats)) == ("logprobs", "ok", 2)
    found = [(one["score"], one["mass"]) for one in result["dimensions"].values()]
    assert found == [pytest.approx((4.2, 1.0)), pytest.approx((5 / 3, 0.75))]
    assert list(result["dimensions"]) == ["coherence", "consistency"]
    assert result["score"] == pytest.approx(((4.2 + 5 / 3) / 2 - 1) / 4)

    def sampled(request: Request) -> Answer:
        return drawn(request, SAMPLES[asked_for(request)])

    made, chats = judged(sampled, ["geval"])
    result = made["geval"]
    assert (result["mode"], result["status"]) == ("samples", "ok")
    assert result["score"] == pytest.approx(((4.0 + 1.8) / 2 - 1) / 4)
    assert [chat.get("n", 1) for chat in chats] == [1, 1, 5, 5]


@pytest.mark.parametrize(
    ("name", "reply", "status"),
    [
        ("helmet_fluency", graded(2), "parse_failure"),
        ("helmet_correctness", graded(4), "parse_failure"),
        ("helmet_correctness", graded(None), "parse_failure"),
        ("helmet_correctness", truncated('{"reason": "'), "truncated"),
        ("helmet_correctness", refused(), "refused"),
        ("helmet_fluency", error(400), "api_error"),
        ("geval_coherence", "Great!", "parse_failure"),
    ],
)
def test_a_failure_is_its_own_and_no_grade(name: str, reply: Answer, status: str) -> None:
    made, _ = judged(replies(**{name: reply}), JUDGED_BASELINES)
    kind = "geval" if name.startswith("geval") else name
    assert (made[kind]["score"], made[kind]["status"]) == (None, f"judge_{status}")
    assert {one["status"] for other, one in made.items() if other != kind} == {"ok"}


def test_what_the_judge_is_shown() -> None:
    for grade in ("Score: 1", graded(1)):  # a bare grade is read
        given = replies(helmet_fluency=grade, helmet_correctness=grade)
        made, chats = judged(given, ["helmet"])
        assert [one["score"] for one in made.values()] == [1, 1]
        assert not any("logprobs" in chat for chat in chats)
    _, chats = judged(replies(), JUDGED_BASELINES)
    assert len(chats) == 4
    for chat in chats:
        text = last_user_text(chat)
        assert QUESTION in text
        assert "He regrets «everything» before {that}." in text
        assert "hm" not in text
        assert (REFERENCE in text) == (asked_for(chat) != "helmet_fluency")


def test_what_is_no_answer_costs_no_call() -> None:
    for reply, reference, score, status in (
        ("<think>never closed", REFERENCE, 0, "truncated"),
        ("", " ", None, "no_reference"),
    ):
        made, chats = judged(replies(), JUDGED_BASELINES, reply, reference)
        assert (chats, {one["status"] for one in made.values()}) == ([], {status})
        assert {one["score"] for one in made.values()} == {score}
