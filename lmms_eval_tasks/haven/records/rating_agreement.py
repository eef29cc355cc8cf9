"""Two raters' sheets: mean ratings and how far the raters agree (paper, Appendix B and Table 2)."""

from __future__ import annotations

import csv
import math
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.records.rating_sheet import COLUMNS, DIMENSIONS, FRAMES, SCALE, SHOTS

if TYPE_CHECKING:
    from rich.table import Table

# How many texts of each level a video has on the sheet.
_TEXTS = {"frame": FRAMES, "shot": SHOTS, "document": 1, "summary": 1}
# An id, as "tvsum/video_7 frame 12", says the video and the level.
_ID = re.compile(r"(?P<video>.+) (?P<level>frame|shot|document|summary)(?: \d+)?")
Key = tuple[str, str, str]  # id, level, dimension


@dataclass(frozen=True)
class Row:
    """A level and dimension.

    Attributes:
        mean, sd: over videos of the video's mean over both raters (and over its texts of that
            level). `sd` divides by videos - 1 (the paper does not say); None with one video.
        kappa: quadratic weights over the scale 1 to 5; over texts, not videos, as in the paper,
            whose frames' shares of equal ratings are thirtieths. None: undefined, see `reason`.
        spearman: None where a rater gave one rating only.
        exact: share of equal ratings, 0 to 1.
    """

    level: str
    dimension: str
    videos: int
    texts: int
    mean: float
    sd: float | None
    kappa: float | None
    spearman: float | None
    exact: float
    reason: str = ""


def read(file: Path) -> dict[Key, int]:
    """A filled sheet.

    Returns:
        Ratings by id, level and dimension, in the file's order.

    Raises:
        DataError: a column or a row is missing or wrong; names the row as a spreadsheet counts it.
    """
    try:
        # newline: line breaks inside a quoted text are the csv module's to read.
        with file.open(encoding="utf-8-sig", newline="") as opened:
            text = opened.read()
    except OSError as error:
        raise DataError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: not UTF-8 text (byte {error.start}): save it as such") from None
    head = text.partition("\n")[0]
    # Spreadsheets of many countries write semicolons.
    sign = max((",", ";", "\t"), key=head.count)
    lines = csv.DictReader(text.splitlines(keepends=True), delimiter=sign)
    if missing := [name for name in COLUMNS if name not in (lines.fieldnames or ())]:
        raise DataError(f"{file}: no column {missing[0]}; expected {', '.join(COLUMNS)}")
    found: dict[Key, int] = {}
    try:
        for number, line in enumerate(lines, 2):
            key, rating = _row(line, f"{file}, row {number}")
            if key in found:
                raise DataError(
                    f"{file}, row {number}: {_named(key)} is rated twice; keep one of the rows"
                )
            found[key] = rating
    except csv.Error as error:
        raise DataError(f"{file}: not CSV ({error})") from None
    _check_complete(found, file)
    return found


def _row(line: dict[str, Any], place: str) -> tuple[Key, int]:
    values = {name: (line[name] or "").strip() for name in COLUMNS}
    level, dimension = values["level"], values["dimension"]
    if level not in DIMENSIONS:
        raise DataError(f"{place}: level {level!r} is none of {', '.join(DIMENSIONS)}")
    if dimension not in DIMENSIONS[level]:
        known = ", ".join(DIMENSIONS[level])
        raise DataError(f"{place}: dimension {dimension!r} is none of {level}: {known}")
    key = (values["id"], level, dimension)
    match = _ID.fullmatch(values["id"])
    if match is None or match["level"] != level:
        raise DataError(f"{place}: {values['id']!r} is not the id of a {level} on a sheet")
    if not values["rating"]:
        raise DataError(f"{place}: {_named(key)} has no rating")
    if values["rating"] not in map(str, SCALE):
        raise DataError(
            f"{place}: {_named(key)} is rated {values['rating']!r}: expected a whole number from "
            f"{SCALE[0]} to {SCALE[-1]}"
        )
    return key, int(values["rating"])


def _check_complete(found: dict[Key, int], file: Path) -> None:
    """Every video has its texts, and every text all dimensions of its level."""
    if not found:
        raise DataError(f"{file}: has no rows")
    for name, level, _ in found:
        for dimension in DIMENSIONS[level]:
            if (name, level, dimension) not in found:
                raise DataError(f"{file}: the row of {name}, {dimension} is missing")
    texts = Counter((_video(name), level) for name, level in {key[:2] for key in found})
    for video in dict.fromkeys(_video(key[0]) for key in found):
        for level, number in _TEXTS.items():
            if (there := texts[video, level]) != number:
                raise DataError(
                    f"{file}: {video} has {there} of {number} texts of the level {level}"
                )


def compare(first: Path, second: Path) -> list[Row]:
    """Both raters' ratings side by side: the rows of the paper's Table 2.

    Raises:
        DataError: a sheet cannot be used, or the two are not of the same texts.
    """
    one, other = read(first), read(second)
    for mine, theirs, file in ((one, other, second), (other, one, first)):
        for key in mine:
            if key not in theirs:
                raise DataError(
                    f"{file}: the row of {_named(key)} is missing, which the other sheet has: both "
                    "raters fill in the same sheet"
                )
    found = []
    for level, dimensions in DIMENSIONS.items():
        for dimension in dimensions:
            names = [name for name, *rest in one if rest == [level, dimension]]
            if names:
                keys = [(name, level, dimension) for name in names]
                pairs = [(one[key], other[key]) for key in keys]
                found.append(_computed(level, dimension, names, pairs))
    return found


def _computed(
    level: str, dimension: str, names: Sequence[str], pairs: Sequence[tuple[int, int]]
) -> Row:
    from lmms_eval_tasks.utils.metrics.agreement import kappa, spearman

    by_video: dict[str, list[int]] = {}
    for name, pair in zip(names, pairs, strict=True):
        by_video.setdefault(_video(name), []).extend(pair)
    means = [statistics.fmean(ratings) for ratings in by_video.values()]
    agreed = kappa([a for a, _ in pairs], [b for _, b in pairs], SCALE, "quadratic")
    rho = spearman(pairs)
    reasons = [agreed.reason] if agreed.value is None else []
    if rho is None:
        reasons.append("Spearman: a rater gave one rating only")
    return Row(
        level,
        dimension,
        len(by_video),
        len(pairs),
        statistics.fmean(means),
        statistics.stdev(means) if len(means) > 1 else None,
        agreed.value,
        rho,
        math.fsum(a == b for a, b in pairs) / len(pairs),
        "; ".join(reasons),
    )


def _video(name: str) -> str:
    match = _ID.fullmatch(name)
    return match["video"] if match else name


def _named(key: Key) -> str:
    return f"{key[0]}, {key[2]}"


def table(found: Sequence[Row]) -> Table:
    """In the form of the paper's Table 2."""
    from rich import box
    from rich.table import Table

    made = Table(
        title="Ratings of two raters, 1 to 5: mean and sd over videos, and agreement",
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    made.add_column("level")
    made.add_column("dimension")
    for title in ("score", "kappa (quadratic)", "Spearman", "exact", "texts"):
        made.add_column(title, justify="right")
    for row in found:
        made.add_row(
            row.level,
            row.dimension,
            f"{row.mean:.2f} ± {row.sd:.2f}" if row.sd is not None else f"{row.mean:.2f}",
            *("-" if value is None else f"{value:.2f}" for value in (row.kappa, row.spearman)),
            f"{100 * row.exact:.1f} %",
            str(row.texts),
        )
    return made


def notes(found: Sequence[Row]) -> list[str]:
    """What a reader of the table should know, one line each."""
    lines = [
        f"no value for {row.level} {row.dimension}: {row.reason}" for row in found if row.reason
    ]
    if found and found[0].videos < 10:
        lines.append(f"only {found[0].videos} videos: agreement of so few texts says little")
    return lines
