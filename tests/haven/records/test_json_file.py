"""The JSON of one video: what is read of it, and the one line about its first error."""

from __future__ import annotations

from typing import Any

import pytest

from lmms_eval_tasks.haven.records import json_file
from lmms_eval_tasks.haven.records.json_file import JsonVideo
from tests.haven.records.one_video import JsonChange, read_json


def number(ids: list[Any]) -> JsonChange:
    """Name the three clips."""
    return lambda video: [
        clip.update(clip_id=own) for clip, own in zip(video["clips"], ids, strict=True)
    ]


def test_a_valid_video() -> None:
    video = read_json()
    assert isinstance(video, JsonVideo)
    assert [frame.frame_id for frame in video.frames] == [0, 15, 30, 45, 60, 75, 90, 105]
    assert sum(frame.is_gt for frame in video.frames) == 1
    assert [clip.frames for clip in video.clips] == [(0, 15), (30, 45, 60), (75, 90, 105)]
    assert video.aligned_full_document.shots() == [(0, 1), (2,)]
    assert video.aligned_text_summary.shots() == [(0, 1, 2)]
    assert video.video_name == "tvsum clip 1"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda v: v.pop("frames"), "frames: the field is missing"),
        (lambda v: v.update(frames={}), "frames: expected a list, found {}"),
        (lambda v: v.update(frames=[]), "frames: there are none"),
        (
            lambda v: v["frames"].__setitem__(2, 7),
            "frames, entry 3: expected an object, found 7",
        ),
        (
            lambda v: v["frames"][2].pop("frame_id"),
            "frames, entry 3, frame_id: the field is missing",
        ),
        (
            lambda v: v["frames"][2].update(frame_id="30"),
            "frames, entry 3, frame_id: expected a whole number, found '30'",
        ),
        (
            lambda v: v["frames"][0].update(frame_id=-1),
            "frames, entry 1, frame_id: expected 0 or more",
        ),
        (
            lambda v: v["frames"][2].update(frame_id=15),
            "frames, entry 3, frame_id: 15 is there already; expected ascending",
        ),
        (
            lambda v: v["frames"][2].update(frame_id=10),
            "frames, entry 3, frame_id: 10 comes after 15; expected ascending",
        ),
        (
            lambda v: v["frames"][1].update(description=["a"]),
            "frames, entry 2, description: expected a text, found ['a']",
        ),
        (
            lambda v: v["frames"][1].update(is_gt="yes"),
            "frames, entry 2, is_gt: expected true or false, or 1 or 0, found 'yes'",
        ),
        (
            lambda v: v["frames"][1].update(is_gt=2),
            "frames, entry 2, is_gt: expected true or false, or 1 or 0, found 2",
        ),
        (lambda v: v.pop("clips"), "clips: the field is missing"),
        (lambda v: v.update(clips=[]), "clips: there are none, so the video has no shot"),
        (lambda v: v["frames"][1].pop("is_gt"), "frames, entry 2, is_gt: the field is missing"),
        (
            lambda v: v["clips"][1].update(gt="yes"),
            "clips, entry 2, gt: expected true or false, or 1 or 0, found 'yes'",
        ),
        (
            lambda v: v["clips"][1].update(clip_id=2),
            "clips, entry 2, clip_id: expected 1 (clips in order, from 0 or from 1), found 2",
        ),
        (
            lambda v: v["clips"][1].update(clip_id="2"),
            "clips, entry 2, clip_id: expected 1 (clips in order, from 0 or from 1), found 2",
        ),
        (
            number([1, 2, 2]),
            "clips, entry 3, clip_id: expected 3 (clips in order, from 0 or from 1), found 2",
        ),
        (
            number([2, 3, 4]),
            "clips, entry 1, clip_id: expected 0 or 1 (clips in order, from 0 or from 1), found 2",
        ),
        (
            number(["clip_0", "3", 2]),
            "clips, entry 2, clip_id: expected 1 or 2 (clips in order, from 0 or from 1), found 3",
        ),
        (
            number([-1, 0, 1]),
            "clips, entry 1, clip_id: expected 0 or 1 (clips in order, from 0 or from 1), found -1",
        ),
        (
            number([1.5, 2, 3]),
            "clips, entry 1, clip_id: Input should be a valid integer, got a number with a "
            "fractional part",
        ),
        (
            lambda v: v["clips"][1].update(frame_count=4),
            "clips, entry 2, frame_count: 4, but `frames` lists 3",
        ),
        (
            lambda v: v["clips"][1].update(frames=[30, 44, 60]),
            "clips, entry 2, frames, entry 2: 44 is no frame_id of `frames`",
        ),
        (
            lambda v: v["clips"][2].update(frames=[60, 75, 90]),
            "clips, entry 3, frames, entry 1: 60 comes after 60",
        ),
        (
            lambda v: v["clips"][1].update(frames=[30, 60, 45]),
            "clips, entry 2, frames, entry 3: 45 comes after 60",
        ),
        (
            lambda v: v.update(aligned_text_summary="A text."),
            "aligned_text_summary: expected an object, found 'A text.'",
        ),
        (
            lambda v: v["aligned_text_summary"].pop("sentences"),
            "aligned_text_summary, sentences: the field is missing",
        ),
        (
            lambda v: v["aligned_text_summary"].pop("alignments"),
            "aligned_text_summary, alignments: the field is missing",
        ),
        (
            lambda v: v["aligned_full_document"]["sentences"].__setitem__(1, " "),
            "aligned_full_document, sentences, entry 2: expected a text, found an empty one",
        ),
        (
            lambda v: v["aligned_full_document"]["sentences"].__setitem__(0, "[Shot 3] "),
            "aligned_full_document, sentences, entry 1: expected a text, found an empty one",
        ),
        (
            lambda v: v["aligned_full_document"]["sentences"].__setitem__(1, None),
            "aligned_full_document, sentences, entry 2: expected a text, found an empty one",
        ),
        (
            lambda v: v["aligned_full_document"].update(sentences=["", 7]),
            "aligned_full_document, sentences, entry 2: expected a text, found 7",
        ),
        (
            lambda v: v["aligned_full_document"].update(sentences={}),
            "aligned_full_document, sentences: expected a list, found {}",
        ),
        (
            lambda v: v["aligned_full_document"].update(sentences=[]),
            "aligned_full_document, alignments, entry 1, sentence_id: 0 is no sentence; there are "
            "0, counted from 0",
        ),
        (
            lambda v: v["aligned_full_document"]["alignments"][1].update(sentence_id=2),
            "aligned_full_document, alignments, entry 2, sentence_id: 2 is no sentence; there are "
            "2, counted from 0",
        ),
        (
            lambda v: v["aligned_full_document"]["alignments"][1].update(sentence_id=0),
            "aligned_full_document, alignments, entry 2, sentence_id: 0 is aligned twice",
        ),
        (
            lambda v: v["aligned_text_summary"]["alignments"][0].update(shot_ids=[1, 3]),
            "aligned_text_summary, alignments, entry 1, shot_ids: 3 is no shot; there are 3, "
            "counted from 0",
        ),
        (
            lambda v: v["aligned_text_summary"]["alignments"][0].update(shot_ids=[-1]),
            "aligned_text_summary, alignments, entry 1, shot_ids, entry 1: expected 0 or more",
        ),
    ],
)
def test_the_first_error(change: JsonChange, told: str) -> None:
    assert read_json(change) == told


def test_no_object() -> None:
    assert json_file.read(["x"]) == "expected an object, found ['x']"


@pytest.mark.parametrize(
    "ids",
    [
        *([0, 1, 2], [1, 2, 3], ["0", "1", "2"], ["1", "2", "3"], [None, 2, 3], [0, None, "2"]),
        *(["clip_7", "clip_2", "clip_2"], ["intro", 1, 2], ["intro", 2, 3]),
    ],
)
def test_clips_count_from_0_or_1_or_have_names_and_alignments_count_from_0(ids: list[Any]) -> None:
    video = read_json(number(ids))
    assert isinstance(video, JsonVideo), video
    assert video.aligned_full_document.shots() == [(0, 1), (2,)]


def test_flags_as_numbers_or_words_of_json() -> None:
    video = read_json(
        lambda v: [v["frames"][i].update(is_gt=g) for i, g in enumerate((True, 1.0, 0))]
    )
    assert isinstance(video, JsonVideo)
    assert [frame.is_gt for frame in video.frames[:3]] == [True, True, False]


def test_what_is_not_of_the_schema_is_let_be() -> None:
    def change(video: dict[str, Any]) -> None:
        video["shot_level_gt"] = "anything"
        video["frames"][0]["status"] = {"odd": 1}
        video["aligned_text_summary"]["alignments"][0]["shot_summaries"] = [1]
        for name in ("clip_id", "frame_count"):
            del video["clips"][0][name]
        video["clips"][1]["clip_id"] = "a label"
        del video["video_name"]

    video = read_json(change)
    assert isinstance(video, JsonVideo)
    assert video.video_name is None


def test_shots_of_a_sentence_are_a_set_and_may_be_unknown() -> None:
    def change(video: dict[str, Any]) -> None:
        video["aligned_full_document"]["alignments"] = [{"sentence_id": 1, "shot_ids": [2, 0, 2]}]

    video = read_json(change)
    assert isinstance(video, JsonVideo)
    assert video.aligned_full_document.shots() == [(), (0, 2)]
