"""A rating that a judge states in words, in a reply without an object. Pure.

A rating is the whole reply, or follows its label ("Score: 4"), or stands in brackets. A rating that
is supposed, asked, denied, corrected or one of several is no statement: nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args, get_origin

from annotated_types import Le
from pydantic.fields import FieldInfo

from lmms_eval_tasks.judges.reading.doubts import guard, is_doubted
from lmms_eval_tasks.judges.reading.objects import ObjectSpan, UnreadableError, squashed, unfenced


def bare_rating(text: str, field: FieldInfo, sources: Sequence[str]) -> str:
    """Return the rating in a reply without an object, as text.

    Args:
        text: the reply without reasoning and objects.
        field: the schema's field for the rating.
        sources: texts that the judge may quote; a rating in one is no verdict.

    Raises:
        UnreadableError: there is no rating, more than one, or one on another scale.
    """
    whole = unfenced(text).strip("*_'\"`").strip().removesuffix(".")
    whole = re.sub(r"\Afinal answer:\s*(?=[0-9])", "", whole, flags=re.IGNORECASE)
    told = [squashed(unfenced(source)).removesuffix(".") for source in sources]
    if rating := guard("rating").fullmatch(whole):
        ratings, quoted = [rating], squashed(whole) in told
    else:
        stated = [*_marked(text), *_labelled(text)]
        ratings = [rating for _, rating in stated] or _reasoned(whole)
        text = text if stated else whole
        told_forms = [squashed(form + rating["value"]) for form, rating in stated] or [
            squashed(whole)
        ]
        quoted = any(form in source for form in told_forms for source in told)
    if not ratings:
        raise UnreadableError("no object with the keys of the schema, and no rating")
    _check_one([float(rating["value"]) for rating in ratings], text, ratings[-1].end())
    if quoted:
        raise UnreadableError("the reply repeats a rating of the candidate's text")
    for rating in ratings:
        _check_scale(rating, field)
        label = text[max(0, rating.start() - 40) : rating.start()].rpartition("\n")[2]
        check_scale_around(label, text[rating.end() :], rating["value"], field)
    return ratings[0]["value"]


def check_beside(
    text: str, span: ObjectSpan, value: float, field: FieldInfo, sources: Sequence[str]
) -> None:
    """Check that the text around an object with a rating states no other rating.

    Args:
        text: the reply.
        span: the object.
        value: its rating.
        field: the schema's field for the rating.
        sources: texts that the judge may quote.

    Raises:
        UnreadableError: the text states another rating, or another scale.
    """
    told = [squashed(source) for source in sources]
    numbers = [value]
    for part in (text[: span.start], text[span.end :]):
        if alone := guard("rating").fullmatch(part.strip(" \t\r\n*_`.")):
            numbers.append(float(alone["value"]))
        for form, other in _labelled(part, strict=False):
            if not any(squashed(form + other["value"]) in source for source in told):
                numbers.append(float(other["value"]))
    _check_one(numbers, text, span.end)
    check_scale_around("", text[span.end :], str(value), field)


def _check_one(numbers: Sequence[float], text: str, end: int) -> None:
    numbers = [*numbers, *(float(one["value"]) for one in guard("concludes").finditer(text, end))]
    if len(set(numbers)) > 1:
        raise UnreadableError("different ratings in one reply")


def _marked(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield the ratings in brackets, `[[4]]`, that nothing around them denies or supposes."""
    for form in ("double brackets", "boxed"):
        for rating in guard(form).finditer(text):
            if is_doubted(text, rating.start(), rating.end()):
                raise UnreadableError("a rating that is denied, asked or supposed")
            yield rating["form"], rating


def _labelled(text: str, *, strict: bool = True) -> Iterator[tuple[str, re.Match[str]]]:
    """Yield the ratings after a label: `Score: 4`, `Rating: "4"`.

    Raises:
        UnreadableError: with `strict`, a label has no clear rating; else such labels are skipped.
    """
    for place in guard("rating label").finditer(text):
        rating, closing = guard("rating").match(text, place.end()), place["quote"].replace("[", "]")
        if (
            rating is None
            or not text.startswith(closing, rating.end())
            or guard("second rating").match(text, rating.end())
        ):
            problem = "a rating that is not one number"
        elif is_doubted(
            text, max(place.start("label"), place.start("copula")), rating.end()
        ) or not guard("rating ended").match(text[rating.end() : rating.end() + 100]):
            problem = "a rating with more around it than its end or a reason"
        else:
            yield place["label"] or place["copula"], rating
            continue
        if strict:
            raise UnreadableError(problem)


def _reasoned(whole: str) -> list[re.Match[str]]:
    """Return the rating at the beginning of a reply, before its reason; not a list's first item."""
    rating = guard("reasoned").match(whole)
    if rating is None or len(re.findall(r"^[\W_]*[0-9]", whole, re.MULTILINE)) > 1:
        return []
    others = re.search(r"[,;]\s*(?:not )?[0-9]+ ?\(", whole)
    return [] if others or is_doubted(whole, rating.start(), rating.end()) else [rating]


def rating(text: str, field: FieldInfo) -> float | None:
    """Return the number of a text that is nothing but a rating, "4" or "4/5"; None if it is none.

    Raises:
        UnreadableError: it is on another scale than the field's.
    """
    if match := guard("rating").fullmatch(text.strip()):
        _check_scale(match, field)
        return float(match["value"])
    return None


def ends(field: FieldInfo) -> list[float]:
    """Return the highest value of a field in a list; empty if it has none."""
    highest: list[Any] = [limit.le for limit in field.metadata if isinstance(limit, Le)]
    if get_origin(field.annotation) is Literal:
        highest += sorted(o for o in get_args(field.annotation) if type(o) is int)[-1:]
    return highest


def _check_scale(rating: re.Match[str], field: FieldInfo) -> None:
    """Check that a rating "4/5" is on the schema's scale.

    Raises:
        UnreadableError: the schema's scale has another end.
    """
    if rating["over"] is not None and float(rating["over"]) not in ends(field):
        raise UnreadableError("a rating on another scale")


def check_scale_around(before: str, behind: str, value: str, field: FieldInfo) -> None:
    """Check that a scale in words next to a rating, "(0-10)", is the schema's.

    Raises:
        UnreadableError: it is another scale, or a second number.
    """
    parts = re.findall(r"[(\[]([^()\[\]\n]{1,40})[)\]]", before)
    behind = behind[:100]
    if bracket := guard("bracket").match(behind):
        parts.append(bracket["inner"])
        beside = re.match(r"\s*(?:[-\u2013\u2014]|to|or)\s*[0-9]", behind[bracket.end() :])
        if beside or guard("supposed number").match(parts[-1]):
            raise UnreadableError("more than one number")
    if clause := re.match(r"[ \t*_'\"`.,;:]{0,8}([^\n()\[\].]{1,50})(?:[.\n]|\Z)", behind):
        parts += [clause[1]] if re.match(r"\W*(?:/|[a-z])", clause[1], re.IGNORECASE) else []
    for part in parts:
        words = re.findall(r"[^\W\d_]+", part.lower())
        numbers = [float(one) for one in re.findall(r"[0-9]+(?:\.[0-9]+)?", part)]
        numbers += [100.0] if {"ten", "hundred"} & {*words} else []
        if not all(map(guard("scale word").fullmatch, words)) or not (
            numbers or "%" in part or "percent" in words
        ):
            continue
        is_scale = bool(words) or len(numbers) > 1 or re.match(r"\W*[/%]", part)
        known = ends(field) if is_scale else [float(value)]
        if max(numbers, default=100.0) not in known or "%" in part or "percent" in words:
            raise UnreadableError("a rating on another scale")
