"""A sheet on which people rate a record's texts from 1 to 5 (paper, Appendix B).

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.haven import data
from lmms_eval_tasks.haven.records.picture import taken
from lmms_eval_tasks.haven.records.record import Record
from lmms_eval_tasks.report.pages import filled

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


@dataclass(frozen=True)
class Row:
    """One rating to be given: `id` names the text, as `tvsum/video_7 frame 12`."""

    id: str
    level: str
    text: str
    dimension: str


@dataclass(frozen=True)
class Drawn:
    """A video on the sheet; numbers from 1."""

    record: Record
    frames: tuple[int, ...]
    shot: int

    @property
    def id(self) -> str:
        """The video's."""
        return self.record.id

    @property
    def texts(self) -> list[tuple[str, str, str]]:
        """Id, level and text of each of its texts, in the sheet's order."""
        record = self.record
        found = [
            (f"{self.id} frame {n}", "frame", record.frames[n - 1].description) for n in self.frames
        ]
        shot = record.shots[self.shot - 1]
        found.append((f"{self.id} shot {self.shot}", "shot", shot.description))
        for level, sentences in (("document", record.document), ("summary", record.summary)):
            text = " ".join(sentence.text for sentence in sentences)
            found.append((f"{self.id} {level}", level, text))
        return found


@dataclass(frozen=True)
class Sheet:
    """What is to be rated, and notes on the draw, one line each."""

    videos: tuple[Drawn, ...]
    notes: tuple[str, ...]

    @property
    def rows(self) -> list[Row]:
        """All ratings to be given, in order."""
        return [
            Row(name, level, text, dimension)
            for video in self.videos
            for name, level, text in video.texts
            for dimension in DIMENSIONS[level]
        ]


def draw(records: Sequence[Record], number: int, seed: int) -> Sheet:
    """Videos with the smallest hashes of seed and id, and their frames and shot in the same way.

    A video that lacks one of the texts cannot be rated as the appendix says: it is left out of the
    draw and counted.

    Args:
        number: of videos, at least 1; fewer records give all of them, with a note.

    Raises:
        DataError: no record has all texts, or a number below 1.
    """
    if number < 1:
        raise DataError(f"{number} videos to rate: expected at least 1")
    able = [drawn for record in records if (drawn := _drawn(record, seed)) is not None]
    if not able:
        raise DataError(
            f"none of {len(records)} videos can be rated: each needs {FRAMES} described frames, a "
            "described shot, a document and a summary"
        )
    chosen = sorted(able, key=lambda drawn: _hash(seed, drawn.id))[:number]
    notes = []
    if left := len(records) - len(able):
        notes.append(f"{left} of {len(records)} videos lack a text and were not drawn from")
    if len(chosen) < number:
        notes.append(f"{len(chosen)} videos instead of {number}: there are no more")
    return Sheet(tuple(chosen), tuple(notes))


def _drawn(record: Record, seed: int) -> Drawn | None:
    """A video's frames and shot; None if it lacks a text."""
    frames = [n for n, frame in enumerate(record.frames, 1) if frame.description]
    shots = [n for n, shot in enumerate(record.shots, 1) if shot.description]
    if len(frames) < FRAMES or not (shots and record.document and record.summary):
        return None
    frames.sort(key=lambda n: _hash(seed, f"{record.id} frame {n}"))
    shot = min(shots, key=lambda n: _hash(seed, f"{record.id} shot {n}"))
    return Drawn(record, tuple(sorted(frames[:FRAMES])), shot)


def _hash(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}:{name}".encode("utf-8", "replace")).digest()


def csv_text(rows: Sequence[Row]) -> str:
    """The sheet as CSV with an empty column `rating`.

    A text that a spreadsheet would take for a formula gets an apostrophe before it; texts are for
    the rater and never read back.
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([row.id, row.level, shown(row.text), row.dimension, ""])
    return file.getvalue()


def shown(text: str) -> str:
    """A text as a cell."""
    return f"'{text}" if text.startswith(_FORMULA) else text


# --- the page -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evidence:
    """What a rater sees of a video: data URIs. `why` says why there are none.

    frames: of the rated frames; shot, video: uniform frames of the rated shot and of the video.
    """

    frames: Mapping[int, str]
    shot: Sequence[str]
    video: Sequence[str]
    why: str = ""


def evidence(drawn: Drawn) -> Evidence:
    """The pictures for rating one video; without any if its file is not there or is broken."""
    record = drawn.record
    if record.path is None or not record.path.is_file():
        return Evidence({}, (), (), f"{record.id}: its video file is not there")
    shot = data.shown(record.shots[drawn.shot - 1].frames, OF_SHOT)
    whole = data.shown(range(1, len(record.frames) + 1), OF_VIDEO)
    try:
        large = taken(record, drawn.frames, LARGE)
        small = taken(record, sorted({*shot, *whole}), SMALL)
    except MediaError as error:
        return Evidence({}, (), (), str(error))
    return Evidence(large, [small[n] for n in shot], [small[n] for n in whole])


def html(sheet: Sheet, evidence: Mapping[str, Evidence]) -> str:
    """The page."""
    rows = sheet.rows
    # Ratings of another sheet must not turn up in this one.
    name = hashlib.sha256(csv_text(rows).encode("utf-8", "replace")).hexdigest()[:12]
    held = {
        "name": f"haven-ratings-{name}",
        "columns": COLUMNS,
        "rows": [[row.id, row.level, shown(row.text), row.dimension] for row in rows],
    }
    numbers = itertools.count()
    return filled(
        Path(__file__).with_name("form.html"),
        videos=[_video(video, evidence[video.id], numbers) for video in sheet.videos],
        n_ratings=len(rows),
        scale=SCALE,
        rubric=RUBRIC,
        rules=RULES,
        # "</script>" inside a text must not end the block.
        data=json.dumps(held, ensure_ascii=False).replace("<", "\\u003c"),
    )


def _video(video: Drawn, seen: Evidence, numbers: Iterator[int]) -> dict[str, Any]:
    """What the template shows of a video; its questions take the next numbers."""
    texts = []
    for identity, level, text in video.texts:
        what = identity.removeprefix(f"{video.id} ")
        texts.append(
            {
                "title": what.capitalize(),
                "pictures": _shown_of(level, what, seen),
                "text": text,
                "questions": [
                    (next(numbers), dimension.capitalize(), question)
                    for dimension, question in DIMENSIONS[level].items()
                ],
            }
        )
    return {"id": video.id, "name": video.record.name, "why": seen.why, "texts": texts}


def _shown_of(level: str, what: str, seen: Evidence) -> Sequence[str]:
    if level == "frame":
        found = seen.frames.get(int(what.removeprefix("frame ")))
        return [found] if found else []
    return seen.shot if level == "shot" else seen.video
