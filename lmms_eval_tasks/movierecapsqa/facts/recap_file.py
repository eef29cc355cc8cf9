"""The recap file of `lmms-eval-tasks facts`: segments with their narration and their dialogue.

    {"movie": "...", "videoId": "...", "segments": [{"startTime": 0, "endTime": 61.5,
     "transcript": "what the narrator says"}]}

A segment may also have the movie's dialogue, as `srt` with the movie's times. Or it has its window
in movie time (`movieStartTime` and `movieEndTime`, with `movieId`), and the dialogue is cut from
the subtitles of the whole movie. This package does not align recap and movie (paper, 3.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa import release_tables
from lmms_eval_tasks.movierecapsqa.release import Segment
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.media import subtitles
from lmms_eval_tasks.utils.validation import Text, validation_problems


class _Given(BaseModel):
    # An unknown key is an error: a misspelt `srt` would be a segment without dialogue.
    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)


class RecapPart(_Given):
    """A segment as the user gives it; times in seconds, the movie's ones in the movie."""

    start: float = Field(alias="startTime")
    end: float = Field(alias="endTime")
    transcript: Text
    srt: str = ""
    movie_id: str | None = Field(default=None, alias="movieId")
    movie_start: float | None = Field(default=None, alias="movieStartTime")
    movie_end: float | None = Field(default=None, alias="movieEndTime")


class Recap(_Given):
    """One recap video; `movieId` is that of segments that name none."""

    video: Text = Field(alias="videoId")
    movie: str = ""
    movie_id: str | None = Field(default=None, alias="movieId")
    segments: tuple[RecapPart, ...] = Field(min_length=1)


class Narrated(NamedTuple):
    """A segment with its narration and dialogue, before its facts and questions are written."""

    id: str  # VIDEOID.N, N from 1 in the recap's order
    released: Mapping[str, Any]  # the fields of the released form that are already known
    narration: str
    dialogue: str  # the movie's dialogue in the form that models see; "" if it is unknown


def read_recap(file: Path, subtitles_of_movie: Path | None = None) -> list[Narrated]:
    """Return the segments of a recap file, checked against the released form.

    Args:
        file: the recap file.
        subtitles_of_movie: subtitles of the whole movie. They are cut to each segment that has a
            window and no `srt`.

    Raises:
        DataError: the file or a segment is malformed; the message names the place.
    """
    try:
        recap = Recap.model_validate(released_files.read_json(file))
    except ValidationError as error:
        raise DataError(f"{file}: {validation_problems(error)}") from None
    cues = [] if subtitles_of_movie is None else subtitles.read_cues(subtitles_of_movie)
    found = []
    for number, part in enumerate(recap.segments, 1):
        released = {
            "id": f"{recap.video}.{number}",
            "movie": recap.movie,
            "videoId": recap.video,
            **({"movieId": recap.movie_id} if recap.movie_id else {}),
            **part.model_dump(by_alias=True, exclude_none=True, exclude={"transcript"}),
        }
        if cues and not part.srt:
            released["srt"] = release_tables.dialogue(cues, part.movie_start, part.movie_end)
        try:
            checked = Segment.model_validate({**released, "facts": ["-"], "questions": []})
        except ValidationError as error:
            raise DataError(f"{file}, segment {number}: {validation_problems(error)}") from None
        found.append(Narrated(checked.id, released, part.transcript, checked.dialogue))
    if cues and all(part.movie_start is None for part in recap.segments):
        raise DataError(
            f"{file}: {subtitles_of_movie} cannot be cut, because no segment "
            "has times in the movie: add movieId, movieStartTime and "
            "movieEndTime to the segments"
        )
    return found
