"""From a judge's reply to a verdict: the one reader of what judges say. Pure.

The same reply gives the same verdict, however it was obtained (endpoint, cache, batch file,
recording). Nothing is evaluated and nothing is guessed: what a text leaves open is no verdict.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple, get_args, get_origin

from annotated_types import Le
from pydantic import AliasChoices, BaseModel, ValidationError
from pydantic.fields import FieldInfo

from lmms_eval_tasks.judges import geval
from lmms_eval_tasks.judges.verdict import Criterion, Reply, Status, Usage, Verdict, first_problem

_MAX_REASON = 300  # characters of what went wrong that a verdict keeps
# Keys beside those of a schema whose texts are no second verdict, as one under `rating` may be.
_REASONS = {"reason", "reasons", "reasoning", "explanation", "justification", "rationale"}
_REASONING = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_MAX_REPLY = 200_000  # characters; a longer reply is no verdict and not worth scanning

_NUMBER = r"[-+]?[0-9]{1,9}(?:\.[0-9]{1,9})?"
# A rating: a number, perhaps over its scale's end, and not the first one of several ("1-5",
# "4 or 5", "4, 5") nor the beginning of something longer.
_RATING = (
    rf"(?P<value>{_NUMBER})(?:\s*(?:/|\bout\s+of\b)\s*(?P<over>{_NUMBER}))?"
    r"(?![\w%/]|[.,][0-9]|\s*(?:[-\u2013\u2014~&/,]|\b(?:to|or|and|of|out\s+of)\b)\s*[0-9])"
)
_ALONE = re.compile(_RATING)
_MARKED = (
    re.compile(rf"(?P<form>\[\[)\s*{_RATING}\s*\]\]"),
    re.compile(rf"(?P<form>\\boxed\{{)\s*{_RATING}\s*\}}"),
)
# Where a rating is stated: at the start of a line or a clause, "Final score (1-5): ".
_LABEL = (
    r"(?:^|[.;,!?)]\s)[-#*_ \t]*(?P<label>(?:(?:my|the|your|overall|total|final)\s+){{0,3}}"
    r"(?:rating|score|{field})[*_]*(?:\s?\([^()\n]{{1,20}}\))?[*_]*\s?[:=][\s*_]*)"
    r"(?P<quote>['\"]?)(?=[-+]?[0-9])"
)
# What can surround or split the same words in two texts: space, quotes, escapes, emphasis, and
# characters without a width.
_UNSEEN = re.compile(
    r"[\s'\"`\u2018-\u201f\u00ab\u00bb\\*_"
    r"\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]+"
)


class UnreadableError(Exception):
    """Why a reply is not one verdict; `status` is parse_failure or truncated."""

    def __init__(self, reason: str, status: Status = Status.PARSE_FAILURE) -> None:
        super().__init__(reason)
        self.status = status


def judged(criterion: Criterion, fields: Mapping[str, Any], reply: Reply, label: str) -> Verdict:
    """What `reply` says about `fields`.

    Statuses: `truncated` for a reply that was cut off, also where what arrived looks whole;
    `refused` for a content filter, a refusal or no content; `parse_failure` (or `truncated`) for a
    text that is not one verdict (`reader.read`); else `ok`, with the criterion's score. An `ok`
    without a reason has `reason == ""`, so that such verdicts can be counted.

    Args:
        fields: what it was asked about; texts of `criterion.untrusted` may be quoted in the reply.
        reply: what came back. Its text is kept in `raw` in every case.
    """
    usage = Usage(1, reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens, reply.batch)
    common: dict[str, Any] = {"judge": label, "model": reply.model, "usage": usage}
    sources, bare = quotable(criterion, fields), criterion.bare

    def said(text: str) -> BaseModel:
        return read(text, criterion.schema, sources, bare, criterion.labels)

    def stated(text: str) -> int | None:
        try:
            return int(getattr(said(text), bare or ""))
        except UnreadableError:
            return None

    try:
        if reply.finish == "length":
            raise UnreadableError("the reply hit its token limit", Status.TRUNCATED)
        if reply.finish == "content_filter":
            raise UnreadableError("stopped by a content filter", Status.REFUSED)
        if reply.refusal or reply.text is None:
            raise UnreadableError(reply.refusal or "a reply without content", Status.REFUSED)
        value = said(reply.text)
    except UnreadableError as problem:
        why = str(problem)[:_MAX_REASON]
        return Verdict(None, problem.status, why, reply.text or "", **common)
    if bare and criterion.top_logprobs and (found := geval.expected(reply, stated)):
        common["expected"], common["expected_mass"] = found
    reason = str(getattr(value, "reason", ""))
    return Verdict(float(criterion.score(value)), Status.OK, reason, reply.text, **common)


def quotable(criterion: Criterion, fields: Mapping[str, Any]) -> list[str]:
    """The texts of the criterion's untrusted fields; a list's items one by one."""
    texts: list[str] = []
    for name in criterion.untrusted:
        value = fields.get(name, ())
        texts += map(str, value) if isinstance(value, (list, tuple)) else [str(value)]
    return texts


def said(criterion: Criterion, fields: Mapping[str, Any], verdict: Verdict) -> Any:
    """What a verdict's reply says, in the criterion's schema; None if it cannot be read."""
    try:
        sources = quotable(criterion, fields)
        return read(verdict.raw, criterion.schema, sources, labels=criterion.labels)
    except UnreadableError:
        return None


def read(
    reply: str,
    schema: type[BaseModel],
    untrusted: Iterable[str] = (),
    bare: str | None = None,
    labels: Sequence[tuple[str, BaseModel]] = (),
) -> BaseModel:
    """The verdict in `reply`, as an instance of `schema`.

    Closed reasoning blocks are dropped. Then every outermost `{...}` counts, bare, fenced or inside
    prose: exactly one may carry keys of the schema (repeated equal ones count once), and no such
    key may stand outside of it. Objects are JSON, Python dicts, or dicts with unescaped quotes in
    their strings. An object inside another is never a verdict.

    Types are strict, with these exceptions: "true" and "false" for a boolean; a number in quotes,
    also over its scale's end ("4/5"), for a number; 4.0 for a whole number; a label in other case.
    Repeated keys are failures, and unknown ones; but a reason's text that nobody asked for is left
    out.

    With `bare`, a reply without such an object may state its rating in one of these forms: `[[4]]`,
    `\\boxed{4}`, `Rating: 4` (also Score or the field's name, at the start of a sentence), or the
    number alone. All such ratings must be equal, and a scale's end must be the schema's. A missing
    text field `reason` is then "", in an object as well.

    Whatever stands in the same form in a text of `untrusted` (what a candidate wrote) may be a
    quotation: it is never a verdict.

    Of `labels`, words and what each says: a reply that begins with one of them, in whatever case
    and marks, says that; not if another word or a stroke follows in its line.

    Raises:
        UnreadableError: with the reason, short and without the reply's text.
    """
    if len(reply) > _MAX_REPLY:
        raise UnreadableError(f"the reply has {len(reply)} characters")
    sources = [source for source in untrusted if source]
    fields = schema.model_fields
    names = set(fields).union(*map(_aliases, fields.values()))
    text = _without_reasoning(reply, sources)
    for label, meaning in labels:
        if re.match(rf"[\W_]*{label}(?![^\S\n]*[\w/|])", text, re.IGNORECASE):
            return meaning
    spans = list(objects(text, names))
    verdicts: list[dict[str, Any]] = []
    for span in spans:
        value = span.value
        if value is None or not names & value.keys() or value in verdicts:
            continue
        if _in_list(text, span):
            raise UnreadableError("a list, expected one object")
        if _is_quoted(value, text[span.start : span.end], sources):
            raise UnreadableError("the reply repeats an object of the candidate's text")
        if verdicts:
            raise UnreadableError("different verdicts in one reply")
        verdicts.append(value)
    if verdicts:
        keys = "|".join(map(re.escape, names))
        if re.search(rf"([\"'])(?:{keys})\1\s*:", _outside(spans, text)):
            # The object may have ended early, at a quote of the candidate inside its reason.
            raise UnreadableError("a key of the schema stands outside the object")
        return _validate(verdicts[0], schema, bare)
    if labels:
        raise UnreadableError(f"not one of the words {', '.join(label for label, _ in labels)}")
    if bare is None:
        raise UnreadableError("no object with the keys of the schema")
    rest = _outside([span for span in spans if span.value is not None], text)
    return _validate({bare: _bare_rating(rest, schema, bare, sources)}, schema, bare)


def _without_reasoning(reply: str, sources: Sequence[str]) -> str:
    """The reply after the reasoning it starts with; tags inside a verdict's own text stay."""
    text = _REASONING.sub("", reply, count=1) if _REASONING.match(reply) else reply
    if text.lstrip().startswith("<think>"):
        raise UnreadableError("the reply ends inside its reasoning", Status.TRUNCATED)
    end = text.rfind("</think>")
    if end < 0 or text.lstrip().startswith(("{", "```")) or _in_object(text, end):
        return text
    if any("</think>" in _squashed(source) for source in sources):
        return text  # the tag may be a quotation
    # Some chat templates open the reasoning in the prompt: only its end is in the reply.
    return text[end + len("</think>") :]


def _in_object(text: str, position: int) -> bool:
    """Whether the object of a verdict stands around a position, as far as can be told."""
    start = text.find("{")
    for _ in range(_MAX_OBJECTS):
        if not 0 <= start < position:
            break
        with suppress(UnreadableError):
            if (found := _whole(text, start)) is not None:
                if found.end > position:
                    return True
                start = found.end - 1
        start = text.find("{", start + 1)
    sides = text[:position], text[position:]
    return any(side.count("{") != side.count("}") for side in sides)


def _in_list(text: str, span: Found) -> bool:
    """Whether an object stands in a list: not one verdict, unless the reply is that list of one."""
    whole = _unfenced(text)
    if whole == f"[{text[span.start : span.end]}]":  # all that was said: nobody quotes here
        return False
    before, after = text[: span.start].rstrip(), text[span.end :].lstrip()
    whole_list = whole.startswith("[") and whole.endswith("]")
    return before.endswith("[") or after.startswith("]") or whole_list


def _unfenced(text: str) -> str:
    text = text.strip()
    match = re.fullmatch(r"(`{3,}|~{3,})[\w-]*\n(.*)\n\1", text, re.DOTALL)
    return match[2].strip() if match else text


def _outside(spans: Sequence[Found], text: str) -> str:
    """The text around objects; each leaves a line break."""
    starts, ends = [*(span.start for span in spans), len(text)], [0, *(span.end for span in spans)]
    return "\n".join(text[end:start] for end, start in zip(ends, starts, strict=True))


def _is_quoted(value: dict[str, Any], written: str, sources: Sequence[str]) -> bool:
    """Whether the object stands in one of the sources: as written, or key by key, in any order."""
    whole, pairs = _squashed(written), [_squashed(f"{key}:{one}") for key, one in value.items()]

    def stands(pair: str, text: str) -> bool:
        if not pair[-1:].isdigit():
            return pair in text
        return re.search(rf"{re.escape(pair)}(?!\.?[0-9])", text) is not None

    return any(
        whole in text or all(stands(pair, text) for pair in pairs)
        for source in sources
        for text in map(_squashed, {source, _unescaped(source)})
    )


def _squashed(text: str) -> str:
    """What is left of a text however it is quoted: compatibility forms folded, no space or case."""
    return _UNSEEN.sub("", unicodedata.normalize("NFKC", text)).casefold()


def _bare_rating(text: str, schema: type[BaseModel], bare: str, sources: Sequence[str]) -> str:
    """The number of a reply without an object, as text."""
    whole = _unfenced(text).strip("*_'\"`").strip().removesuffix(".")
    squashed = [_squashed(source).removesuffix(".") for source in sources]
    if rating := _ALONE.fullmatch(whole):
        ratings, quoted = [rating], _squashed(whole) in squashed
    else:
        stated = list(_stated(text, bare))
        ratings = [rating for _, rating in stated]
        forms = [_squashed(form + rating["value"]) for form, rating in stated]
        quoted = any(form in source for form in forms for source in squashed)
    if not ratings:
        raise UnreadableError("no object with the keys of the schema, and no rating")
    if len({float(rating["value"]) for rating in ratings}) > 1:
        raise UnreadableError("different ratings in one reply")
    if quoted:
        raise UnreadableError("the reply repeats a rating of the candidate's text")
    for rating in ratings:
        _check_scale(rating, schema.model_fields[bare])
    return ratings[0]["value"]


def _stated(text: str, bare: str) -> Iterator[tuple[str, re.Match[str]]]:
    """The ratings that a text states: what introduces each one, and its number."""
    for form in _MARKED:
        yield from ((rating["form"], rating) for rating in form.finditer(text))
    label = re.compile(_LABEL.format(field=re.escape(bare)), re.IGNORECASE | re.MULTILINE)
    for place in label.finditer(text):
        rating = _ALONE.match(text, place.end())
        if rating is None or not text.startswith(place["quote"], rating.end()):
            raise UnreadableError("a rating that is not one number")
        yield place["label"], rating


def _check_scale(rating: re.Match[str], field: FieldInfo) -> None:
    """A rating "4/5" is one on the schema's scale only if that ends at 5."""
    ends = [limit.le for limit in field.metadata if isinstance(limit, Le)]
    if get_origin(field.annotation) is Literal:
        ends += sorted(o for o in get_args(field.annotation) if type(o) is int)[-1:]
    if rating["over"] is not None and float(rating["over"]) not in ends:
        raise UnreadableError("a rating on another scale")


def _aliases(field: FieldInfo) -> set[str]:
    """The other keys that a field is read from."""
    alias = field.validation_alias
    return {str(name) for name in alias.choices} if isinstance(alias, AliasChoices) else set()


def _validate(value: dict[str, Any], schema: type[BaseModel], bare: str | None) -> BaseModel:
    fields = schema.model_fields
    for name, field in fields.items():
        there = value.keys() & _aliases(field)
        same = {key for key in there if name not in value or value[key] == value[name]}
        value = {name if key in same else key: part for key, part in value.items()}
    beside = value.keys() - fields.keys()
    reasons = {key for key in beside & _REASONS if isinstance(value[key], str)}
    if unknown := beside - reasons:
        raise UnreadableError(f"{len(unknown)} unknown keys in the verdict")
    value = {name: _typed(value[name], field) for name, field in fields.items() if name in value}
    reason = fields.get("reason")
    if bare and reason and reason.annotation is str and value.get("reason") is None:
        value["reason"] = ""
    try:
        return schema.model_validate(value, strict=True)
    except ValidationError as error:
        raise UnreadableError(first_problem(error)) from error


def _typed(value: Any, field: FieldInfo) -> Any:
    """A value in the field's own type, where only its notation differs."""
    kind = field.annotation
    options = get_args(kind) if get_origin(kind) is Literal else ()
    numeric = kind in (int, float) or (options and all(type(o) is int for o in options))
    if kind is bool and value in ("true", "false"):
        return value == "true"
    if numeric and isinstance(value, bool):
        raise UnreadableError("a boolean where a number is expected")
    if numeric and isinstance(value, str) and (rating := _ALONE.fullmatch(value.strip())):
        _check_scale(rating, field)
        value = float(rating["value"])
    if numeric and kind is not float and isinstance(value, float) and value.is_integer():
        return int(value)
    if options and isinstance(value, str):
        label = value.strip().casefold()
        same = [o for o in options if isinstance(o, str) and o.casefold() == label]
        return same[0] if len(same) == 1 else value
    return value


# --- objects in a text: JSON, Python dicts, and what models write between the two -----------------

_MAX_OBJECTS = 1000  # pairs of braces in one reply (LaTeX has many); bounds the work
_MAX_DEPTH = 100  # of a Python value; no verdict is that deep
_MAX_NUMBER = 10**15  # every whole number below is exact as a float

# One token of a dict as Python prints it. Strings may also hold raw line breaks.
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


class Found(NamedTuple):
    """An outermost pair of braces: text[start:end] and its value, None for braces in prose."""

    start: int
    end: int
    value: dict[str, Any] | None


def objects(text: str, keys: Collection[str]) -> Iterator[Found]:
    """The outermost `{...}` of a text, in order; a broken one is never searched for inner ones.

    In turn: JSON; a dict as Python prints it; either in doubled braces; and, where a key of the
    schema stands inside, the keys' values between their places (`_by_keys`), for strings with
    unescaped quotes. Braces without any such key are prose.

    Raises:
        UnreadableError: an object with keys of the schema is cut off or ambiguous.
    """
    mention = re.compile(rf"\b(?:{'|'.join(map(re.escape, keys))})\b[\"']?\s*:")
    start, count = text.find("{"), 0
    while start >= 0:
        count += 1
        if count > _MAX_OBJECTS:
            raise UnreadableError(f"more than {_MAX_OBJECTS} pairs of braces")
        found = _whole(text, start)
        if found is None:
            balanced = _balanced_end(text, start)
            end = len(text) if balanced is None else balanced
            found = Found(start, end, None)
            if mention.search(text, start, end):
                found = _by_keys(text, start, keys, closed=balanced is not None)
        yield found
        start = text.find("{", found.end)


def literal(text: str, start: int = 0) -> tuple[Any, int] | None:
    """The JSON or Python value at `start` and where it ends, or None if there is none."""
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        pass
    translated = _as_json(text, start)
    try:
        return translated and (_DECODER.decode(translated[0]), translated[1])
    except (ValueError, RecursionError):
        return None


def _whole(text: str, start: int) -> Found | None:
    doubled = text.startswith("{{", start)  # a template's escape that the judge repeated
    value = literal(text, start + doubled)
    if value is None or not isinstance(value[0], dict):
        return None
    if doubled and not text.startswith("}", value[1]):
        return None
    return Found(start, value[1] + doubled, value[0])


def _as_json(text: str, start: int) -> tuple[str, int] | None:
    """A Python value as JSON text, and where it ends; trailing commas are dropped."""
    parts: list[str] = []
    depth, position = 0, start
    while match := _TOKEN.match(text, position):
        position = match.end()
        token = match[match.lastgroup or 0]
        if match.lastgroup == "string":
            token = json.dumps(_unescaped(token[1:-1]))
        elif match.lastgroup == "mark":
            if token in "]}" and parts and parts[-1] == ",":
                parts.pop()
            depth += (token in "[{") - (token in "]}")
        parts.append(_WORDS.get(token, token))
        if depth <= 0:
            return " ".join(parts), position
        if depth > _MAX_DEPTH:
            return None
    return None


def _unescaped(text: str) -> str:
    """A text with the escapes of Python and JSON resolved; unknown ones, and cut ones, stay."""

    def known(match: re.Match[str]) -> str:
        if match[1] == "/":
            return "/"
        return match[0] if match[1] in "\\'\"abfnrtv0xuU" else "\\" + match[0]

    with suppress(UnicodeDecodeError):
        plain = re.sub(r"\\(.)", known, text, flags=re.DOTALL)
        return plain.encode("latin-1", "backslashreplace").decode("unicode_escape")
    return text


def _balanced_end(text: str, start: int) -> int | None:
    """End of the object that opens at `start`, braces counted outside double-quoted strings."""
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


def _by_keys(text: str, start: int, keys: Collection[str], closed: bool) -> Found:
    """An object with unescaped quotes in its strings: each key's value reaches to the next key.

    Every key may occur once between `start` and the end of the reply, quoted or not as the first
    one is: a second place, perhaps inside a string, leaves open which of them is meant. Only the
    schema's keys are known, the first right behind the brace.
    """
    closed = closed or text.rstrip().removesuffix("```").rstrip().endswith("}")
    # An unclosed one is never completed: `"score": 1` may have been 10.
    unclear = (
        UnreadableError("an object that cannot be read")
        if closed
        else UnreadableError("the reply ends inside its object", Status.TRUNCATED)
    )
    doubled = text.startswith("{{", start)
    names = "|".join(map(re.escape, keys))
    places = list(re.compile(rf"([\"']?)\b({names})\b\1\s*:").finditer(text, start))
    if not places or text[start + 1 + doubled : places[0].start()].strip():
        raise unclear
    if quote := places[0][1]:
        places = [place for place in places if place[1]]
    if len({place[2] for place in places}) < len(places):
        raise UnreadableError("a key occurs twice in one object") if closed else unclear
    end = _last_end(text, places[-1].end())
    if end is None or any(place[1] != quote for place in places):
        raise unclear
    value: dict[str, Any] = {}
    ends = [place.start() for place in places[1:]] + [end - 1]
    for place, stop in zip(places, ends, strict=True):
        part = text[place.end() : stop].strip().removesuffix(",").rstrip()
        found = literal(part)
        if found is not None and found[1] == len(part):
            value[place[2]] = found[0]
        elif len(part) > 1 and part[0] in "'\"" and part[-1] == part[0]:
            value[place[2]] = _unescaped(part[1:-1])
        else:
            raise UnreadableError("a value that cannot be read")
    if doubled and not text.startswith("}", end):
        raise unclear
    return Found(start, end + doubled, value)


def _last_end(text: str, begin: int) -> int | None:
    """Where the object ends whose last value begins at `begin`; None if it does not."""
    begin = len(text) - len(text[begin:].lstrip())
    quote = text[begin : begin + 1]
    if quote not in ("'", '"'):
        found = literal(text, begin)
        closing = _CLOSING.match(text, found[1]) if found else None
        return closing.end() if closing else None
    # The first closing brace behind a quote that leaves no brace of the string open.
    depth = 1
    for brace in re.compile("[{}]").finditer(text, begin):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            part = text[begin : brace.start()].rstrip().removesuffix(",").rstrip()
            ended = len(part) > 1 and part.endswith(quote) and not part.endswith("\\" + quote)
            return brace.end() if ended else None
    return None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(value := dict(pairs)) < len(pairs):
        raise UnreadableError("a key occurs twice in one object")
    return value


def _number(written: str) -> float:
    value = float(written)  # also NaN and Infinity, as JSON's parser takes them
    if not abs(value) < _MAX_NUMBER:
        raise UnreadableError("a number that is too large, or none")
    return value if set(".eE") & set(written) else int(written)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_without_repeats,
    parse_int=_number,
    parse_float=_number,
    parse_constant=_number,
)
