"""MovieRecapsQA's files, and reading them.

    ROOT/movierecapsqa/segments.json      the list of segments, as released (entry.py)
    ROOT/movierecapsqa/recaps/VIDEOID.mp4 recap videos; beside segments.json as well
    ROOT/movierecapsqa/movies/MOVIEID.mp4 the user's own copies of the movies

A file that is no list of segments stops. What is wrong with single segments is collected, so that
the others can be run where the user allows it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa.entry import Question, Segment
from lmms_eval_tasks.utils import released_files

# The full set (paper, Tables 2 and 3).
PAPER_COUNTS = {"videos": 60, "questions": 8231, "facts": 16462}
FILE_NAMES = ("segments.json",)

# What pydantic says in Python's words, by the type of its error.
_IN_WORDS = {
    "missing": "the field is missing",
    "string_too_short": "expected a text, found an empty one",
    "too_short": "expected at least one",
    "tuple_type": "expected a list",
}


@dataclass(frozen=True)
class Release:
    """A data file whose good segments are validated, and the folders of the videos.

    Attributes:
        file: the data file.
        digest: first 12 hex digits of the SHA-256 of the content, independent of formatting.
        segments: the good ones, in the file's order.
        problems: id of a bad segment -> what is wrong with it, in one line.
    """

    file: Path
    digest: str
    segments: tuple[Segment, ...]
    problems: Mapping[str, str]

    def questions(self) -> Iterator[tuple[Segment, Question]]:
        """Every question with its segment, in the file's order."""
        for segment in self.segments:
            for question in segment.questions:
                yield segment, question

    @property
    def counts(self) -> dict[str, int]:
        """Recap videos, questions and facts of good segments (PAPER_COUNTS); bad segments."""
        return {
            "videos": len({segment.video for segment in self.segments}),
            "segments": len(self.segments),
            "questions": sum(len(segment.questions) for segment in self.segments),
            "facts": sum(len(segment.facts) for segment in self.segments),
            "bad_segments": len(self.problems),
        }

    def recap_path(self, segment: Segment) -> Path:
        """Where the recap video of a segment is, or would be."""
        return released_files.video_path(
            [self.file.parent / "recaps", self.file.parent], segment.video
        )

    def movie_path(self, segment: Segment) -> Path | None:
        """Where the movie of a segment is, or would be; None if the segment names no movie."""
        if not segment.movie_id:
            return None
        return released_files.video_path([self.file.parent / "movies"], segment.movie_id)


def find_file(folder: Path) -> Path:
    """The data file in a folder of the layout above.

    Raises:
        DataError: there is none, or more than one and none has a known name.
    """
    return released_files.find_file(folder, FILE_NAMES)


def read(path: Path) -> Release:
    """Read and validate a data file, or the one of a folder; kept while the file does not change.

    Raises:
        DataError: no list of segments, two of one id, or none that can be used; names the place.
    """
    file = find_file(path) if path.is_dir() else path
    try:
        state = file.stat()
    except OSError as error:
        raise DataError(f"{file}: {error.strerror}") from None
    return _read(file, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=8)
def _read(file: Path, _modified: int, _size: int) -> Release:
    content = released_files.read_json(file)
    if not isinstance(content, list) or not all(isinstance(entry, dict) for entry in content):
        raise DataError(f"{file}: expected a list of segments")
    if not content:
        raise DataError(f"{file}: holds no segments")
    segments: list[Segment] = []
    problems: dict[str, str] = {}
    places: dict[str, int] = {}
    for number, entry in enumerate(content, 1):
        name = entry.get("id")
        if not isinstance(name, str) or not name.strip():
            raise DataError(f"{file}, segment {number}: no id")
        name = name.strip()
        if name in places:
            raise DataError(
                f"{file}, segment {number}: id {name!r} is also that of segment {places[name]}"
            )
        places[name] = number
        try:
            segments.append(Segment.model_validate(entry))
        except ValidationError as error:
            problems[name] = "; ".join(map(_told, error.errors()[:3]))
    if not segments:
        first = next(iter(problems))
        raise DataError(
            f"{file}: not one of {len(content)} segments fits the schema; {first}: "
            f"{problems[first]}"
        )
    canonical = json.dumps(content, sort_keys=True)
    digest = hashlib.sha256(canonical.encode("utf-8", "replace")).hexdigest()[:12]
    return Release(file, digest, tuple(segments), problems)


def _told(error: Mapping[str, Any]) -> str:
    """An error in a user's words: the field, what is wrong."""
    place = ", ".join(f"entry {p + 1}" if isinstance(p, int) else str(p) for p in error["loc"])
    told = _IN_WORDS.get(error["type"], str(error["msg"]).removeprefix("Value error, "))
    return f"{place}: {told}" if place else told
