"""The recap that `lmms-eval-tasks facts` reads: segments with their narration and their dialogue.

    {"movie": "...", "videoId": "...", "segments": [{"startTime": 0, "endTime": 61.5,
     "transcript": "what the narrator says"}]}

as JSON or YAML. A segment may also have the movie's dialogue (`srt`, with the movie's own times) or
its window in movie time (`movieStartTime` and `movieEndTime`, with `movieId`), by which the
dialogue can be cut from the subtitles of the whole movie.

Or its transcript alone, divided into segments at the borders of cues (paper, 3.2); that has no
windows in the movie, since nobody has aligned the two (paper, 3.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa.schema import Segment
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.media import subtitles
from lmms_eval_tasks.utils.media.subtitles import Cue, clock
from lmms_eval_tasks.utils.validation import Text, told


class _Given(BaseModel):
    # A misspelt key would otherwise be a segment without dialogue.
    model_config = ConfigDict(extra="forbid", populate_by_name=True, coerce_numbers_to_str=True)


class Part(_Given):
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
    segments: tuple[Part, ...] = Field(min_length=1)


class Narrated(NamedTuple):
    """A segment that waits for its facts and questions.

    Attributes:
        id: VIDEOID.N, N from 1 in the recap's order.
        released: the fields of the released form that are known.
        narration: what the narrator says.
        dialogue: what the movie says, as models will see it; "" if nobody knows.
    """

    id: str
    released: Mapping[str, Any]
    narration: str
    dialogue: str


def read(file: Path) -> Recap:
    """A recap of a JSON or YAML file.

    Raises:
        DataError: it is none; names the file and the field.
    """
    is_yaml = file.suffix in (".yml", ".yaml")
    if is_yaml:
        content: Any = released_files.read_yaml(file, "one recap")
    else:
        content = released_files.read_json(file)
    try:
        return Recap.model_validate(content)
    except ValidationError as error:
        raise DataError(f"{file}: {told(error)}") from None


def narrated(recap: Recap, source: Path, subtitles_of_movie: Path | None = None) -> list[Narrated]:
    """The recap's segments, each checked as the released form wants it.

    Args:
        subtitles_of_movie: the whole movie's, cut to the window of each segment that has one and
            no `srt` of its own.

    Raises:
        DataError: a segment does not fit (names it and the field); subtitles that cannot be cut.
    """
    cues = None if subtitles_of_movie is None else subtitles.read(subtitles_of_movie)
    found, cut = [], 0
    for number, part in enumerate(recap.segments, 1):
        released = {
            "id": f"{recap.video}.{number}",
            "movie": recap.movie,
            "videoId": recap.video,
            **({"movieId": recap.movie_id} if recap.movie_id else {}),
            **part.model_dump(by_alias=True, exclude_none=True, exclude={"transcript"}),
        }
        start, end = part.movie_start, part.movie_end
        if cues and not part.srt and start is not None and end is not None and 0 <= start < end:
            released["srt"], cut = _srt(cues, start, end), cut + 1
        try:
            checked = Segment.model_validate({**released, "facts": ["-"], "questions": []})
        except ValidationError as error:
            raise DataError(f"{source}, segment {number}: {told(error)}") from None
        found.append(Narrated(checked.id, released, part.transcript, checked.dialogue))
    if subtitles_of_movie is not None and not cut:
        raise DataError(
            f"{subtitles_of_movie}: the dialogue cannot be cut, since no segment without srt has "
            "a window in the movie: give movieStartTime and movieEndTime in the recap's file "
            "(--draft writes one from a transcript); a recap is not aligned with its movie here"
        )
    return found


def _srt(cues: Sequence[Cue], start: float, end: float) -> str:
    """The cues of a window as SubRip, with the movie's times as in the released files."""
    inside = (cue for cue in cues if subtitles.cut([cue], start, end))
    return "\n".join(
        f"{number}\n{clock(cue.start)} --> {clock(cue.end)}\n{cue.text}\n"
        for number, cue in enumerate(inside, 1)
    )


# --- transcripts --------------------------------------------------------------------------------

SECONDS = 73.0  # length of a recap's segment on average (paper, Table 2)
ENDINGS = (".srt", ".vtt")


def read_transcript(file: Path, video: str, movie: str = "") -> Recap:
    """A transcript of a recap, divided at the borders of cues into segments of like length.

    Args:
        file: srt or vtt, with times in the recap video.

    Raises:
        DataError: not a transcript, or one without a word.
    """
    cues = list(_unrolled(subtitles.read(file)))
    if not cues:
        raise DataError(f"{file}: nothing is said in this transcript")
    first, last = cues[0].start, max(cue.end for cue in cues)
    # Parts of like length: a rest of two seconds at the end would carry no question.
    number = max(1, round((last - first) / SECONDS))
    groups: dict[int, list[Cue]] = {}
    for cue in cues:
        share = ((cue.start + cue.end) / 2 - first) / ((last - first) or 1)
        groups.setdefault(min(int(share * number), number - 1), []).append(cue)
    parts = [
        {
            "startTime": group[0].start,
            "endTime": max(cue.end for cue in group),
            "transcript": " ".join(cue.text for cue in group),
        }
        for _, group in sorted(groups.items())
    ]
    return Recap.model_validate({"videoId": video, "movie": movie, "segments": parts})


def _unrolled(cues: Sequence[Cue]) -> Iterator[Cue]:
    """Cues without the words that repeat the end of the cue before.

    Automatic captions roll: every line is shown again while the next one is spoken.
    """
    before = Cue(0.0, 0.0, "")
    for cue in cues:
        old, new = before.text.split(), cue.text.split()
        longest = min(len(old), len(new))
        shared = next((n for n in range(longest, 0, -1) if old[-n:] == new[:n]), 0)
        # All of one cue again at once; else two words are no proof: "No. No." may be said twice.
        again = shared == longest and cue.start <= before.end + 0.1
        if rest := " ".join(new[shared:]) if again or shared > 2 else cue.text:
            yield replace(cue, text=rest)
        before = cue
