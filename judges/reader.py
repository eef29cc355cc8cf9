"""The one reader of judges' replies: text in, one validated verdict out, or why not. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Literal, get_args, get_origin

from annotated_types import Le
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from lmms_eval_tasks.judges.loose import Found, UnreadableError, dicts, objects, whole_objects
from lmms_eval_tasks.judges.verdict import Status

__all__ = ["UnreadableError", "read"]

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


def read(
    reply: str,
    schema: type[BaseModel],
    untrusted: Iterable[str] = (),
    bare: str | None = None,
) -> BaseModel:
    """The verdict in `reply`, as an instance of `schema`.

    Closed reasoning blocks are dropped. Then every outermost `{...}` counts, bare, fenced or inside
    prose: exactly one may carry keys of the schema (repeated equal ones count once), and no such
    key may stand outside of it. Objects are JSON, Python dicts, or dicts with unescaped quotes in
    their strings (loose.py). An object inside another is never a verdict.

    Types are strict, with these exceptions: "true" and "false" for a boolean; a number in quotes,
    also over its scale's end ("4/5"), for a number; 4.0 for a whole number; a label in other case.
    Unknown keys and repeated keys are failures.

    With `bare`, a reply without such an object may state its rating in one of these forms: `[[4]]`,
    `\\boxed{4}`, `Rating: 4` (also Score or the field's name, at the start of a sentence), or the
    number alone. All such ratings must be equal, and a scale's end must be the schema's. A missing
    text field `reason` is then "", in an object as well.

    Whatever stands in the same form in a text of `untrusted` (what a candidate wrote) may be a
    quotation: it is never a verdict.

    Args:
        reply: the judge's text.
        schema: what it should say; each field's range comes from here.
        untrusted: texts that the judge was shown and may quote.
        bare: the schema's field that a rating without an object fills.

    Raises:
        UnreadableError: with the reason, short and without the reply's text.
    """
    if len(reply) > _MAX_REPLY:
        raise UnreadableError(f"the reply has {len(reply)} characters")
    sources = [source for source in untrusted if source]
    text = _without_reasoning(reply, schema.model_fields, sources)
    spans = list(objects(text, schema.model_fields))
    verdicts: list[dict[str, Any]] = []
    for span in spans:
        value = span.value
        if value is None or not schema.model_fields.keys() & value.keys() or value in verdicts:
            continue
        if _in_list(text, span):
            raise UnreadableError("a list, expected one object")
        if _is_quoted(value, text[span.start : span.end], sources):
            raise UnreadableError("the reply repeats an object of the candidate's text")
        if verdicts:
            raise UnreadableError("different verdicts in one reply")
        verdicts.append(value)
    if verdicts:
        keys = "|".join(map(re.escape, schema.model_fields))
        if re.search(rf"([\"'])(?:{keys})\1\s*:", _outside(spans, text)):
            # The object may have ended early, at a quote of the candidate inside its reason.
            raise UnreadableError("a key of the schema stands outside the object")
        return _validate(verdicts[0], schema, bare)
    if bare is None:
        raise UnreadableError("no object with the keys of the schema")
    rest = _outside([span for span in spans if span.value is not None], text)
    return _validate({bare: _bare_rating(rest, schema, bare, sources)}, schema, bare)


def _without_reasoning(reply: str, keys: Collection[str], sources: Sequence[str]) -> str:
    """The reply after the reasoning it starts with; tags inside a verdict's own text stay."""
    text = _REASONING.sub("", reply, count=1) if _REASONING.match(reply) else reply
    if text.lstrip().startswith("<think>"):
        raise UnreadableError("the reply ends inside its reasoning", Status.TRUNCATED)
    end = text.rfind("</think>")
    if end < 0 or text.lstrip().startswith(("{", "```")) or _in_object(text, end, keys):
        return text
    if any("</think>" in _squashed(source) for source in sources):
        return text  # the tag may be a quotation
    # Some chat templates open the reasoning in the prompt: only its end is in the reply.
    return text[end + len("</think>") :]


def _in_object(text: str, position: int, keys: Collection[str]) -> bool:
    """Whether the object of a verdict stands around a position, as far as can be told."""
    if any(found.start < position < found.end for found in whole_objects(text)):
        return True
    try:
        list(objects(text[:position], keys))
    except UnreadableError as problem:
        if problem.status is Status.TRUNCATED:
            return True
    return text.count("{", position) != text.count("}", position)


def _in_list(text: str, span: Found) -> bool:
    """Whether an object stands in a list: not one verdict, even if it is the only one."""
    before, after = text[: span.start].rstrip(), text[span.end :].lstrip()
    whole = _unfenced(text)
    return (
        before.endswith("[")
        or after.startswith("]")
        or (whole.startswith("[") and whole.endswith("]"))
    )


def _unfenced(text: str) -> str:
    text = text.strip()
    match = re.fullmatch(r"(`{3,}|~{3,})[\w-]*\n(.*)\n\1", text, re.DOTALL)
    return match[2].strip() if match else text


def _outside(spans: Sequence[Found], text: str) -> str:
    """The text around objects; each leaves a line break."""
    starts = [*(span.start for span in spans), len(text)]
    ends = [0, *(span.end for span in spans)]
    return "\n".join(text[end:start] for end, start in zip(ends, starts, strict=True))


def _is_quoted(value: dict[str, Any], written: str, sources: Sequence[str]) -> bool:
    """Whether the object stands in one of the sources, as written or with the same values."""
    same = _squashed(written)
    return any(
        same in _squashed(source)
        or any(
            all(key in other and other[key] == value[key] for key in value)
            for found in whole_objects(source)
            for other in dicts(found.value)
        )
        for source in sources
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


def _validate(value: dict[str, Any], schema: type[BaseModel], bare: str | None) -> BaseModel:
    if unknown := value.keys() - schema.model_fields.keys():
        raise UnreadableError(f"{len(unknown)} unknown keys in the verdict")
    value = {name: _typed(part, schema.model_fields[name]) for name, part in value.items()}
    reason = schema.model_fields.get("reason")
    if bare and reason and reason.annotation is str and value.get("reason") is None:
        value["reason"] = ""
    try:
        return schema.model_validate(value, strict=True)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UnreadableError(f"{place or 'verdict'}: {first['msg']}") from error


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
