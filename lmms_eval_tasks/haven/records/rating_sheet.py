"""A sheet on which people rate a record's texts from 1 to 5 (paper, Appendix B).

Of each drawn video two frames, one shot, the document and the summary, each on the appendix's
dimensions: 13 ratings a video. Pure: the same records and seed give the same sheet.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.records.record import Record

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
        records: in any order.
        number: of videos, at least 1; fewer records give all of them, with a note.
        seed: of the draw.

    Raises:
        DataError: no record has all texts, or a number below 1.
    """
    if number < 1:
        raise DataError(f"{number} videos to rate: expected at least 1")
    able = [record for record in records if _can_be_rated(record)]
    if not able:
        raise DataError(
            f"none of {len(records)} videos can be rated: each needs {FRAMES} described frames, a "
            "described shot, a document and a summary"
        )
    chosen = sorted(able, key=lambda record: _hash(seed, record.id))[:number]
    notes = []
    if left := len(records) - len(able):
        notes.append(f"{left} of {len(records)} videos lack a text and were not drawn from")
    if len(chosen) < number:
        notes.append(f"{len(chosen)} videos instead of {number}: there are no more")
    return Sheet(tuple(_drawn(record, seed) for record in chosen), tuple(notes))


def _can_be_rated(record: Record) -> bool:
    frames = sum(bool(frame.description) for frame in record.frames)
    shots = sum(bool(shot.description) for shot in record.shots)
    return frames >= FRAMES and shots >= SHOTS and bool(record.document and record.summary)


def _drawn(record: Record, seed: int) -> Drawn:
    frames = [n for n, frame in enumerate(record.frames, 1) if frame.description]
    shots = [n for n, shot in enumerate(record.shots, 1) if shot.description]
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
