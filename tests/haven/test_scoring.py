"""What one reply is worth: from its text to scores, baselines, statuses and violations, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from lmms_eval_tasks.haven import scores, scoring
from lmms_eval_tasks.haven.labels import TASKS
from lmms_eval_tasks.judges.config import NONE, JudgeConfig
from lmms_eval_tasks.judges.providers import NoJudge
from tests.haven.asking import Unasked
from tests.haven.docs import doc
from tests.haven.scored import FAILED, FIRST, REFUSED, broken, made, of_doc, whole

NAMES = list(TASKS)
ORDERS = [name for name in NAMES if TASKS[name].kind in ("temporal", "saliency")]
FRAMES = {"frames": 20, "keyframes": [1, 4, 11]}  # K = 3
JOINT = "SUMMARY:\n{text}\nIMPORTANT FRAMES: [{frames}]"
# The reference of three sentences: In short: thing ba. In short: thing ca. In short: thing da.
FOUR = "1. Thing ba.\n2. Thing ba.\n3. Thing ba.\n4. Thing ba."
NOTHING = {"": "empty", REFUSED: "refused", "<think>First": "truncated", FAILED: "model_error"}


@pytest.fixture(autouse=True)
def nobody_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE", "none")


def close(**numbers: float) -> Any:
    return pytest.approx(numbers, abs=1e-6)


def picked(found: dict[str, Any], *names: str) -> dict[str, float]:
    return {name: (found["scores"] | found["baselines"])[name] for name in names}


class TestKeyframes:
    """P, R and F1 over what is given, beside baselines of exactly K frames."""

    def test_by_hand(self) -> None:
        found = whole("haven_v2v", "[1, 11, 5]", **FRAMES)
        assert found["scores"] == close(precision=2 / 3, recall=2 / 3, f1=2 / 3)
        assert found["frames"] == [1, 11, 5]
        assert found["baselines"] == close(
            **{"precision_random": 3 / 20, "recall_random": 3 / 20, "f1_random": 3 / 20},
            # Middles of three parts of 20 frames: 4, 11 and 17.
            **{"precision_uniform": 2 / 3, "recall_uniform": 2 / 3, "f1_uniform": 2 / 3},
            **{"precision_first": 1 / 3, "recall_first": 1 / 3, "f1_first": 1 / 3},
            **{"precision_all": 3 / 20, "recall_all": 1, "f1_all": 6 / 23},
            **{"precision_best": 1, "recall_best": 1, "f1_best": 1},
        )
        assert (found["status"], found["violations"]) == ("ok", {})

    def test_more_true_ones_than_asked_for(self) -> None:
        """G = 5 of 20, K = 3: 2KG / F(K + G) = 30 / 160; three hits are 6 / 8."""
        found = whole("haven_v2v", "[1]", frames=20, keyframes=[1, 2, 3, 4, 5])
        assert found["scores"] == close(precision=1, recall=0.2, f1=1 / 3)
        assert picked(found, "f1_random", "f1_first", "f1_best", "recall_best") == close(
            f1_random=3 / 16, f1_first=0.75, f1_best=0.75, recall_best=0.6
        )
        assert found["violations"] == {"too_few": 2}

    def test_what_was_given_is_scored(self) -> None:
        found = whole("haven_v2v", "[1, 1, 4, 11, 99]", **FRAMES)
        assert found["scores"] == close(precision=3 / 4, recall=1, f1=6 / 7)
        assert found["violations"] == {"too_many": 2, "repeated": 1, "out_of_range": 1}
        assert (found["status"], found["frames"]) == ("ok", [1, 4, 11])


class TestOrders:
    """Units are named by place shown; the truth is by their numbers, or by importance."""

    @pytest.mark.parametrize("name", ["haven_temporal", "haven_temporal_doc"])
    def test_the_lowest_number_comes_first(self, name: str) -> None:
        """Shown are shots 2, 4, 1, 3: the third place comes first in time."""
        right = whole(name, "Shot 3 > Shot 1 > Shot 4 > Shot 2")
        assert right["scores"] == close(spearman=1, kendall=1)
        assert right["ranked"] == [1, 2, 3, 4]
        assert whole(name, "Shot 2 > Shot 4 > Shot 1 > Shot 3")["scores"] == close(
            spearman=-1, kendall=-1
        )
        assert right["baselines"] == close(
            **{"spearman_random": 0, "spearman_identity": 0, "spearman_best": 1},
            **{"kendall_random": 0, "kendall_identity": 0, "kendall_best": 1},
        )

    def test_sentences_of_the_proxy(self) -> None:
        reply = "Sentence 3 > Sentence 1 > Sentence 4 > Sentence 2"
        assert whole("haven_temporal_text", reply)["scores"]["spearman"] == pytest.approx(1)
        assert whole("haven_temporal", reply)["status"] == "unparsed"

    def test_drawn_ones(self) -> None:
        """Of twelve shots 9, 3 and 6 are shown; identity is 1, 2, 3 against 3, 1, 2."""
        more = {"frames": 24, "shots": 12, "units": [9, 3, 6]}
        found = whole("haven_temporal", "Shot 2 > Shot 3 > Shot 1", **more)
        assert found["scores"] == close(spearman=1, kendall=1)
        assert found["ranked"] == [3, 6, 9]
        assert picked(found, "spearman_identity", "kendall_identity") == close(
            spearman_identity=-0.5, kendall_identity=-1 / 3
        )

    @pytest.mark.parametrize(
        "name", ["haven_saliency", "haven_saliency_doc", "haven_saliency_text"]
    )
    def test_the_most_important_comes_first(self, name: str) -> None:
        found = whole(name, "Shot 4 > Shot 3 > Shot 2 > Shot 1")  # 0, 0.25, 0.5, 0.75
        assert found["scores"] == close(spearman=1, kendall=1)
        assert found["baselines"]["spearman_identity"] == pytest.approx(-1)

    def test_drawn_and_shuffled_shots(self) -> None:
        """Places 1, 2, 3 are shots 4, 1, 3 of importance 0.2, 0.9, 0.5."""
        more = {"units": [4, 1, 3], "importance": [0.9, 0.1, 0.5, 0.2]}
        found = whole("haven_saliency", "Shot 2 > Shot 3 > Shot 1", **more)
        assert found["scores"] == close(spearman=1, kendall=1)
        assert found["ranked"] == [1, 3, 4]

    def test_ties(self) -> None:
        """Ranks 1.5, 1.5, 3.5, 3.5: rho is at most 4 / sqrt(20), tau-b 4 / sqrt(4 * 6)."""
        found = whole(
            "haven_saliency", "Shot 2 > Shot 1 > Shot 3 > Shot 4", importance=[1, 1, 0, 0]
        )
        most = {"spearman": 4 / 20**0.5, "kendall": 4 / 24**0.5}
        assert found["scores"] == close(**most)
        assert picked(found, "spearman_best", "kendall_best") == close(
            spearman_best=most["spearman"], kendall_best=most["kendall"]
        )
        assert found["undefined"] == ""

    @pytest.mark.parametrize("reply", ["Shot 2 > Shot 1 > Shot 3 > Shot 4", "no idea", "", FAILED])
    def test_all_equal(self, reply: str) -> None:
        """No order is right or wrong: no number, whatever is replied."""
        found = whole("haven_saliency", reply, importance=[0.3, 0.3, 0.3, 0.3])
        assert found["scores"] == {"spearman": None, "kendall": None}
        assert set(found["baselines"].values()) == {None}
        assert found["undefined"] == "all true ranks are equal"

    def test_missing_units_are_tied_last(self) -> None:
        """Places 2, 3.5, 1, 3.5 against 2, 4, 1, 3: 4.5 / sqrt(5 * 4.5)."""
        found = whole("haven_temporal", "Shot 3 > Shot 1")
        assert found["scores"]["spearman"] == pytest.approx(4.5 / 22.5**0.5)
        assert (found["status"], found["violations"]) == ("unparsed", {"missing": 2})
        assert found["ranked"] == [1, 2]

    @pytest.mark.parametrize("name", ORDERS)
    @pytest.mark.parametrize("reply", ["Shot 1 > Shot 9", "Shot 2", "They all matter.", *NOTHING])
    def test_fewer_than_two_are_worth_0(self, name: str, reply: str) -> None:
        found = whole(name, reply, importance=[0.3, 0.1, 0.3, 0.9])
        assert found["scores"] == {"spearman": 0.0, "kendall": 0.0}
        assert found["status"] == NOTHING.get(reply, "unparsed")


class TestGrounding:
    """Sentences by place shown, clips by number."""

    @pytest.mark.parametrize("name", ["haven_grounding", "haven_grounding_text"])
    def test_by_hand(self, name: str) -> None:
        """Shown are sentences 2, 1, 3, of shots 2, 1, 3; F1 is 1, 2/3 and 0."""
        reply = "Summary 1: Clip 2\nSummary 2: Clip 1, Clip 4\nSummary 3: Clip 4"
        found = whole(name, reply)
        assert found["scores"] == close(f1=5 / 9, iou=1 / 2, hit1=2 / 3)
        assert found["baselines"] == close(
            **{"f1_random": 1 / 4, "iou_random": 1 / 4, "hit1_random": 1 / 4},
            **{"f1_all": 2 / 5, "iou_all": 1 / 4, "hit1_all": 1},
            **{"f1_best": 1, "iou_best": 1, "hit1_best": 1},
        )
        assert found["clips"] == [[2], [1, 4], [4]]
        assert made(name, reply)["clips_predicted"]["value"] == pytest.approx(4 / 3)

    def test_sentences_without_shots(self) -> None:
        """Asked about are sentences 3 and 1, of shots 4 and 1, 2."""
        given = doc("haven_grounding", summary_shots=[[1, 2], [], [4]]) | {"sentences": [3, 1]}
        found = of_doc(given, "Summary 1: Clip 4\nSummary 2: Clip 1")[FIRST]
        assert found["scores"] == close(f1=5 / 6, iou=3 / 4, hit1=1)
        assert found["status"] == "ok"

    def test_a_missing_sentence(self) -> None:
        found = whole("haven_grounding", "Summary 1: Clip 2\nSummary 3: Clip 3")
        assert found["scores"]["f1"] == pytest.approx(2 / 3)
        assert (found["status"], found["violations"]) == ("unparsed", {"missing": 1})


class TestSummaries:
    """ROUGE's aggregate is the mean of three F1; the number of sentences is counted."""

    def test_rouge_by_hand(self) -> None:
        """Two of two words and of twelve: F1 2/7; one bigram of eleven: 1/6."""
        found = whole("haven_v2t", "Thing ba.")
        assert found["scores"] == close(
            rouge1=2 / 7, rouge2=1 / 6, rougeL=2 / 7, rouge=(2 / 7 + 1 / 6 + 2 / 7) / 3
        )
        assert found["violations"] == {"too_few_sentences": 2}
        assert (found["status"], found["candidate"]) == ("ok", "Thing ba.")

    @pytest.mark.parametrize(
        ("n", "counted"),
        [(2, {"too_few_sentences": 1}), (3, {}), (5, {}), (7, {"too_many_sentences": 2})],
    )
    def test_three_to_five_sentences(self, n: int, counted: dict[str, int]) -> None:
        assert whole("haven_v2t", " ".join(["A cat runs."] * n))["violations"] == counted

    def test_the_proxy_asks_for_a_number(self) -> None:
        found = whole("haven_v2t_text", f"SUMMARY:\n{FOUR}\n5. More.")
        assert found["violations"] == {"too_many_sentences": 1}
        assert found["candidate"] == "Thing ba. Thing ba. Thing ba. Thing ba. More."
        assert whole("haven_v2t_text", f"SUMMARY:\n{FOUR}")["violations"] == {}

    def test_reasoning_is_no_part(self) -> None:
        found = whole("haven_v2t", "<think>Thing ca, thing da.</think>\nThing ba.")
        assert found["candidate"] == "Thing ba."
        assert found["scores"]["rouge1"] == pytest.approx(2 / 7)


class TestJoint:
    """Both parts have a status, scores and violations of their own."""

    def test_both(self) -> None:
        reply = JOINT.format(text=FOUR, frames="Frame 1, Frame 4, Frame 5")
        found = whole("haven_v2vt", reply, **FRAMES)
        assert found["parts"] == {"summary": "ok", "frames": "ok"}
        assert found["scores"]["f1"] == pytest.approx(2 / 3)
        # Of eight words "thing" counts three times and "ba" once: P = 4/8, R = 4/12.
        assert found["scores"]["rouge1"] == pytest.approx(2 / 5)
        assert found["sentences"] == ["Thing ba."] * 4
        assert (found["status"], found["violations"]) == ("ok", {})

    def test_no_summary(self) -> None:
        """ROUGE is 0 and leaves `_valid`, F1 stays in it."""
        found = made("haven_v2vt", "IMPORTANT FRAMES: [Frame 1, Frame 4]", **FRAMES)
        assert found[FIRST]["parts"] == {"summary": "unparsed", "frames": "ok"}
        assert found[FIRST]["status"] == found["f1_random"]["status"] == "unparsed"
        for name in ("rouge", "rouge_valid", "rougeL_tvsum", "summary_failed", "bertscore"):
            assert found[name]["status"] == "unparsed", name
        assert found["rouge"]["value"] == 0
        for name in ("f1", "precision_valid", "recall_sources", "frames_failed"):
            assert found[name]["status"] == "ok", name
        assert found["f1"]["value"] == pytest.approx(4 / 5)
        assert found[FIRST]["violations"] == {"frames_too_few": 1, "summary_nothing_read": 1}

    def test_no_frames(self) -> None:
        found = made("haven_v2vt", f"SUMMARY:\n{FOUR}", **FRAMES)
        assert found[FIRST]["parts"] == {"summary": "ok", "frames": "unparsed"}
        assert (found["f1"]["status"], found["f1"]["value"]) == ("unparsed", 0)
        assert (found["rouge1"]["status"], found["bertscore"]["status"]) == ("ok", "ok")
        assert found["clipscore"]["status"] == "unparsed"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reply", NOTHING)
def test_no_reply(name: str, reply: str) -> None:
    """Worth 0 everywhere; whose failure it is tells the status."""
    found = whole(name, reply)
    assert found["status"] == NOTHING[reply]
    assert set(found["parts"].values()) == {NOTHING[reply]}
    assert set(found["scores"].values()) == {0.0}
    assert found["violations"] == {}


@pytest.mark.parametrize("name", NAMES)
def test_a_reply_whose_scoring_broke(name: str) -> None:
    """An item like any other: 0, status error, every metric there."""
    found = broken(name)
    assert found.keys() == made(name, "").keys()
    assert found[FIRST]["status"] == "error"
    for metric in scores.MEASURED[TASKS[name].kind]:
        assert (found[metric]["status"], found[metric]["value"]) == ("error", 0.0)


def test_nothing_read_is_put_to_no_judge() -> None:
    item = whole("haven_v2vt", "[Frame 1, Frame 4]", **FRAMES)
    again = scoring.reply_metrics(item, item["reply"], judge=Unasked())
    rated = again["geval_samples_valid"]["geval"]
    assert rated == {"score": None, "status": "unparsed", "mode": None}
    item = whole("haven_v2t", REFUSED)
    again = scoring.reply_metrics(item, REFUSED, judge=Unasked())
    assert again[FIRST]["geval"]["score"] == 0.0
    waiting = scoring.reply_metrics(item, "A cat.", judge=NoJudge(JudgeConfig(NONE)))
    assert waiting[FIRST]["geval"]["status"] == "unjudged"
    with pytest.raises(AssertionError, match="asked haven_geval"):
        scoring.reply_metrics(item, "A cat.", judge=Unasked())
    # A summary without frames is one all the same.
    item = whole("haven_v2vt", "SUMMARY:\n1. A cat.")
    assert item["parts"] == {"summary": "ok", "frames": "unparsed"}
    with pytest.raises(AssertionError, match="asked haven_geval"):
        scoring.reply_metrics(item, item["reply"], judge=Unasked())
