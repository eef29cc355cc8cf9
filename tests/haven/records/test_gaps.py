"""What a record lacks for some tasks only: a line for each task that it hits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from lmms_eval_tasks.haven.options import TASKS
from tests.haven.records.one_video import Change, record

FRAME_TEXTS = {"v2t_text", "v2v_text", "v2vt_text"}
SALIENCY = {"saliency", "saliency_doc", "saliency_text"}
GROUNDING = {"grounding", "grounding_text"}


def without(block: str) -> Change:
    return lambda given, arrays: given.update({block: None})


def one_shot(given: dict[str, Any], arrays: dict[str, Any]) -> None:
    picks = [frame["frame_id"] for frame in given["frames"]]
    given["clips"] = [{**given["clips"][0], "frames": picks, "frame_count": 8}]
    arrays["change_points"] = np.array([[0, 119]])
    for name in ("aligned_full_document", "aligned_text_summary"):
        for one in given[name]["alignments"]:
            one["shot_ids"] = [0]


def no_alignment(given: dict[str, Any], arrays: dict[str, Any]) -> None:
    given["aligned_text_summary"]["alignments"] = []


def no_keyframe(given: dict[str, Any], arrays: dict[str, Any]) -> None:
    for frame in given["frames"]:
        frame["is_gt"] = False
    arrays["gtframe"][:] = 0


def one_sentence(given: dict[str, Any], arrays: dict[str, Any]) -> None:
    given["aligned_full_document"] = {
        "sentences": ["All."],
        "alignments": [{"sentence_id": 0, "shot_ids": [0]}],
    }


@pytest.mark.parametrize(
    ("change", "tasks", "told"),
    [
        (
            without("aligned_text_summary"),
            {"v2t", "v2vt", "v2t_text", "v2vt_text", *GROUNDING},
            "tvsum_data.json, aligned_text_summary: there is none",
        ),
        (
            without("aligned_full_document"),
            {"temporal_doc", "saliency_doc", "temporal_text"},
            "tvsum_data.json, aligned_full_document: there is none",
        ),
        (
            one_sentence,
            {"temporal_text"},
            "tvsum_data.json, aligned_full_document: only one sentence",
        ),
        (
            one_shot,
            {"temporal", "temporal_doc", *GROUNDING, *SALIENCY},
            "tvsum_data.json, clips: only one shot has sampled frames",
        ),
        (
            no_alignment,
            GROUNDING,
            "tvsum_data.json, aligned_text_summary, alignments: no sentence has a shot",
        ),
        (
            no_keyframe,
            {"v2v", "v2vt", "v2v_text", "v2vt_text"},
            "tvsum_data.json, frames: none is a true keyframe (is_gt)",
        ),
        (
            lambda g, a: [g["frames"][i].update(description=d) for i, d in ((3, ""), (5, None))],
            FRAME_TEXTS,
            "tvsum_data.json, frames, entry 4, description: there is none",
        ),
        (
            lambda g, a: [g["frames"][i].pop("description") for i in (2, 7)],
            FRAME_TEXTS,
            "tvsum_data.json, frames, entry 3, description: there is none",
        ),
        (
            lambda g, a: [clip.pop("summary") for clip in g["clips"]],
            {"grounding_text", "saliency_text"},
            "tvsum_data.json, clips, entry 1, summary: there is none",
        ),
        (
            lambda g, a: g["aligned_text_summary"].update(sentences=["", ""]),
            {"v2t", "v2vt", "v2t_text", "v2vt_text", *GROUNDING},
            "tvsum_data.json, aligned_text_summary: there is none",
        ),
        (
            lambda g, a: g["aligned_full_document"].update(sentences=["", ""]),
            {"temporal_doc", "saliency_doc", "temporal_text"},
            "tvsum_data.json, aligned_full_document: there is none",
        ),
        (
            lambda g, a: g["clips"][1].update(summary="[CONTENT_FILTERED]"),
            {"grounding_text", "saliency_text"},
            "tvsum_data.json, clips, entry 2, summary: there is none",
        ),
        (
            lambda g, a: a["gtscore"].__setitem__(slice(4, 6), math.nan),
            SALIENCY,
            "tvsum.h5, gtscore, entry 5: nan, no finite number",
        ),
        (
            lambda g, a: a["gtscore"].__setitem__(0, -math.inf),
            SALIENCY,
            "tvsum.h5, gtscore, entry 1: -inf, no finite number",
        ),
        (
            lambda g, a: a.pop("gtscore"),
            SALIENCY,
            "tvsum.h5, gtscore: the dataset is missing",
        ),
    ],
)
def test_what_a_record_lacks_is_told_of_every_task_it_hits(
    change: Change, tasks: set[str], told: str
) -> None:
    found = record(change)
    assert found.gaps == dict.fromkeys(tasks, told)
    assert {f"haven_{task}" for task in tasks} <= set(TASKS)
    if tasks == SALIENCY:
        assert found.importance is None
        assert {frame.importance for frame in found.frames} == {None}
    elif tasks == FRAME_TEXTS:
        assert [bool(frame.description) for frame in found.frames].count(False) == 2


def test_of_several_reasons_the_first_is_told() -> None:
    def change(given: dict[str, Any], arrays: dict[str, Any]) -> None:
        one_shot(given, arrays)
        given["aligned_text_summary"] = None

    gaps = record(change).gaps
    assert gaps["grounding"] == "tvsum_data.json, clips: only one shot has sampled frames"
    assert gaps["v2t"] == "tvsum_data.json, aligned_text_summary: there is none"


def test_key_shots_are_no_tasks_need() -> None:
    found = record(lambda g, a: [clip.pop("gt") for clip in g["clips"]])
    assert found.gaps == {}
    assert [shot.key for shot in found.shots] == [False] * 3


def test_ties_and_equal_importances_are_no_gap() -> None:
    found = record(lambda g, a: a["gtscore"].__setitem__(slice(None), 0.5))
    assert found.gaps == {}
    assert found.importance == [0.5, 0.5, 0.5]


def test_without_gtframe_the_json_says_which_frames_are_key() -> None:
    def change(given: dict[str, Any], arrays: dict[str, Any]) -> None:
        del arrays["gtframe"]
        given["frames"][0]["is_gt"] = True

    assert record(change).keyframes[0] == 1
