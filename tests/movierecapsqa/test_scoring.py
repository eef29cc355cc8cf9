"""What one reply is worth: the item under each metric, and that scoring never raises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.judges import make
from lmms_eval_tasks.judges.config import NONE, JudgeConfig
from lmms_eval_tasks.movierecapsqa import baseline_scores, scores, scoring, utils
from lmms_eval_tasks.movierecapsqa.labels import DIMENSIONS
from tests.local_endpoint import error
from tests.movierecapsqa.asking import (
    BEST,
    CLAIMS,
    DIALOGUE,
    FACTS,
    QUESTION,
    Answer,
    Unasked,
    at,
    kind,
    labelled,
    script,
)
from tests.movierecapsqa.entries import SECRET
from tests.movierecapsqa.saved_runs import asked_for, judged_at
from tests.movierecapsqa.test_baselines import GOOD, drawn
from tests.movierecapsqa.test_inputs import doc
from tests.movierecapsqa.test_utils import plain

FIRST = scores.FIRST
REPLY = "He regrets how he lived."
IDENTITY: dict[str, Any] = {
    "id": "seg.1/7",
    "segment": "seg.1",
    "video": "seg",
    "source": "segment",
    "condition": "",
    "question": QUESTION,
    "reference": "He regrets how he lived before.",
    "facts": list(FACTS),
    "dialogue": DIALOGUE,
    "modality": "vision",
    "category": "npa",
    "data": "0123",
    "media": None,
}


def everything(**replies: Answer) -> Any:
    """A judge that also rates the baselines: G-Eval in samples, since it gives no probabilities."""
    own = script(**replies)

    def answer(request: dict[str, Any]) -> Answer:
        name = asked_for(request)
        if name.startswith("geval") and "n" in request:
            return drawn(request, [4, 5])
        return GOOD[name] if name in GOOD else own(request)

    return answer


def made(
    answer: Any = None, reply: str = REPLY, which: tuple[str, ...] = (), **changes: Any
) -> dict[str, dict[str, Any]]:
    with at(answer or script()) as (judge, _, _):
        return scoring.reply_metrics({**IDENTITY, **changes}, reply, judge=judge, which=which)


class TestItems:
    """What each metric's item holds."""

    def test_the_first_has_all_of_it(self) -> None:
        found = made()
        whole = found[FIRST]
        assert next(iter(found)) == FIRST
        for name, value in IDENTITY.items():
            assert whole[name] == value
        assert whole["reply"] == whole["candidate"] == REPLY
        assert (whole["status"], whole["claims"], whole["n_claims"]) == ("ok", CLAIMS, 2)
        assert whole["claims_verdict"]["score"] == 2
        for name in DIMENSIONS:
            one = whole["dimensions"][name]
            assert (one["score"], one["labels"], one["consistent"]) == (5, [BEST[name]] * 2, True)
            assert one["verdict"]["status"] == "ok"
        # 5 of 5 words are in it in order, of 6: 2 * 5 / (5 + 6)
        assert whole["rouge_l"] == pytest.approx(10 / 11)
        assert whole["baselines"] == {}
        plain(found)
        assert json.loads(json.dumps(found)) == found

    def test_facts_and_dialogue_are_there_once(self) -> None:
        found = made(everything(), which=("geval", "helmet"))
        for name, item in found.items():
            logged = json.dumps(item)
            for text in (*FACTS, "you don't dream", CLAIMS[1], "verdict"):
                assert (text in logged) == (name == FIRST), (name, text)

    def test_each_metric_can_be_computed_from_its_own_item(self) -> None:
        found = made(
            everything(factuality=labelled(["contradictory", "supported"], 5)), which=("helmet",)
        )
        values = {name: scores.SCORES[name]([item]) for name, item in found.items()}
        assert values["factuality_valid"] == 5
        assert values["factuality_inconsistent"] == 1
        assert (values["factuality_low"], values["factuality_high"]) == (0, 2)
        assert values["relevance_valid"] == values["relevance_valid_modality_vision"] == 5
        assert values["coherence_valid_category_npa"] == 5
        assert (values["claims_mean"], values["no_claims"]) == (2, 0)
        assert (values["helmet_fluency"], values["helmet_correctness"]) == (1, 2)
        assert values["geval_samples"] is None
        assert values["rouge_l"] == pytest.approx(10 / 11)

    def test_labels_of_others_have_no_item(self) -> None:
        found = made()
        missing = scores.SCORES.keys() - found.keys()
        assert len(missing) == 3 * (3 + 5)
        assert "factuality_valid_category_npa" in found
        assert {"factuality_valid_category_th", "relevance_valid_modality_unlabelled"} <= missing

    @pytest.mark.parametrize("name", baseline_scores.TEXT_METRICS)
    def test_text_metrics_have_the_texts(self, name: str) -> None:
        item = made(reply=f"<think>hm</think>{REPLY}")[name]
        assert (item["candidate"], item["reference"]) == (REPLY, IDENTITY["reference"])

    def test_the_slim_ones_are_small(self) -> None:
        """Fifty whole items for each of 8,231 questions would be gigabytes."""
        found = made(dialogue="word " * 2000)
        whole = len(json.dumps(found.pop(FIRST)))
        assert whole > 10_000
        assert sum(len(json.dumps(item)) for item in found.values()) < 10_000


class TestStatus:
    """Whose failure it is."""

    @pytest.mark.parametrize(
        ("reply", "status"),
        [
            ("", "empty"),
            (" <think>hm</think> ", "empty"),
            ("I'm sorry, but I can't help with that.", "refused"),
            ("<think>never closed", "truncated"),
        ],
    )
    def test_the_candidates_own(self, reply: str, status: str) -> None:
        found = scoring.reply_metrics(
            IDENTITY, reply, judge=Unasked(), which=settings.JUDGED_BASELINES
        )
        assert found[FIRST]["status"] == status
        values = {name: scores.SCORES[name]([item]) for name, item in found.items()}
        for name in (*(f"{d}_valid" for d in DIMENSIONS), "rouge_l", "helmet_correctness"):
            assert values[name] == 0, name
        assert values["factuality_failed"] == values["helmet_fluency_failed"] == 0
        assert found["bertscore"]["candidate"] == ""
        assert found[FIRST]["reply"] == reply

    def test_the_hosts(self) -> None:
        reply = "[LMMS_EVAL_REQUEST_FAILED after 3 retries] x"
        found = scoring.reply_metrics(IDENTITY, reply, judge=Unasked(), which=("helmet",))
        assert found[FIRST]["status"] == "model_error"
        values = {name: scores.SCORES[name]([item]) for name, item in found.items()}
        for name in ("factuality_valid", "relevance_low", "rouge_l", "bertscore", "helmet_fluency"):
            assert values[name] is None, name
        assert values["factuality_failed"] == values["helmet_fluency_failed"] == 1

    def test_the_judges(self) -> None:
        found = made(script(coherence="Five."))
        whole = found[FIRST]
        assert (whole["status"], whole["n_claims"]) == ("judge_parse_failure", 2)
        assert scores.SCORES["coherence_valid"]([found["coherence_valid"]]) is None
        assert scores.SCORES["coherence_failed"]([found["coherence_failed"]]) == 1
        assert scores.SCORES["relevance_valid"]([found["relevance_valid"]]) == 5
        assert whole["rouge_l"] > 0

    def test_no_claims(self) -> None:
        found = made(script(claims=[]))
        assert found[FIRST]["status"] == "no_claims"
        assert scores.SCORES["no_claims"]([found["no_claims"]]) == 1
        assert scores.SCORES["relevance_valid"]([found["relevance_valid"]]) == 0
        assert scores.SCORES["rouge_l"]([found["rouge_l"]]) > 0  # it said something

    def test_nobody_judges_now(self) -> None:
        nobody = make(JudgeConfig(NONE))
        found = scoring.reply_metrics(IDENTITY, REPLY, judge=nobody, which=("geval", "helmet"))
        assert found[FIRST]["status"] == "unjudged"
        values = {name: scores.SCORES[name]([item]) for name, item in found.items()}
        for name in ("factuality_valid", "coherence_high", "helmet_fluency", "geval_samples"):
            assert values[name] is None, name
        assert values["rouge_l"] > 0

    def test_an_error_of_ours(self) -> None:
        found = scoring.failed_metrics(IDENTITY, REPLY)
        assert found.keys() == made().keys()
        assert (found[FIRST]["status"], found[FIRST]["reply"]) == ("error", REPLY)
        values = {name: scores.SCORES[name]([item]) for name, item in found.items()}
        assert {values[name] for name in ("factuality_valid", "rouge_l", "bertscore")} == {None}
        assert values["coherence_failed"] == 1

    def test_no_reference(self) -> None:
        found = made(everything(), reference="", which=("geval", "helmet"))
        values = {name: scores.SCORES[name]([item]) for name, item in found.items()}
        assert values["factuality_valid"] == 5
        for name in ("rouge_l", "bertscore", "helmet_fluency", "geval_samples"):
            assert values[name] is None, name
        assert values["helmet_correctness_failed"] == 0


class TestAsked:
    """Who is asked what."""

    def test_baselines_only_where_asked_for(self) -> None:
        helmet = {"helmet_fluency", "helmet_correctness"}
        for which, kinds, given in (
            ((), 0, set()),
            (("helmet",), 2, helmet),
            (("geval",), 2 + 2, {"geval"}),  # without log-probabilities samples come on top
            (("geval", "helmet"), 6, {"geval", *helmet}),
        ):
            with at(everything()) as (judge, endpoint, _):
                found = scoring.reply_metrics(IDENTITY, REPLY, judge=judge, which=which)
                assert len(endpoint.chats) == 4 + kinds
            assert set(found[FIRST]["baselines"]) == given

    def test_the_extractor_sees_question_and_answer_alone(self) -> None:
        with at(script()) as (judge, endpoint, _):
            scoring.reply_metrics(IDENTITY, REPLY, judge=judge, which=())
            (asked,) = [json.dumps(c.json) for c in endpoint.chats if kind(c.json) == "claims"]
        assert QUESTION in asked
        for hidden in (FACTS[0], "you don't dream", IDENTITY["reference"]):
            assert hidden not in asked

    def test_saved_verdicts_stand(self) -> None:
        from lmms_eval_tasks.movierecapsqa import saved

        first = made(everything(), which=("helmet", "geval"))
        given = saved._saved_verdicts(json.loads(json.dumps(first[FIRST])))
        again = scoring.reply_metrics(
            IDENTITY, REPLY, judge=Unasked(), which=("helmet", "geval"), saved=given
        )
        assert again == first


class TestProcessResults:
    """What the host calls."""

    def test_a_doc(self, user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        one = doc("segment", condition="dialogue")
        with judged_at(everything(), monkeypatch, baselines="helmet") as endpoint:
            found = utils.process_results(one, ["A captain waits."])
            assert sorted(asked_for(chat.json) for chat in endpoint.chats) == sorted(
                ["claims", *DIMENSIONS, "helmet_correctness", "helmet_fluency"]
            )
            shown = [json.dumps(c.json) for c in endpoint.chats if kind(c.json) in DIMENSIONS]
        assert all(f"The {SECRET} sleeps." in text for text in shown)
        whole = found[FIRST]
        assert (whole["id"], whole["status"], whole["condition"]) == ("talk.1/10", "ok", "dialogue")
        assert whole["media"] == {"kind": "none", "dialogue": True}
        assert whole["facts"] == one["facts"]
        plain(found)

    @pytest.mark.parametrize("results", [[], [None], [3], ["", "x"]])
    def test_what_is_no_reply_is_empty(self, results: list[Any], user: Path) -> None:
        found = utils.process_results(doc("segment", condition="dialogue"), results)
        assert (found[FIRST]["status"], found[FIRST]["reply"]) == ("empty", "")

    @pytest.mark.parametrize("broken", ["reply_metrics", "judged_baselines", "_media_log"])
    def test_nothing_raises(
        self,
        broken: str,
        user: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        def fail(*_: Any, **__: Any) -> Any:
            raise RuntimeError("broken by the test")

        place = {"reply_metrics": scoring, "judged_baselines": settings, "_media_log": utils}
        monkeypatch.setattr(place[broken], broken, fail)
        one = doc("segment", condition="dialogue")
        found = utils.process_results(one, ["A captain."])
        assert (found[FIRST]["status"], found[FIRST]["reply"]) == ("error", "A captain.")
        assert found[FIRST]["facts"] == one["facts"]
        assert "scoring talk.1/10 failed; kept as status error" in capsys.readouterr().err

    def test_an_endpoint_that_is_broken_is_the_judges_failure(
        self, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with judged_at(lambda _: error(400, "no"), monkeypatch):
            found = utils.process_results(doc("segment", condition="dialogue"), ["A captain."])
        assert found[FIRST]["status"] == "judge_api_error"
        assert scores.SCORES["factuality_failed"]([found["factuality_failed"]]) == 1

    @pytest.mark.parametrize("spec", ["gpt-4o", "gone.yml", "offline"])
    def test_a_judge_that_cannot_be_used_loses_no_answer(
        self, spec: str, user: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Without our hook nobody stops such a run."""
        monkeypatch.setenv(settings.JUDGE, spec)
        found = utils.process_results(doc("segment", condition="dialogue"), ["A captain."])
        assert found[FIRST]["reply"] == "A captain."
        assert scores.SCORES["factuality_valid"]([found["factuality_valid"]]) is None
