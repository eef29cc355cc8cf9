"""Subtitles: read from srt, vtt or json, cut to a segment, written for a prompt (paper, Baselines).

    >>> cues = read(find(folder, "video5"))
    >>> render(cut(cues, 60, 90))
    '[00:03.2 - 00:05.0] So this is where it starts.'

The json forms are Whisper's, `{"segments": [{"start": 63.2, "end": 65.0, "text": "..."}]}`, and the
plain list of such objects; times in seconds, other keys are not looked at.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils.media import subtitle_formats

KINDS = ("srt", "vtt", "json")
MIN_SHARE = 0.5

# Known names only: "<laughs>" is what somebody transcribed, not markup.
_TAG = re.compile(
    r"</?(?:b|c|em|font|i|lang|rt|ruby|s|span|strong|u|v)(?:[\s.][^<>]*)?>|<[0-9:.]+>",
    re.IGNORECASE,
)
_BREAK = re.compile(r"<br\s*/?>|\\[Nh]", re.IGNORECASE)
_OVERRIDE = re.compile(r"\{\\[^{}]*\}")  # {\an8}
_ENTITY = re.compile(r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[a-zA-Z][a-zA-Z0-9]*);")
# Control characters, zero width spaces, byte order and direction marks; not the joiners, which
# Persian and emoji need.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]"
)


@dataclass(frozen=True)
class Cue:
    """A text and when it is said: 0 <= start <= end, in seconds from the beginning.

    A cue without length is a moment: released files have some, with real text (MovieRecapsQA).

    Raises:
        ValueError: times that are negative, reversed, infinite or not a number.
    """

    start: float
    end: float
    text: str

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end < math.inf:
            raise ValueError(f"no cue can be shown from {self.start} s to {self.end} s")


def find(folder: Path, video: str) -> Path | None:
    """The subtitle file of a video: VIDEO.srt, else VIDEO.vtt, else VIDEO.json; None without any.

    None means that nobody knows what is said; a file without cues means that nobody speaks.

    Args:
        folder: where the files are; a folder that is not there has none.
        video: the video's id, which may name a subfolder (`cooking/5` has `cooking/5.srt`).

    Raises:
        DataError: the id is empty or leads out of the folder.
    """
    place = PurePosixPath(video)
    if not place.name or place.is_absolute() or ".." in place.parts:
        raise DataError(f"video id {video!r}: cannot name a subtitle file inside {folder}")
    # Not with_suffix(), which would make `talk.srt` of the id `talk.part1`.
    files = (folder / f"{video}.{kind}" for kind in KINDS)
    return next((file for file in files if file.is_file()), None)


def read(path: Path) -> list[Cue]:
    """Cues of a UTF-8 file (.srt, .vtt or .json, with or without byte order mark); see `parse`.

    Raises:
        DataError: not there, not readable, not UTF-8, another ending, or as `parse`.
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise DataError(f"{path}: subtitles are .srt, .vtt or .json files")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error
    advice = "save it as UTF-8, for example: iconv -f CP1252 -t UTF-8"
    if b"\0" in content:
        raise DataError(
            f"{path}: is UTF-16 or no text at all; {advice.replace('CP1252', 'UTF-16')}"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {line}: is not UTF-8; {advice}") from error
    return parse(text, kind, str(path))


def parse(text: str, kind: str, source: str = "subtitles") -> list[Cue]:
    """Cues by start and end; at the same time, in the file's order. Overlapping cues stay as are.

    Tags, overrides and entities are resolved, a cue's lines joined with one space, cues without
    text dropped. srt files need no counters and no blank lines. WebVTT is read as its standard
    says: a blank line ends a cue, and blocks without a timing are not shown.

    Args:
        text: a whole file.
        kind: `srt`, `vtt` or `json`.
        source: for messages: a file or an item.

    Raises:
        DataError: not of this kind, or a cue whose times are malformed, negative or reversed; names
            source and line or segment. No cue is guessed, because a wrong time moves speech into
            or out of a segment.
    """
    cues = []
    for place, start, end, raw in subtitle_formats.READERS[kind](text, source):
        if not 0 <= start <= end < math.inf:
            raise DataError(
                f"{source}, {place}: shown from {start:g} s to {end:g} s; "
                "expected 0 <= start <= end"
            )
        if words := _plain(raw):
            cues.append(Cue(start, end, words))
    return sorted(cues, key=lambda cue: (cue.start, cue.end))


def cut(cues: Sequence[Cue], start: float, end: float) -> list[Cue]:
    """The cues of the window [start, end), clipped to it, in seconds from its beginning.

    A text cannot be split by time. A cue that straddles a boundary is kept whole if at least
    `MIN_SHARE` of its length lies in the window, and left out otherwise. Keeping whatever touches
    the window would hand over the neighbourhood of the answer, up to a 30 s cue of Whisper's for
    0.1 s of overlap, which the sound and the picture of the same segment do not show; keeping only
    what lies wholly inside would hide speech that they do show. With one half, the larger part of
    every text that is handed over is said inside the segment, and of two segments that meet, one
    has the cue (both, if it is cut in half exactly).

    So a window inside a cue of more than twice its length has no subtitles.

    Args:
        cues: of the whole video, in any order; the result keeps it.
        start: of the window, in seconds, 0 or more.
        end: of the window, in seconds, after start.

    Raises:
        ValueError: a window that is negative, reversed, empty or infinite.
    """
    if not 0 <= start < end < math.inf:
        raise ValueError(f"cannot cut subtitles to [{start}, {end})")
    return [
        Cue(
            round(max(cue.start, start) - start, 3),
            round(min(cue.end, end) - start, 3),
            cue.text,
        )
        for cue in cues
        if _belongs(cue, start, end)
    ]


def render(cues: Sequence[Cue]) -> str:
    """One line per cue for a prompt, `[00:12.3 - 00:15.0] text`; an empty string for no cues.

    Minutes, seconds and tenths; with hours in every line where a cue ends after 59:59.9.
    """
    hours = any(_tenths(cue.end) >= 36_000 for cue in cues)
    return "\n".join(
        f"[{_clock(cue.start, hours)} - {_clock(cue.end, hours)}] {cue.text}" for cue in cues
    )


def _belongs(cue: Cue, start: float, end: float) -> bool:
    if cue.start == cue.end:
        return start <= cue.start < end
    inside = min(cue.end, end) - max(cue.start, start)
    # A microsecond of tolerance: times are decimal fractions, and one half should be one half.
    return inside > 0 and inside >= MIN_SHARE * (cue.end - cue.start) - 1e-6


def _tenths(seconds: float) -> int:
    return round(seconds * 10)


def _clock(seconds: float, hours: bool) -> str:
    minutes, tenths = divmod(_tenths(seconds), 600)
    clock = f"{tenths // 10:02}.{tenths % 10}"
    return f"{minutes // 60}:{minutes % 60:02}:{clock}" if hours else f"{minutes:02}:{clock}"


def _plain(raw: str) -> str:
    """Text on one line without markup; entities last, so that `&lt;i&gt;` stays as was meant."""
    text = _TAG.sub("", _OVERRIDE.sub("", _BREAK.sub(" ", raw)))
    text = _ENTITY.sub(lambda entity: html.unescape(entity.group()), text)
    # Halves of a surrogate pair (json has them as \ud83d) cannot be sent to any model.
    text = _INVISIBLE.sub("", text).encode("utf-8", "replace").decode("utf-8")
    return " ".join(text.split())
