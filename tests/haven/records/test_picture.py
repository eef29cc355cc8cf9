"""The page of one record: what is marked, what is aligned, and that it is alone."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from click.testing import Result
from typer.testing import CliRunner

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.records import picture
from lmms_eval_tasks.haven.records.record import Record
from tests.haven.records.desk import Desk, app

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
    assert [re.findall(r"base64,A(\d)", box) for box in boxes] == [
        ["1", "2", "3"],
        ["4"],
        ["5", "6"],
    ]
    assert re.findall(r'<figure class="keyframe" title="frame (\d)', page) == ["2", "5"]
    assert [box.startswith(" key") for box in boxes] == [False, True, False]
    named = [re.findall(r">([SD]\d)</b>", box) for box in boxes]
    assert named == [["D1"], ["S1", "D1"], ["D2"]]
    strips = re.findall(r'<div class="strip" aria-hidden="true">(.*?)</div>', page)
    told = [[bool(on) for on in re.findall(r'<i( class="on")?></i>', strip)] for strip in strips]
    assert told == [[n in own for n in (1, 2, 3)] for own in ([2], [], [1, 2], [3])]


def test_texts_are_escaped_and_gaps_told() -> None:
    page = picture.html(RECORD, IMAGES)
    assert "Boats &amp; &lt;friends&gt;" in page
    assert "One &lt;b&gt;." in page
    assert "&#34;Frame&#34; 2" in page
    assert "saliency_text: clips: none has a summary" in page
    assert "no description" in page
    assert "there are no pictures" in picture.html(RECORD, {})
    assert "importance of a frame" not in picture.html(replace(RECORD, scores=[]), IMAGES)


def test_the_commands_draw_and_rate_what_was_built(desk: Desk, tmp_path: Path) -> None:
    assert desk.run(*desk.judge).exit_code == 0

    def run(*command: str) -> Result:
        return CliRunner().invoke(app, ["haven", *command], env=desk.env)

    out = tmp_path / "record.html"
    assert run("picture", str(desk.out), "own/video_1", "--out", str(out)).exit_code == 0
    page = out.read_text(encoding="utf-8")
    assert page.count("data:image/jpeg") == 30
    assert "own/video_1 · holiday" in page
    done = run("rate", str(desk.out), "--source", "own", "--out", str(tmp_path / "rate"))
    assert done.exit_code == 0, done.exception
    assert "1 videos instead of 15: there are no more" in done.output
    assert "13 ratings" in done.output
    form = (tmp_path / "rate" / "sheet.html").read_text(encoding="utf-8")
    # Two frames, up to 8 of the shot, 16 of the video under document and summary.
    assert 2 + 3 + 32 <= form.count("data:image/jpeg") <= 2 + 8 + 32
    done = run("picture", str(desk.out), "own/video_9", "--out", str(out))
    assert isinstance(done.exception, DataError)
    assert "has no video own/video_9 that can be used; it has own/video_1" in str(done.exception)
