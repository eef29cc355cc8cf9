"""One answer, judged: label and score from one reply, and whose failure it is if there is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es import metrics, scoring, utils
from lmms_eval_tasks.judges.verdict import Status, Verdict
from tests.cvrr_es.scored import FAILED, REFUSED, Stated, answered, doc

FIELDS = {"question", "reference", "id", "candidate"}


def whole(reply: str, **changes: Any) -> dict[str, Any]:
    return answered(reply, **changes)[metrics.FIRST]


def test_the_judge_is_asked_by_item(stated: Stated) -> None:
    item = whole("<think>A cat?</think> right 4.5 ", place=7)
    (fields,) = stated.asked
    assert fields.keys() == FIELDS
    assert fields["id"] == item["id"] == "partial_actions/007"
    assert fields["candidate"] == item["answer"] == "right 4.5"
    assert fields["reference"] == "A dog runs away."
    assert item["reply"] == "<think>A cat?</think> right 4.5 "
    assert (item["status"], item["right"]) == ("ok", 1.0)
    assert item["dimensions"] == {"score": {"score": 4.5, "status": "ok"}}
    assert item["verdict"]["raw"].startswith('{"pred": "correct"')


@pytest.mark.parametrize(
    ("reply", "status", "right", "score", "asked"),
    [
        ("right 5", "ok", 1.0, 5.0, True),
        ("wrong 2", "ok", 0.0, 2.0, True),
        ("?!", "empty", 0.0, 0.0, False),
        ("", "empty", 0.0, 0.0, False),
        (REFUSED, "refused", 0.0, 0.0, False),
        ("<think>A dog", "truncated", 0.0, 0.0, False),
        (FAILED, "model_error", 0.0, 0.0, False),
        ("A dog.", "judge_api_error", None, None, True),
    ],
)
def test_whose_failure_it_is(
    reply: str, status: str, right: float | None, score: float | None, asked: bool, stated: Stated
) -> None:
    item = whole(reply)
    assert (item["status"], item["right"]) == (status, right)
    assert item["dimensions"]["score"] == {"score": score, "status": status}
    assert bool(stated.asked) is asked
    assert (item["verdict"] is not None) is asked


def test_a_verdict_whose_score_cannot_be_told() -> None:
    """Correct is 1.0, which must not pass for 1 of 5."""
    told = Verdict(1.0, Status.OK, raw="yes, correct", judge="by hand")
    made = scoring.reply_metrics(utils.answer_identity(doc()), "x", judge=Stated(), verdict=told)
    assert made["acc"]["right"] == 1.0
    assert made["acc"]["dimensions"]["score"] == {"score": None, "status": "ok"}


def test_a_saved_verdict_stands() -> None:
    judge = Stated()
    raw = json.dumps({"pred": "incorrect", "score": 1, "reason": "no"})
    told = Verdict(0.0, Status.OK, raw=raw, judge="other")
    made = scoring.reply_metrics(utils.answer_identity(doc()), "right 5", judge=judge, verdict=told)
    assert (made["acc"]["right"], judge.asked) == (0.0, [])
    assert made["acc"]["dimensions"]["score"]["score"] == 1.0


def test_nobody_is_asked_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.JUDGE, "none")
    item = whole("A dog.")
    assert (item["status"], item["right"]) == ("unjudged", None)
    assert item["dimensions"]["score"] == {"score": None, "status": "unjudged"}


def test_scoring_that_broke(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def breaks() -> Stated:
        raise RuntimeError("broken")

    monkeypatch.setattr(utils.judging, "config", breaks)
    made = answered("right 5")
    assert made.keys() == metrics.SCORES.keys()
    assert (made["acc"]["status"], made["acc"]["right"]) == ("error", None)
    assert made["acc"]["reply"] == "right 5"
    assert "scoring partial_actions/001 failed; kept as status error" in capsys.readouterr().err
    found = {name: function([made[name]]) for name, function in metrics._DIMENSION.items()}
    assert (found["acc"], found["acc_valid"], found["acc_failed"]) == (0.0, None, 1)
    assert (found["score_valid"], found["score_failed"]) == (None, 1)
