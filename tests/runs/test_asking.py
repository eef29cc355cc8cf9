"""One way from a reply to its item: a run, saved verdicts, another judge, what is missing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from lmms_eval_tasks import judges
from lmms_eval_tasks.judges import JudgeConfig, Verdict
from lmms_eval_tasks.judges.asking import Asker, given_by, settle
from lmms_eval_tasks.judges.verdict import NONE, REPLAY, Ask, Criterion


class Right(BaseModel):
    correct: bool


def criterion(name: str = "right") -> Criterion:
    return Criterion(name, "s", "{candidate}", Right, lambda reply: float(reply.correct), "hash")


class Noting:
    """A judge that notes what it was asked."""

    def __init__(self, provider: str = REPLAY) -> None:
        self.config = JudgeConfig(provider)
        self.asked: list[str] = []

    def verdict(self, asked: Criterion, fields: Mapping[str, Any]) -> Verdict:
        self.asked.append(asked.name)
        return Verdict(1.0, "ok", judge="noting", setup=judges.setup(self.config, asked))


def saved(name: str = "right", score: float | None = 0.0, setup: str = "other") -> Verdict:
    return Verdict(score, "ok" if score is not None else "api_error", judge=name, setup=setup)


def scoring(doc: Any, reply: str) -> Any:
    """Claims first; then two labels that rest on them."""
    (claims,) = yield [Ask("claims", criterion("claims"), {"candidate": reply})]
    if claims.score is None:
        return {"status": "judge_failed", "claims": None}
    one, other = yield [
        Ask(name, criterion(name), {"candidate": reply}, rests_on="claims")
        for name in ("one", "other")
    ]
    return {"status": "ok", "scores": [claims.score, one.score, other.score]}


def test_a_run_asks_the_judge() -> None:
    judge = Noting()
    item = settle(scoring({}, "text"), Asker(judge))
    assert judge.asked == ["claims", "one", "other"]
    assert item["scores"] == [1.0, 1.0, 1.0]
    assert item["verdicts"].keys() == {"claims", "one", "other"}
    assert settle({"status": "unparsed"}, Asker(judge)) == {"status": "unparsed"}


@pytest.mark.parametrize(
    ("provider", "missing_only", "asked"),
    [
        (NONE, False, []),  # no judge named: all saved verdicts stand
        (REPLAY, False, ["claims", "one", "other"]),  # another judge decides all
        (REPLAY, True, ["claims", "one", "other"]),  # saved by another judge
    ],
)
def test_saved_verdicts(provider: str, missing_only: bool, asked: list[str]) -> None:
    judge = Noting(provider)
    kept = {name: saved() for name in ("claims", "one", "other")}
    settle(scoring({}, "t"), Asker(judge, kept, given_by(judge, missing_only=missing_only)))
    assert judge.asked == asked


def test_what_this_judge_gave_is_kept_and_what_failed_is_asked_again() -> None:
    judge = Noting()
    mine = {
        name: saved(score=0.5, setup=judges.setup(judge.config, criterion(name)))
        for name in ("claims", "one")
    }
    failed = saved(score=None, setup=judges.setup(judge.config, criterion("other")))
    keeps = given_by(judge, missing_only=True)
    item = settle(scoring({}, "t"), Asker(judge, {**mine, "other": failed}, keeps))
    assert judge.asked == ["other"]
    assert item["scores"] == [0.5, 0.5, 1.0]


def test_a_list_that_stands_or_falls_together() -> None:
    judge = Noting()

    def both(together: bool) -> Any:
        asks = [
            Ask(name, criterion(name), {"candidate": ""}, together=together)
            for name in ("one", "other")
        ]
        found = yield asks
        return {"scores": [one.score for one in found]}

    assert settle(both(True), Asker(judge, {"one": saved()}))["scores"] == [1.0, 1.0]
    assert settle(both(False), Asker(judge, {"one": saved()}))["scores"] == [0.0, 1.0]


def test_a_saved_verdict_that_cannot_be_read_is_asked_again() -> None:
    judge = Noting()

    def one() -> Any:
        (found,) = yield [Ask("one", criterion(), {"candidate": ""}, reads=True)]
        return {"score": found.score}

    unreadable = dataclasses.replace(saved(), raw="not an object")
    readable = dataclasses.replace(saved(), raw='{"correct": false}')
    assert settle(one(), Asker(judge, {"one": unreadable}))["score"] == 1.0
    assert settle(one(), Asker(judge, {"one": readable}))["score"] == 0.0
