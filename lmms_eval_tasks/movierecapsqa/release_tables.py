"""The four tables of the full release, joined to segments in the form of release.py.

    ROOT/movierecapsqa/{recaps,segments,questions,facts}.{json,jsonl,csv,parquet}   or in data/
    ROOT/movierecapsqa/subtitles/VIDEOID.srt   the movie's subtitles; MOVIE_VIDEOID.srt as well
    ROOT/movierecapsqa/labels.csv   or another ending: the user's labels, if any

Subtitles are not released. Each recap names an address from which the user downloads them. They
cover the whole movie, and a segment's part is cut out by the segment's times in the movie.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.media import subtitles
from lmms_eval_tasks.utils.media.subtitles import Cue, clock

_IDS = ("video_id", "segment_id", "question_id", "fact_id")
_LISTS = ("fact_ids", "aligned_fact_ids")
_NUMBERS = ("movie_start_time", "movie_end_time", "recap_start_time", "recap_end_time")
# The columns that are needed of each table. Ids of facts and questions are unique in a segment.
TABLES = {
    "recaps": ("video_id", "movie_name", "subtitle_url"),
    "segments": ("video_id", "segment_id", *_NUMBERS, "fact_ids"),
    "questions": (
        *("video_id", "segment_id", "question_id", "question", "answer", "aligned_fact_ids"),
    ),
    "facts": ("video_id", "segment_id", "fact_id", "fact"),
}
SPLIT = ("modality", "category")
_ENDINGS = ("json", "jsonl", "csv", "parquet")
Row = dict[str, Any]


class Subtitle(NamedTuple):
    """The subtitles of a recap's movie: their address, and their file or None.

    `name` is the path below the benchmark's folder to which the user saves them.
    """

    movie: str
    url: str
    path: Path | None
    name: str


def find_tables(folder: Path) -> dict[str, Path]:
    """Return the four tables in a folder or its `data/`; {} if there are no questions and facts.

    Raises:
        DataError: a table exists twice, or some tables are missing.
    """
    for base in (folder, folder / "data"):
        there = {name: list(table_files(base, name)) for name in TABLES}
        if not there["questions"] or not there["facts"]:
            continue
        for name, own in there.items():
            if len(own) != 1:
                what = ", ".join(file.name for file in own) or f"no table {name}"
                raise DataError(f"{base}: expected one file of each of {', '.join(there)}: {what}")
        return {name: own[0] for name, own in there.items()}
    return {}


def table_files(base: Path, name: str) -> Iterator[Path]:
    """Yield the files of a table in a folder, or of the user's `labels`, in any format."""
    yield from (file for end in _ENDINGS if (file := base / f"{name}.{end}").is_file())
    for form in (f"{name}-*.parquet", f"{name}/*.parquet"):  # the hub's forms
        yield from sorted(base.glob(form))


def add_labels(entries: Sequence[Any], file: Path) -> None:
    """Put the user's labels into the questions of segments.

    Raises:
        DataError: the file cannot be read, labels a question that does not exist, or labels one in
            two ways.
    """
    labels: dict[str, dict[str, Any]] = {}
    for row in _rows(file, ("id", *SPLIT)):
        label = {name: row[name] for name in SPLIT}
        if labels.setdefault(row["id"], label) != label:
            raise DataError(f"{row['place']}: another row labels {row['id']!r} differently")
    for entry in entries:
        for asked in (entry.get("questions") or []) if isinstance(entry, dict) else []:
            if isinstance(asked, dict):
                asked.update(labels.pop(f"{entry.get('id')}/{asked.get('qid')}", {}))
    if labels:
        raise DataError(f"{file}: no question {next(iter(labels))!r}")


def read_tables(files: Mapping[str, Path], folder: Path) -> tuple[list[Row], dict[str, Subtitle]]:
    """Join the tables: return segments in the form of release.py, and subtitles by recap video.

    Raises:
        DataError: a table or the subtitles cannot be read, or a row names a missing record; the
            message names the place.
    """
    recaps, segments, questions, facts = (
        list(_rows(files[name], needed)) for name, needed in TABLES.items()
    )
    fact_texts: dict[str, dict[str, Any]] = {}
    for row in facts:
        fact_texts.setdefault(_id(row), {})[row["fact_id"]] = row["fact"]
    spoken = {row["video_id"]: _subtitle(row, folder) for row in recaps}
    cues = {video: subtitles.read_cues(sub.path) for video, sub in spoken.items() if sub.path}
    entries = []
    for row in segments:
        video = row["video_id"]
        if video not in spoken:
            raise DataError(f"{row['place']}: {video!r} is not in {files['recaps']}")
        movie = spoken[video].movie
        entries.append(
            {
                "id": _id(row),
                "movie": movie,
                "videoId": video,
                "startTime": row["recap_start_time"],
                "endTime": row["recap_end_time"],
                # In the form of a file name.
                "movieId": " ".join(movie.replace("/", "_").replace("\\", "_").split()),
                "movieStartTime": row["movie_start_time"],
                "movieEndTime": row["movie_end_time"],
                "facts": _facts(row, "fact_ids", fact_texts),
                "srt": dialogue(
                    cues.get(video, []), row["movie_start_time"], row["movie_end_time"]
                ),
                "questions": [],
            }
        )
    by_id = {entry["id"]: entry for entry in entries}
    for row in questions:
        if _id(row) not in by_id:
            raise DataError(f"{row['place']}: {_id(row)} is not a segment")
        by_id[_id(row)]["questions"].append(
            {
                "qid": row["question_id"],
                "question": row["question"],
                "datasetAnswer": row["answer"] or "",
                "alignedFacts": _facts(row, "aligned_fact_ids", fact_texts),
            }
        )
    return entries, spoken


def _id(row: Row) -> str:
    """Return the id of the segment that a row belongs to."""
    return f"{row['video_id']}.{row['segment_id']}"


def dialogue(cues: Sequence[Cue], start: Any, end: Any) -> str:
    """Return the dialogue in a window of the movie, in the srt form of the project's site.

    Args:
        cues: the movie's subtitles.
        start: seconds in the movie.
        end: seconds in the movie.

    Returns:
        "" for an invalid window, which the schema reports later.
    """
    if not isinstance(start, int | float) or not isinstance(end, int | float) or not start < end:
        return ""
    own = subtitles.cut(cues, max(start, 0), end)
    return "\n\n".join(f"{clock(cue.start)} --> {clock(cue.end)}\n{cue.text}" for cue in own)


def _facts(row: Row, column: str, labels: Mapping[str, Mapping[str, Any]]) -> list[Any]:
    ids, own = row[column], labels.get(_id(row), {})
    if not isinstance(ids, list):
        raise DataError(f"{row['place']}: expected a list of facts' ids, found {ids!r}")
    if lost := [one for one in map(str, ids) if one not in own]:
        raise DataError(f"{row['place']}: no fact {lost[0]}")
    return [own[one] for one in map(str, ids)]


def _subtitle(recap: Row, folder: Path) -> Subtitle:
    video = recap["video_id"]
    there = sorted((folder / "subtitles").glob("*.[sS][rR][tT]"))
    found = (path for path in there if path.stem == video or path.stem.endswith(f"_{video}"))
    movie, url = (str(recap[name] or "").strip() for name in ("movie_name", "subtitle_url"))
    return Subtitle(movie, url, next(found, None), f"subtitles/{video}.srt")


def _rows(file: Path, needed: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a table with the needed columns, ids as text, and the row's `place`."""
    found = released_files.read_table(file)
    if not found:
        raise DataError(f"{file}: no rows")
    for number, row in enumerate(found, 1):
        place = f"{file}, row {number}"
        lost = [name for name in needed if not isinstance(row, dict) or name not in row]
        if lost:
            raise DataError(f"{place}: no {lost[0]}")
        yield {**{name: _value(name, row[name], place) for name in needed}, "place": place}


def _value(name: str, value: Any, place: str) -> Any:
    """Return a value in JSON's types; CSV has numbers and lists as text."""
    if name in _IDS:
        return str(value).strip()
    if isinstance(value, str) and name in (*_LISTS, *_NUMBERS):
        try:
            return json.loads(value.replace("'", '"'))
        except ValueError:
            raise DataError(f"{place}: {name}: cannot be read: {value[:40]!r}") from None
    return value
