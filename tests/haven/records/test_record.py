"""One video of a release: what is read of it, its first error, what only some tasks lack."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval_tasks.haven.options import TASKS, HavenOptions
from lmms_eval_tasks.haven.records import release as released
from lmms_eval_tasks.haven.records.record import Record
from tests.checks import table
from tests.haven.release_files import content, write

SUMMARY, DOCUMENT = "aligned_text_summary", "aligned_full_document"
SENTENCES, ALIGNED = f"{DOCUMENT}.sentences", f"{DOCUMENT}.alignments"
PICKS = [0, 15, 30, 45, 60, 75, 90, 105]
Changes = tuple[tuple[str, Any], ...]


def found(folder: Path, *changes: tuple[str, Any], hdf5: bool = True) -> Record | str:
    """The first of two videos of eight frames in three shots of 2, 3 and 3, or what is wrong.

    Args:
        changes: a place as `clips.0.gt`, or `@picks.2` in HDF5, and what is put there; `...` takes
            out what is there.
    """

    def change(data: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["video_1"] = {
            name: np.array(own).tolist() for name, own in arrays["video_1"].items()
        }
        for place, value in changes:
            within: Any = arrays["video_1"] if place[0] == "@" else data["video_1"]
            *path, last = (int(p) if p.isdecimal() else p for p in place.lstrip("@").split("."))
            for part in path:
                within = within[part]
            within[last] = value
            if value is ...:
                del within[last]

    write(folder, "tvsum", 2, 8, 3, change, hdf5)
    release = released.read_haven(folder, HavenOptions())
    return next((one for one in release.records if one.video == "video_1"), "") or str(
        release.problems["tvsum/video_1"]
    )


def record(folder: Path, *changes: tuple[str, Any], hdf5: bool = True) -> Record:
    made = found(folder, *changes, hdf5=hdf5)
    assert isinstance(made, Record), made
    return made


# --- what is read ---------------------------------------------------------------------------------


def test_a_record(tmp_path: Path) -> None:
    made = record(tmp_path)
    data, arrays = (own["video_1"] for own in content("tvsum", 1, 8, 3))
    assert (made.id, made.name, made.n_frames) == ("tvsum/video_1", "tvsum clip 1", 120)
    assert made.picks == PICKS
    assert made.descriptions == [frame["description"] for frame in data["frames"]]
    assert made.keyframes == [1 + int(np.argmax(arrays["gtframe"]))]
    assert made.shots == [[1, 2], [3, 4, 5], [6, 7, 8]]
    assert made.key_shots == [1]
    scores = arrays["gtscore"]
    means = [scores[:2].mean(), scores[2:5].mean(), scores[5:].mean()]
    assert made.importance == pytest.approx(means)
    assert made.document_shots == [[1, 2], [3]]
    assert made.summary_shots == [[1, 2, 3]]
    assert made.gaps == {}
    without = record(tmp_path / "other", hdf5=False)
    assert (without.importance, without.n_frames) == ([], None)
    assert (without.shots, without.document) == (made.shots, made.document)


def test_what_is_taken_as_it_is(tmp_path: Path) -> None:
    """Flags as numbers, single values in a list, names of HDF5, what is not of the schema."""
    made = record(
        tmp_path,
        *((f"frames.{n}.is_gt", flag) for n, flag in enumerate((True, 1.0, 0))),
        (ALIGNED, [{"sentence_id": 1, "shot_ids": [2, 0, 2]}]),
        *(("shot_level_gt", "anything"), ("frames.0.status", {"odd": 1}), ("clips.1.clip_id", 7)),
        *(("clips.0.gt", None), ("clips.1.gt", 1), ("video_name", ...), ("@gtframe", ...)),
        *(("@video_name", b" Boats "), ("@n_frames", [120.0])),
    )
    assert made.keyframes[:2] == [1, 2]
    assert (made.key_shots, made.document_shots) == ([2], [[], [1, 3]])
    assert (made.name, made.n_frames) == ("Boats", 120)


def test_texts_that_are_not_there(tmp_path: Path) -> None:
    for nothing in (None, "", "  ", "[CONTENT_FILTERED]", ...):
        made = record(tmp_path, ("frames.1.description", nothing), ("clips.2.summary", nothing))
        assert [bool(text) for text in made.descriptions] == [True, False, *[True] * 6]
        assert [bool(text) for text in made.shot_texts] == [True, True, False]
    blank = {"sentences": ["", "[Shots 0-2] ", "[CONTENT_FILTERED]", None]}
    told = [{"sentence_id": 0, "shot_ids": [0]}]
    for block in (None, {}, {**blank, "alignments": told}, {"sentences": None, "alignments": None}):
        assert record(tmp_path, (SUMMARY, block)).summary == []
    for tag in ("[Shots 0-4] ", "[Shot 3] ", " \n[Shot 3] ", "[shots 1, 2 and 5]  "):
        made = record(tmp_path, (f"{SENTENCES}.0", f"{tag}A dog."))
        assert made.document[0] == "A dog."  # a tag would tell the order


def test_shots_and_their_frames(tmp_path: Path) -> None:
    """Frames at the end of a range and between shots; a shot without one is dropped."""
    made = record(
        tmp_path,
        ("@change_points", [[0, 30], [31, 59], [75, 119]]),
        *(("clips.0.frames", [0, 15, 30]), ("clips.1.frames", [45])),
    )
    assert made.shots == [[1, 2, 3], [4], [6, 7, 8]]
    sentences = [{"sentence_id": n, "shot_ids": ids} for n, ids in enumerate(([1], [0, 1, 2], [2]))]
    for hdf5 in (True, False):
        made = record(
            tmp_path / str(hdf5),
            ("@change_points", [[0, 61], [62, 74], [75, 119]]),
            *(("clips.0.frames", PICKS[:5]), ("clips.1.frames", []), ("clips.1.summary", "")),
            (SUMMARY, {"sentences": ["One.", "Two.", "Three."], "alignments": sentences}),
            hdf5=hdf5,
        )
        assert made.shots == [[1, 2, 3, 4, 5], [6, 7, 8]]
        assert made.shot_texts == ["What 0 does.", "What 2 does."]
        assert made.summary_shots == [[], [1, 2], [2]]


# --- the first error ------------------------------------------------------------------------------

POINTS, BOTH = "@change_points", " and tvsum.h5, "
TWICE = f"{DOCUMENT}, alignments: a sentence_id occurs twice, or belongs to no sentence: [0, "


@table(
    "place, value, told",
    [
        ("frames", ..., "frames: the field is missing"),
        ("frames", [], "frames: expected at least 1, found 0"),
        ("frames.2", 7, "frames, entry 3: expected an object, found 7"),
        ("frames.2.frame_id", "30", "frames, entry 3, frame_id: expected a whole number"),
        ("frames.2.frame_id", 15, "frames, frame_id, entry 3: 15 comes after 15; expected asc"),
        ("frames.1.description", ["a"], "frames, entry 2, description: expected a text, found"),
        ("frames.1.is_gt", 2, "frames, entry 2, is_gt: "),
        ("clips.1.frames", [30, 44], "clips, frames: 44 is not a frame_id of `frames`"),
        ("clips.2.frames", [60, 75, 90], "frames of all clips, entry 6: 60 comes after 60"),
        (f"{SENTENCES}.1", "[Shot 3] ", f"{DOCUMENT}, sentences, entry 2: expected a text"),
        (f"{ALIGNED}.1.sentence_id", 2, f"{TWICE}2]"),
        (f"{ALIGNED}.1.sentence_id", 0, f"{TWICE}0]"),
        (f"{ALIGNED}.0.shot_ids", [1, 3], f"{DOCUMENT}, alignments, shot_ids: 3 is not a shot"),
        (f"{ALIGNED}.0.shot_ids", [-1], "shot_ids, entry 1: expected 0 or more"),
        ("@picks", ..., "tvsum.h5, picks: the field is missing"),
        ("@picks.2", math.nan, "tvsum.h5, picks, entry 3: "),
        ("@n_frames", [1, 2], "tvsum.h5, n_frames: expected a whole number, found [1, 2]"),
        ("@gtframe.4", 2, "tvsum.h5, gtframe, entry 5: "),
        ("@picks.2", 31, f"{BOTH}picks: differ from the frame_id of the 8"),
        ("@gtframe", [1] + [0] * 6 + [1], f"{BOTH}gtframe: differs from is_gt of the 8 fr"),
        ("@gtscore", [1.0] * 7, f"{BOTH}8 frames, but 7 gtscore"),
        ("@n_frames", 105, f"{BOTH}frame 105 is beyond the end; n_frames is 105"),
        (POINTS, [[0, 29], [30, 74]], f"{BOTH}3 clips, but 2 change_points"),
        (f"{POINTS}.1.1", 20, f"{BOTH}change_points: 30 to 20 after 29"),
        (f"{POINTS}.1.0", 29, f"{BOTH}change_points: 29 to 74 after 29"),
        (f"{POINTS}.1.0", 45, f"{BOTH}clips: frame 30, but change_points 45 to 74"),
    ],
)
def test_the_first_error(tmp_path: Path, place: str, value: Any, told: str) -> None:
    said = found(tmp_path, (place, value))
    assert isinstance(said, str)
    assert told in said
    assert said.startswith("tvsum")
    assert "\n" not in said


def test_names_lead_to_no_other_folder(tmp_path: Path) -> None:
    assert record(tmp_path, ("video_name", "../../Base jumping")).name == "Base jumping"
    assert record(tmp_path, ("video_name", "a\0b")).name == ""

    def rename(data: dict[str, Any], arrays: dict[str, Any]) -> None:
        for name in ("../../outside", "a\0b", "x" * 300, ""):
            data[name] = data["video_1"]

    write(tmp_path, "tvsum", 2, 8, 3, rename, True)
    release = released.read_haven(tmp_path, HavenOptions())
    assert {one.video for one in release.records} == {"video_1", "video_2"}
    assert len(release.problems) == 4
    assert all("expected a " in one for one in release.problems.values())


def test_no_shot_with_a_frame(tmp_path: Path) -> None:
    nothing = [(f"clips.{n}.frames", []) for n in range(3)]
    said = found(tmp_path, *nothing, hdf5=False)
    assert said == "tvsum_data.json, clips: no shot has a sampled frame"


# --- what only some tasks need --------------------------------------------------------------------

GROUNDING = {"grounding", "grounding_text"}
SALIENCY = {"saliency", "saliency_doc", "saliency_text"}
OF_SUMMARY = {"v2t", "v2vt", "v2t_text", "v2vt_text", *GROUNDING}
ONE_SHOT: Changes = (
    ("clips", [{"summary": "All.", "gt": 1, "frames": PICKS}]),
    (POINTS, [[0, 119]]),
    (DOCUMENT, {"sentences": ["A."], "alignments": [{"sentence_id": 0, "shot_ids": [0]}]}),
    (SUMMARY, {"sentences": ["A."], "alignments": [{"sentence_id": 0, "shot_ids": [0]}]}),
)


@table(
    "changes, tasks, told",
    [
        ([(SUMMARY, None)], OF_SUMMARY, "aligned_text_summary: there is none"),
        ([(DOCUMENT, None)], {"temporal_doc", "saliency_doc"}, f"{DOCUMENT}: there is none"),
        (
            ONE_SHOT,
            {"temporal", "temporal_doc", "temporal_text", *GROUNDING, *SALIENCY},
            "clips: only one shot has sampled frames",
        ),
        (
            [(f"{SUMMARY}.alignments", [])],
            GROUNDING,
            "aligned_text_summary, alignments: no sentence has a shot",
        ),
        (
            [("clips.0.gt", ...)],
            {"v2v", "v2vt", "v2v_text", "v2vt_text"},
            "clips: none is a key shot (gt)",
        ),
        (
            [(f"frames.{n}.description", "") for n in range(8)],
            {"v2t_text", "v2v_text", "v2vt_text"},
            "frames: none has a description",
        ),
        (
            [(f"clips.{n}.summary", "[CONTENT_FILTERED]") for n in range(3)],
            {"temporal_text", "grounding_text", "saliency_text"},
            "clips: none has a summary",
        ),
        ([("frames.3.description", "")], set(), ""),
        ([("@gtscore", [0.5] * 8)], set(), ""),
        ([("@gtscore.4", math.nan)], SALIENCY, "gtscore, entry 5: nan, not a finite number"),
        ([("@gtscore.0", -math.inf)], SALIENCY, "gtscore, entry 1: -inf, not a finite number"),
        ([("@gtscore", ...)], SALIENCY, "gtscore: the dataset is missing"),
    ],
)
def test_what_a_record_lacks_is_told_of_every_task_it_hits(
    tmp_path: Path, changes: Changes, tasks: set[str], told: str
) -> None:
    made = record(tmp_path, *changes)
    file = "tvsum.h5" if told.startswith("gtscore") else "tvsum_data.json"
    assert made.gaps == dict.fromkeys(tasks, f"{file}, {told}")
    assert {f"haven_{task}" for task in tasks} <= set(TASKS)
    if told.startswith("gtscore"):
        assert (made.importance, made.scores) == ([], [])


def test_of_several_reasons_the_first_is_told(tmp_path: Path) -> None:
    gaps = record(tmp_path, *ONE_SHOT, (SUMMARY, None)).gaps
    assert gaps["grounding"] == "tvsum_data.json, clips: only one shot has sampled frames"
    assert gaps["v2t"] == "tvsum_data.json, aligned_text_summary: there is none"
