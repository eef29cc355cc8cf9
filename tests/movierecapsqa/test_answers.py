"""One answer judged: what is asked and in which order, what comes of it, whose fault a gap is."""

from __future__ import annotations

import dataclasses
import json
import threading
from typing import Any

import pytest

from lmms_eval_tasks import judges
from lmms_eval_tasks.judges import run
from lmms_eval_tasks.judges.asking import VerdictSource, run_scoring
from lmms_eval_tasks.judges.engine import schema_of
from lmms_eval_tasks.judges.verdict import NONE, JudgeConfig
from lmms_eval_tasks.movierecapsqa import judge as judging
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS
from lmms_eval_tasks.movierecapsqa.tasks import BENCHMARK
from lmms_eval_tasks.runs.rescore import verdicts
from tests.judged import Answer, Request, at
from tests.local_endpoint import error, last_user_text, refused, truncated
from tests.movierecapsqa.asking import (
    CLAIMS,
    CONTEXT,
    DIALOGUE,
    FACTS,
    QUESTION,
    claims_of,
    each,
    judge_with,
    kind,
    kinds,
    labelled,
    script,
)

REPLY = "He regrets it."


# --- claims first, then three dimensions --------------------------------------------------------


def test_four_requests_and_what_comes_of_them() -> None:
    given: dict[str, tuple[list[str], int]] = {
        "factuality": (["supported", "contradictory"], 2),
        "relevance": (["relevant", "partially_relevant"], 4),
        "coherence": (["consistent", "contradictory"], 4),
    }
    replies = {name: labelled(labels, score, name) for name, (labels, score) in given.items()}
    done, chats = judge_with(script(**replies), f"<think>hm</think> {REPLY} \n")
    first, *others = kinds(chats)
    assert (first, sorted(others)) == ("claims", sorted(DIMENSIONS))
    assert all(claims_of(chat) == CLAIMS for chat in chats[1:])
    found = done.pop("verdicts")
    assert done == {
        "candidate": REPLY,
        "status": "ok",
        "claims": CLAIMS,
        "n_claims": 2,
        "dimensions": {
            name: {"score": score, "status": "ok", "labels": labels}
            for name, (labels, score) in given.items()
        },
    }
    assert (found["claims"]["score"], found["factuality"]["reason"]) == (2, "factuality")
    # The extractor sees nothing of the segment, and the others nothing of the answer.
    for part in (*FACTS, *DIALOGUE.splitlines(), CONTEXT.segment):
        assert part not in json.dumps(chats[0])
    assert not any(REPLY in json.dumps(chat) for chat in chats[1:])


def test_requests_of_a_segment_differ_only_behind_its_facts_and_dialogue() -> None:
    """As they are sent: the parameters too, and at OpenAI the schema."""
    chats = [judge_with(script())[1], judge_with(script(claims=["Tommy lives."]))[1]]
    bodies = [chat for asked in chats for chat in asked if kind(chat) != "claims"]
    assert len(bodies) == 6
    own = ("messages", "response_format")
    others = [{k: v for k, v in body.items() if k not in own} for body in bodies]
    assert all(other == others[0] for other in others)
    asked = [judging.dimension_criterion(name, n) for name in DIMENSIONS for n in (1, 2)]
    assert len({json.dumps(schema_of(one.schema)) for one in asked}) == 1
    assert len({json.dumps(body["response_format"]) for body in bodies}) == 6  # exact elsewhere
    assert len({body["messages"][0]["content"] for body in bodies}) == 1
    texts = {kind(body): last_user_text(body) for body in bodies}
    # Coherence is of the claims alone.
    coherence = texts.pop("coherence")
    assert not any(part in coherence for part in (*FACTS, *DIALOGUE.splitlines()))
    assert len({text.partition("</dialogue>")[0] for text in texts.values()}) == 1


# --- whose failure it is ------------------------------------------------------------------------


def all_are(score: int | None, status: str) -> dict[str, Any]:
    return {name: {"score": score, "status": status, "labels": []} for name in DIMENSIONS}


def test_what_is_no_answer_costs_no_call() -> None:
    for reply, status, score in (
        (" \n", "empty", 0),
        ("<think>never closed", "truncated", 0),
        ("[LMMS_EVAL_REQUEST_FAILED after 3 retries] x", "model_error", None),
    ):
        done, chats = judge_with(script(), reply)
        assert (done["candidate"], done["status"], done["claims"]) == ("", status, [])
        assert (done["dimensions"], chats) == (all_are(score, status), [])
    # A refusal is put to the judge; and without claims it is the candidate's failure.
    done, chats = judge_with(script(), "I'm sorry, but I can't watch videos.")
    assert (done["status"], len(chats)) == ("ok", 4)
    done, chats = judge_with(script(claims=["", " \n", "-"]), "Who knows?")
    assert kinds(chats) == ["claims"]
    assert (done["candidate"], done["dimensions"]) == ("Who knows?", all_are(0, "no_claims"))
    waiting = VerdictSource(judges.make_judge(JudgeConfig(NONE)))
    done = run_scoring(judging.judge_claims(CONTEXT, QUESTION, REPLY), waiting)
    assert (done["candidate"], done["dimensions"]) == (REPLY, all_are(None, "unjudged"))


FAILURES: list[tuple[Answer, str]] = [
    ("It is good.", "parse_failure"),
    (truncated('{"claims": ["x'), "truncated"),
    (refused(), "refused"),
    (error(404), "api_error"),
]


@pytest.mark.parametrize(("reply", "status"), FAILURES)
def test_what_the_judge_fails_at(reply: Answer, status: str) -> None:
    """Without the claims the dimensions are not asked; one that failed is alone."""
    with at(BENCHMARK, script(claims=reply)) as (judge, endpoint, current), run.task("t"):
        done = run_scoring(judging.judge_claims(CONTEXT, QUESTION, REPLY), VerdictSource(judge))
        assert set(kinds([chat.json for chat in endpoint.chats])) == {"claims"}
        (row,) = current.usage.rows()
    assert (done["status"], done["claims"]) == (f"judge_{status}", [])
    assert done["dimensions"] == all_are(None, "judge_skipped")
    for name in DIMENSIONS:
        assert done["verdicts"][name]["setup"] == done["verdicts"]["claims"]["setup"] != ""
    # All four count towards the failures that make a run invalid.
    assert row.by_status == {status: 1, "skipped": 3}
    for other in (reply, labelled(["relevant", "supported"])) if status[0] == "p" else (reply,):
        done, chats = judge_with(script(relevance=other))
        assert done["dimensions"]["relevance"] == all_are(None, f"judge_{status}")["relevance"]
        assert done["status"] == f"judge_{status}"
        assert {each(done, "score")[name] for name in ("factuality", "coherence")} == {5}
        # What could not be read was asked for once more.
        assert kinds(chats).count("relevance") == 1 + (status != "api_error")


# --- side by side -------------------------------------------------------------------------------


def test_the_dimensions_are_asked_about_side_by_side() -> None:
    together = threading.Barrier(len(DIMENSIONS))

    def answer(request: Request) -> Answer:
        if kind(request) != "claims":
            together.wait(10)  # broken, and an HTTP error, unless all come at once
        return script()(request)

    assert judge_with(answer)[0]["status"] == "ok"


# --- verdicts that stand in place of asking -----------------------------------------------------


def test_a_reply_that_can_no_longer_be_read_is_asked_for_again() -> None:
    """With what rests on it; of whole runs whose replies can be read: tests/golden."""
    saved = verdicts(json.loads(json.dumps(judge_with(script())[0])))
    for name in ("claims", *DIMENSIONS):
        given = {**saved, name: dataclasses.replace(saved[name], raw="{}")}
        done, chats = judge_with(script(), REPLY, given)
        assert done["status"] == "ok"
        asked = ["claims", *DIMENSIONS] if name == "claims" else [name]
        assert sorted(kinds(chats)) == sorted(asked)
