"""Means over videos and over sources, three forms, baselines, G-Eval's modes, joined numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lmms_eval_tasks.haven import judge as texts
from lmms_eval_tasks.haven.tasks import BENCHMARK
from lmms_eval_tasks.report import aggregation
from tests.checks import rows
from tests.haven.docs import doc
from tests.haven.scored import (
    FAILED,
    FRAMES,
    REFUSED,
    Item,
    broken,
    no_bert,
    numbers,
    video,
    whole,
)

RIGHT = "Shot 4 > Shot 3 > Shot 2 > Shot 1"


@pytest.fixture(autouse=True)
def nobody_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE", "none")
    no_bert(monkeypatch)


def four(*replies: str, task: str = "haven_v2v", **more: Any) -> list[Item]:
    """Replies to three videos of TVSum and one of SumMe."""
    places = [video(1), video(2), video(3), video(1, "summe")]
    return [whole(task, r, **p, **more) for r, p in zip(replies, places, strict=True)]


# --- forms ----------------------------------------------------------------------------------------


def test_over_videos_and_over_sources() -> None:
    """F1 1, 0 and 0 of TVSum, 2/3 of SumMe."""
    found = numbers("haven_v2v", four("[1,4,11]", "[2,3,5]", "[2,3,5]", "[1,4,2]", **FRAMES))
    assert found["f1"] == found["f1_valid"] == pytest.approx(5 / 12)
    assert [found[f"f1_{of}"] for of in ("tvsum", "summe")] == pytest.approx([1 / 3, 2 / 3])
    for name in ("f1", "precision", "recall"):
        assert found[f"{name}_sources"] == pytest.approx(1 / 2)
    assert "f1_ovp" not in found


def test_whose_failure_it_is() -> None:
    """0 in the plain number; only what is not the candidate's own leaves `_valid`."""
    right = "[1,4,11]"
    for reply, valid in (
        ("All of them.", 1.0),
        (FAILED, 1.0),
        ("", 0.75),
        (REFUSED, 0.75),
        ("<think>[1,4,11]", 0.75),
    ):
        found = numbers("haven_v2v", four(right, right, right, reply, **FRAMES))
        assert found["f1"] == found["recall"] == 0.75
        assert found["f1_valid"] == found["recall_valid"] == valid
        counted = [found[name] for name in ("failed", "videos", "f1_summe", "f1_sources")]
        assert counted == [1, 4, 0.0, 0.5]


def test_baselines_and_scoring_that_broke() -> None:
    """One that broke counts 0, is told as failed, and is in no baseline's mean."""
    some = [whole("haven_v2v", "[1,4,11]", **FRAMES), broken("haven_v2v", **video(2))]
    found = numbers("haven_v2v", some)
    assert (found["f1"], found["f1_valid"], found["failed"]) == (0.5, 1.0, 1)
    assert found["f1_random"] == pytest.approx(3 / 20)


def test_undefined_items_are_in_no_mean() -> None:
    """Importance that is all equal; one right order of three defined ones is 1, -1 and 0."""
    some = [
        whole("haven_saliency", RIGHT, **video(1)),
        whole("haven_saliency", "Shot 1 > Shot 2 > Shot 3 > Shot 4", **video(2)),
        whole("haven_saliency", "no idea", **video(3)),
        whole("haven_saliency", RIGHT, **video(4), importance=[2, 2, 2, 2]),
        whole("haven_saliency", "no idea", **video(1, "ovp"), importance=[0, 0, 0, 0]),
    ]
    found = numbers("haven_saliency", some)
    assert (found["undefined"], found["failed"], found["spearman_ovp"]) == (2, 2, None)
    for name in ("spearman", "spearman_valid", "spearman_sources"):
        assert found[name] == pytest.approx(0)


def test_orders_as_the_authors_code_reads_them() -> None:
    """Missing shots leave its mean; shots that come again, and numbers alone, by the task."""
    some = [RIGHT, "Shot 1 > Shot 2 > Shot 3 > Shot 4"]
    some += [f"{RIGHT}{more}" for more in (" > Shot 4", "\nShot 1 is the last.", " > Shot 5")]
    some += ["First Shot 1, then Shot 2, Shot 3 and Shot 4.", "1 > 2 > 3 > 4"]
    some += ["Shot 4 > Shot 3", "", FAILED]
    for task, expected in (("haven_saliency", 1 / 5), ("haven_temporal", -1 / 2)):
        given = [
            whole(task, reply, **video(n), units=[4, 3, 2, 1] if "temp" in task else None)
            for n, reply in enumerate(some)
        ]
        assert numbers(task, given)["kendall_authors"] == pytest.approx(expected)
        assert numbers(task, given[-3:])["spearman_authors"] is None


# --- G-Eval ---------------------------------------------------------------------------------------


def rated(task: str, *given: tuple[float | None, str, str | None]) -> list[Item]:
    """Items with these ratings: score, status, mode."""
    return [
        whole(task, "A cat runs.", **video(n))
        | {"geval": {"score": score, "status": status, "mode": mode}}
        for n, (score, status, mode) in enumerate(given)
    ]


def test_geval() -> None:
    """1 to 5, as `_valid` only; the two modes never in one column."""
    # 3, 5, 0 for the refusal; the judge's failure is left out: mean 8/3.
    failed = (None, "judge_api_error", None)
    given = rated(
        "haven_v2t", (3, "ok", "samples"), (5, "ok", "samples"), failed, (0.0, "refused", None)
    )
    found = numbers("haven_v2t", given)
    assert found["geval_samples_valid"] == pytest.approx(8 / 3)
    assert (found["geval_samples_failed"], found["geval_samples_coverage"]) == (1, 0.75)
    assert found["geval_samples_valid_tvsum"] == pytest.approx(8 / 3)
    assert found["geval_samples_valid_sources"] == pytest.approx(8 / 3)
    assert (found["geval_logprobs_valid"], found["geval_logprobs_failed"]) == (None, 0)
    assert not {"geval_samples", "geval_logprobs"} & found.keys()
    found = numbers("haven_v2t", rated("haven_v2t", (2.0, "ok", "logprobs"), (5, "ok", "samples")))
    assert (found["geval_logprobs_valid"], found["geval_samples_valid"]) == (2.0, 5.0)
    assert found["geval_logprobs_failed"] == found["geval_samples_failed"] == 1
    frames_alone = whole("haven_v2vt", "[Frame 1]", **video(7))
    both = [*rated("haven_v2vt", (4, "ok", "samples")), frames_alone, broken("haven_v2vt")]
    found = numbers("haven_v2vt", both)
    assert (found["geval_samples_valid"], found["geval_samples_failed"]) == (4.0, 2)


# --- joined by video ------------------------------------------------------------------------------

CLIP = ("joined_clip_joint", "joined_clip_separate", "joined_clip_gain", "joined_clip_videos")
JOINT = "SUMMARY:\n1. Joint {n}.\nIMPORTANT FRAMES: [Frame {n}, Frame 12]"
KNOWN: dict[Any, float | None] = {
    **{("1", "Joint 1.", 1, 12): 0.9, ("2", "Joint 2.", 2, 12): 0.5, ("3", "Joint 3.", 3, 12): 0.7},
    **{("1", "Alone 1.", 1): 0.8, ("2", "Alone 2.", 2): 0.6, ("3", "Alone 3.", 3): 0.2},
}


def three() -> dict[str, list[Item]]:
    """V2T, V2V and V2VT of videos 1 to 3; the first two tasks of 4 and 5 too."""
    replies = {
        "haven_v2t": {n: f"Alone {n}." for n in range(1, 6)},
        "haven_v2v": {n: f"[{n}]" for n in range(1, 6)},
        "haven_v2vt": {n: JOINT.format(n=n) for n in (1, 2, 3)},
    }
    return {
        task: [whole(task, reply, **video(n)) for n, reply in own.items()]
        for task, own in replies.items()
    }


def test_clipscore_of_joint_and_separate_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Joint minus V2T's text with V2V's frames, over the videos that have all three."""

    def joined(sides: Mapping[str, Sequence[Item]], **lost: None) -> list[Any]:
        def clip_values(given: Sequence[texts.SummaryFrames]) -> list[float | None]:
            assert {one.record for one in given} <= {doc("haven_v2v")["record"]}
            keys = [(one.video[-1], " ".join(one.sentences), *one.frames) for one in given]
            return [None if "".join(map(str, key)) in lost else KNOWN[key] for key in keys]

        monkeypatch.setattr(texts, "clip_values", clip_values)
        found = aggregation.joint_numbers(BENCHMARK.joint_metrics[0], sides)
        return [found.get(name) for name in CLIP]

    assert joined(three()) == pytest.approx([0.7, 1.6 / 3, 0.5 / 3, 3])
    some = three()
    for task, other in (
        ("haven_v2t", whole("haven_v2t", FAILED, **video(2))),
        ("haven_v2v", broken("haven_v2v", **video(2))),
        ("haven_v2vt", whole("haven_v2vt", "SUMMARY:\n1. Joint 2.", **video(2))),
        ("haven_v2vt", some["haven_v2vt"][1] | {"record": "another"}),
    ):
        some = three()
        some[task][1] = other
        assert joined(some) == pytest.approx([0.8, 0.5, 0.3, 2]), task
    del some[task]
    assert joined(some) == [None] * 4
    # A picture that cannot be opened: the video is in neither mean.
    for lost in ("3Joint 3.312", "3Alone 3.3"):
        assert joined(three(), **{lost: None}) == pytest.approx([0.7, 0.7, 0.0, 2])


def test_what_is_invalid_stays_in_its_models_row() -> None:
    values = {"f1": 0.5, "videos": 2}
    mixed = {"haven_v2v": values, "haven_grounding": values, "haven": {"joined_clip_gain": 0.25}}
    table3, table4, worth, *_ = (
        [[str(cell) for cell in column.cells] for column in one.columns]
        for one in BENCHMARK.tables(rows(mixed, bad="haven_grounding haven"))
    )
    assert table3[0] == ["this run"]
    assert [table3[place] for place in (3, 10)] == [["0.500"], ["0.500!"]]
    assert table4[-1] == ["+0.250!"]
    assert worth[0] == ["this run", "this run INVALID"]
