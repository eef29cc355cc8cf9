"""Subtitles: read from srt files, cut to a segment, and written for a prompt (paper, Baselines).

    >>> cues = read(find(folder, "video5"))
    >>> render(cut(cues, 60, 90))
    '[00:03.2 - 00:05.0] So this is where it starts.'

The parser is ours, because no wrong time or text may pass unnoticed. pysubs2 1.8.1 loses a last
line that is a number ("They are / 7") and appends a cue with broken timing to the cue before it;
srt needs counters, which MovieRecapsQA's files lack.
"""

from __future__ import annotations

import codecs
import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils.json_files import read_bytes
from lmms_eval_tasks.utils.released_files import find_named_file
from lmms_eval_tasks.utils.validation import quoted

MIN_SHARE = 0.5
FORM = "00:00:01,000 --> 00:00:02,500"
_MOST_ACCENTS = 0.25  # share of a western European text's letters; a single word may have half

# Only known names: "<laughs>" is part of a transcript, not markup.
_TAG = re.compile(
    r"</?(?:b|c|em|font|i|s|span|strong|u|v)(?:[\s.][^<>]*)?>|<[0-9:.]+>", re.IGNORECASE
)
_BREAK = re.compile(r"<br\s*/?>|\\[Nh]", re.IGNORECASE)
_OVERRIDE = re.compile(r"\{\\[^{}]*\}")  # {\an8}
_ENTITY = re.compile(r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[a-zA-Z][a-zA-Z0-9]*);")
# Control characters, zero width spaces, byte order and direction marks; not the joiners, which
# Persian and emoji need.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]"
)
_TIME = r"(?:([0-9]{1,4}):)?([0-5]?[0-9]):([0-5]?[0-9](?:[.,][0-9]{1,9})?)"
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?")  # coordinates may follow
_COUNTER = re.compile(r"\s*[0-9]+\s*")
# A timing without its arrow, whole or cut off: nobody says such a text, and it would end the cue
# before.
_NO_ARROW = re.compile(r"\s*[0-9]{1,2}:[0-5][0-9]:[0-5][0-9][.,:][0-9]")


@dataclass(frozen=True)
class Cue:
    """A text and its times in seconds from the video's beginning: 0 <= start <= end.

    A cue of length 0 is a moment: released files have some, with real text (MovieRecapsQA).

    Raises:
        ValueError: times that are negative, reversed, infinite or not a number.
    """

    start: float
    end: float
    text: str

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end < math.inf:
            raise ValueError(
                f"shown from {self.start:g} s to {self.end:g} s; expected 0 <= start <= end"
            )


def find_subtitles(folder: Path, video: str) -> Path | None:
    """Return the subtitle file of a video: VIDEO.srt, in any case; None without one.

    None means that the speech is not known; a file without cues means that nobody speaks.

    Args:
        folder: the folder of the files; it need not exist.
        video: the video's id, which may name a subfolder (`cooking/5` has `cooking/5.srt`).

    Raises:
        DataError: the id is empty or leads out of the folder.
    """
    place = PurePosixPath(video)
    if not place.name or place.is_absolute() or ".." in place.parts:
        raise DataError(f"video id {video!r}: cannot name a subtitle file inside {folder}")
    # with_suffix() would make `talk.srt` from the id `talk.part1`
    return find_named_file(folder, f"{video}.srt")


def read_cues(path: Path) -> list[Cue]:
    """Return the cues of a file in UTF-8, UTF-16 or the Windows code page of western Europe.

    Raises:
        DataError: the file is missing, unreadable, in another encoding, or see `parse`.
    """
    content = read_bytes(path)
    try:
        text = _decoded(content)
    except UnicodeDecodeError:
        said = "neither UTF-8 nor UTF-16 nor Windows-1252: save it as UTF-8"
        raise DataError(f"{path}: {said}") from None
    return parse(text, str(path))


def _decoded(content: bytes) -> str:
    """Return the text in the encoding that is certain.

    Raises:
        UnicodeDecodeError: no encoding is certain.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16")
    # Counters, times and line ends are ASCII in any language: in UTF-16 every other byte is 0.
    for place, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        if content[place:80:2] and not content[place:8:2].strip(b"\0"):
            return content.decode(name)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = content.decode("cp1252")
        letters = [one for one in text if one.isalpha()]
        # Greek or Russian in its own code page would have accents on all letters.
        if sum(one > "\x7f" for one in letters) > _MOST_ACCENTS * len(letters):
            raise error from None
        return text


def parse(text: str, source: str = "subtitles") -> list[Cue]:
    """Return the cues of a text by start, then end, then the file's order; cues may overlap.

    Cues are found by their timings alone: counters and blank lines are not needed. Tags, overrides
    and entities are resolved, a cue's lines joined with one space, cues without text dropped.

    Args:
        text: a whole file.
        source: the file or item, for messages.

    Raises:
        DataError: no srt, or a cue whose times are malformed, negative or reversed; names source
            and line. No cue is guessed, because a wrong time moves speech into or out of a segment.
    """
    # Lines as an editor counts them; str.splitlines() would also break at U+2028 and others. Joined
    # files have byte order marks inside.
    lines = re.split(r"\r\n|\r|\n", text.replace("\ufeff", ""))
    timings = [i for i, line in enumerate(lines) if "-->" in line]
    head = [i for i in range(timings[0] if timings else len(lines)) if lines[i].strip()]
    # A file that counts its first cue counts all of them.
    counted = bool(timings) and len(head) == 1 and bool(_COUNTER.fullmatch(lines[head[0]]))
    if head and not counted:
        raise DataError(
            f"{source}, line {head[0] + 1}: expected a cue's number or timing, found "
            f"{quoted(lines[head[0]])}; is this an .srt file?"
        )
    cues = []
    for i, following in zip(timings, [*timings[1:], None], strict=False):
        body = lines[i + 1 : following]
        for number, line in enumerate(body, i + 2):
            if _NO_ARROW.match(line):
                found = f"found {quoted(line)}"
                raise DataError(f"{source}, line {number}: expected a timing like {FORM}, {found}")
        while body and not body[-1].strip():
            body.pop()
        # The number of the next cue stands before the next timing, or alone at the end of a file
        # that was cut. In a file without counters a last line such as "7" is speech, unless a blank
        # line precedes it.
        apart = len(body) > 1 and not body[-2].strip()
        is_number = bool(body) and bool(_COUNTER.fullmatch(body[-1]))
        if following is None:  # the next number and nothing else: the file was cut
            counted = i > 0 and bool(_COUNTER.fullmatch(lines[i - 1]))
            apart = apart and counted and is_number and int(body[-1]) == int(lines[i - 1]) + 1
        if is_number and (apart or (counted and following is not None)):
            body.pop()
        try:
            if not (match := _TIMING.fullmatch(lines[i])):
                raise ValueError(f"expected a timing like {FORM}, found {quoted(lines[i])}")
            start, end = (
                round(int(h or 0) * 3600 + int(m) * 60 + float(s.replace(",", ".")), 3)
                for h, m, s in (match.groups()[:3], match.groups()[3:])
            )
            cue = Cue(start, end, _plain("\n".join(body)))
        except ValueError as error:
            raise DataError(f"{source}, line {i + 1}: {error}") from error
        cues += [cue] if cue.text else []
    return sorted(cues, key=lambda cue: (cue.start, cue.end))


def cut(cues: Sequence[Cue], start: float, end: float) -> list[Cue]:
    """Return the cues of the window [start, end), clipped to it, in seconds from its beginning.

    A text cannot be split by time. A cue that crosses a boundary is kept whole if at least
    `MIN_SHARE` of its length lies in the window, else left out. So the larger part of every kept
    text is said inside the segment, and of two adjacent segments one has the cue (both, if it is
    cut in half exactly). To keep every cue that touches the window would give away the
    neighbourhood of the answer, up to a 30 s cue for 0.1 s of overlap; to keep only cues wholly
    inside would hide speech that the segment's sound has.

    Args:
        cues: those of the whole video, in any order, which the result keeps.
        start: start of the window, in seconds, 0 or more.
        end: end of the window, in seconds, after start.

    Raises:
        ValueError: a window that is negative, reversed, empty or infinite.
    """
    if not 0 <= start < end < math.inf:
        raise ValueError(f"cannot cut subtitles to [{start}, {end})")

    def belongs(cue: Cue) -> bool:
        if cue.start == cue.end:
            return start <= cue.start < end
        inside = min(cue.end, end) - max(cue.start, start)
        # A microsecond of tolerance: times are decimal fractions, and exactly half must count as
        # half.
        return inside > 0 and inside >= MIN_SHARE * (cue.end - cue.start) - 1e-6

    return [
        Cue(round(max(cue.start, start) - start, 3), round(min(cue.end, end) - start, 3), cue.text)
        for cue in cues
        if belongs(cue)
    ]


def render(cues: Sequence[Cue]) -> str:
    """Return a line per cue for a prompt, `[00:12.3 - 00:15.0] text`; "" without cues.

    Times are minutes, seconds and tenths; all lines have hours if a cue ends after 59:59.9.
    """
    hours = any(round(cue.end * 10) >= 36_000 for cue in cues)

    def time_text(seconds: float) -> str:
        minutes, tenths = divmod(round(seconds * 10), 600)
        rest = f"{tenths // 10:02}.{tenths % 10}"
        return f"{minutes // 60}:{minutes % 60:02}:{rest}" if hours else f"{minutes:02}:{rest}"

    return "\n".join(f"[{time_text(cue.start)} - {time_text(cue.end)}] {cue.text}" for cue in cues)


def clock(seconds: float) -> str:
    """Return a time in SubRip's form, 00:00:01,000."""
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02},{milliseconds:03}"


def _plain(raw: str) -> str:
    """Return a text on one line without markup; entities last, so that `&lt;i&gt;` stays text."""
    text = _TAG.sub("", _OVERRIDE.sub("", _BREAK.sub(" ", raw)))
    text = _ENTITY.sub(lambda entity: html.unescape(entity.group()), text)
    # Halves of a surrogate pair (JSON has them as \ud83d) cannot be sent to any model.
    text = _INVISIBLE.sub("", text).encode("utf-8", "replace").decode("utf-8")
    return " ".join(text.split())
