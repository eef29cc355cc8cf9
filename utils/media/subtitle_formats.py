"""The three kinds of subtitle files, as cues with their place, times and text as written.

The parsers are ours, because no wrong time or text may pass unseen. pysubs2 1.8.1 reads files
without counters (MovieRecapsQA's; srt and webvtt-py do not) with the same result, but loses a last
line that is a number ("They are / 7"), takes WebVTT's comments and names of cues for speech and its
inline times for timings, appends a cue whose timing is broken to the cue before it, and has no line
numbers for a message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from lmms_eval_tasks.errors import DataError

_TIME = r"(?:([0-9]{1,4}):)?([0-5]?[0-9]):([0-5]?[0-9](?:[.,][0-9]{1,9})?)"
# After the times: WebVTT's settings, or coordinates in srt.
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?")
_COUNTER = re.compile(r"\s*[0-9]+\s*")


class Found(NamedTuple):
    """A cue as a file has it: "line 12", start and end in seconds (unchecked), text with markup."""

    place: str
    start: float
    end: float
    text: str


def srt(text: str, source: str) -> Iterator[Found]:
    """Cues of SubRip, found by their timings alone: no counters and no blank lines are needed.

    Raises:
        DataError: something else than a counter stands before the first cue, or a malformed timing.
    """
    lines = _lines(text)
    timings = [i for i, line in enumerate(lines) if "-->" in line]
    before = lines[: timings[0]] if timings else lines
    head = [i for i, line in enumerate(before) if line.strip()]
    # A file that counts its first cue counts them all.
    counted = bool(timings) and len(head) == 1 and bool(_COUNTER.fullmatch(lines[head[0]]))
    if head and not counted:
        raise DataError(
            f"{source}, line {head[0] + 1}: expected a cue's number or timing, found "
            f"{_quoted(lines[head[0]])}; is this an .srt file?"
        )
    for i, following in zip(timings, [*timings[1:], len(lines)], strict=False):
        start, end = _times(lines[i], source, i + 1)
        body = lines[i + 1 : following]
        if following < len(lines):
            body = _without_counter(body, counted)
        yield Found(f"line {i + 1}", start, end, "\n".join(body))


def _without_counter(body: list[str], counted: bool) -> list[str]:
    """A cue's lines without the number of the next cue, which stands before the next timing.

    In a file without counters a last line such as "7" is speech, unless a blank line sets it apart.
    """
    n = len(body)
    while n and not body[n - 1].strip():
        n -= 1
    if n and _COUNTER.fullmatch(body[n - 1]):
        apart = n > 1 and not body[n - 2].strip()
        n -= counted or apart
    return body[:n]


def vtt(text: str, source: str) -> Iterator[Found]:
    """Cues of WebVTT. Header, comments, styles, regions and names of cues are passed over.

    As in the standard a blank line ends a cue, and what follows it without a timing is not shown.

    Raises:
        DataError: the first line is not WEBVTT, or a timing is malformed.
    """
    lines = _lines(text)
    if not re.match(r"WEBVTT(?:\s|$)", lines[0]):
        raise DataError(
            f"{source}, line 1: expected WEBVTT, found {_quoted(lines[0])}; is this a .vtt file?"
        )
    cues: list[tuple[int, float, float, list[str]]] = []
    inside = False
    for number, line in enumerate(lines[1:], 2):
        if "-->" in line:
            cues.append((number, *_times(line, source, number), []))
            inside = True
        elif not line:  # a line of spaces belongs to the cue: automatic captions have them
            inside = False
        elif inside:
            cues[-1][3].append(line)
    for number, start, end, body in cues:
        yield Found(f"line {number}", start, end, "\n".join(body))


def whisper_json(text: str, source: str) -> Iterator[Found]:
    """Segments of Whisper's `{"segments": [{"start", "end", "text"}]}` or of such a list alone.

    Raises:
        DataError: neither form, or a segment without its three values.
    """
    try:
        # Whole numbers as floats too: of any length, they are a number or infinite.
        data: Any = json.loads(text, parse_int=float)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{source}: is not JSON ({error})") from error
    segments = data.get("segments") if isinstance(data, dict) else data
    if not isinstance(segments, list):
        raise DataError(f'{source}: expected {{"segments": [...]}} or a list of segments')
    for number, segment in enumerate(segments, 1):
        place = f"segment {number}"
        if not isinstance(segment, dict):
            raise DataError(f"{source}, {place}: expected an object, found {_quoted(segment)}")
        for key, kind, wanted in (
            ("start", float, "a number of seconds"),
            ("end", float, "a number of seconds"),
            ("text", str, "a text"),
        ):
            if not isinstance(segment.get(key), kind):
                found = _quoted(segment[key]) if key in segment else "missing"
                raise DataError(f"{source}, {place}: {key} is {found}; expected {wanted}")
        yield Found(place, segment["start"], segment["end"], segment["text"])


READERS: dict[str, Callable[[str, str], Iterator[Found]]] = {
    "srt": srt,
    "vtt": vtt,
    "json": whisper_json,
}


def clock(seconds: float, mark: str = ",") -> str:
    """A time as SubRip writes it; WebVTT's mark is a full stop."""
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}{mark}{milliseconds:03}"


def _lines(text: str) -> list[str]:
    """Lines as an editor counts them; str.splitlines() would also break at U+2028 and others."""
    return re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff"))


def _times(line: str, source: str, number: int) -> tuple[float, float]:
    """Start and end of a timing line, in seconds."""
    if not (match := _TIMING.fullmatch(line)):
        raise DataError(
            f"{source}, line {number}: expected a timing like 00:00:01,000 --> 00:00:02,500, "
            f"found {_quoted(line)}"
        )
    h1, m1, s1, h2, m2, s2 = match.groups()
    return _seconds(h1, m1, s1), _seconds(h2, m2, s2)


def _seconds(hours: str | None, minutes: str, seconds: str) -> float:
    whole = int(hours or 0) * 3600 + int(minutes) * 60
    return round(whole + float(seconds.replace(",", ".")), 3)


def _quoted(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
