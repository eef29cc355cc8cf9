"""Objects in a model's text: JSON, Python dicts, and forms between the two. Pure.

Nothing is evaluated, and nothing is guessed: an ambiguous text is no object.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from lmms_eval_tasks.judges.verdict import Status
from lmms_eval_tasks.utils.json_files import Json, JsonObject

_MAX_OBJECTS = 1000  # pairs of braces in one reply (LaTeX has many); limits the work
_MAX_DEPTH = 100  # of a Python value; no verdict is that deep
_MAX_NUMBER = 10**15  # every whole number below is exact as a float

# A token of a printed Python dict. Strings may have raw line breaks.
_TOKEN = re.compile(
    r"""\s*(?:(?P<string>'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")"""
    r"|(?P<word>(?:True|False|None|true|false|null"
    r"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    r"(?![\w.]))"
    r"|(?P<mark>[][{},:]))",
    re.DOTALL,
)
_WORDS = {"True": "true", "False": "false", "None": "null"}
_BRACES = re.compile(r'\\.|["{}]', re.DOTALL)
_CLOSING = re.compile(r"\s*(?:,\s*)?\}")
# Characters that can surround or split the same words in two texts: space, quotes, escapes,
# emphasis, and characters without a width.
_UNSEEN = re.compile(
    r"[\s'\"`\u2018-\u201f\u00ab\u00bb\\*_"
    r"\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]+"
)


class UnreadableError(Exception):
    """The reason why a reply is not one verdict; `status` is parse_failure or truncated."""

    def __init__(self, reason: str, status: Status = Status.PARSE_FAILURE) -> None:
        super().__init__(reason)
        self.status = status


class ObjectSpan(NamedTuple):
    """An outermost pair of braces: text[start:end] and its value, None for braces in prose."""

    start: int
    end: int
    value: JsonObject | None


def objects(text: str, keys: Collection[str]) -> Iterator[ObjectSpan]:
    """Yield the outermost `{...}` of a text, in order; a broken one is not searched for inner ones.

    It is tried as JSON; as a printed Python dict; as either in doubled braces; and, if a key of the
    schema stands inside, by the keys' places (`_by_keys`), for strings with unescaped quotes.
    Braces without such a key are prose.

    Raises:
        UnreadableError: an object with keys of the schema is cut off or ambiguous.
    """
    mention, _ = _key_patterns(frozenset(keys))
    start, count = text.find("{"), 0
    while start >= 0:
        count += 1
        if count > _MAX_OBJECTS:
            raise UnreadableError(f"more than {_MAX_OBJECTS} pairs of braces")
        doubled = text.startswith("{{", start)  # a template's escape that the judge repeated
        whole = literal(text, start + doubled)
        if whole and (not doubled or text.startswith("}", whole[1])):
            found = ObjectSpan(start, whole[1] + doubled, whole[0])
        else:
            end = _balanced_end(text, start)
            found = ObjectSpan(start, len(text) if end is None else end, None)
            if mention.search(text, start, found.end):
                found = _by_keys(text, start, keys, closed=end is not None)
        yield found
        start = text.find("{", found.end)


def literal(text: str, start: int = 0) -> tuple[Json, int] | None:
    """Return the JSON or Python value at `start` and its end, or None if there is none."""
    with suppress(ValueError, RecursionError):
        return _DECODER.raw_decode(text, start)
    # A Python value as JSON, without trailing commas.
    parts: list[str] = []
    depth, end = 0, start
    while match := _TOKEN.match(text, end):
        end, token = match.end(), match[match.lastgroup or 0]
        if match.lastgroup == "string":
            token = json.dumps(unescaped(token[1:-1]))
        elif match.lastgroup == "mark":
            if token in "]}" and parts and parts[-1] == ",":
                parts.pop()
            depth += (token in "[{") - (token in "]}")
        parts.append(_WORDS.get(token, token))
        if not 0 < depth <= _MAX_DEPTH:
            break
    if parts and depth <= 0:
        with suppress(ValueError, RecursionError):
            return _DECODER.decode(" ".join(parts)), end
    return None


def unescaped(text: str) -> str:
    """Return a text with the escapes of Python and JSON resolved; unknown and cut ones stay."""

    def replace(match: re.Match[str]) -> str:
        if match[1] == "/":
            return "/"
        return match[0] if match[1] in "\\'\"abfnrtv0xuU" else "\\" + match[0]

    with suppress(UnicodeDecodeError):
        plain = re.sub(r"\\(.)", replace, text, flags=re.DOTALL)
        return plain.encode("latin-1", "backslashreplace").decode("unicode_escape")
    return text


def unfenced(text: str) -> str:
    """Return a text without a code fence or tags (`<answer>`) around all of it."""
    for form in (r"<(\w{1,20})>(.*)</\1>", r"(`{3,}|~{3,})[\w-]*\n(.*)\n\1"):
        text = text.strip()
        match = re.fullmatch(form, text, re.DOTALL)
        text = match[2].strip() if match else text
    return text


def outside(spans: Sequence[ObjectSpan], text: str) -> str:
    """Return the text around objects, with a line break in place of each."""
    starts, ends = [*(span.start for span in spans), len(text)], [0, *(span.end for span in spans)]
    return "\n".join(text[end:start] for end, start in zip(ends, starts, strict=True))


def squashed(text: str) -> str:
    """Return a text without the differences of quoting: NFKC, no space, no marks, lower case."""
    return _UNSEEN.sub("", unicodedata.normalize("NFKC", text)).casefold()


def _balanced_end(text: str, start: int) -> int | None:
    """Return the end of the object at `start`, counting braces outside double-quoted strings."""
    depth, quoted = 0, False
    for match in _BRACES.finditer(text, start):
        char = match[0]
        if char == '"':
            quoted = not quoted
        elif not quoted and char in "{}":
            depth += 1 if char == "{" else -1
            if depth == 0:
                return match.end()
    return None


@lru_cache(maxsize=256)
def _key_patterns(keys: frozenset[str]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of a key, perhaps with half of its quotes, and of a key in an object."""
    names = "|".join(map(re.escape, keys))
    return re.compile(rf"\b(?:{names})\b[\"']?\s*:"), re.compile(rf"([\"']?)\b({names})\b\1\s*:")


def key_places(text: str, keys: Collection[str], start: int = 0) -> list[re.Match[str]]:
    """Return the places of keys with their colon; groups: the quote, or "", and the key."""
    _, pattern = _key_patterns(frozenset(keys))
    return list(pattern.finditer(text, start))


def _by_keys(text: str, start: int, keys: Collection[str], closed: bool) -> ObjectSpan:
    """Return an object with unescaped quotes in its strings: each value reaches to the next key.

    Every key may occur once between `start` and the end of the reply, quoted like the first key: a
    second place, perhaps inside a string, is ambiguous. Only the schema's keys are known; the first
    must follow the brace.

    Raises:
        UnreadableError: the object is cut off or ambiguous.
    """
    closed = closed or text.rstrip().removesuffix("```").rstrip().endswith("}")
    # An unclosed object is never completed: `"score": 1` may have been 10.
    unclear = (
        UnreadableError("an object that cannot be read")
        if closed
        else UnreadableError("the reply ends inside its object", Status.TRUNCATED)
    )
    doubled = text.startswith("{{", start)
    places = key_places(text, keys, start)
    if not places or text[start + 1 + doubled : places[0].start()].strip():
        raise unclear
    if quote := places[0][1]:
        places = [place for place in places if place[1]]
    if len({place[2] for place in places}) < len(places):
        raise UnreadableError("a key occurs twice in one object") if closed else unclear
    end = _last_end(text, places[-1].end())
    quoted_alike = all(place[1] == quote for place in places)
    if end is None or not quoted_alike or (doubled and not text.startswith("}", end)):
        raise unclear
    value: JsonObject = {}
    for place, stop in zip(places, [*(one.start() for one in places[1:]), end - 1], strict=True):
        part = text[place.end() : stop].strip().removesuffix(",").rstrip()
        found = literal(part)
        if found is not None and found[1] == len(part):
            value[place[2]] = found[0]
        elif len(part) > 1 and part[0] in "'\"" and part[-1] == part[0]:
            value[place[2]] = unescaped(part[1:-1])
        else:
            raise UnreadableError("a value that cannot be read")
    return ObjectSpan(start, end + doubled, value)


def _last_end(text: str, begin: int) -> int | None:
    """Return the end of the object whose last value begins at `begin`; None if it has none."""
    begin = len(text) - len(text[begin:].lstrip())
    quote = text[begin : begin + 1]
    if quote not in ("'", '"'):
        found = literal(text, begin)
        closing = _CLOSING.match(text, found[1]) if found else None
        return closing.end() if closing else None
    # The first closing brace after a quote that leaves no brace of the string open.
    depth = 1
    for brace in re.compile("[{}]").finditer(text, begin):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            part = text[begin : brace.start()].rstrip().removesuffix(",").rstrip()
            ended = len(part) > 1 and part.endswith(quote) and not part.endswith("\\" + quote)
            return brace.end() if ended else None
    return None


def _without_repeats(pairs: list[tuple[str, Json]]) -> JsonObject:
    if len(value := dict(pairs)) < len(pairs):
        raise UnreadableError("a key occurs twice in one object")
    return value


def _number(written: str) -> float:
    value = float(written)  # also NaN and Infinity, which JSON's parser accepts
    if not abs(value) < _MAX_NUMBER:
        raise UnreadableError("a number that is too large, or none")
    return value if set(".eE") & set(written) else int(written)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_without_repeats,
    parse_int=_number,
    parse_float=_number,
    parse_constant=_number,
)
