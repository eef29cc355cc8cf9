"""JSON and HDF5 of one video: one record, where the two disagree, and what only some tasks lack."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.options import TASKS
from lmms_eval_tasks.haven.records import schema
from lmms_eval_tasks.haven.records.record import Origin, Record, join
from lmms_eval_tasks.haven.records.schema import Arrays
from tests.checks import refused, table
from tests.haven.records.test_schema import put
from tests.haven.release_files import content

FRAME_TEXTS = {"v2t_text", "v2v_text", "v2vt_text"}
SHOT_TEXTS = {"temporal_text", "grounding_text", "saliency_text"}
GROUNDING = {"grounding", "grounding_text"}
SALIENCY = {"saliency", "saliency_doc", "saliency_text"}
SUMMARY = {"v2t", "v2vt", "v2t_text", "v2vt_text", *GROUNDING}
DOCUMENT = {"temporal_doc", "saliency_doc"}
Video = dict[str, Any]
Change = Callable[[Video, Video], object]
ORIGIN = Origin("tvsum_data.json", "tvsum.h5", "tvsum.h5: no such file, so no importance")


def record(
    change: Change = lambda given, arrays: None, hdf5: bool = True, slack: int = 0
) -> Record:
    """Eight frames in three shots of 2, 3 and 3 (picks 0, 15, ... 105), changed."""
    data, arrays = content("tvsum", 1, 8, 3)
    given, own = data["video_1"], arrays["video_1"]
    change(given, own)
    plain = {
        name: own[name].tolist() for name in Arrays.model_fields if hasattr(own.get(name), "tolist")
    }
    read = Arrays.model_validate({**plain, "video_name": "Their Name"}) if hdf5 else None
    video = schema.read_json(given)
    return join("tvsum", "video_1", video, read, ORIGIN, slack=slack)


def test_a_record() -> None:
    found = record()
    data, arrays = content("tvsum", 1, 8, 3)
    assert (found.id, found.name, found.n_frames) == ("tvsum/video_1", "tvsum clip 1", 120)
    assert found.picks == [0, 15, 30, 45, 60, 75, 90, 105]
    described = [frame["description"] for frame in data["video_1"]["frames"]]
    assert found.descriptions == described
    assert found.keyframes == [1 + int(np.argmax(arrays["video_1"]["gtframe"]))]
    assert found.shots == [[1, 2], [3, 4, 5], [6, 7, 8]]
    assert found.key_shots == [1]
    scores = arrays["video_1"]["gtscore"]
    means = [scores[:2].mean(), scores[2:5].mean(), scores[5:].mean()]
    assert found.importance == pytest.approx(means)
    assert found.document_shots == [[1, 2], [3]]
    assert found.summary_shots == [[1, 2, 3]]
    assert (found.gaps, found.path) == ({}, None)


def test_what_may_be_missing() -> None:
    """HDF5: importance and the number of frames; the name; key frames, key shots, differences."""
    found, whole = record(hdf5=False), record()
    assert found.gaps == dict.fromkeys(SALIENCY, ORIGIN.without)
    assert (found.importance, found.n_frames) == ([], None)
    assert (found.shots, found.document) == (whole.shots, whole.document)
    assert record(lambda g, a: g.pop("video_name")).name == "Their Name"
    assert record(lambda g, a: g.pop("video_name"), hdf5=False).name == ""

    def change(given: Video, arrays: Video) -> None:
        del arrays["gtframe"]
        given["frames"][0]["is_gt"] = True

    assert record(change).keyframes[0] == 1
    found = record(lambda g, a: [clip.pop("gt") for clip in g["clips"]])
    assert found.key_shots == []
    told = "tvsum_data.json, clips: none is a key shot (gt)"
    assert found.gaps == dict.fromkeys(("v2v", "v2vt", "v2v_text", "v2vt_text"), told)
    found = record(scores(slice(None), 0.5))
    assert (found.gaps, found.importance) == ({}, [0.5, 0.5, 0.5])


# --- shots and their frames -----------------------------------------------------------------------


def empty_second_shot(given: Video, arrays: Video) -> None:
    """The second of three shots has no sampled frame; the first has frames 1 to 5."""
    arrays["change_points"] = np.array([[0, 61], [62, 74], [75, 119]])
    given["clips"][0].update(frames=[0, 15, 30, 45, 60])
    given["clips"][1].update(frames=[], summary="")
    given["aligned_text_summary"] = {
        "sentences": ["One.", "Two.", "Three."],
        "alignments": [
            {"sentence_id": place, "shot_ids": shots}
            for place, shots in enumerate(([1], [0, 1, 2], [2]))
        ],
    }


def test_a_shot_without_a_sampled_frame_is_dropped_and_the_others_renumbered() -> None:
    clips = content("tvsum", 1, 8, 3)[0]["video_1"]["clips"]
    for hdf5 in (True, False):
        found = record(empty_second_shot, hdf5)
        assert found.shots == [[1, 2, 3, 4, 5], [6, 7, 8]]
        assert found.shot_texts == [clips[0]["summary"], clips[2]["summary"]]
        assert found.summary == ["One.", "Two.", "Three."]
        assert found.summary_shots == [[], [1, 2], [2]]
        assert found.gaps == ({} if hdf5 else dict.fromkeys(SALIENCY, ORIGIN.without))
    nothing: Change = lambda g, a: [clip.update(frames=[]) for clip in g["clips"]]  # noqa: E731
    refused(DataError, "^tvsum_data.json, clips: no shot has", record, nothing, hdf5=False)


def test_frames_at_the_end_of_a_range_and_between_shots() -> None:
    def change(given: Video, arrays: Video) -> None:
        arrays["change_points"] = np.array([[0, 30], [31, 59], [75, 119]])
        given["clips"][0].update(frames=[0, 15, 30])
        given["clips"][1].update(frames=[45])

    found = record(change)
    assert found.shots == [[1, 2, 3], [4], [6, 7, 8]]
    assert len(found.picks) == 8


def arrays_of(**changes: Any) -> Change:
    return lambda given, arrays: arrays.update({n: np.array(v) for n, v in changes.items()})


PICKS = [0, 15, 30, 45, 60, 75, 90, 105]
FEWER = arrays_of(picks=PICKS[:-1], gtscore=[0.5] * 7, gtframe=[0] * 4 + [1] + [0] * 2)


@table(
    "change, told",
    [
        (arrays_of(picks=[*PICKS[:2], 31, *PICKS[3:]]), "entry 3: frame_id 30, but picks 31"),
        (FEWER, "8 frames, but 7 picks"),
        (arrays_of(gtframe=[1, 0, 0, 0, 0, 0, 0, 1]), "entry 1: is_gt 0, but gtframe 1"),
        (arrays_of(change_points=[(0, 29), (30, 74)]), "3 clips, but 2 change_points"),
        (
            arrays_of(change_points=[(0, 44), (45, 74), (75, 119)]),
            "clip 2: frame 30, but change_points 45 to 74",
        ),
        (
            arrays_of(change_points=[(0, 29), (30, 59), (60, 119)]),
            "clip 2: frame 60, but change_points 30 to 59",
        ),
    ],
)
def test_where_json_and_hdf5_disagree(change: Change, told: str) -> None:
    refused(DataError, f"^tvsum_data.json and tvsum.h5, {told}$", record, change)


def no_frame(given: Video) -> None:
    """`is_gt` of the fifth frame alone."""
    for place, frame in enumerate(given["frames"]):
        frame["is_gt"] = place == 4


def test_frames_of_difference_that_a_user_allows() -> None:
    """HDF5's picks are where the frames lie."""
    off_by_one = arrays_of(picks=[*PICKS[:2], 31, *PICKS[3:]])
    found = record(off_by_one, slack=1)
    assert found.picks == [*PICKS[:2], 31, *PICKS[3:]]
    by_two = arrays_of(picks=[*PICKS[:2], 32, *PICKS[3:]])
    refused(DataError, "frame_id 30, but picks 32", record, by_two, slack=1)
    found = record(lambda given, arrays: (FEWER(given, arrays), no_frame(given)), slack=1)
    assert (found.picks, found.keyframes) == (PICKS[:-1], [5])
    assert found.shots == [[1, 2], [3, 4, 5], [6, 7]]
    ends = arrays_of(change_points=[(0, 30), (31, 74), (75, 119)])
    refused(DataError, "change_points", record, ends)
    assert record(ends, slack=1).shots[:2] == [[1, 2, 3], [4, 5]]


# --- what only some tasks need --------------------------------------------------------------------


def given(place: str, value: Any) -> Change:
    """A change of the JSON alone."""
    return lambda video, arrays: put(video, place, value)


def scores(place: Any, value: float) -> Change:
    return lambda video, arrays: arrays["gtscore"].__setitem__(place, value)


def one_shot(video: Video, arrays: Video) -> None:
    video["clips"] = [{**video["clips"][0], "frames": PICKS}]
    arrays["change_points"] = np.array([[0, 119]])
    for name in ("aligned_full_document", "aligned_text_summary"):
        for one in video[name]["alignments"]:
            one["shot_ids"] = [0]


def no_key_shot(video: Video, arrays: Video) -> None:
    for clip in video["clips"]:
        clip["gt"] = False


ONE_SHOT = {"temporal", "temporal_doc", "temporal_text", *GROUNDING, *SALIENCY}
OF_FRAMES = {"v2v", "v2vt", "v2v_text", "v2vt_text"}
UNALIGNED = "aligned_text_summary, alignments: no sentence has a shot"


def undescribed(video: Video, arrays: Video) -> None:
    for one in video["frames"]:
        one["description"] = ""


def filtered(video: Video, arrays: Video) -> None:
    for one in video["clips"]:
        one["summary"] = "[CONTENT_FILTERED]"


@table(
    "change, tasks, told",
    [
        (given("aligned_text_summary", None), SUMMARY, "aligned_text_summary: there is none"),
        (given("aligned_full_document", None), DOCUMENT, "aligned_full_document: there is none"),
        (one_shot, ONE_SHOT, "clips: only one shot has sampled frames"),
        (given("aligned_text_summary.alignments", []), GROUNDING, UNALIGNED),
        (no_key_shot, OF_FRAMES, "clips: none is a key shot (gt)"),
        (undescribed, FRAME_TEXTS, "frames: none has a description"),
        (filtered, SHOT_TEXTS, "clips: none has a summary"),
        (given("frames.3.description", ""), set(), ""),
        (scores(slice(4, 6), math.nan), SALIENCY, "gtscore, entry 5: nan, no finite number"),
        (scores(0, -math.inf), SALIENCY, "gtscore, entry 1: -inf, no finite number"),
        (lambda g, a: a.pop("gtscore"), SALIENCY, "gtscore: the dataset is missing"),
    ],
)
def test_what_a_record_lacks_is_told_of_every_task_it_hits(
    change: Change, tasks: set[str], told: str
) -> None:
    found = record(change)
    file = "tvsum.h5" if told.startswith("gtscore") else "tvsum_data.json"
    assert found.gaps == dict.fromkeys(tasks, f"{file}, {told}")
    assert {f"haven_{task}" for task in tasks} <= set(TASKS)
    if tasks == SALIENCY:
        assert (found.importance, found.scores) == ([], [])


def test_of_several_reasons_the_first_is_told() -> None:
    def change(video: Video, arrays: Video) -> None:
        one_shot(video, arrays)
        video["aligned_text_summary"] = None

    gaps = record(change).gaps
    assert gaps["grounding"] == "tvsum_data.json, clips: only one shot has sampled frames"
    assert gaps["v2t"] == "tvsum_data.json, aligned_text_summary: there is none"
