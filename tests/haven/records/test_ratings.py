"""The rating sheet: its draw, its rows, its page; two filled sheets: numbers by hand, bad ones."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.haven.records import ratings
from lmms_eval_tasks.haven.records.ratings import COLUMNS, DIMENSIONS, Agreement, Rated
from lmms_eval_tasks.haven.records.record import Record
from tests.checks import refused


def record(number: int, **changes: Any) -> Record:
    made = Record(
        source="tvsum",
        video=f"video_{number}",
        name="",
        picks=[5 * n for n in range(6)],
        descriptions=[f"Frame {n}." for n in range(6)],
        keyframes=[3],
        shots=[[1, 2, 3, 4], [5, 6]],
        shot_texts=["A </script> & b.", "Two."],
        key_shots=[2],
        document=["First.", "Then."],
        document_shots=[[1], [2]],
        summary=["=Then"],
        summary_shots=[[2]],
    )
    return replace(made, **changes)


# --- the sheet ------------------------------------------------------------------------------------


def test_the_draw_depends_on_seed_and_id_alone() -> None:
    records = [record(n) for n in range(40)]
    drawn, _ = ratings.draw(records, 15, 3)
    assert ratings.draw(records[::-1], 15, 3)[0] == drawn
    other, _ = ratings.draw(records, 15, 4)
    assert {video.record.id for video in other} != {video.record.id for video in drawn}
    # More videos keep those that were drawn before.
    assert ratings.draw(records, 20, 3)[0][:15] == drawn
    every, _ = ratings.draw(records, 40, 0)
    assert {number for video in every for number in video.frames} == {1, 2, 3, 4, 5, 6}


def test_videos_that_lack_a_text_are_counted() -> None:
    able = [record(1), record(2)]
    lacking: list[dict[str, Any]] = [{"summary": []}, {"document": []}, {"shot_texts": ["", ""]}]
    lacking.append({"descriptions": ["x", "", "", "", "", ""]})
    others = [record(number, **one) for number, one in enumerate(lacking, 3)]
    drawn, notes = ratings.draw([*able, *others], 15, 0)
    assert sorted(video.record.id for video in drawn) == ["tvsum/video_1", "tvsum/video_2"]
    assert notes == [
        "4 of 6 videos lack a text and were not drawn from",
        "2 videos instead of 15: there are no more",
    ]
    refused(DataError, "none of 4 videos can be rated", ratings.draw, others, 15, 0)


def test_the_page_holds_everything_and_loads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, _ = ratings.draw([record(1), record(2)], 2, 0)

    def taken(own: Record, numbers: Any, size: int) -> dict[int, str]:
        if own is drawn[1].record:
            raise MediaError("no video")
        return {n: f"data:image/jpeg;base64,{size}x{n}" for n in numbers}

    monkeypatch.setattr(ratings, "taken", taken)
    rows = ratings.rows(drawn)
    page, unseen = ratings.html(drawn)
    assert unseen == ["no video"]
    assert page.count("<fieldset") == len(rows) == 26
    assert page.count('type="radio"') == 26 * 5
    shot = len(drawn[0].record.shots[drawn[0].shot - 1])
    # Two frames, the shot's, and the whole video for the document and the summary.
    assert page.count("<img ") == 2 + shot + 6 + 6
    assert [f"480x{n}" in page for n in range(1, 7)] == [n in drawn[0].frames for n in range(1, 7)]
    assert not re.search(r"(?:src|href)=\"(?!data:)|http", page)
    assert "</script> &" not in page
    assert "A &lt;/script&gt; &amp; b." in page
    data = re.search(r'<script type="application/json" id="sheet">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    content = json.loads(data[1])
    lines = list(csv.reader(io.StringIO(ratings.csv_text(rows))))
    assert [content["columns"][:4], *content["rows"]] == [line[:4] for line in lines]
    assert tuple(lines[0]) == COLUMNS
    # Not a formula of a spreadsheet.
    name = drawn[-1].record.id
    assert lines[-1] == [f"{name} summary", "summary", "'=Then", "readability", ""]
    assert all(question in page for level in DIMENSIONS.values() for question in level.values())
    assert "look at the video" in page


# --- two raters -----------------------------------------------------------------------------------

Rate = Callable[[int, Rated], object]  # number of the video, row -> rating
Lines = list[list[str]]
ROWS = ratings.rows(ratings.draw([record(n) for n in (1, 2, 3, 4)], 4, 0)[0])


def write(
    file: Path, rate: Rate, delimiter: str = ",", change: Callable[[Lines], object] = id
) -> Path:
    """A sheet as a rater fills it in."""
    lines = list(csv.reader(io.StringIO(ratings.csv_text(ROWS))))
    for line, row in zip(lines[1:], ROWS, strict=True):
        line[4] = str(rate(int(row.id.split()[0].rpartition("_")[2]), row))
    change(lines)
    with file.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened, delimiter=delimiter).writerows(lines)
    return file


def first(number: int, row: Rated) -> int:
    if row.level == "frame":
        return 5 if row.dimension == "accuracy" else number
    return number if row.level == "shot" else 4


def second(number: int, row: Rated) -> int:
    if row.level == "frame":
        return 5 if row.dimension == "accuracy" else 6 - number
    return {1: 2, 2: 2, 3: 4, 4: 4}[number] if row.level == "shot" else 3 + number % 2


def compared(tmp_path: Path, change: Callable[[Lines], object] = id) -> dict[Any, Agreement]:
    one, other = write(tmp_path / "a.csv", first), write(tmp_path / "b.csv", second, ";", change)
    return {(r.level, r.dimension): r for r in ratings.compare(one, other)}


def test_every_number_by_hand(tmp_path: Path) -> None:
    found = compared(tmp_path)
    assert list(found) == [(level, name) for level, own in DIMENSIONS.items() for name in own]
    # Ratings 1 2 3 4 and 2 2 4 4: squared differences 2 of 10 expected by chance.
    shot = found["shot", "accuracy"]
    assert (shot.videos, shot.texts, shot.exact) == (4, 4, 0.5)
    assert shot.kappa == pytest.approx(0.8)
    assert shot.spearman == pytest.approx(4 / 20**0.5)
    # Videos' means 1.5 2 3.5 4.
    assert (shot.mean, shot.sd) == pytest.approx((2.75, (4.25 / 3) ** 0.5))
    # Frames count one by one, and means by video: each video's ratings add up to 6.
    frame = found["frame", "informativeness"]
    assert (frame.videos, frame.texts, frame.mean, frame.sd) == (4, 8, 3, 0)
    assert frame.spearman == pytest.approx(-1)
    assert frame.exact == 0.25  # both frames of video 3
    # Twice each pair: squared differences 16 4 0 4, against the chance's 1 2 3 4 x 5 4 3 2.
    chance = sum((a - b) ** 2 for a in (1, 2, 3, 4) for b in (5, 4, 3, 2)) / 4
    assert frame.kappa == pytest.approx(1 - 24 / chance)
    # What is undefined has no value and a reason.
    same = found["frame", "accuracy"]
    assert (same.kappa, same.spearman, same.exact) == (None, None, 1.0)
    constant = found["document", "accuracy"]
    assert (constant.kappa, constant.spearman) == (0, None)
    notes = ratings.notes(list(found.values()))
    assert any(line.startswith("no value for frame accuracy:") for line in notes)
    assert "only 4 videos: agreement of so few texts says little" in notes
    turned = compared(tmp_path, lambda lines: lines.__setitem__(slice(1, None), lines[:0:-1]))
    assert turned == found


def put(row: int, column: int, value: str) -> Callable[[Lines], object]:
    return lambda lines: lines[row - 1].__setitem__(column, value)


BAD: list[tuple[Callable[[Lines], object], str]] = [
    (put(3, 4, "6"), "row 3: .*informativeness is rated '6': expected a whole"),
    (put(3, 4, "\u0664"), "row 3: .* is rated"),
    (put(4, 4, " "), r"row 4: tvsum/video_\d frame \d, accuracy is rated ''"),
    (put(2, 3, "relevance"), "row 2: .*: no dimension of the level 'frame'"),
    (put(2, 1, "scene"), "row 2: .*: no dimension of the level 'scene'"),
    (put(2, 0, "tvsum/video_9 frame 1"), "the row of .*, .* is missing"),
    (lambda lines: lines.insert(4, lines[1]), "row 5: .* is rated twice"),
    (lambda lines: lines.pop(2), "informativeness is missing, which the other sheet has"),
    (lambda lines: lines.__delitem__(slice(1, None)), "is missing, which the other sheet has"),
    (lambda lines: lines.clear(), "no column id"),
]


def test_bad_sheets_are_one_line(tmp_path: Path) -> None:
    one, other = write(tmp_path / "a.csv", first), tmp_path / "b.csv"
    for change, why in BAD:
        write(other, second, change=change)
        for both in ((one, other), (other, one)):
            said = refused(DataError, why, ratings.compare, *both)
            assert "b.csv" in said or "video_9" in said
    other.unlink()
    refused(DataError, "No such file", ratings.compare, one, other)
