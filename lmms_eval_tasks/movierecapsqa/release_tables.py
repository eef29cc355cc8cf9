"""The four tables of the full release, put together to segments in the form of schema.py.

    ROOT/movierecapsqa/{recaps,segments,questions,facts}.{json,jsonl,csv,parquet}   or in data/
    ROOT/movierecapsqa/subtitles/VIDEOID.srt   the movie's subtitles; MOVIE_VIDEOID.srt as well
    ROOT/movierecapsqa/labels.csv   or another ending: the user's labels, if any

Subtitles are not released: each recap names an address, and the user fetches them. They are the
whole movie's, and a segment's part is cut out by its times in the movie.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.media import subtitles
from lmms_eval_tasks.utils.media.subtitles import Cue, clock

SPLIT = ("modality", "category")
LABELS = "labels"  # a fifth table, of the user's own: `id` is a question's in results
NEEDED = {
    "recaps": ("video_id", "movie_name", "subtitle_url"),
    "segments": (
        *("video_id", "segment_id", "movie_start_time", "movie_end_time"),
        *("recap_start_time", "recap_end_time", "fact_ids"),
    ),
    "questions": (
        *("video_id", "segment_id", "question_id", "question", "answer", "aligned_fact_ids"),
    ),
    "facts": ("video_id", "segment_id", "fact_id", "fact"),
    LABELS: ("id", *SPLIT),
}
_ENDINGS = ("json", "jsonl", "csv", "parquet")
_LISTS = ("fact_ids", "aligned_fact_ids")
_NUMBERS = (*("movie_start_time", "movie_end_time", "recap_start_time", "recap_end_time"),)
_IDS = ("video_id", "segment_id", "question_id", "fact_id")
Row = dict[str, Any]


class Subtitle(NamedTuple):
    """A recap's subtitles: where they are, or None; what to fetch, and the name to save it by."""

    movie: str
    url: str
    path: Path | None
    name: str


class Tables(NamedTuple):
    """Segments as schema.py reads them, and the subtitles by recap video."""

    entries: list[Row]
    subtitles: Mapping[str, Subtitle]


def find(folder: Path) -> dict[str, Path] | None:
    """The four tables in a folder or its `data/`; None where questions and facts have none.

    Raises:
        DataError: a table is there twice, or not all of them are there.
    """
    for base in (folder, folder / "data"):
        there = {name: list(_of(base, name)) for name in NEEDED if name != LABELS}
        if not there["questions"] or not there["facts"]:
            continue
        for name, files in there.items():
            if len(files) != 1:
                what = ", ".join(file.name for file in files) or f"no table {name}"
                raise DataError(f"{base}: expected one file of each of {', '.join(there)}: {what}")
        return {name: files[0] for name, files in there.items()}
    return None


def labels_file(folder: Path) -> Path | None:
    """The user's labels, beside the data."""
    return next(_of(folder, LABELS), None)


def add_labels(entries: list[Any], file: Path) -> None:
    """Put the user's labels into the questions of segments.

    Raises:
        DataError: the file cannot be read, or labels what is no question.
    """
    labels = {row["id"]: {name: row[name] for name in SPLIT} for row in _rows(LABELS, file)}
    for entry in entries:
        for asked in (entry.get("questions") or []) if isinstance(entry, dict) else []:
            if isinstance(asked, dict):
                asked.update(labels.pop(f"{entry.get('id')}/{asked.get('qid')}", {}))
    if labels:
        raise DataError(f"{file}: there is no question {next(iter(labels))!r}")


def _of(base: Path, name: str) -> Iterator[Path]:
    for ending in _ENDINGS:
        if (base / f"{name}.{ending}").is_file():
            yield base / f"{name}.{ending}"
    for form in (f"{name}-*.parquet", f"{name}/*.parquet"):  # the hub's own
        yield from sorted(base.glob(form))


def subtitle_files(folder: Path) -> list[Path]:
    """The subtitles that are there."""
    return sorted((folder / "subtitles").glob("*.*"))


def read(files: Mapping[str, Path], folder: Path) -> Tables:
    """Put the tables together.

    Args:
        files: by table.
        folder: where `subtitles/` is.

    Raises:
        DataError: a table or the subtitles cannot be read, or a row names what is not there; names
            the place.
    """
    rows = {name: list(_rows(name, file)) for name, file in files.items()}
    known: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows["facts"]:
        known.setdefault(_segment(row), {})[row["fact_id"]] = row["fact"]
    recaps = {row["video_id"]: row for row in rows["recaps"]}
    spoken = {video: _subtitle(row, folder) for video, row in recaps.items()}
    cues = {
        video: subtitles.read(one.path) for video, one in spoken.items() if one.path is not None
    }
    asked: dict[tuple[str, str], list[Row]] = {}
    for number, row in enumerate(rows["questions"], 1):
        place = f"{files['questions']}, row {number}"
        question = {
            "qid": row["question_id"],
            "question": row["question"],
            "datasetAnswer": row["answer"] or "",
            "alignedFacts": _facts(row["aligned_fact_ids"], known.get(_segment(row), {}), place),
        }
        asked.setdefault(_segment(row), []).append(question)
    entries = []
    for number, row in enumerate(rows["segments"], 1):
        place = f"{files['segments']}, row {number}"
        if row["video_id"] not in recaps:
            raise DataError(f"{place}: {row['video_id']!r} is in no row of {files['recaps']}")
        entries.append(
            {
                "id": f"{row['video_id']}.{row['segment_id']}",
                "movie": spoken[row["video_id"]].movie,
                "videoId": row["video_id"],
                "startTime": row["recap_start_time"],
                "endTime": row["recap_end_time"],
                "movieId": _file_name(spoken[row["video_id"]].movie),
                "movieStartTime": row["movie_start_time"],
                "movieEndTime": row["movie_end_time"],
                "facts": _facts(row["fact_ids"], known.get(_segment(row), {}), place),
                "srt": _said(cues.get(row["video_id"], []), row),
                "questions": asked.pop(_segment(row), []),
            }
        )
    if asked:
        video, segment = next(iter(asked))
        raise DataError(f"{files['questions']}: {video}.{segment} is no segment")
    return Tables(entries, spoken)


def _segment(row: Row) -> tuple[str, str]:
    """Whose row it is; ids of facts and questions are looked up within a segment."""
    return row["video_id"], row["segment_id"]


def _said(cues: list[Cue], row: Row) -> str:
    """What is said in a segment, by its times in the movie, as the site's srt has it."""
    start, end = row["movie_start_time"], row["movie_end_time"]
    if not isinstance(start, int | float) or not isinstance(end, int | float) or not start < end:
        return ""  # the schema complains
    own = subtitles.cut(cues, max(start, 0), end)
    times = [(clock(cue.start), clock(cue.end)) for cue in own]
    return "\n\n".join(f"{a} --> {b}\n{cue.text}" for (a, b), cue in zip(times, own, strict=True))


def _facts(ids: Any, known: Mapping[str, Any], place: str) -> list[Any]:
    if not isinstance(ids, list):
        raise DataError(f"{place}: expected a list of facts' ids, found {ids!r}")
    if lost := [one for one in map(str, ids) if one not in known]:
        raise DataError(f"{place}: no fact {lost[0]}")
    return [known[one] for one in map(str, ids)]


def _file_name(movie: str) -> str:
    """A movie's name as that of a file."""
    return " ".join(movie.replace("/", "_").replace("\\", "_").split())


def _subtitle(recap: Row, folder: Path) -> Subtitle:
    video = recap["video_id"]
    names = (path for path in subtitle_files(folder) if path.suffix.lower() in (".srt", ".vtt"))
    found = [path for path in names if path.stem == video or path.stem.endswith(f"_{video}")]
    movie, url = (str(recap[name] or "").strip() for name in ("movie_name", "subtitle_url"))
    return Subtitle(movie, url, found[0] if found else None, f"subtitles/{video}.srt")


def _rows(table: str, file: Path) -> Iterator[Row]:
    """The rows of a table, with ids as text; only what is needed of them."""
    found = released_files.read_table(file)
    if not found:
        raise DataError(f"{file}: holds no rows")
    for number, row in enumerate(found, 1):
        place = f"{file}, row {number}"
        if not isinstance(row, dict):
            raise DataError(f"{place}: expected an object")
        if lost := [name for name in NEEDED[table] if name not in row]:
            raise DataError(f"{place}: no {lost[0]}")
        yield {name: _value(name, row[name], place) for name in NEEDED[table]}


def _value(name: str, value: Any, place: str) -> Any:
    """A value as JSON has it: CSV has numbers and lists as text."""
    if name in _IDS:
        return str(value).strip()
    if isinstance(value, str) and (name in _LISTS or name in _NUMBERS):
        try:
            return json.loads(value.replace("'", '"'))
        except ValueError:
            raise DataError(f"{place}: {name}: cannot be read: {value[:40]!r}") from None
    return value
