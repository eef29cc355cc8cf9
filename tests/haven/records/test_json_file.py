"""The JSON of one video: what is read of it, and the one line about its first error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lmms_eval_tasks.haven.records import json_file
from lmms_eval_tasks.haven.records.json_file import EMPTY, JsonVideo
from tests.checks import table
from tests.haven.release_files import content

DOCUMENT, SUMMARY = "aligned_full_document", "aligned_text_summary"


SECOND, SHOTS = f"{DOCUMENT}.alignments.1.sentence_id", f"{SUMMARY}.alignments.0.shot_ids"
TOLD, ALIGNED = f"{DOCUMENT}, alignments, entry ", f"{SUMMARY}, alignments, entry 1"


def put(video: dict[str, Any], place: str, value: Any) -> None:
    """Set what stands at a place such as `frames.2.frame_id`; `...` takes it out."""
    *way, last = (int(part) if part.isdigit() else part for part in place.split("."))
    within: Any = video
    for part in way:
        within = within[part]
    within[last] = value
    if value is ...:
        del within[last]


def read_json(*changes: tuple[str, Any]) -> JsonVideo | str:
    """Eight frames in three shots of 2, 3 and 3 (frame_ids 0, 15, ... 105), changed."""
    video = content("tvsum", 1, 8, 3)[0]["video_1"]
    for place, value in changes:
        put(video, place, value)
    return json_file.read(json.loads(json.dumps(video)))


def valid_json(*changes: tuple[str, Any]) -> JsonVideo:
    found = read_json(*changes)
    assert isinstance(found, JsonVideo), found
    return found


def clip_ids(*ids: Any) -> list[tuple[str, Any]]:
    """Name the three clips."""
    return [(f"clips.{place}.clip_id", own) for place, own in enumerate(ids)]


# Place and what stands there, and what is told of the place after its own name.
BAD: list[tuple[str, Any, str]] = [
    ("frames", ..., "frames: the field is missing"),
    ("frames", {}, "frames: expected a list, found {}"),
    ("frames", [], "frames: there are none"),
    ("frames.2", 7, "frames, entry 3: expected an object, found 7"),
    ("frames.2.frame_id", ..., "frames, entry 3, frame_id: the field is missing"),
    ("frames.2.frame_id", "30", "frames, entry 3, frame_id: expected a whole number, found '30'"),
    ("frames.0.frame_id", -1, "frames, entry 1, frame_id: expected 0 or more"),
    ("frames.2.frame_id", 15, "frames, entry 3, frame_id: 15 is there already; expected asc"),
    ("frames.2.frame_id", 10, "frames, entry 3, frame_id: 10 comes after 15; expected ascending"),
    ("frames.1.description", ["a"], "frames, entry 2, description: expected a text, found ['a']"),
    ("frames.1.is_gt", ..., "frames, entry 2, is_gt: the field is missing"),
    ("clips", ..., "clips: the field is missing"),
    ("clips", [], "clips: there are none, so the video has no shot"),
    ("clips.1.frames", [30, 44], "clips, entry 2, frames, entry 2: 44 is no frame_id of `frames`"),
    ("clips.2.frames", [60, 75, 90], "clips, entry 3, frames, entry 1: 60 comes after 60"),
    ("clips.1.frames", [30, 60, 45], "clips, entry 2, frames, entry 3: 45 comes after 60"),
    (SUMMARY, "A text.", f"{SUMMARY}: expected an object, found 'A text.'"),
    (f"{SUMMARY}.sentences", ..., f"{SUMMARY}, sentences: the field is missing"),
    (f"{SUMMARY}.alignments", ..., f"{SUMMARY}, alignments: the field is missing"),
    (f"{DOCUMENT}.sentences", {}, f"{DOCUMENT}, sentences: expected a list, found {{}}"),
    (f"{DOCUMENT}.sentences", ["", 7], f"{DOCUMENT}, sentences, entry 2: expected a text, found 7"),
    (f"{DOCUMENT}.sentences", [], f"{TOLD}1, sentence_id: 0 is no sentence; there are 0, counted"),
    (SECOND, 2, f"{TOLD}2, sentence_id: 2 is no sentence; there are 2, counted from 0"),
    (SECOND, 0, f"{TOLD}2, sentence_id: 0 is aligned twice"),
    (SHOTS, [1, 3], f"{ALIGNED}, shot_ids: 3 is no shot; there are 3, counted from 0"),
    (SHOTS, [-1], f"{ALIGNED}, shot_ids, entry 1: expected 0 or more"),
]


WHERE = "(clips in order, from 0 or from 1)"


def test_the_first_error() -> None:
    for place, value, told in BAD:
        assert str(read_json((place, value))).startswith(told)
    for place, name in (("frames.1.is_gt", "frames, entry 2, is_gt"), ("clips.1.gt", "clips")):
        for value in ("yes", 2):
            told = str(read_json((place, value)))
            assert told.startswith(name)
            assert f"expected true or false, or 1 or 0, found {value!r}" in told
    for nothing in (" ", "[Shot 3] ", None):  # one sentence of two
        assert read_json((f"{DOCUMENT}.sentences.1", nothing)) == (
            f"{DOCUMENT}, sentences, entry 2: expected a text, found an empty one"
        )
    assert json_file.read(["x"]) == "expected an object, found ['x']"


@table(
    "ids, told",
    [
        ((0, 2, 2), f"2, clip_id: expected 1 {WHERE}, found 2"),
        ((1, 2, 2), f"3, clip_id: expected 3 {WHERE}, found 2"),
        (("clip_0", "3", 2), f"2, clip_id: expected 1 or 2 {WHERE}, found 3"),
        ((-1, 0, 1), f"1, clip_id: expected 0 or 1 {WHERE}, found -1"),
        ((1.5, 2, 3), "1, clip_id: Input should be a valid integer, got a number with a fraction"),
        *(((n, n + 1, n + 2), "") for n in (0, 1)),
        *((ids, "") for ids in (("0", "1", "2"), (None, 2, 3), (0, None, "2"))),
        *((ids, "") for ids in (("clip_7", "clip_2", "clip_2"), ("intro", 1, 2))),
    ],
)
def test_clips_count_from_0_or_1_or_have_names(ids: tuple[Any, ...], told: str) -> None:
    """Alignments count from 0 whatever the clips do."""
    if told:
        assert str(read_json(*clip_ids(*ids))).startswith(f"clips, entry {told}")
    else:
        assert valid_json(*clip_ids(*ids)).aligned_full_document.shots() == [(0, 1), (2,)]


def test_what_is_taken_as_it_is() -> None:
    """Flags as numbers, shots of a sentence as a set, and whatever is not of the schema."""
    video = valid_json(
        *((f"frames.{n}.is_gt", flag) for n, flag in enumerate((True, 1.0, 0))),
        (f"{DOCUMENT}.alignments", [{"sentence_id": 1, "shot_ids": [2, 0, 2]}]),
        (f"{SUMMARY}.alignments.0.shot_summaries", [1]),
        *(("shot_level_gt", "anything"), ("frames.0.status", {"odd": 1})),
        *(("clips.0.clip_id", ...), ("video_name", ...)),
    )
    assert [frame.is_gt for frame in video.frames[:3]] == [True, True, False]
    assert video.aligned_full_document.shots() == [(), (0, 2)]
    assert video.video_name is None


@pytest.mark.parametrize("nothing", [None, "", "  ", "[CONTENT_FILTERED]", ...])
def test_a_description_that_is_not_there(nothing: Any) -> None:
    video = valid_json(("frames.1.description", nothing), ("clips.2.summary", nothing))
    assert [bool(frame.description) for frame in video.frames] == [True, False, *[True] * 6]
    assert [bool(clip.summary) for clip in video.clips] == [True, True, False]


@pytest.mark.parametrize(
    "block",
    [
        *(None, {}, ...),
        {"sentences": ["", " "], "alignments": [{"sentence_id": 0, "shot_ids": [0]}]},
        {"sentences": ["[Shots 0-2] ", "[CONTENT_FILTERED]", None], "alignments": []},
        {"sentences": [""], "raw_text": ""},
        {"sentences": None, "alignments": None},
    ],
    ids=str,
)
def test_a_summary_that_is_not_there_is_empty(block: Any) -> None:
    video = valid_json((SUMMARY, block), ("clips.1.gt", None))
    assert video.aligned_text_summary == EMPTY
    assert len(video.aligned_full_document.sentences) == 2
    assert not video.clips[1].gt


def test_tags_that_tell_the_order_are_taken_off() -> None:
    for tag in ("[Shots 0-4] ", "[Shot 3] ", " \n[Shot 3] ", "[shots 1, 2 and 5]  "):
        video = valid_json((f"{DOCUMENT}.sentences.0", f"{tag}A dog."))
        assert video.aligned_full_document.sentences[0] == "A dog."
