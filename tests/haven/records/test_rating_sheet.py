"""The rating sheet: its draw, its rows, its page."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace

from PIL import Image

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.records import picture, rating_sheet
from lmms_eval_tasks.haven.records.rating_sheet import COLUMNS, DIMENSIONS, Evidence
from lmms_eval_tasks.haven.records.record import Frame, Record, Sentence, Shot
from tests.checks import refused

NONE = Evidence({}, (), (), "no video")


def record(number: int, **changes: object) -> Record:
    made = Record(
        source="tvsum",
        video=f"video_{number}",
        name="",
        frames=tuple(Frame(5 * n, f"Frame {n}.", n == 2, n / 10) for n in range(6)),
        shots=(Shot((1, 2, 3, 4), "A </script> & b.", key=False), Shot((5, 6), "Two.", key=True)),
        document=(Sentence("First.", (1,)), Sentence("Then.", (2,))),
        summary=(Sentence("=Then", (2,)),),
        n_frames=30,
        gaps={},
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_the_draw_depends_on_seed_and_id_alone() -> None:
    records = [record(n) for n in range(40)]
    drawn = rating_sheet.draw(records, 15, 3)
    assert rating_sheet.draw(records[::-1], 15, 3).rows == drawn.rows
    other = rating_sheet.draw(records, 15, 4)
    assert {video.id for video in other.videos} != {video.id for video in drawn.videos}
    # More videos keep those that were drawn before.
    assert rating_sheet.draw(records, 20, 3).videos[:15] == drawn.videos
    chosen = {
        number for video in rating_sheet.draw(records, 40, 0).videos for number in video.frames
    }
    assert chosen == {1, 2, 3, 4, 5, 6}


def test_videos_that_lack_a_text_are_counted() -> None:
    blank = tuple(Frame(n, "x" * (n == 0), False, None) for n in range(6))
    undescribed = tuple(replace(shot, description="") for shot in record(1).shots)
    able = [record(1), record(2)]
    lacking = ({"summary": ()}, {"document": ()}, {"frames": blank}, {"shots": undescribed})
    others = [record(number, **one) for number, one in enumerate(lacking, 3)]
    sheet = rating_sheet.draw([*able, *others], 15, 0)
    assert sorted(video.id for video in sheet.videos) == ["tvsum/video_1", "tvsum/video_2"]
    assert sheet.notes == (
        "4 of 6 videos lack a text and were not drawn from",
        "2 videos instead of 15: there are no more",
    )
    refused(DataError, "none of 4 videos can be rated", rating_sheet.draw, others, 15, 0)
    refused(DataError, "at least 1", rating_sheet.draw, able, 0, 0)


def test_the_page_holds_everything_and_loads_nothing() -> None:
    sheet = rating_sheet.draw([record(1), record(2)], 2, 0)
    uri = picture.data_uri(Image.new("RGB", (4, 4)))
    frames = dict.fromkeys(range(1, 7), uri)
    seen = {
        sheet.videos[0].id: Evidence(frames, [uri, uri], [uri, uri, uri]),
        sheet.videos[1].id: NONE,
    }
    page = rating_sheet.html(sheet, seen)
    assert page.count("<fieldset") == len(sheet.rows) == 26
    assert page.count('type="radio"') == 26 * 5
    # 2 frames, 2 of the shot, 3 each for the document and the summary.
    assert page.count("<img ") == 10
    assert not re.search(r"(?:src|href)=\"(?!data:)|http", page)
    assert "</script> &" not in page
    assert "A &lt;/script&gt; &amp; b." in page
    data = re.search(r'<script type="application/json" id="sheet">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    content = json.loads(data[1])
    rows = [line[:4] for line in csv.reader(io.StringIO(rating_sheet.csv_text(sheet.rows)))]
    assert [content["columns"][:4], *content["rows"]] == rows
    assert all(question in page for level in DIMENSIONS.values() for question in level.values())
    assert "look at the video" in page


def test_a_text_that_a_spreadsheet_would_compute_is_none() -> None:
    sheet = rating_sheet.draw([record(1)], 1, 0)
    lines = list(csv.reader(io.StringIO(rating_sheet.csv_text(sheet.rows))))
    assert tuple(lines[0]) == COLUMNS
    assert lines[-1] == ["tvsum/video_1 summary", "summary", "'=Then", "readability", ""]
