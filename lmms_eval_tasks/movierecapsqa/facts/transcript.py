"""A recap from its transcript alone, divided into segments at the borders of cues (paper, 3.2).

It has no windows in the movie, since nobody has aligned the two (paper, 3.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa.facts.recap_file import Recap
from lmms_eval_tasks.movierecapsqa.schema import told
from lmms_eval_tasks.utils import subtitles
from lmms_eval_tasks.utils.subtitles import Cue

SECONDS = 73.0  # length of a recap's segment on average (paper, Table 2)
ENDINGS = (".srt", ".vtt")
_MIN_ROLLED = 3  # words; "No. No." may be said twice


def read(file: Path, video: str, movie: str = "", seconds: float = SECONDS) -> Recap:
    """A transcript of a recap, divided at the borders of cues into segments of like length.

    Args:
        file: srt or vtt, with times in the recap video.
        video: the recap video's id.
        movie: the movie's title.
        seconds: about how long a segment is to be.

    Raises:
        DataError: not a transcript, or one without a word.
        ValueError: no such length.
    """
    if not 0 < seconds < math.inf:
        raise ValueError(f"segments of {seconds} s")
    cues = _unrolled(subtitles.read(file))
    if not cues:
        raise DataError(f"{file}: nothing is said in this transcript")
    first, last = cues[0].start, max(cue.end for cue in cues)
    # Parts of like length: a rest of two seconds at the end would carry no question.
    number = max(1, round((last - first) / seconds))
    groups: list[list[Cue]] = [[] for _ in range(number)]
    for cue in cues:
        share = ((cue.start + cue.end) / 2 - first) / (last - first) if last > first else 0.0
        groups[min(int(share * number), number - 1)].append(cue)
    parts = [
        {
            "startTime": group[0].start,
            "endTime": max(cue.end for cue in group),
            "transcript": " ".join(cue.text for cue in group),
        }
        for group in groups
        if group
    ]
    try:
        return Recap.model_validate({"videoId": video, "movie": movie, "segments": parts})
    except ValidationError as error:
        raise DataError(f"{file}: {told(error)}") from None


def _unrolled(cues: Sequence[Cue]) -> list[Cue]:
    """Cues without the words that repeat the end of the cue before.

    Automatic captions roll: every line is shown again while the next one is spoken.
    """
    kept: list[Cue] = []
    before = Cue(0.0, 0.0, "")
    for cue in cues:
        old, new = before.text.split(), cue.text.split()
        longest = min(len(old), len(new))
        shared = next((n for n in range(longest, 0, -1) if old[-n:] == new[:n]), 0)
        # All of one cue again at once; in the middle of others a few words are no proof.
        again = shared in (len(old), len(new)) and cue.start <= before.end + 0.1
        rest = " ".join(new[shared:]) if again or shared >= _MIN_ROLLED else cue.text
        if rest:
            kept.append(replace(cue, text=rest))
        before = cue
    return kept
