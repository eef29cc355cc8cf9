"""What one reply is worth, by hand; what the log keeps of it, and the same again from there."""

from __future__ import annotations

from typing import Any

import pytest

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.benchmark import LoadedData
from lmms_eval_tasks.haven.options import TASKS
from lmms_eval_tasks.host.requests import delivery
from lmms_eval_tasks.runs import prepare
from tests.haven.docs import doc
from tests.haven.scored import (
    FAILED,
    FRAMES,
    NOTHING,
    no_models,
    of_doc,
    rescored,
    saved_run,
    video,
    whole,
)

NAMES = list(TASKS)
ORDERS = [name for name in NAMES if TASKS[name].kind in ("temporal", "saliency")]
# The reference of three sentences: In short: thing ba. In short: thing ca. In short: thing da.
FOUR = "1. Thing ba.\n2. Thing ba.\n3. Thing ba.\n4. Thing ba."


@pytest.fixture(autouse=True)
def nobody_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.JUDGE, "none")
    # As after a check: docs made by hand are of no data.
    context.current().instance_of(prepare._CheckedByName)["haven"] = prepare.CheckedData(
        LoadedData(None, ""), []
    )
    no_models(monkeypatch)


def close(**values: float) -> Any:
    return pytest.approx(values, abs=1e-6)


def worth(item: dict[str, Any], **numbers: float) -> None:
    """Some of its scores and baselines are these."""
    known = item["scores"] | item["baselines"]
    assert {name: known[name] for name in numbers} == close(**numbers)


# --- what a reply is worth ------------------------------------------------------------------------


def test_keyframes() -> None:
    """P, R and F1 against the key shots' frames, beside baselines of exactly K frames."""
    found = whole("haven_v2v", "[1, 11, 5]", **FRAMES)
    worth(found, precision=2 / 3, recall=2 / 3, f1=2 / 3, recall_all=1, precision_all=0.15)
    assert (found["frames"], found["status"], found["violations"]) == ([1, 11, 5], "ok", {})
    worth(found, f1_random=3 / 20, f1_all=6 / 23)
    # G = 5 of 20, K = 3: 2KG / F(K + G) = 30 / 160.
    found = whole("haven_v2v", "[1]", frames=20, shots=4, key_shots=[1])
    worth(found, precision=1, recall=0.2, f1=1 / 3)
    worth(found, f1_random=3 / 16)
    assert found["violations"] == {"too_few": 2}
    # By `is_gt` against 1, 2, 3 and 11, by all that was given: two of four.
    found = whole("haven_v2v", "[1, 1, 4, 11, 99]", **FRAMES)
    worth(found, precision=1, recall=1, f1=1, precision_is_gt=1 / 2, recall_is_gt=1 / 2)
    assert found["violations"] == {"too_many": 2, "repeated": 1, "out_of_range": 1}
    # Cut to the first three; a joint reply is not.
    found = whole("haven_v2v", "[2, 3, 5, 1, 4, 11]", **FRAMES)
    worth(found, f1=0, recall_is_gt=1)
    assert found["frames"] == [2, 3, 5]
    joint = "SUMMARY:\n1. A.\nIMPORTANT FRAMES: [Frame 2, Frame 3, Frame 5, Frame 1, Frame 4]"
    worth(whole("haven_v2vt", joint, **FRAMES), recall=2 / 3)
    # What only the lenient reading finds is read.
    found = whole("haven_v2v", "Frames 1 and 4 matter, and 99.", **FRAMES)
    worth(found, precision=1, recall=2 / 3, f1=4 / 5)
    assert (found["status"], found["violations"]) == ("ok", {"other_form": 1})
    # No frame is marked by `is_gt`.
    found = whole("haven_v2v", "[1]", **(FRAMES | {"keyframes": []}))
    assert (found["scores"]["f1_is_gt"], found["scores"]["f1"]) == (None, 1 / 2)


def test_temporal_order() -> None:
    """Shown are shots 2, 4, 1, 3: the third place comes first in time."""
    for name in ("haven_temporal", "haven_temporal_doc", "haven_temporal_text"):
        right = whole(name, "Shot 3 > Shot 1 > Shot 4 > Shot 2")
        assert (right["scores"], right["ranked"]) == (close(spearman=1, kendall=1), [1, 2, 3, 4])
        wrong = whole(name, "Shot 2 > Shot 4 > Shot 1 > Shot 3")
        assert wrong["scores"] == close(spearman=-1, kendall=-1)
        worth(right, spearman_random=0, kendall_identity=0)
    reply = "Sentence 3 > Sentence 1 > Sentence 4 > Sentence 2"
    found = whole("haven_temporal_text", reply, layout="temporal_sentences")
    worth(found, spearman=1)
    assert whole("haven_temporal", reply)["status"] == "unparsed"
    # Of twelve shots 9, 3 and 6 are shown; identity is 1, 2, 3 against 3, 1, 2.
    given = {"frames": 24, "shots": 12, "units": [9, 3, 6]}
    found = whole("haven_temporal", "Shot 2 > Shot 3 > Shot 1", **given)
    worth(found, spearman=1, spearman_identity=-0.5, kendall_identity=-1 / 3)
    # Missing units are tied last: places 2, 3.5, 1, 3.5 against 2, 4, 1, 3: 4.5 / sqrt(5 * 4.5).
    found = whole("haven_temporal", "Shot 3 > Shot 1")
    assert found["scores"]["spearman"] == pytest.approx(4.5 / 22.5**0.5)
    assert (found["status"], found["violations"]) == ("unparsed", {"missing": 2})


def test_saliency() -> None:
    """The most important comes first; drawn shots by their own importance; ties."""
    for name in ("haven_saliency", "haven_saliency_doc", "haven_saliency_text"):
        found = whole(name, "Shot 4 > Shot 3 > Shot 2 > Shot 1")  # 0, 0.25, 0.5, 0.75
        assert found["scores"] == close(spearman=1, kendall=1)
    more = {"units": [4, 1, 3], "importance": [0.9, 0.1, 0.5, 0.2]}
    found = whole("haven_saliency", "Shot 2 > Shot 3 > Shot 1", **more)
    assert (found["scores"], found["ranked"]) == (close(spearman=1, kendall=1), [1, 3, 4])
    # Ranks 1.5, 1.5, 3.5, 3.5: rho is at most 4 / sqrt(20), tau-b 4 / sqrt(4 * 6).
    order = "Shot 2 > Shot 1 > Shot 3 > Shot 4"
    found = whole("haven_saliency", order, importance=[1, 1, 0, 0])
    assert found["scores"] == close(spearman=4 / 20**0.5, kendall=4 / 24**0.5)
    # No order is right or wrong: no number, whatever is replied.
    for reply in (order, "no idea", "", FAILED):
        found = whole("haven_saliency", reply, importance=[0.3, 0.3, 0.3, 0.3])
        assert found["scores"] == {"spearman": None, "kendall": None}
        assert set(found["baselines"].values()) == {None}
        assert found["undefined"] == "all true ranks are equal"


def test_fewer_than_two_units_are_worth_0() -> None:
    for name in ORDERS:
        for reply in ("Shot 1 > Shot 9", "Shot 2", "They all matter.", *NOTHING):
            found = whole(name, reply, importance=[0.3, 0.1, 0.3, 0.9])
            assert found["scores"] == {"spearman": 0.0, "kendall": 0.0}, (name, reply)
            assert found["status"] == NOTHING.get(reply, "unparsed")


def test_grounding() -> None:
    """Shown are sentences 2, 1, 3, of shots 2, 1, 3; F1 is 1, 2/3 and 0."""
    for name in ("haven_grounding", "haven_grounding_text"):
        reply = "Summary 1: Clip 2\nSummary 2: Clip 1, Clip 4\nSummary 3: Clip 4"
        found = whole(name, reply)
        assert found["scores"] == close(f1=5 / 9, iou=1 / 2, hit1=2 / 3)
        worth(found, f1_random=1 / 4, iou_random=1 / 4, f1_all=2 / 5, hit1_all=1)
        assert found["clips"] == [[2], [1, 4], [4]]
    # Asked about are sentences 3 and 1, of shots 4 and 1, 2.
    given = doc("haven_grounding", summary_shots=[[1, 2], [], [4]]) | {"sentences": [3, 1]}
    found = of_doc(given, "Summary 1: Clip 4\nSummary 2: Clip 1")
    assert found["scores"] == close(f1=5 / 6, iou=3 / 4, hit1=1)
    assert found["status"] == "ok"
    found = whole("haven_grounding", "Summary 1: Clip 2\nSummary 3: Clip 3")
    assert found["scores"]["f1"] == pytest.approx(2 / 3)
    assert (found["status"], found["violations"]) == ("unparsed", {"missing": 1})
    # The second sentence has no shot: nothing is right of it but, in IoU, to name none.
    given = doc("haven_grounding", summary_shots=[[1], [], [3]])
    for second, iou in (("None", 1), ("Clip 2", 2 / 3)):
        found = of_doc(given, f"Summary 1: {second}\nSummary 2: Clip 1\nSummary 3: Clip 3")
        assert found["scores"] == close(f1=2 / 3, iou=iou, hit1=2 / 3)
    worth(found, iou_random=1 / 6)


def test_summaries() -> None:
    """ROUGE's aggregate is the mean of three F1; the number of sentences is counted."""
    # Two of two words and of twelve: F1 2/7; one bigram of eleven: 1/6.
    for reply in ("Thing ba.", "<think>Thing ca, thing da.</think>\nThing ba."):
        found = whole("haven_v2t", reply)
        worth(found, rouge1=2 / 7, rouge2=1 / 6, rougeL=2 / 7, rouge=31 / 126)
        assert found["violations"] == {"too_few_sentences": 2}
        assert (found["status"], found["candidate"]) == ("ok", "Thing ba.")
    counted = {2: {"too_few_sentences": 1}, 3: {}, 5: {}, 7: {"too_many_sentences": 2}}
    for n, broken_rules in counted.items():
        found = whole("haven_v2t", " ".join(["A cat runs."] * n))
        assert found["violations"] == broken_rules
    found = whole("haven_v2t_text", f"SUMMARY:\n{FOUR}\n5. More.")
    assert found["violations"] == {"too_many_sentences": 1}
    assert found["candidate"] == "Thing ba. Thing ba. Thing ba. Thing ba. More."
    assert whole("haven_v2t_text", f"SUMMARY:\n{FOUR}")["violations"] == {}


def test_joint_replies() -> None:
    """Both parts have a status, scores and violations of their own."""
    full, frames = f"SUMMARY:\n{FOUR}", "IMPORTANT FRAMES: [Frame 1, Frame 4, Frame 5]"
    found = whole("haven_v2vt", f"{full}\n{frames}", **FRAMES)
    assert found["parts"] == {"summary": "ok", "frames": "ok"}
    # Of eight words "thing" counts three times and "ba" once: P = 4/8, R = 4/12.
    worth(found, f1=2 / 3, rouge1=2 / 5)
    assert found["sentences"] == ["Thing ba."] * 4
    tagged = whole("haven_v2vt", full, tagged="Thing ba. [2] " * 4)
    assert tagged["scores"]["rouge1"] == pytest.approx(4 / 5)  # eight words of twelve
    assert (found["status"], found["violations"]) == ("ok", {})
    found = whole("haven_v2vt", "IMPORTANT FRAMES: [Frame 1, Frame 4]", **FRAMES)
    assert found["parts"] == {"summary": "unparsed", "frames": "ok"}
    assert (found["status"], found["geval"]["status"]) == ("unparsed", "unparsed")
    worth(found, f1=4 / 5, rouge=0)
    assert found["violations"] == {"frames_too_few": 1, "summary_nothing_read": 1}
    found = whole("haven_v2vt", full, **FRAMES)
    assert found["parts"] == {"summary": "ok", "frames": "unparsed"}
    worth(found, f1=0)
    assert found["geval"]["status"] == "unjudged"  # a summary without frames is one all the same


def test_a_number_that_the_limit_cut() -> None:
    """Frame 1 may have been 10 to 19: it is no keyframe of the reply, in the run and after it."""
    known_of_run = context.current().instance_of(delivery.Deliveries)
    for at_limit, share in ((True, 0.0), (False, 0.5), (None, 0.5)):
        known = {} if at_limit is None else {("haven_v2v", "tvsum/video_1"): at_limit}
        known_of_run.at_limit = known
        run = saved_run("haven_v2v", "4, 1")
        (sample,) = run.samples
        known_of_run.at_limit = {}  # known from the saved item alone
        assert sample["failed"].get("at_limit") is at_limit
        assert sample["failed"]["scores"]["precision_is_gt"] == share
        assert rescored(run).numbers[0].values["precision_is_gt"] == share
        assert sample["failed"]["frames"] == [4, 1]  # the authors' reading stays theirs
    twelve = {"shots": 12, "units": [*range(12, 0, -1)], **video(1)}
    reply = " > ".join(f"Shot {place}" for place in [*range(2, 13), 1])
    known_of_run.at_limit = {("haven_saliency", "tvsum/video_1"): True}
    assert whole("haven_saliency", reply, **twelve)["violations"] == {"missing": 1}
    assert whole("haven_saliency", reply + ".", **twelve)["violations"] == {}


def test_no_reply() -> None:
    """Worth 0 everywhere; whose failure it is tells the status."""
    for name in NAMES:
        for reply, status in NOTHING.items():
            found = whole(name, reply)
            assert found["status"] == status
            assert set(found["parts"].values()) == {status}
            assert set(found["scores"].values()) == {0.0}
            assert found["violations"] == {}
        for odd in (None, ["a"], 3):
            found = of_doc(doc(name), odd)
            assert (found["status"], found["reply"]) == ("empty", "")


# --- saved runs -----------------------------------------------------------------------------------


def test_a_damaged_sample() -> None:
    """A list that does not fit loses no other item."""
    run = saved_run("haven_temporal", "Shot 3 > Shot 1 > Shot 4 > Shot 2", "Shot 1 > Shot 2")
    run.samples[0]["failed"]["units"] = ["a", 1]
    assert rescored(run).numbers[0].details["status"]["error"] == 1
