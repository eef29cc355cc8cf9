"""JSON and HDF5 of one video: one record, or where the two disagree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lmms_eval_tasks.haven.records.record import Sentence
from tests.haven.records.one_video import ORIGIN, Change, joined, record
from tests.haven.release_files import content

GROUNDING = {"grounding", "grounding_text"}
SALIENCY = {"saliency", "saliency_doc", "saliency_text"}


def test_a_record() -> None:
    found = record()
    data, arrays = content("tvsum", 1, 8, 3)
    assert (found.id, found.name, found.n_frames) == ("tvsum/video_1", "tvsum clip 1", 120)
    assert found.picks == [0, 15, 30, 45, 60, 75, 90, 105]
    assert [frame.description for frame in found.frames] == [
        frame["description"] for frame in data["video_1"]["frames"]
    ]
    assert found.keyframes == [1 + int(np.argmax(arrays["video_1"]["gtframe"]))]
    assert [shot.frames for shot in found.shots] == [(1, 2), (3, 4, 5), (6, 7, 8)]
    assert [shot.key for shot in found.shots].count(True) == 1
    scores = arrays["video_1"]["gtscore"]
    assert found.importance == pytest.approx(
        [scores[:2].mean(), scores[2:5].mean(), scores[5:].mean()]
    )
    assert [sentence.shots for sentence in found.document] == [(1, 2), (3,)]
    assert [sentence.shots for sentence in found.summary] == [(1, 2, 3)]
    assert found.gaps == {}
    assert found.path is None


def test_without_hdf5_only_importance_and_the_number_of_frames_are_missing() -> None:
    found, whole = record(hdf5=False), record()
    assert found.gaps == dict.fromkeys(SALIENCY, ORIGIN.without)
    assert (found.importance, found.n_frames) == (None, None)
    assert (found.shots, found.document, found.summary) == (
        whole.shots,
        whole.document,
        whole.summary,
    )


def test_the_name_is_the_jsons_or_else_hdf5s() -> None:
    assert record(lambda g, a: g.pop("video_name")).name == "Their Name"
    assert record(lambda g, a: g.pop("video_name"), hdf5=False).name == ""


def empty_second_shot(given: dict[str, Any], arrays: dict[str, Any]) -> None:
    """The second of three shots has no sampled frame; the first has frames 1 to 5."""
    arrays["change_points"] = np.array([[0, 61], [62, 74], [75, 119]])
    given["clips"][0].update(frames=[0, 15, 30, 45, 60], frame_count=5)
    given["clips"][1].update(frames=[], frame_count=0)
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
    assert found.summary == (
        Sentence("One.", ()),
        Sentence("Two.", (1, 2)),
        Sentence("Three.", (2,)),
    )
    assert not GROUNDING & set(found.gaps)


def test_the_gap_of_a_dropped_shots_description_is_none() -> None:
    def change(given: dict[str, Any], arrays: dict[str, Any]) -> None:
        empty_second_shot(given, arrays)
        given["clips"][1]["summary"] = ""

    assert record(change).gaps == {}


def test_the_last_frame_of_a_range_is_in_the_shot() -> None:
    def change(given: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["change_points"] = np.array([[0, 30], [31, 74], [75, 119]])
        given["clips"][0].update(frames=[0, 15, 30], frame_count=3)
        given["clips"][1].update(frames=[45, 60], frame_count=2)

    assert [shot.frames for shot in record(change).shots] == [(1, 2, 3), (4, 5), (6, 7, 8)]


def test_frames_in_no_shot_stay_frames() -> None:
    def change(given: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["change_points"] = np.array([[0, 29], [30, 59], [75, 119]])
        given["clips"][1].update(frames=[30], frame_count=1)  # a clip need not list all

    found = record(change)
    assert [shot.frames for shot in found.shots] == [(1, 2), (3, 4), (6, 7, 8)]
    assert len(found.frames) == 8


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda g, a: a["picks"].__setitem__(2, 31),
            "tvsum_data.json, frames, entry 3, frame_id: 30, but tvsum.h5, picks, entry 3: 31",
        ),
        (
            lambda g, a: a.update(picks=a["picks"][:-1]),
            "tvsum_data.json, frames: 8, but tvsum.h5, picks: 7",
        ),
        (
            lambda g, a: a.update(gtframe=np.array([1, 0, 0, 0, 0, 0, 0, 1])),
            "tvsum_data.json, frames, entry 1, is_gt: 0, but tvsum.h5, gtframe, entry 1: 1",
        ),
        (
            lambda g, a: a.update(change_points=a["change_points"][:2]),
            "tvsum_data.json, clips: 3, but tvsum.h5, change_points: 2",
        ),
        (
            lambda g, a: a.update(change_points=np.array([[0, 44], [45, 74], [75, 119]])),
            "tvsum_data.json, clips, entry 2, frames, entry 1: 30, but tvsum.h5, change_points, "
            "entry 2: 45 to 74",
        ),
        (
            lambda g, a: a.update(change_points=np.array([[0, 29], [30, 59], [60, 119]])),
            "tvsum_data.json, clips, entry 2, frames, entry 3: 60, but tvsum.h5, change_points, "
            "entry 2: 30 to 59",
        ),
    ],
)
def test_where_json_and_hdf5_disagree(change: Change, told: str) -> None:
    assert joined(change) == told


def test_no_shot_with_a_frame() -> None:
    def change(given: dict[str, Any], arrays: dict[str, Any]) -> None:
        for clip in given["clips"]:
            clip.update(frames=[], frame_count=0)

    assert joined(change, hdf5=False) == "tvsum_data.json, clips: no shot has a sampled frame"
