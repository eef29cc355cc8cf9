"""One answer judged: what is asked, what comes of it, and whose fault a gap is."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lmms_eval_tasks import judges
from lmms_eval_tasks.judges import Criterion, Verdict, ledger
from lmms_eval_tasks.judges.config import NONE, JudgeConfig
from lmms_eval_tasks.movierecapsqa import judge as judging
from lmms_eval_tasks.movierecapsqa.answer_judging import Judged, judge_reply
from lmms_eval_tasks.movierecapsqa.labels import DIMENSIONS
from lmms_eval_tasks.utils.aggregate import is_unjudged, is_valid
from tests.local_endpoint import error, last_user_text, refused, truncated
from tests.movierecapsqa.asking import (
    CLAIMS,
    CONTEXT,
    DIALOGUE,
    FACTS,
    QUESTION,
    Answer,
    Request,
    Script,
    Unasked,
    at,
    claimed,
    claims_of,
    judge_with,
    kind,
    kinds,
    labelled,
    rated_in,
    script,
)


class TestAnAnswer:
    """Claims first, then three dimensions."""

    def test_four_requests_and_what_comes_of_them(self) -> None:
        replies = {
            "factuality": labelled(["supported", "contradictory"], 2, "Tommy is none"),
            "relevance": labelled(["relevant", "partially_relevant"], 4),
            "coherence": labelled(["consistent", "contradictory"], 4),
        }
        done, chats = judge_with(script(**replies), "<think>hm</think> He regrets it. \n")
        assert sorted(kinds(chats)) == sorted(["claims", *DIMENSIONS])
        assert kinds(chats)[0] == "claims"
        assert all(claims_of(chat) == CLAIMS for chat in chats[1:])
        assert (done.candidate, done.status, done.claims) == ("He regrets it.", "ok", CLAIMS)
        assert done.claims_verdict is not None
        assert done.claims_verdict["score"] == 2
        verdicts = {name: rated.pop("verdict") for name, rated in done.dimensions.items()}
        assert done.dimensions == {
            "factuality": {
                "score": 2,
                "status": "ok",
                "labels": ["supported", "contradictory"],
                "low": 0,
                "high": 2,
                "consistent": True,
            },
            "relevance": {
                "score": 4,
                "status": "ok",
                "labels": ["relevant", "partially_relevant"],
                "low": 0,
                "high": 5,
                "consistent": True,
            },
            # The judge's own score is kept, also outside of what its labels allow.
            "coherence": {
                "score": 4,
                "status": "ok",
                "labels": ["consistent", "contradictory"],
                "low": 0,
                "high": 2,
                "consistent": False,
            },
        }
        assert tuple(done.dimensions) == DIMENSIONS
        assert verdicts["factuality"]["reason"] == "Tommy is none"
        assert all(type(rated["score"]) is int for rated in done.dimensions.values())
        assert json.loads(json.dumps([done, verdicts])) == [list(done), verdicts]

    def test_the_claims_request_holds_nothing_of_the_segment(self) -> None:
        _, chats = judge_with(script(), "He regrets it.")
        whole = json.dumps(chats[0])
        for part in (*FACTS, *DIALOGUE.splitlines(), CONTEXT.segment):
            assert part not in whole
        assert "He regrets it." in last_user_text(chats[0])
        assert not any("He regrets it." in json.dumps(chat) for chat in chats[1:])

    def test_requests_of_a_segment_differ_only_behind_its_facts_and_dialogue(self) -> None:
        """As they are sent: the parameters too."""
        chats = [judge_with(script())[1], judge_with(script(claims=["Tommy lives."]))[1]]
        bodies = [chat for asked in chats for chat in asked if kind(chat) != "claims"]
        assert len(bodies) == 6
        others = [{k: v for k, v in body.items() if k != "messages"} for body in bodies]
        assert all(other == others[0] for other in others)
        assert {body["messages"][0]["content"] for body in bodies} == {
            judging.dimension_criterion("relevance", 1).system
        }
        heads = {last_user_text(body).partition("</dialogue>")[0] for body in bodies}
        assert len(heads) == 1

    def test_a_false_claim_about_the_right_thing_is_relevant(self) -> None:
        """A judge that keeps to the prompt: truth counts where the task is factuality alone."""
        false = "Jake is proud of his life choices."

        def obedient(request: Request) -> Answer:
            text = " ".join(last_user_text(request).split())
            if kind(request) == "relevance" and "true does not matter here" in text:
                return labelled(["relevant"], 5)
            if kind(request) == "factuality" and "at odds with it" in text:
                return labelled(["contradictory"], 0)
            return script(claims=[false])(request)

        done, _ = judge_with(obedient, "He is proud of them.")
        assert done.status == "ok"
        found = {name: (rated["score"], rated["consistent"]) for name, rated in rated_in(done)}
        assert found == {"factuality": (0, True), "relevance": (5, True), "coherence": (5, True)}


NOTHING = {"labels": [], "low": None, "high": None, "consistent": None, "verdict": None}


class TestStatuses:
    """What the candidate did, what the judge did, and who is not asked."""

    @pytest.mark.parametrize(
        ("reply", "status", "score"),
        [
            ("", "empty", 0),
            (" \n", "empty", 0),
            ("I'm sorry, but I can't watch videos.", "refused", 0),
            ("<think>never closed", "truncated", 0),
            ("[LMMS_EVAL_REQUEST_FAILED after 3 retries] x", "model_error", None),
        ],
    )
    def test_what_is_no_answer_costs_no_call(
        self, reply: str, status: str, score: int | None
    ) -> None:
        done = judge_reply(Unasked(), CONTEXT, QUESTION, reply)
        expected = {"score": score, "status": status, **NOTHING}
        assert done == Judged("", status, [], None, dict.fromkeys(DIMENSIONS, expected))
        assert is_valid({"status": status}) is (status != "model_error")

    @pytest.mark.parametrize("claims", [[], ["", " \n", "-"]])
    def test_an_answer_without_claims_is_the_candidates_failure(self, claims: list[str]) -> None:
        done, chats = judge_with(script(claims=claims), "Who knows?")
        assert kinds(chats) == ["claims"]
        assert (done.candidate, done.status, done.claims) == ("Who knows?", "no_claims", [])
        assert done.claims_verdict is not None
        assert (done.claims_verdict["status"], done.claims_verdict["score"]) == ("ok", 0)
        expected = {"score": 0, "status": "no_claims", **NOTHING}
        assert done.dimensions == dict.fromkeys(DIMENSIONS, expected)
        assert is_valid({"status": done.status})

    FAILURES = (
        ("It is good.", "parse_failure"),
        ('{"claims": "x"}', "parse_failure"),
        (truncated('{"claims": ["x'), "truncated"),
        (refused(), "refused"),
        (error(400), "api_error"),
    )

    @pytest.mark.parametrize(("reply", "status"), FAILURES)
    def test_without_the_claims_the_dimensions_are_not_asked(
        self, reply: Answer, status: str
    ) -> None:
        with at(script(claims=reply)) as (judge, endpoint, current), ledger.task("t"):
            done = judge_reply(judge, CONTEXT, QUESTION, "He regrets it.")
            assert set(kinds([chat.json for chat in endpoint.chats])) == {"claims"}
            (row,) = current.ledger.rows()
        assert (done.status, done.claims) == (f"judge_{status}", [])
        assert not is_valid({"status": done.status})
        for _, rated in rated_in(done):
            assert (rated["score"], rated["status"]) == (None, "judge_skipped")
            assert rated["verdict"]["reason"] == f"the claims are not known ({status})"
            assert rated["verdict"]["setup"] == (done.claims_verdict or {})["setup"] != ""
        # All four count towards the failures that make a run invalid.
        assert (row.task, row.verdicts) == ("t", 4)
        assert row.by_status == {status: 1, "skipped": 3}

    @pytest.mark.parametrize(
        ("reply", "status"),
        [
            *FAILURES[2:],
            ("Five.", "parse_failure"),
            (labelled(["relevant"]), "parse_failure"),
            (labelled(["relevant", "relevant", "relevant"]), "parse_failure"),
            (labelled(["relevant", "supported"]), "parse_failure"),
            (labelled(["relevant", "relevant"], 6), "parse_failure"),
            (labelled(["relevant", "relevant"]).replace('"id": 2', '"id": 1'), "parse_failure"),
        ],
    )
    def test_a_dimension_that_failed_is_the_judges(self, reply: Answer, status: str) -> None:
        done, _ = judge_with(script(relevance=reply))
        rated = done.dimensions["relevance"]
        assert done.status == rated["status"] == f"judge_{status}"
        verdict = Verdict.from_dict(rated["verdict"])
        assert (verdict.status, verdict.score) == (status, None)
        assert verdict.reason
        assert {**rated, "verdict": None} == {
            "score": None,
            "status": f"judge_{status}",
            **NOTHING,
        }
        for name in ("factuality", "coherence"):
            assert (done.dimensions[name]["score"], done.dimensions[name]["status"]) == (5, "ok")

    def test_a_wrong_count_is_asked_for_once_more(self) -> None:
        def second_time(request: Request) -> Answer:
            if kind(request) == "factuality" and "An earlier reply" not in last_user_text(request):
                return labelled(["supported"])
            return script()(request)

        done, chats = judge_with(second_time)
        assert done.status == "ok"
        assert kinds(chats).count("factuality") == 2
        assert done.dimensions["factuality"]["verdict"]["repaired"] is True

    def test_judge_none_waits(self) -> None:
        judge = judges.make(JudgeConfig(NONE))
        done = judge_reply(judge, CONTEXT, QUESTION, "He regrets it.")
        assert (done.candidate, done.status, done.claims) == ("He regrets it.", "unjudged", [])
        expected = {"score": None, "status": "unjudged", **NOTHING}
        assert done.dimensions == dict.fromkeys(DIMENSIONS, expected)
        items = [{"status": done.status}, {"status": "no_claims"}, {"status": "empty"}]
        assert is_unjudged(items)

    def test_over_the_budget(self) -> None:
        with at(script(), max_calls=0) as (judge, endpoint, _):
            none = judge_reply(judge, CONTEXT, QUESTION, "He regrets it.")
            assert endpoint.chats == []
        with at(script(), max_calls=2) as (judge, endpoint, _):
            some = judge_reply(judge, CONTEXT, QUESTION, "He regrets it.")
            assert len(endpoint.chats) == 2
        assert none.status == some.status == "judge_skipped"
        assert {rated["status"] for _, rated in rated_in(none)} == {"judge_skipped"}
        statuses = sorted(rated["status"] for _, rated in rated_in(some))
        assert statuses == ["judge_skipped", "judge_skipped", "ok"]

    def test_a_judge_that_gives_numbers_only_decides_nothing(self) -> None:
        @dataclasses.dataclass
        class Numbers(Unasked):
            claims: str

            def verdict(self, criterion: Criterion, fields: Mapping[str, Any]) -> Verdict:
                raw = self.claims if criterion.name == judging.CLAIMS else ""
                return Verdict(4.0, "ok", raw=raw, judge="numbers")

        for claims, others in (("", "judge_skipped"), (claimed(CLAIMS), "judge_parse_failure")):
            done = judge_reply(Numbers(claims), CONTEXT, QUESTION, "He regrets it.")
            assert done.status == "judge_parse_failure"
            assert {rated["status"] for _, rated in rated_in(done)} == {others}
            assert {rated["score"] for _, rated in rated_in(done)} == {None}


class TestLongAnswers:
    """An answer of 20,000 characters."""

    def limited(self, claims: Sequence[str]) -> Script:
        """An endpoint that cuts its replies: four characters are a token."""

        def answer(request: Request) -> Answer:
            text = script(claims=claims)(request)
            assert isinstance(text, str)
            most = 4 * request["max_tokens"]
            return text if len(text) <= most else truncated(text[:most])

        return answer

    def test_it_is_judged_claim_by_claim(self) -> None:
        sentences = [
            f"In scene {n} he walks along the {n}th long corridor and meets somebody new there."
            for n in range(250)
        ]
        reply = " ".join(sentences)
        assert len(reply) > 19_000
        done, chats = judge_with(self.limited(sentences), reply)
        assert (done.status, done.claims) == ("ok", sentences)
        assert all(len(rated["labels"]) == 250 for _, rated in rated_in(done))
        rooms = [chat["max_tokens"] for chat in chats if kind(chat) == "claims"]
        assert rooms == [judging.REPLY_TOKENS, 2 * judging.REPLY_TOKENS]
        assert done.claims_verdict is not None
        assert done.claims_verdict["repaired"] is True

    def test_what_fits_nowhere_is_the_judges_failure(self) -> None:
        done, chats = judge_with(self.limited(["x" * 100] * 1000), "x" * 20_000)
        assert (done.status, len(chats)) == ("judge_truncated", 2)
        assert len(done.candidate) == 20_000
