"""JSON and HDF5 of one video: one record, where the two disagree, and what only some tasks lack."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from lmms_eval_tasks.haven.options import TASKS
from lmms_eval_tasks.haven.records.record import Sentence
from tests.haven.records.one_video import ORIGIN, Change, joined, put, record
from tests.haven.release_files import content

FRAME_TEXTS = {"v2t_text", "v2v_text", "v2vt_text"}
SHOT_TEXTS = {"grounding_text", "saliency_text"}
GROUNDING = {"grounding", "grounding_text"}
SALIENCY = {"saliency", "saliency_doc", "saliency_text"}
SUMMARY = {"v2t", "v2vt", "v2t_text", "v2vt_text", *GROUNDING}
DOCUMENT = {"temporal_doc", "saliency_doc", "temporal_text"}


def test_a_record() -> None:
    found = record()
    data, arrays = content("tvsum", 1, 8, 3)
    assert (found.id, found.name, found.n_frames) == ("tvsum/video_1", "tvsum clip 1", 120)
    assert found.picks == [0, 15, 30, 45, 60, 75, 90, 105]
    described = [frame["description"] for frame in data["video_1"]["frames"]]
    assert [frame.description for frame in found.frames] == described
    assert found.keyframes == [1 + int(np.argmax(arrays["video_1"]["gtframe"]))]
    assert [shot.frames for shot in found.shots] == [(1, 2), (3, 4, 5), (6, 7, 8)]
    assert [shot.key for shot in found.shots].count(True) == 1
    scores = arrays["video_1"]["gtscore"]
    means = [scores[:2].mean(), scores[2:5].mean(), scores[5:].mean()]
    assert found.importance == pytest.approx(means)
    assert [sentence.shots for sentence in found.document] == [(1, 2), (3,)]
    assert [sentence.shots for sentence in found.summary] == [(1, 2, 3)]
    assert (found.gaps, found.path) == ({}, None)


def test_what_may_be_missing() -> None:
    """HDF5: importance and the number of frames; the name; what says which frames are key."""
    found, whole = record(hdf5=False), record()
    assert found.gaps == dict.fromkeys(SALIENCY, ORIGIN.without)
    assert (found.importance, found.n_frames) == (None, None)
    assert (found.shots, found.document) == (whole.shots, whole.document)
    assert record(lambda g, a: g.pop("video_name")).name == "Their Name"
    assert record(lambda g, a: g.pop("video_name"), hdf5=False).name == ""

    def change(given: dict[str, Any], arrays: dict[str, Any]) -> None:
        del arrays["gtframe"]
        given["frames"][0]["is_gt"] = True

    assert record(change).keyframes[0] == 1


# --- shots and their frames -----------------------------------------------------------------------


def empty_second_shot(given: dict[str, Any], arrays: dict[str, Any]) -> None:
    """The second of three shots has no sampled frame; the first has frames 1 to 5."""
    arrays["change_points"] = np.array([[0, 61], [62, 74], [75, 119]])
    given["clips"][0].update(frames=[0, 15, 30, 45, 60], frame_count=5)
    given["clips"][1].update(frames=[], frame_count=0, summary="")
    given["aligned_text_summary"] = {
        "sentences": ["One.", "Two.", "Three."],
        "alignments": [
            {"sentence_id": 0, "shot_ids": [1]},
            {"sentence_id": 1, "shot_ids": [0, 1, 2]},
            {"sentence_id": 2, "shot_ids": [2]},
        ],
    }


@pytest.mark.parametrize("hdf5", [True, False])
def test_a_shot_without_a_sampled_frame_is_dropped_and_the_others_renumbered(hdf5: bool) -> None:
    found = record(empty_second_shot, hdf5)
    assert [shot.frames for shot in found.shots] == [(1, 2, 3, 4, 5), (6, 7, 8)]
    clips = content("tvsum", 1, 8, 3)[0]["video_1"]["clips"]
    assert [shot.description for shot in found.shots] == [clips[0]["summary"], clips[2]["summary"]]
    told = (Sentence("One.", ()), Sentence("Two.", (1, 2)), Sentence("Three.", (2,)))
    assert found.summary == told
    assert found.gaps == ({} if hdf5 else dict.fromkeys(SALIENCY, ORIGIN.without))


def test_frames_at_the_end_of_a_range_and_between_shots() -> None:
    def change(given: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["change_points"] = np.array([[0, 30], [31, 59], [75, 119]])
        given["clips"][0].update(frames=[0, 15, 30], frame_count=3)
        given["clips"][1].update(frames=[45], frame_count=1)

    found = record(change)
    assert [shot.frames for shot in found.shots] == [(1, 2, 3), (4,), (6, 7, 8)]
    assert len(found.frames) == 8


def shots_at(*points: tuple[int, int]) -> Change:
    return lambda given, arrays: arrays.update(change_points=np.array(points))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda g, a: a["picks"].__setitem__(2, 31),
            "frames, entry 3, frame_id: 30, but tvsum.h5, picks, entry 3: 31",
        ),
        (lambda g, a: a.update(picks=a["picks"][:-1]), "frames: 8, but tvsum.h5, picks: 7"),
        (
            lambda g, a: a.update(gtframe=np.array([1, 0, 0, 0, 0, 0, 0, 1])),
            "frames, entry 1, is_gt: 0, but tvsum.h5, gtframe, entry 1: 1",
        ),
        (shots_at((0, 29), (30, 74)), "clips: 3, but tvsum.h5, change_points: 2"),
        (
            shots_at((0, 44), (45, 74), (75, 119)),
            "clips, entry 2, frames, entry 1: 30, but tvsum.h5, change_points, entry 2: 45 to 74",
        ),
        (
            shots_at((0, 29), (30, 59), (60, 119)),
            "clips, entry 2, frames, entry 3: 60, but tvsum.h5, change_points, entry 2: 30 to 59",
        ),
    ],
)
def test_where_json_and_hdf5_disagree(change: Change, told: str) -> None:
    assert joined(change) == f"tvsum_data.json, {told}"


def test_no_shot_with_a_frame() -> None:
    def change(given: dict[str, Any], arrays: dict[str, Any]) -> None:
        for clip in given["clips"]:
            clip.update(frames=[], frame_count=0)

    assert joined(change, hdf5=False) == "tvsum_data.json, clips: no shot has a sampled frame"


# --- what only some tasks need --------------------------------------------------------------------


def given(place: str, value: Any) -> Change:
    """A change of the JSON alone."""
    return lambda video, arrays: put(video, place, value)


def scores(place: Any, value: float) -> Change:
    return lambda video, arrays: arrays["gtscore"].__setitem__(place, value)


def one_shot(video: dict[str, Any], arrays: dict[str, Any]) -> None:
    picks = [frame["frame_id"] for frame in video["frames"]]
    video["clips"] = [{**video["clips"][0], "frames": picks, "frame_count": 8}]
    arrays["change_points"] = np.array([[0, 119]])
    for name in ("aligned_full_document", "aligned_text_summary"):
        for one in video[name]["alignments"]:
            one["shot_ids"] = [0]


def no_keyframe(video: dict[str, Any], arrays: dict[str, Any]) -> None:
    for frame in video["frames"]:
        frame["is_gt"] = False
    arrays["gtframe"][:] = 0


ONE_SENTENCE = {"sentences": ["All."], "alignments": [{"sentence_id": 0, "shot_ids": [0]}]}
GAPS: list[tuple[Change, set[str], str]] = [
    (given("aligned_text_summary", None), SUMMARY, "aligned_text_summary: there is none"),
    (given("aligned_full_document", None), DOCUMENT, "aligned_full_document: there is none"),
    (
        given("aligned_full_document", ONE_SENTENCE),
        {"temporal_text"},
        "aligned_full_document: only one sentence",
    ),
    (
        one_shot,
        {"temporal", "temporal_doc", *GROUNDING, *SALIENCY},
        "clips: only one shot has sampled frames",
    ),
    (
        given("aligned_text_summary.alignments", []),
        GROUNDING,
        "aligned_text_summary, alignments: no sentence has a shot",
    ),
    (
        no_keyframe,
        {"v2v", "v2vt", "v2v_text", "v2vt_text"},
        "frames: none is a true keyframe (is_gt)",
    ),
    (
        given("frames.3.description", ""),
        FRAME_TEXTS,
        "frames, entry 4, description: there is none",
    ),
    (
        given("clips.1.summary", "[CONTENT_FILTERED]"),
        SHOT_TEXTS,
        "clips, entry 2, summary: there is none",
    ),
    (scores(slice(4, 6), math.nan), SALIENCY, "gtscore, entry 5: nan, no finite number"),
    (scores(0, -math.inf), SALIENCY, "gtscore, entry 1: -inf, no finite number"),
    (lambda g, a: a.pop("gtscore"), SALIENCY, "gtscore: the dataset is missing"),
]


@pytest.mark.parametrize(("change", "tasks", "told"), GAPS)
def test_what_a_record_lacks_is_told_of_every_task_it_hits(
    change: Change, tasks: set[str], told: str
) -> None:
    found = record(change)
    file = "tvsum.h5" if told.startswith("gtscore") else "tvsum_data.json"
    assert found.gaps == dict.fromkeys(tasks, f"{file}, {told}")
    assert {f"haven_{task}" for task in tasks} <= set(TASKS)
    if tasks == SALIENCY:
        assert found.importance is None
        assert {frame.importance for frame in found.frames} == {None}


def test_of_several_reasons_the_first_is_told() -> None:
    def change(video: dict[str, Any], arrays: dict[str, Any]) -> None:
        one_shot(video, arrays)
        video["aligned_text_summary"] = None

    gaps = record(change).gaps
    assert gaps["grounding"] == "tvsum_data.json, clips: only one shot has sampled frames"
    assert gaps["v2t"] == "tvsum_data.json, aligned_text_summary: there is none"


def test_key_shots_and_different_importances_are_no_tasks_need() -> None:
    found = record(lambda g, a: [clip.pop("gt") for clip in g["clips"]])
    assert (found.gaps, [shot.key for shot in found.shots]) == ({}, [False] * 3)
    found = record(scores(slice(None), 0.5))
    assert (found.gaps, found.importance) == ({}, [0.5, 0.5, 0.5])
