"""The page of one record: what is marked, what is aligned, and that it is alone."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from click.testing import Result
from typer.testing import CliRunner

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.records import picture
from lmms_eval_tasks.haven.records.record import Frame, Record, Sentence, Shot
from tests.haven.records.desk import Desk, app

RECORD = Record(
    source="tvsum",
    video="video_7",
    name="Boats & <friends>",
    frames=tuple(Frame(15 * n, f'"Frame" {n + 1}', n in (1, 4), n / 5) for n in range(6)),
    shots=(
        Shot((1, 2, 3), "One <b>.", key=False),
        Shot((4,), "", key=True),
        Shot((5, 6), "Three.", key=False),
    ),
    document=(Sentence("Doc one.", (1, 2)), Sentence("Doc two.", (3,))),
    summary=(Sentence("Sum & one.", (2,)), Sentence("Nothing aligned.", ())),
    n_frames=90,
    gaps={"saliency_text": "clips: none has a summary"},
)
IMAGES = {number: f"data:image/jpeg;base64,A{number}" for number in range(1, 7)}


def test_what_is_marked_and_aligned() -> None:
    page = picture.html(RECORD, IMAGES)
    cells = page.split('<tr class="frames">')[1].split("</tr>")[0].split("<td>")[1:]
    found = [re.findall(r"base64,A(\d)", cell) for cell in cells]
    assert found == [["1", "2", "3"], ["4"], ["5", "6"]]
    assert re.findall(r'<figure class="keyframe" title="frame (\d)', page) == ["2", "5"]
    assert re.findall(r'<th class="key" title="[^"]*">(\d)', page) == ["2"]
    rows = page.split('<tr class="sentence"')[1:]
    told = [re.findall(r'<td class="told" title="shot (\d)">', row) for row in rows]
    assert told == [["2"], [], ["1", "2"], ["3"]]


def test_texts_are_escaped_and_gaps_told() -> None:
    page = picture.html(RECORD, IMAGES)
    assert "Boats &amp; &lt;friends&gt;" in page
    assert "One &lt;b&gt;." in page
    assert "&#34;Frame&#34; 2" in page
    assert "saliency_text: clips: none has a summary" in page
    assert "no description" in page
    assert "there are no pictures" in picture.html(RECORD, {})
    assert "importance of a frame" not in picture.html(
        replace(RECORD, frames=tuple(replace(f, importance=None) for f in RECORD.frames)), IMAGES
    )


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
