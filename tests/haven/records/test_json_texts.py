"""The texts of one video's JSON: which count as missing, and what is taken off them."""

from __future__ import annotations

from typing import Any

import pytest

from lmms_eval_tasks.haven.records.json_file import EMPTY, JsonVideo
from tests.haven.records.one_video import read_json


def put(entry: dict[str, Any], field: str, value: Any) -> None:
    """Set a field; `...` takes it out."""
    entry[field] = value
    if value is ...:
        del entry[field]


@pytest.mark.parametrize("nothing", [None, "", "  ", "[CONTENT_FILTERED]", ...])
def test_a_description_that_is_not_there(nothing: Any) -> None:
    def change(video: dict[str, Any]) -> None:
        put(video["frames"][1], "description", nothing)
        put(video["clips"][2], "summary", nothing)

    video = read_json(change)
    assert isinstance(video, JsonVideo)
    assert [bool(frame.description) for frame in video.frames] == [True, False, *[True] * 6]
    assert [bool(clip.summary) for clip in video.clips] == [True, True, False]
    assert (video.frames[1].description, video.clips[2].summary) == ("", "")


@pytest.mark.parametrize("nothing", [None, ...])
def test_a_shot_that_is_not_told_to_be_key_is_none(nothing: Any) -> None:
    video = read_json(lambda v: [put(clip, "gt", nothing) for clip in v["clips"]])
    assert isinstance(video, JsonVideo)
    assert [clip.gt for clip in video.clips] == [False] * 3


@pytest.mark.parametrize("nothing", [None, {}, ...])
def test_a_summary_that_is_not_there_is_empty(nothing: Any) -> None:
    video = read_json(lambda v: put(v, "aligned_text_summary", nothing))
    assert isinstance(video, JsonVideo)
    assert video.aligned_text_summary == EMPTY


@pytest.mark.parametrize(
    "block",
    [
        {"sentences": ["", " "], "alignments": [{"sentence_id": 0, "shot_ids": [0]}]},
        {"sentences": ["[Shots 0-2] ", "[CONTENT_FILTERED]", None], "alignments": []},
        {"sentences": [""], "raw_text": ""},
        {"sentences": []},
        {"sentences": [], "alignments": []},
        {"sentences": None, "alignments": None},
    ],
    ids=str,
)
def test_a_summary_without_a_text_is_empty(block: dict[str, Any]) -> None:
    video = read_json(lambda v: v.update(aligned_text_summary=block))
    assert isinstance(video, JsonVideo), video
    assert video.aligned_text_summary == EMPTY
    assert len(video.aligned_full_document.sentences) == 2


@pytest.mark.parametrize(
    "tag", ["[Shots 0-4] ", "[Shot 3] ", " \n[Shot 3] ", "[shots 1, 2 and 5]  "]
)
def test_tags_that_tell_the_order_are_taken_off(tag: str) -> None:
    video = read_json(
        lambda v: v["aligned_full_document"]["sentences"].__setitem__(0, f"{tag}A dog.")
    )
    assert isinstance(video, JsonVideo)
    assert video.aligned_full_document.sentences[0] == "A dog."
