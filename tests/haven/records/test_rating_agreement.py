"""Two filled sheets: numbers by hand, and a line about every sheet that cannot be used."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.records import rating_agreement, rating_sheet
from lmms_eval_tasks.haven.records.rating_agreement import Row
from tests.checks import refused
from tests.haven.records.test_rating_sheet import record

Rate = Callable[[int, rating_sheet.Row], object]  # number of the video, row -> rating
SHEET = rating_sheet.draw([record(n) for n in (1, 2, 3, 4)], 4, 0)


def write(file: Path, rate: Rate, delimiter: str = ",") -> Path:
    """A sheet as a rater fills it in."""
    lines = list(csv.reader(io.StringIO(rating_sheet.csv_text(SHEET.rows))))
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened, delimiter=delimiter)
        writer.writerow(lines[0])
        for line, row in zip(lines[1:], SHEET.rows, strict=True):
            number = int(row.id.split()[0].rpartition("_")[2])
            writer.writerow([*line[:4], rate(number, row)])
    return file


def first(number: int, row: rating_sheet.Row) -> int:
    if row.level == "frame":
        return 5 if row.dimension == "accuracy" else number
    return number if row.level == "shot" else 4


def second(number: int, row: rating_sheet.Row) -> int:
    if row.level == "frame":
        return 5 if row.dimension == "accuracy" else 6 - number
    return {1: 2, 2: 2, 3: 4, 4: 4}[number] if row.level == "shot" else 3 + number % 2


def rows(tmp_path: Path) -> dict[tuple[str, str], Row]:
    one, other = write(tmp_path / "a.csv", first), write(tmp_path / "b.csv", second, ";")
    return {(r.level, r.dimension): r for r in rating_agreement.compare(one, other)}


def test_every_number_by_hand(tmp_path: Path) -> None:
    found = rows(tmp_path)
    assert list(found) == [
        (level, name) for level, names in rating_sheet.DIMENSIONS.items() for name in names
    ]
    # Ratings 1 2 3 4 and 2 2 4 4: squared differences 2 of 10 expected by chance.
    shot = found["shot", "accuracy"]
    assert (shot.videos, shot.texts) == (4, 4)
    assert shot.kappa == pytest.approx(0.8)
    assert shot.spearman == pytest.approx(4 / 20**0.5)
    assert shot.exact == 0.5
    # Videos' means 1.5 2 3.5 4.
    assert shot.mean == pytest.approx(2.75)
    assert shot.sd == pytest.approx((4.25 / 3) ** 0.5)


def test_frames_count_one_by_one_and_means_by_video(tmp_path: Path) -> None:
    found = rows(tmp_path)["frame", "informativeness"]
    assert (found.videos, found.texts) == (4, 8)
    # Each video's ratings add up to 6: every mean is 3.
    assert found.mean == 3
    assert found.sd == 0
    assert found.spearman == pytest.approx(-1)
    assert found.exact == 0.25  # both frames of video 3
    # Twice each pair: squared differences 16 4 0 4, against the chance's 1 2 3 4 x 5 4 3 2.
    chance = sum((a - b) ** 2 for a in (1, 2, 3, 4) for b in (5, 4, 3, 2)) / 4
    assert found.kappa == pytest.approx(1 - 24 / chance)


def test_what_is_undefined_has_no_value_and_a_reason(tmp_path: Path) -> None:
    found = rows(tmp_path)
    same = found["frame", "accuracy"]
    assert (same.kappa, same.spearman, same.exact) == (None, None, 1.0)
    assert "one and the same label" in same.reason
    constant = found["document", "accuracy"]
    assert constant.kappa == 0  # one constant rater
    assert constant.spearman is None
    notes = rating_agreement.notes(list(found.values()))
    assert any(line.startswith("no value for frame accuracy:") for line in notes)
    assert "only 4 videos: agreement of so few texts says little" in notes


def test_the_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    before = rows(tmp_path)
    file = tmp_path / "b.csv"
    head, *lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("\ufeff" + "".join([head, *lines[::-1]]), encoding="utf-8")
    after = rating_agreement.compare(tmp_path / "a.csv", file)
    assert {(r.level, r.dimension): r for r in after} == before


Lines = list[list[str]]


def put(row: int, column: int, value: str) -> Callable[[Lines], object]:
    return lambda lines: lines[row - 1].__setitem__(column, value)


BAD: list[tuple[Callable[[Lines], object], str]] = [
    (put(3, 4, "6"), "row 3: .*informativeness is rated '6': expected a whole"),
    (put(3, 4, "\u0664"), "row 3: .* is rated"),
    (put(4, 4, " "), r"row 4: tvsum/video_\d frame \d, accuracy has no rating"),
    (put(2, 3, "style"), "row 2: dimension 'style' is none of frame: accuracy, info"),
    (put(2, 3, "relevance"), "row 2: dimension 'relevance' is none of frame"),
    (put(2, 0, "tvsum/video_9 frame 1"), "the row of .*, .* is missing"),
    (lambda lines: lines.insert(4, lines[1]), "row 5: .* is rated twice"),
    (lambda lines: lines.pop(2), "the row of .*, informativeness is missing"),
    (lambda lines: lines.__delitem__(slice(1, 3)), r"video_\d has 1 of 2 texts of the level fra"),
    (
        lambda lines: lines.__delitem__(slice(1, 14)),
        "is missing, which the other sheet has: both raters fill in the same sheet",
    ),
    (lambda lines: lines.__delitem__(slice(1, None)), "has no rows"),
    (lambda lines: lines.clear(), "no column id"),
]


def test_bad_sheets_are_one_line(tmp_path: Path) -> None:
    for change, why in BAD:
        for side in (0, 1):
            both = write(tmp_path / "a.csv", first), write(tmp_path / "b.csv", second)
            with both[side].open(encoding="utf-8", newline="") as opened:
                lines = list(csv.reader(opened))
            change(lines)
            with both[side].open("w", encoding="utf-8", newline="") as opened:
                csv.writer(opened).writerows(lines)
            assert str(both[side]) in refused(DataError, why, rating_agreement.compare, *both)
    both[0].unlink()
    refused(DataError, "No such file", rating_agreement.compare, *both)
