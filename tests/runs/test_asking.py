"""One way from a reply to its item: a run, saved verdicts, another judge, what is missing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from lmms_eval_tasks import judges
from lmms_eval_tasks.judges import JudgeConfig, Verdict
from lmms_eval_tasks.judges.asking import RereadRequest, VerdictSource, given_by, run_scoring
from lmms_eval_tasks.judges.verdict import NONE, REPLAY, Criterion, JudgeRequest
from tests.checks import table

NAMES = ("claims", "one", "other")


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
        return Verdict(
            1.0, "ok", judge="noting", setup=judges.judge_fingerprint(self.config, asked)
        )


OTHER = Verdict(0.0, "ok", judge="another", setup="other")


def own(name: str, score: float | None = 0.5) -> Verdict:
    """A verdict that `Noting` has given."""
    setup = judges.judge_fingerprint(JudgeConfig(REPLAY), criterion(name))
    return Verdict(score, "ok" if score is not None else "api_error", judge="noting", setup=setup)


MINE = {name: own(name) for name in NAMES}


class InOne(JudgeRequest):
    """Those of a list stand or fall together."""

    in_one = True


def scoring() -> Any:
    """Claims first; then two labels that rest on them."""
    (claims,) = yield [JudgeRequest("claims", criterion("claims"), {"candidate": ""})]
    labels = yield [
        JudgeRequest(name, criterion(name), {"candidate": ""}, rests_on="claims")
        for name in NAMES[1:]
    ]
    return {"status": "ok", "scores": [one.score for one in (claims, *labels)]}


@table(
    "provider, saved, asked, scores",
    [
        (REPLAY, {}, [*NAMES], [1.0, 1.0, 1.0]),  # a run
        (NONE, dict.fromkeys(NAMES, OTHER), [], [0.0, 0.0, 0.0]),  # no judge: what is saved stands
        (REPLAY, dict.fromkeys(NAMES, OTHER), [*NAMES], [1.0, 1.0, 1.0]),  # of another judge
        # Its own are kept; what failed is asked again, and what rests on something new.
        (
            REPLAY,
            {n: own(n, None if n == "other" else 0.5) for n in NAMES},
            ["other"],
            [0.5, 0.5, 1.0],
        ),
        (REPLAY, {**MINE, "claims": OTHER}, [*NAMES], [1.0, 1.0, 1.0]),
    ],
)
def test_who_is_asked(
    provider: str, saved: dict[str, Verdict], asked: list[str], scores: list[float]
) -> None:
    judge = Noting(provider)
    item = run_scoring(scoring(), VerdictSource(judge, saved, given_by(judge)))
    assert (judge.asked, item["scores"]) == (asked, scores)
    assert item["verdicts"].keys() == {*NAMES}
    assert run_scoring({"status": "unparsed"}, VerdictSource(judge)) == {"status": "unparsed"}


@table("together, scores", [(True, [1.0, 1.0]), (False, [0.0, 1.0])])
def test_a_list_that_stands_or_falls_together(together: bool, scores: list[float]) -> None:
    def both() -> Any:
        found = yield [
            (InOne if together else JudgeRequest)(name, criterion(name), {"candidate": ""})
            for name in NAMES[1:]
        ]
        return {"scores": [one.score for one in found]}

    assert run_scoring(both(), VerdictSource(Noting(), {"one": OTHER}))["scores"] == scores


@table("raw, score", [("not an object", 1.0), ('{"correct": false}', 0.0)])
def test_a_saved_verdict_that_cannot_be_read_is_asked_again(raw: str, score: float) -> None:
    def one() -> Any:
        (found,) = yield [RereadRequest("one", criterion(), {"candidate": ""})]
        return {"score": found.score}

    kept = {"one": dataclasses.replace(OTHER, raw=raw)}
    assert run_scoring(one(), VerdictSource(Noting(), kept))["score"] == score
