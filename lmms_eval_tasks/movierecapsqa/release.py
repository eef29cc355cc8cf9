"""The schema of MovieRecapsQA's data: segments in the released form, with optional additions.

    ROOT/movierecapsqa/segments.json       the list of segments
    ROOT/movierecapsqa/recaps/VIDEOID.mp4  recap videos; beside segments.json as well
    ROOT/movierecapsqa/movies/MOVIEID.mp4  the user's own copies of the movies
    ROOT/movierecapsqa/labels.csv          the user's labels, if any: none are released

The full release has four tables in place of segments.json (release_tables.py), which are joined to
the same form. The project's site releases: id, movie, videoId, startTime, endTime (seconds in the
recap video), facts, srt (in movie time), and questions with the dataset's answer, a human's and the
models', with published scores. Its factsUsed is not read, since it counts from 0 in some segments
and from 1 in others. This schema adds optional fields: movieId, movieStartTime and movieEndTime
(seconds in the movie, for the `_scenes` and `_movie` tasks), and a question's modality, category
and alignedFacts.

A file that is no list of segments stops the run. Errors in single segments are collected, so that
the other segments can be run if the user allows it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa import release_tables
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.media import subtitles
from lmms_eval_tasks.utils.released_files import Release
from lmms_eval_tasks.utils.validation import FileName, Text, good_entries, without_folder

# The labels by which the paper splits its results (Tables 3, 5): slug, in our data and in metric
# names -> title.
UNLABELLED = "unlabelled"
SPLITS: dict[str, dict[str, str]] = {
    "modality": {
        "dialogue": "Dialogue-centric",
        "vision": "Vision-centric",
        "multimodal": "Multimodal",
        UNLABELLED: "Unlabelled",
    },
    "category": {
        "crd": "Character and Relationship Dynamics",
        "npa": "Narrative and Plot Analysis",
        "sta": "Setting and Technical Analysis",
        "temp": "Temporal Reasoning",
        "th": "Thematic Exploration",
        UNLABELLED: "Unlabelled",
    },
}
# Field -> written form -> slug. Written forms are slugs, titles, and words of the paper's tables.
_FORMS = {
    split: {form.lower(): slug for slug in own if slug != UNLABELLED for form in (slug, own[slug])}
    for split, own in SPLITS.items()
}
_FORMS["modality"] |= {"visual": "vision", "scene": "vision", "both": "multimodal"}
_EXPECTED = {"modality": "dialogue, vision or multimodal", "category": "NPA, CRD, TH, STA or TEMP"}

# At most three digits, since a year ("2001: A Space Odyssey") may begin a fact. A number without a
# text is an empty fact.
_NUMBERED = re.compile(r"\d{1,3}[.):](?:\s+|$)")


def without_numbers(facts: Any) -> Any:
    """Return facts without blanks around them, and without numbers ("1. ...") if all have one.

    A value that is no list of texts is returned unchanged, for the schema to check.
    """
    if not isinstance(facts, list) or not all(isinstance(fact, str) for fact in facts):
        return facts
    plain = [fact.strip() for fact in facts]
    if all(_NUMBERED.match(fact) for fact in plain):
        return [_NUMBERED.sub("", fact, count=1) for fact in plain]
    return plain


def _spoken(value: Any) -> Any:
    """Return the text of an srt, one cue a line; the release's cues have no counters."""
    if not isinstance(value, str):
        return "" if value is None else value
    try:
        cues = subtitles.parse(value.removeprefix("\ufeff"), "srt")
    except DataError as error:
        raise ValueError(str(error).removeprefix("srt, ")) from None
    return "\n".join(cue.text for cue in cues)


Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _ReleasedEntry(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class Scores(_ReleasedEntry):
    """Published scores of an answer, 0 to 5; None where the release has none."""

    factuality: int | None = Field(default=None, ge=0, le=5)
    relevance: int | None = Field(default=None, ge=0, le=5)


class Answer(_ReleasedEntry):
    """An answer to a question, possibly empty, with what the release says it is worth."""

    model: Annotated[str, BeforeValidator(lambda one: one or "")] = ""  # "" for a person's answer
    answer: Annotated[str, BeforeValidator(lambda one: one or "")] = ""
    scores: Annotated[Scores, BeforeValidator(lambda one: one or {})] = Scores()


class MovieQuestion(_ReleasedEntry):
    """One question; `aligned` are the facts that it was made from, None where nobody says."""

    qid: int | str
    question: Text
    reference: str = Field(default="", alias="datasetAnswer")
    human_answer: Answer | None = Field(default=None, alias="humanAnswer")
    model_answers: tuple[Answer, ...] = Field(default=(), alias="modelAnswers")
    modality: str = ""
    category: str = ""
    aligned: tuple[Text, ...] | None = Field(default=None, alias="alignedFacts")

    @field_validator("modality", "category", mode="before")
    @classmethod
    def _label(cls, value: Any, info: ValidationInfo) -> str:
        name = str(info.field_name)
        form = value.strip().lower() if isinstance(value, str) else value
        if form in (None, ""):
            return ""
        if not isinstance(form, str) or form not in _FORMS[name]:
            raise ValueError(f"expected {_EXPECTED[name]}")
        return _FORMS[name][form]


class Segment(_ReleasedEntry):
    """A stretch of a recap video, its atomic facts, its dialogue and its questions.

    `start` and `end` are seconds in the recap video, `movie_start` and `movie_end` in the movie.
    `dialogue` is what is said, a cue a line, without markup and without times: those of the srt are
    the movie's, and mean nothing beside a clip of the recap.
    """

    id: FileName
    movie: str = ""
    video: FileName = Field(alias="videoId")
    start: Seconds = Field(alias="startTime")
    end: Seconds = Field(alias="endTime")
    movie_id: Annotated[str, AfterValidator(without_folder)] = Field(default="", alias="movieId")
    movie_start: Seconds | None = Field(default=None, alias="movieStartTime")
    movie_end: Seconds | None = Field(default=None, alias="movieEndTime")
    facts: Annotated[tuple[Text, ...], BeforeValidator(without_numbers)] = Field(min_length=1)
    dialogue: Annotated[str, BeforeValidator(_spoken)] = Field(default="", alias="srt")
    questions: tuple[MovieQuestion, ...]

    @model_validator(mode="after")
    def _consistent(self) -> Segment:
        if (self.movie_start is None) != (self.movie_end is None):
            raise ValueError("movieStartTime and movieEndTime are given together or not at all")
        if self.movie_start is not None and not self.movie_id:
            raise ValueError("movieStartTime requires movieId, the movie's file in movies/")
        for first, last in (("start", "end"), ("movie_start", "movie_end")):
            start, end = getattr(self, first), getattr(self, last)
            if start is not None and start >= end:
                a, b = (type(self).model_fields[name].alias for name in (first, last))
                raise ValueError(f"{a} {start:g} is not before {b} {end:g}")
        numbers = [str(question.qid) for question in self.questions]  # as in the questions' ids
        if twice := [number for number in numbers if numbers.count(number) > 1]:
            raise ValueError(f"qid {twice[0]} occurs twice")
        return self

    def question_id(self, question: MovieQuestion) -> str:
        """Return the question's id in the whole release."""
        return f"{self.id}/{question.qid}"


# --- the file -----------------------------------------------------------------------------------

# Counts of the full set (paper, Tables 2 and 3).
PAPER_COUNTS = {"videos": 60, "questions": 8231, "facts": 16462}
FILE_NAME = "segments.json"


@dataclass(frozen=True, kw_only=True)
class MovieRelease(Release):
    """The validated segments of a release, and the folders of its videos."""

    segments: tuple[Segment, ...]  # the valid segments, in the file's order
    folder: Path  # folder of the videos and subtitles
    is_tables: bool  # True if read from the four tables, False for segments.json
    subtitles: Mapping[str, release_tables.Subtitle]  # subtitles of the tables, by recap video

    @property
    def n_records(self) -> int:
        """The number of valid segments."""
        return len(self.segments)

    @property
    def without_subtitles(self) -> dict[str, str]:
        """The file to download for each segment without known dialogue, by the segment's id."""
        lacking = {video: one for video, one in self.subtitles.items() if one.path is None}
        return {
            segment.id: f"missing: subtitles of {one.movie!r}, as {one.name}, from {one.url}"
            for segment in self.segments
            if (one := lacking.get(segment.video)) is not None
        }

    def questions(self) -> Iterator[tuple[Segment, MovieQuestion]]:
        """Return every question with its segment, in the file's order."""
        return ((segment, one) for segment in self.segments for one in segment.questions)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of recap videos, questions and facts of valid segments (PAPER_COUNTS).

        Also the numbers of valid and of invalid segments.
        """
        return {
            "videos": len({segment.video for segment in self.segments}),
            "segments": len(self.segments),
            "questions": sum(len(segment.questions) for segment in self.segments),
            "facts": sum(len(segment.facts) for segment in self.segments),
            "bad_segments": len(self.problems),
        }

    @property
    def segments_with_questions(self) -> list[Segment]:
        """The valid segments that have questions."""
        return [segment for segment in self.segments if segment.questions]

    def path(self, segment: Segment, kind: str) -> Path | None:
        """Return the path of a segment's video of kind `recaps` or `movies`; it may be missing.

        The path is None if the segment names no movie.
        """
        if kind == "recaps":
            return released_files.video_path([self.folder / "recaps", self.folder], segment.video)
        if not segment.movie_id:
            return None
        return released_files.video_path([self.folder / "movies"], segment.movie_id)


def read_recaps(path: Path) -> MovieRelease:
    """Read and validate a data file, or the file or tables of a folder.

    The result is cached while the files do not change.

    Raises:
        DataError: there is no list of segments, two segments have one id, or no segment is valid;
            the message names the place.
    """
    tables = release_tables.find_tables(path) if path.is_dir() else {}
    file = tables.get("segments") or released_files.find_file(path, [FILE_NAME], "the four tables")
    folder = path if tables else file.parent
    labels = next(release_tables.table_files(folder, "labels"), None)
    there = [file, *tables.values(), *([labels] if labels else [])]
    there += sorted((folder / "subtitles").glob("*.*")) if tables else []
    state = (tuple(there), released_files.state(*there))
    return _read(file, folder, tuple(tables.items()), labels, state)


@lru_cache(maxsize=8)
def _read(
    file: Path, folder: Path, files: tuple[tuple[str, Path], ...], labels: Path | None, _: object
) -> MovieRelease:
    tables, spoken = dict(files), dict[str, release_tables.Subtitle]()
    if tables:
        content, spoken = release_tables.read_tables(tables, folder)
    else:
        content = released_files.read_json(file)
    if not isinstance(content, list):
        raise DataError(f"{file}: expected a list of segments")
    if labels is not None:
        release_tables.add_labels(content, labels)
    text = json.dumps(content, sort_keys=True).encode("utf-8", "replace")
    segments, problems = good_entries(file, content, Segment)
    digest = hashlib.sha256(text).hexdigest()[:12]
    places = {f"{name}{path.suffix}": path for name, path in tables.items()} or {FILE_NAME: file}
    if labels is not None:
        places[labels.name] = labels
    there = (one.path for one in spoken.values() if one.path is not None)
    places |= {f"subtitles/{path.name}": path for path in there}
    return MovieRelease(
        place=file,
        data_files=places,
        digest=digest,
        problems=problems,
        segments=segments,
        folder=folder,
        is_tables=bool(tables),
        subtitles=spoken,
    )
