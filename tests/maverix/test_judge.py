"""The judge of open answers: four requests, whole numbers from 0 to 5, and whose fault a gap is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.judges import reader
from lmms_eval_tasks.judges.verdict import Verdict
from lmms_eval_tasks.maverix import judge
from lmms_eval_tasks.maverix.labels import DIMENSIONS
from tests.local_endpoint import Fault, LocalEndpoint, error, last_user_text, refused, truncated
from tests.maverix import runs
from tests.maverix.runs import REFUSAL

pytestmark = pytest.mark.usefixtures("sample")


def judged(
    doc: runs.Doc, reply: str, answer: Callable[[str], str | Fault]
) -> tuple[runs.Item, list[dict[str, Any]]]:
    """The item of a reply, and the requests of a judge who answers by dimension."""
    with (
        LocalEndpoint(lambda request: answer(runs.dimension_of(request))) as endpoint,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv(settings.JUDGE, f"rater@{endpoint.url}")
        (item,) = runs.score([doc], lambda _: reply)
    return item, [chat.json for chat in endpoint.chats]


def test_one_request_for_each_dimension() -> None:
    """The paraphrase is judged as what was asked; the reasoning is no part of the answer."""
    original, doc = runs.docs("maverix_s_oe")[:2]
    given = dict(zip(DIMENSIONS, (5, 3, 2, 0), strict=True))
    reply = "<think>hm</think> «It» is {red}."
    item, chats = judged(doc, reply, lambda name: f'{{"score": {given[name]}}}')
    assert sorted(map(runs.dimension_of, chats)) == sorted(DIMENSIONS)
    (text,) = {last_user_text(chat) for chat in chats}
    assert all(part in text for part in (doc["question"], doc["reference"], "«It» is {red}."))
    assert original["question"] not in text
    assert "hm" not in text
    ratings = {n: {"score": score, "status": "ok"} for n, score in given.items()}
    assert item["dimensions"] == ratings
    assert (item["status"], item["candidate"]) == ("ok", "«It» is {red}.")


def test_what_costs_no_call() -> None:
    """What is no answer, and what has no reference; neither waits for a judge."""
    doc = runs.docs("maverix_s_oe")[0]
    for reply, status in (
        ("", "empty"),
        ("<think>never closed", "truncated"),
        ("[LMMS_EVAL_REQUEST_FAILED after 3 retries] x", "model_error"),
    ):
        item, chats = judged(doc, reply, lambda _: '{"score": 5}')
        assert (chats, item["status"], item["candidate"]) == ([], status, "")
        assert item["dimensions"] == {name: {"score": 0, "status": status} for name in DIMENSIONS}
        expected = None if status == "model_error" else 0
        assert runs.numbers("maverix_s_oe", [item])["correctness_valid"] == expected
    hidden, chats = judged(runs.withheld(doc), "<think>x</think> It is red.", lambda _: "")
    assert (chats, hidden["dimensions"], hidden["verdicts"]) == ([], {}, {})
    assert (hidden["candidate"], hidden["status"], hidden["words"]) == ("It is red.", "ok", 3)
    (item,) = runs.score([doc], lambda _: "It is red.")  # by nobody: later
    assert item["status"] == "unjudged"
    assert runs.numbers("maverix_s_oe", [item])["correctness_valid"] is None


def test_a_refusal_is_judged_and_counted() -> None:
    """As the authors' judge was asked about every answer; the numbers stand with it at 0 too."""
    docs = runs.docs("maverix_s_oe")[:2]
    item, chats = judged(docs[0], REFUSAL, lambda _: '{"score": 3}')
    assert (len(chats), item["status"], item["refused"]) == (4, "ok", True)
    other, _ = judged(docs[1], "It is red.", lambda _: '{"score": 5}')
    found = runs.numbers("maverix_s_oe", [item, other])
    assert (found["correctness_valid"], found["refusals"]) == (4, 1)
    assert found["correctness_valid_refusals_wrong"] == 2.5


def test_which_replies_are_a_rating() -> None:
    """A failure is the judge's and keeps its reason; the other dimensions have their ratings."""
    criterion = judge.criteria()["detail"]
    for score in range(6):
        for text in (f'{{"score": {score}}}', f"{{'score': {score}}}"):
            assert criterion.score(reader.read(text, criterion.schema, bare="score")) == score
    doc = runs.docs("maverix_s_oe")[0]
    for reply, status in (
        ('{"score": 4.5}', "judge_parse_failure"),
        ('{"score": 6}', "judge_parse_failure"),
        ('{"score": -1}', "judge_parse_failure"),
        ('{"score": 4, "why": "x"}', "judge_parse_failure"),
        ("It is good.", "judge_parse_failure"),
        (truncated('{"score'), "judge_truncated"),
        (refused(), "judge_refused"),
        (error(400), "judge_api_error"),
    ):
        item, _ = judged(
            doc, "red", lambda name, reply=reply: reply if name == "context" else '{"score": 4}'
        )
        assert item["dimensions"]["context"] == {"score": None, "status": status}
        assert item["status"] == status
        verdict = Verdict.from_dict(item["verdicts"]["context"])
        assert "judge_" + verdict.status == status
        assert verdict.reason
        found = runs.numbers("maverix_s_oe", [item])
        assert (found["context_valid"], found["context_failed"]) == (None, 1)
        assert {found[f"{n}_valid"] for n in DIMENSIONS if n != "context"} == {4}
