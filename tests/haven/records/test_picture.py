"""The page of one record: what is marked, what is aligned, and that it is alone."""

from __future__ import annotations

import re
from dataclasses import replace

from lmms_eval_tasks.haven.records import picture
from lmms_eval_tasks.haven.records.record import Record

RECORD = Record(
    source="tvsum",
    video="video_7",
    name="Boats & <friends>",
    picks=[15 * n for n in range(6)],
    descriptions=[f'"Frame" {n}' for n in range(1, 7)],
    keyframes=[2, 5],
    shots=[[1, 2, 3], [4], [5, 6]],
    shot_texts=["One <b>.", "", "Three."],
    key_shots=[2],
    document=["Doc one.", "Doc two."],
    document_shots=[[1, 2], [3]],
    summary=["Sum & one.", "Nothing aligned."],
    summary_shots=[[2], []],
    scores=[n / 5 for n in range(6)],
    n_frames=90,
    gaps={"saliency_text": "clips: none has a summary"},
)
IMAGES = {number: f"data:image/jpeg;base64,A{number}" for number in range(1, 7)}


def test_what_is_marked_and_aligned() -> None:
    """A box for each shot, whose pictures wrap inside it; a strip of shots for each sentence."""
    page = picture.html(RECORD, IMAGES)
    boxes = page.split('<section class="shot')[1:]
    shown = [re.findall(r"base64,A(\d)", box) for box in boxes]
    assert shown == [["1", "2", "3"], ["4"], ["5", "6"]]
    assert re.findall(r'<figure class="keyframe" title="frame (\d)', page) == ["2", "5"]
    assert [box.startswith(" key") for box in boxes] == [False, True, False]
    named = [re.findall(r">([SD]\d)</b>", box) for box in boxes]
    assert named == [["D1"], ["S1", "D1"], ["D2"]]
    strips = re.findall(r'<div class="strip" aria-hidden="true">(.*?)</div>', page)
    told = [[bool(on) for on in re.findall(r'<i( class="on")?></i>', strip)] for strip in strips]
    assert told == [[n in own for n in (1, 2, 3)] for own in ([2], [], [1, 2], [3])]


def test_texts_are_escaped_and_gaps_told() -> None:
    page = picture.html(RECORD, IMAGES)
    for text in (
        "Boats &amp; &lt;friends&gt;",
        "One &lt;b&gt;.",
        "&#34;Frame&#34; 2",
        "saliency_text: clips: none has a summary",
        "no description",
    ):
        assert text in page
    assert "no pictures, because" in picture.html(RECORD, picture.data_uris(RECORD))
    assert "importance of a frame" not in picture.html(replace(RECORD, scores=[]), IMAGES)
