"""The judge of open answers: four requests, whole numbers from 0 to 5, and whose fault a gap is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.judges import reader
from lmms_eval_tasks.judges.verdict import Verdict
from lmms_eval_tasks.maverix import judge
from lmms_eval_tasks.maverix.labels import CONSISTENCY, DIMENSIONS
from tests.checks import table
from tests.local_endpoint import Fault, LocalEndpoint, error, last_user_text, refused, truncated
from tests.maverix import runs
from tests.maverix.runs import REFUSAL

pytestmark = pytest.mark.usefixtures("sample")
REQUEST_FAILED = "[LMMS_EVAL_REQUEST_FAILED after 3 retries] x"


def judged(
    docs: Sequence[runs.Doc], replies: Sequence[str], answer: Callable[[str], str | Fault]
) -> tuple[list[runs.Item], list[dict[str, Any]]]:
    """The items of replies, and the requests of a judge who answers by dimension."""
    given = {doc["id"]: reply for doc, reply in zip(docs, replies, strict=True)}
    with (
        LocalEndpoint(lambda request: answer(runs.dimension_of(request))) as endpoint,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv(settings.JUDGE, f"rater@{endpoint.url}")
        items = runs.score(docs, lambda doc: given[doc["id"]])
    return items, [chat.json for chat in endpoint.chats]


def test_one_request_for_each_dimension() -> None:
    """The paraphrase is judged as what was asked; the reasoning is no part of the answer."""
    original, doc = runs.docs("maverix_s_oe")[:2]
    given = dict(zip(DIMENSIONS, (5, 3, 2, 0), strict=True))
    reply = "<think>hm</think> «It» is {red}."
    (item,), chats = judged([doc], [reply], lambda name: f'{{"score": {given[name]}}}')
    assert sorted(map(runs.dimension_of, chats)) == sorted(DIMENSIONS)
    (text,) = {last_user_text(chat) for chat in chats}
    assert all(part in text for part in (doc["question"], doc["reference"], "«It» is {red}."))
    assert original["question"] not in text
    assert "hm" not in text
    ratings = {n: {"score": score, "status": "ok"} for n, score in given.items()}
    assert item["dimensions"] == ratings
    assert (item["status"], item["candidate"]) == ("ok", "«It» is {red}.")


def test_whose_answer_it_is() -> None:
    """What is no answer costs no call; a refusal is judged, and counted."""
    docs = runs.docs("maverix_s_oe")[:10:2]
    replies = ["", "<think>never closed", REQUEST_FAILED, REFUSAL, "It is red."]
    items, chats = judged(docs, replies, lambda _: '{"score": 3}')
    assert len(chats) == 2 * len(DIMENSIONS)
    statuses = ["empty", "truncated", "model_error", "ok", "ok"]
    assert [item["status"] for item in items] == statuses
    scores = {item["status"]: item["dimensions"]["detail"]["score"] for item in items}
    assert scores == {"empty": 0, "truncated": 0, "model_error": 0, "ok": 3}
    found = runs.numbers("maverix_s_oe", items)
    assert (found["correctness_valid"], found["refusals"]) == (6 / 4, 1)
    assert found["correctness_valid_refusals_wrong"] == 3 / 4
    (item,) = runs.score(docs[:1], lambda _: "It is red.")  # by nobody: later
    assert item["status"] == "unjudged"
    assert runs.numbers("maverix_s_oe", [item])["correctness_valid"] is None


def test_which_replies_are_a_rating() -> None:
    """A failure is the judge's and keeps its reason; the authors' code may still read it."""
    criterion = judge.criteria()["detail"]
    for score in range(6):
        for text in (f'{{"score": {score}}}', f"{{'score': {score}}}"):
            assert criterion.score(reader.read_reply(text, criterion.schema, bare="score")) == score
    doc = runs.docs("maverix_s_oe")[0]
    for reply, status, authors in (
        ('{"score": 4.5}', "judge_parse_failure", 4),
        ('{"score": 6}', "judge_parse_failure", 6),
        ('{"score": 4, "why": "x"}', "judge_parse_failure", 4),
        ("It is good.", "judge_parse_failure", 0),
        (truncated('{"score'), "judge_truncated", 0),
        (refused(), "judge_refused", 0),
        (error(400), "judge_api_error", 0),
    ):
        (item,), _ = judged(
            [doc], ["red"], lambda name, reply=reply: reply if name == "context" else '{"score": 4}'
        )
        assert item["dimensions"]["context"] == {"score": None, "status": status}
        assert item["status"] == status
        verdict = Verdict.from_dict(item["verdicts"]["context"])
        assert "judge_" + verdict.status == status
        assert verdict.reason
        found = runs.numbers("maverix_s_oe", [item])
        assert (found["context_valid"], found["context_failed"]) == (None, 1)
        assert found["context_authors"] == authors
        assert {found[f"{n}_valid"] for n in DIMENSIONS if n != "context"} == {4}


def five(name: str) -> str:
    return f'{{"score": {3 if name == CONSISTENCY else 5}}}'


def test_both_wordings_in_one_request() -> None:
    """Their questions, their answers and the reference; the first wording's item keeps it."""
    docs = runs.docs("maverix_s_oe")[:2]
    (first, second), chats = judged(docs[::-1], ["It is blue.", "It is red."], five)[::1]
    (text,) = [last_user_text(one) for one in chats if runs.dimension_of(one) == CONSISTENCY]
    places = [text.index(part) for part in ("It is red.", "It is blue.")]
    assert places == sorted(places)
    assert all(part in text for part in (*(doc["question"] for doc in docs), first["reference"]))
    assert (len(chats), first["version"], CONSISTENCY in first["dimensions"]) == (
        9,
        "paraphrase",
        False,
    )
    assert second["dimensions"][CONSISTENCY] == {"score": 3, "status": "ok"}
    assert [*second["verdicts"]] == [*DIMENSIONS, CONSISTENCY]


@table(
    "replies, says, value, failed, authors",
    [
        (("red", "blue"), '{"score": 2}', 2, 0, 2),
        (("red", "blue"), "hard to say", None, 1, 0),
        (("red", ""), None, 0, 0, 0),
        (("<think>never closed", "blue"), None, 0, 0, 0),
        (("red", REQUEST_FAILED), None, None, 1, 0),
        (("", REQUEST_FAILED), None, None, 1, 0),
    ],
)
def test_whose_fault_a_pair_without_a_rating_is(
    replies: Sequence[str], says: str | None, value: float | None, failed: int, authors: float
) -> None:
    """Nobody is asked about a pair with what is no answer."""
    docs = runs.docs("maverix_s_oe")[:2]
    items, chats = judged(docs, replies, lambda n: (n == CONSISTENCY and says) or five(n))
    asked = [one for one in chats if runs.dimension_of(one) == CONSISTENCY]
    assert bool(asked) == (says is not None)
    found = runs.numbers("maverix_s_oe", items)
    assert found["consistency_valid"] == value
    assert (found["consistency_failed"], found["consistency_authors"]) == (failed, authors)
    assert found["consistency_coverage"] == 1 - failed
