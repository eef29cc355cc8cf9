"""People rate a record's texts from 1 to 5: the sheet, and how far two raters agree (Appendix B).

Of each drawn video two frames, one shot, the document and the summary, each on the appendix's
dimensions: 13 ratings a video. The same records and seed give the same sheet, as CSV, and as one
HTML page with pictures, texts, the rubric, and a button for the CSV.

The page loads nothing from elsewhere and sends nothing anywhere. The browser keeps ratings while it
is open, also when it is loaded again, and forgets them with it: the second rater at the same
computer must not see the first one's.
"""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import json
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.haven import data
from lmms_eval_tasks.haven.records.picture import taken
from lmms_eval_tasks.haven.records.record import Record
from lmms_eval_tasks.report.pages import filled
from lmms_eval_tasks.utils import released_files

if TYPE_CHECKING:
    from rich.table import Table

SCALE = (1, 2, 3, 4, 5)
FRAMES, SHOTS = 2, 1  # rated of each video (B.1)
COLUMNS = ("id", "level", "text", "dimension", "rating")
# Level -> dimension -> what is asked (B.2, in our words).
DIMENSIONS: dict[str, dict[str, str]] = {
    "frame": {
        "accuracy": "Is everything the description says really to be seen in the frame?",
        "informativeness": "Does it give enough of the details that matter in the frame?",
    },
    "shot": {
        "accuracy": "Does the description get right what happens in the shot?",
        "informativeness": "Does it tell what is most worth knowing about the shot?",
    },
    "document": {
        "accuracy": "Does the text agree with the video, without anything that is not so?",
        "completeness": "Are all main events and everything notable of the video in it?",
        "readability": "Is it one connected text that reads smoothly and is easy to follow?",
    },
    "summary": {
        "accuracy": "Does the summary say only what is true of the video?",
        "relevance": "Does it keep to what matters most in the video?",
        "conciseness": "Is it free of repetition and padding, and still says what is needed?",
        "readability": "Does it read smoothly and easily?",
    },
}
# What a rating means (B.3, in our words).
RUBRIC = {
    5: "excellent: nothing to find fault with",
    4: "good: small faults only",
    3: "fair: meets it in part, and could clearly be better",
    2: "poor: misses it in several ways that matter",
    1: "very poor: hardly meets it at all",
}
RULES = (
    "Judge the text against the video alone; whether you like its style does not matter.",
    "Rate each dimension by itself: a text can be accurate and still say too little.",
    "Rate alone, and do not talk about it with the other rater before both are done.",
)
LARGE, SMALL = 480, 200  # pixels of a rated frame; of the frames of a shot or a video
OF_SHOT, OF_VIDEO = 8, 16  # pictures shown of each at most
# Signs at which a spreadsheet takes a text for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Rated(NamedTuple):
    """One rating to be given: `id` names the text, as `tvsum/video_7 frame 12`."""

    id: str
    level: str
    text: str
    dimension: str


class Drawn(NamedTuple):
    """A video on the sheet; numbers from 1."""

    record: Record
    frames: tuple[int, ...]
    shot: int

    @property
    def texts(self) -> list[tuple[str, str, str]]:
        """Id, level and text of each of its texts, in the sheet's order."""
        record, name = self.record, self.record.id
        blocks = (("document", record.document), ("summary", record.summary))
        frames = {n: record.descriptions[n - 1] for n in self.frames}
        return [
            *((f"{name} frame {n}", "frame", text) for n, text in frames.items()),
            (f"{name} shot {self.shot}", "shot", record.shot_texts[self.shot - 1]),
            *((f"{name} {level}", level, " ".join(own)) for level, own in blocks),
        ]


def draw(records: Sequence[Record], number: int, seed: int) -> tuple[list[Drawn], list[str]]:
    """Videos with the smallest hashes of seed and id, and their frames and shot in the same way.

    A video that lacks one of the texts cannot be rated as the appendix says: it is left out of the
    draw and counted.

    Args:
        number: of videos; fewer records give all of them, with a note.

    Returns:
        The videos, and notes on the draw.

    Raises:
        DataError: no record has all texts.
    """

    def digest(name: str) -> bytes:
        return hashlib.sha256(f"{seed}:{name}".encode("utf-8", "replace")).digest()

    able = []
    for one in records:
        frames = [n for n, text in enumerate(one.descriptions, 1) if text]
        shots = [n for n, text in enumerate(one.shot_texts, 1) if text]
        if len(frames) >= FRAMES and shots and one.document and one.summary:
            frames.sort(key=lambda n: digest(f"{one.id} frame {n}"))
            shot = min(shots, key=lambda n: digest(f"{one.id} shot {n}"))
            able.append(Drawn(one, tuple(sorted(frames[:FRAMES])), shot))
    if not able:
        raise DataError(
            f"none of {len(records)} videos can be rated: each needs {FRAMES} described frames, a "
            "described shot, a document and a summary"
        )
    chosen = sorted(able, key=lambda drawn: digest(drawn.record.id))[:number]
    notes = []
    if left := len(records) - len(able):
        notes.append(f"{left} of {len(records)} videos lack a text and were not drawn from")
    if len(chosen) < number:
        notes.append(f"{len(chosen)} videos instead of {number}: there are no more")
    return chosen, notes


def rows(videos: Sequence[Drawn]) -> list[Rated]:
    """All ratings to be given, in order.

    A text that a spreadsheet would take for a formula gets an apostrophe before it; texts are for
    the rater and never read back.
    """
    return [
        Rated(name, level, f"'{text}" if text.startswith(_FORMULA) else text, dimension)
        for video in videos
        for name, level, text in video.texts
        for dimension in DIMENSIONS[level]
    ]


def csv_text(found: Sequence[Rated]) -> str:
    """The sheet as CSV with an empty column `rating`."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([COLUMNS, *((*row, "") for row in found)])
    return file.getvalue()


# --- the page -------------------------------------------------------------------------------------


def html(videos: Sequence[Drawn]) -> tuple[str, list[str]]:
    """The page, and why videos have no pictures on it."""
    found = rows(videos)
    # Ratings of another sheet must not turn up in this one.
    name = hashlib.sha256(csv_text(found).encode("utf-8", "replace")).hexdigest()[:12]
    held = {"name": f"haven-ratings-{name}", "columns": COLUMNS, "rows": found}
    numbers = itertools.count()
    shown = [_shown(video, numbers) for video in videos]
    page = filled(
        Path(__file__).with_name("form.html"),
        videos=shown,
        n_ratings=len(found),
        scale=SCALE,
        rubric=RUBRIC,
        rules=RULES,
        # "</script>" inside a text must not end the block.
        data=json.dumps(held, ensure_ascii=False).replace("<", "\\u003c"),
    )
    return page, [video["why"] for video in shown if video["why"]]


def _shown(video: Drawn, numbers: Iterator[int]) -> dict[str, Any]:
    """What the template shows of a video; its questions take the next numbers.

    The rated frames, and uniform ones of the rated shot and of the video; none if its file is not
    there or is broken.
    """
    record, why = video.record, ""
    shot = data.shown(record.shots[video.shot - 1], OF_SHOT)
    whole = data.shown(range(1, len(record.picks) + 1), OF_VIDEO)
    large: dict[int, str] = {}
    small: dict[int, str] = {}
    try:
        large = taken(record, video.frames, LARGE)
        small = taken(record, sorted({*shot, *whole}), SMALL)
    except MediaError as error:
        why = str(error)
    pictures = {f"frame {number}": [uri] for number, uri in large.items()}
    pictures[f"shot {video.shot}"] = [small[n] for n in shot if small]
    every = [small[n] for n in whole if small]
    texts = [
        {
            "title": (title := name.removeprefix(f"{record.id} ")).capitalize(),
            "pictures": pictures.get(title, every),
            "text": text,
            "questions": [
                (next(numbers), dimension.capitalize(), question)
                for dimension, question in DIMENSIONS[level].items()
            ],
        }
        for name, level, text in video.texts
    ]
    return {"id": record.id, "name": record.name, "why": why, "texts": texts}


# --- two raters -----------------------------------------------------------------------------------

Key = tuple[str, str, str]  # id, level, dimension


@dataclass(frozen=True)
class Agreement:
    """A level and dimension: a row of the paper's Table 2.

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
    """A filled sheet: ratings by id, level and dimension, in the file's order.

    Raises:
        DataError: a column is missing or a row wrong; names the row as a spreadsheet counts it.
    """
    text = released_files.read_text(file)
    # Spreadsheets of many countries write semicolons.
    sign = max((",", ";", "\t"), key=text.partition("\n")[0].count)
    lines = csv.DictReader(io.StringIO(text, newline=""), delimiter=sign)
    if missing := [name for name in COLUMNS if name not in (lines.fieldnames or ())]:
        raise DataError(f"{file}: no column {missing[0]}; expected {', '.join(COLUMNS)}")
    found: dict[Key, int] = {}
    for number, line in enumerate(lines, 2):
        name, level, _, dimension, rating = ((line[one] or "").strip() for one in COLUMNS)
        place = f"{file}, row {number}: {name}, {dimension}"
        if dimension not in DIMENSIONS.get(level, ()):
            raise DataError(f"{place}: no dimension of the level {level!r}")
        if (name, level, dimension) in found:
            raise DataError(f"{place} is rated twice; keep one of the rows")
        if rating not in map(str, SCALE):
            span = f"{SCALE[0]} to {SCALE[-1]}"
            raise DataError(f"{place} is rated {rating!r}: expected a whole number from {span}")
        found[name, level, dimension] = int(rating)
    return found


def compare(first: Path, second: Path) -> list[Agreement]:
    """Both raters' ratings side by side.

    Raises:
        DataError: a sheet cannot be used, or the two are not of the same texts.
    """
    one, other = read(first), read(second)
    for file, mine, theirs in ((first, one, other), (second, other, one)):
        if lacking := [key for key in theirs if key not in mine]:
            name, _, dimension = lacking[0]
            raise DataError(
                f"{file}: the row of {name}, {dimension} is missing, which the other sheet has: "
                "both raters fill in the same sheet"
            )
    if not one:
        raise DataError(f"{first}: has no rows")
    return [
        _agreement(level, dimension, pairs)
        for level, dimensions in DIMENSIONS.items()
        for dimension in dimensions
        if (pairs := {k[0]: (one[k], other[k]) for k in one if k[1:] == (level, dimension)})
    ]


def _agreement(level: str, dimension: str, rated: dict[str, tuple[int, int]]) -> Agreement:
    from lmms_eval_tasks.utils.metrics.agreement import kappa, spearman

    by_video: dict[str, list[int]] = {}
    for name, pair in rated.items():
        by_video.setdefault(name.rpartition(f" {level}")[0], []).extend(pair)
    means = [statistics.fmean(ratings) for ratings in by_video.values()]
    pairs = list(rated.values())
    agreed = kappa([a for a, _ in pairs], [b for _, b in pairs], SCALE, "quadratic")
    rho = spearman(pairs)
    reasons = [agreed.reason] if agreed.value is None else []
    if rho is None:
        reasons.append("Spearman: a rater gave one rating only")
    return Agreement(
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


def tables(found: Sequence[Agreement]) -> list[Table]:
    """In the form of the paper's Table 2."""
    from lmms_eval_tasks.report.paper_tables import by_row, fixed

    lines = [
        (
            (row.level, row.dimension),
            [
                f"{row.mean:.2f}" + (f" ± {row.sd:.2f}" if row.sd is not None else ""),
                fixed(row.kappa, 2),
                fixed(row.spearman, 2),
                f"{100 * row.exact:.1f} %",
                str(row.texts),
            ],
        )
        for row in found
    ]
    title = "Ratings of two raters, 1 to 5: mean and sd over videos, and agreement"
    heads = ["score", "kappa (quadratic)", "Spearman", "exact", "texts"]
    return by_row(title, ("level", "dimension"), heads, lines)


def notes(found: Sequence[Agreement]) -> list[str]:
    """What a reader of the table should know, one line each."""
    lines = [
        f"no value for {row.level} {row.dimension}: {row.reason}" for row in found if row.reason
    ]
    if found[0].videos < 10:
        lines.append(f"only {found[0].videos} videos: agreement of so few texts says little")
    return lines
