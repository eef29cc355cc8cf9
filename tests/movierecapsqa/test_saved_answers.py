"""Verdicts that stand in place of asking: saved, recorded, or from an offline batch."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import judges
from lmms_eval_tasks.judges import Judge, Verdict, run
from lmms_eval_tasks.judges.batch import Results, Writer
from lmms_eval_tasks.judges.config import NONE, JudgeConfig
from lmms_eval_tasks.movierecapsqa import judge as judging
from lmms_eval_tasks.movierecapsqa.answer_judging import (
    Judged,
    asked,
    judge_reply,
    read_claims,
    read_labels,
)
from lmms_eval_tasks.movierecapsqa.labels import DIMENSIONS
from lmms_eval_tasks.settings import JudgeLimits
from tests.local_endpoint import choice, completion
from tests.movierecapsqa.asking import (
    BEST,
    CLAIMS,
    CONTEXT,
    QUESTION,
    Answer,
    Unasked,
    at,
    claimed,
    judge_with,
    kind,
    kinds,
    labelled,
    rated_in,
    script,
)


class TestSaved:
    """Verdicts that stand in place of asking."""

    def judged(self, **replies: Answer) -> Judged:
        mixed = {
            "factuality": labelled(["partially supported", "NOT-CHECKABLE"], 2),
            "relevance": labelled(["relevant", "not"], 4),
        }
        return judge_with(script(**(mixed | replies)))[0]

    def saved(self, done: Judged) -> dict[str, Verdict | None]:
        """As a saved sample gives them again."""
        read = json.loads(json.dumps(done._asdict()))
        given = {name: rated["verdict"] for name, rated in read["dimensions"].items()}
        given["claims"] = read["claims_verdict"]
        return {name: v and Verdict.from_dict(v) for name, v in given.items()}

    def again(self, done: Judged, judge: Judge | None = None, **changes: Verdict | None) -> Judged:
        saved = self.saved(done) | changes
        return judge_reply(judge or Unasked(), CONTEXT, QUESTION, "He regrets it.", saved)

    def test_claims_labels_and_bounds_are_read_again(self) -> None:
        done = self.judged()
        assert done.dimensions["factuality"]["labels"] == ["partially_supported", "not_checkable"]
        assert done.dimensions["relevance"]["consistent"] is False
        assert self.again(done) == done
        saved = self.saved(done)
        for name, rated in rated_in(done):
            verdict = saved[name]
            assert verdict is not None
            assert read_labels(verdict, name, CLAIMS) == rated["labels"]
            assert read_labels(verdict, name, [*CLAIMS, "one more"]) is None
        assert saved["claims"] is not None
        assert read_claims(saved["claims"], "He regrets it.") == CLAIMS

    def test_failures_and_no_claims_too(self) -> None:
        for done in (
            self.judged(coherence="Five."),
            judge_with(script(claims="nothing"))[0],
            judge_with(script(claims=[]))[0],
        ):
            assert self.again(done) == done

    def test_nobody_judges_what_was_not_judged(self) -> None:
        waiting = judge_reply(judges.make(JudgeConfig(NONE)), CONTEXT, QUESTION, "He regrets it.")
        nobody = judges.make(JudgeConfig(NONE))
        assert self.again(waiting, nobody) == waiting

    def test_only_what_is_missing_is_asked(self) -> None:
        done = self.judged(coherence="Five.")
        with at(script()) as (judge, endpoint, _):
            again = self.again(done, judge, coherence=None)
            assert kinds([chat.json for chat in endpoint.chats]) == ["coherence"]
        assert again.status == "ok"
        assert again.dimensions["factuality"] == done.dimensions["factuality"]
        assert again.dimensions["coherence"]["labels"] == [BEST["coherence"]] * 2

    def test_labels_of_other_claims_do_not_count(self) -> None:
        done = self.judged()
        with at(script(claims=["He runs.", "She waits."])) as (judge, endpoint, _):
            again = self.again(done, judge, claims=None)
            assert len(endpoint.chats) == 4
        assert again.claims == ["He runs.", "She waits."]
        assert again.dimensions["factuality"]["labels"] == ["supported", "supported"]

    @pytest.mark.parametrize("name", ["claims", *DIMENSIONS])
    def test_a_reply_that_no_longer_reads_is_asked_for_again(self, name: str) -> None:
        done = self.judged()
        old = self.saved(done)[name]
        assert old is not None
        with at(script()) as (judge, endpoint, _):
            again = self.again(done, judge, **{name: dataclasses.replace(old, raw="{}")})
            found = kinds([chat.json for chat in endpoint.chats])
        assert again.status == "ok"
        assert sorted(found) == sorted(["claims", *DIMENSIONS] if name == "claims" else [name])


def test_recorded_replies_are_told_apart_by_dimension(tmp_path: Path) -> None:
    lines = [
        {
            "criterion": judging.CLAIMS,
            "fields": {"question": QUESTION, "candidate": "He regrets it."},
            "reply": claimed(CLAIMS),
        }
    ]
    for score, name in enumerate(DIMENSIONS[:2], 3):
        fields = asked(CONTEXT, name, QUESTION, CLAIMS)
        reply = labelled([BEST[name], BEST[name]], score)
        lines.append({"criterion": judging.LABELS, "fields": fields, "reply": reply})
    file = tmp_path / "recorded.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    judging.check(f"replay:{file}")
    judge = judges.make(judging.config(f"replay:{file}"))
    done = judge_reply(judge, CONTEXT, QUESTION, "He regrets it.")
    found = {name: (rated["score"], rated["status"]) for name, rated in rated_in(done)}
    assert found == {
        "factuality": (3, "ok"),
        "relevance": (4, "ok"),
        "coherence": (None, "judge_skipped"),
    }
    assert done.dimensions["factuality"]["consistent"] is False  # all supported allows 5 only
    other = judge_reply(judge, CONTEXT, QUESTION, "He is glad.")
    assert (other.status, other.claims) == ("judge_skipped", [])


class TestBatch:
    """Offline batches: the dimensions need the claims, so that it takes two rounds."""

    def results(self, requests: Path, results: Path) -> list[str]:
        found = []
        with results.open("w") as out:
            for line in requests.read_text().splitlines():
                request = json.loads(line)
                found.append(kind(request["body"]))
                text = script()(request["body"])
                assert isinstance(text, str)
                reply = completion([choice(text)], {"prompt_tokens": 9, "completion_tokens": 9})
                body = json.loads(reply.body or b"")
                response = {"status_code": 200, "body": body}
                out.write(
                    json.dumps({"custom_id": request["custom_id"], "response": response}) + "\n"
                )
        return found

    def test_two_rounds(self, tmp_path: Path) -> None:
        requests, results = tmp_path / "requests.jsonl", tmp_path / "results.jsonl"

        def judge_now(wrap: Any) -> Judged:
            with run.use(run.Run(JudgeLimits(stop_after=0), cache=tmp_path / "cache", wrap=wrap)):
                judge = judges.make(judging.config("m@http://localhost:9/v1", {}))
                return judge_reply(judge, CONTEXT, QUESTION, "He regrets it.")

        def write() -> Judged:
            with requests.open("w") as out:
                return judge_now(Writer(out).wrap)

        first = write()
        assert (first.status, first.claims) == ("judge_skipped", [])
        assert {rated["status"] for _, rated in rated_in(first)} == {"judge_skipped"}
        assert self.results(requests, results) == ["claims"]
        read = judge_now(Results(results).wrap)
        assert (read.status, read.claims) == ("judge_skipped", CLAIMS)
        assert {rated["status"] for _, rated in rated_in(read)} == {"judge_skipped"}
        write()
        assert sorted(self.results(requests, results)) == sorted(DIMENSIONS)
        read = judge_now(Results(results).wrap)
        assert read.status == "ok"
        assert {rated["score"] for _, rated in rated_in(read)} == {5}
        write()
        assert self.results(requests, results) == []
