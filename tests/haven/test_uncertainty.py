"""What stands beside a task's numbers: statuses, violations, intervals; what is in none of them."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from lmms_eval_tasks.haven import scores
from lmms_eval_tasks.haven.labels import TASKS
from lmms_eval_tasks.haven.uncertainty import details
from tests.haven.scored import FAILED, FIRST, broken, made, values, whole

FRAMES = {"frames": 20, "keyframes": [1, 4, 11]}  # K = 3


@pytest.fixture(autouse=True)
def nobody_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE", "none")


def keyframes(*replies: str) -> list[dict[str, Any]]:
    return [
        whole("haven_v2v", reply, id=f"tvsum/video_{n}", **FRAMES)
        for n, reply in enumerate(replies)
    ]


def test_counts() -> None:
    found = details(
        "haven_v2v", keyframes("[1,4,11]", "[1,1,99]", "[2,2]", "Some of them.", "", FAILED)
    )
    assert found["items"] == 6
    assert found["status"] == {"empty": 1, "model_error": 1, "ok": 3, "unparsed": 1}
    # The number of replies, not of frames.
    assert found["violations"] == {
        "nothing_read": 1,
        "out_of_range": 1,
        "repeated": 2,
        "too_few": 1,
    }
    assert found["undefined"] == {}
    assert "parts" not in found
    assert json.loads(json.dumps(found)) == found


def test_intervals_of_both_forms() -> None:
    """F1 1, 0 and an unread reply: 1/3 of three, 1/2 of two."""
    found = details("haven_v2v", keyframes("[1,4,11]", "[2,3,5]", "Some of them."))["intervals"]
    assert found.keys() == {
        name for metric in scores.KEYFRAMES for name in (metric, f"{metric}_valid")
    }
    plain, valid = found["f1"], found["f1_valid"]
    assert (plain["estimate"], plain["n"], plain["clusters"]) == (pytest.approx(1 / 3), 3, 3)
    assert (valid["estimate"], valid["n"], valid["clusters"]) == (0.5, 2, 2)
    # Of two videos each resample is 0, 1/2 or 1.
    assert (valid["low"], valid["high"]) == (0.0, 1.0)
    assert plain["low"] == 0.0
    assert plain["method"].startswith("cluster bootstrap, 95 %, B=1000")


def test_as_the_means() -> None:
    """The same numbers as the table has, a reply whose scoring broke included."""
    some = [
        made("haven_v2v", reply, id=f"a/{n}", **FRAMES)
        for n, reply in enumerate(("[1,4,11]", "[1]", "", "Some of them."))
    ]
    some.append(broken("haven_v2v", id="a/9"))
    numbers = values("haven_v2v", some)
    found = details("haven_v2v", [one[FIRST] for one in some])["intervals"]
    for metric in scores.KEYFRAMES:
        for name in (metric, f"{metric}_valid"):
            assert found[name]["estimate"] == pytest.approx(numbers[name]), name
    assert (found["f1"]["n"], found["f1_valid"]["n"]) == (5, 3)
    assert details("haven_v2v", [broken("haven_v2v")[FIRST]])["status"] == {"error": 1}


def test_undefined_items_are_in_no_interval() -> None:
    order = "Shot 4 > Shot 3 > Shot 2 > Shot 1"
    some = [whole("haven_saliency", order, id=f"a/{n}") for n in (1, 2)]
    equal = whole("haven_saliency", order, id="a/3", importance=[1, 1, 1, 1])
    found = details("haven_saliency", [*some, equal])
    assert found["undefined"] == {"a/3": "all true ranks are equal"}
    assert (found["items"], found["intervals"]["spearman"]["n"]) == (3, 2)
    assert found["intervals"]["kendall"]["estimate"] == pytest.approx(1)
    assert details("haven_saliency", [equal])["intervals"] == {}


def test_parts_of_joint_replies() -> None:
    """Each part's statuses; an unread summary leaves ROUGE's `_valid`, not F1's."""
    full = "SUMMARY:\n1. In short: thing ba.\n"
    frames = "IMPORTANT FRAMES: [Frame 1, Frame 4, Frame 11]"
    replies = (full + frames, frames, full, "")
    some = [whole("haven_v2vt", reply, id=f"a/{n}", **FRAMES) for n, reply in enumerate(replies)]
    found = details("haven_v2vt", some)
    assert found["parts"] == {
        "frames": {"empty": 1, "ok": 2, "unparsed": 1},
        "summary": {"empty": 1, "ok": 2, "unparsed": 1},
    }
    assert found["status"] == {"empty": 1, "ok": 1, "unparsed": 2}
    assert found["violations"]["summary_too_few_sentences"] == 2
    assert (found["intervals"]["f1"]["n"], found["intervals"]["f1_valid"]["n"]) == (4, 3)
    assert found["intervals"]["f1_valid"]["estimate"] == pytest.approx(2 / 3)
    assert found["intervals"]["rouge_valid"]["n"] == 3
    # A reply whose scoring broke has no parts: its own status stands for both.
    more = details("haven_v2vt", [*some, broken("haven_v2vt", id="a/9")[FIRST]])
    assert more["parts"]["frames"] == {"empty": 1, "error": 1, "ok": 2, "unparsed": 1}


@pytest.mark.parametrize("task", list(TASKS))
def test_order_does_not_matter(task: str) -> None:
    replies = ("[1, 7]", "Shot 3 > Shot 1", "Summary 1: Clip 1", "A cat runs.", "")
    some = [whole(task, reply, id=f"a/{n}") for n, reply in enumerate(replies)]
    shuffled = some[::-1]
    random.Random(1).shuffle(shuffled)
    assert details(task, some) == details(task, shuffled)
