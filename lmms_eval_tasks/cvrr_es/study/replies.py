"""A reader of the rating of 1 to 5 in the reply of a judge that is the model under test.

The judges' reader (judges/reader.py) finds objects and bare ratings, with its rules: it does not
guess, clip or round, and of two different ratings neither counts. The paper's prompt asks for the
score under 'Judgement' and for a reply under 'rating': both are read. This module handles further
forms that the study's judges write (Figures 7 to 13): `[4]`, `[[4]]`, keys and values without
braces, objects with escaped quotes, the name of a level.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field

from lmms_eval_tasks.cvrr_es.labels import RATINGS
from lmms_eval_tasks.cvrr_es.study.ratings import folded
from lmms_eval_tasks.judges import reader
from lmms_eval_tasks.judges.reading.objects import UnreadableError, objects, outside
from lmms_eval_tasks.judges.reading.reasoning import OBJECT_FIRST, without_reasoning
from lmms_eval_tasks.judges.verdict import Status
from lmms_eval_tasks.utils.replies import reply_text
from lmms_eval_tasks.utils.replies.reasoning import strip_reasoning

_RATING_KEYS = (
    *("rating", "Rating", "score", "Score"),
    *("judgement", "Judgement", "judgment", "Judgment"),
)
_REASON_KEYS = ("reason", "Reason", "reasoning", "Reasoning", "explanation", "Explanation")
# Keys that models add, such as a number for each of the rubric's five qualities: they are text, and
# no rating. An object with any other key is unparsed (judges/reader.py).
_MORE = (
    *("analysis", "level", "label", "comment", "comments", "feedback", "confidence"),
    *("relevance", "accuracy", "comprehensiveness", "creativity", "granularity"),
)
_MORE_KEYS = (*_MORE, *map(str.capitalize, _MORE))
KEYS = (*_RATING_KEYS, *_REASON_KEYS, *_MORE_KEYS)

_LEVELS = {name: number for number, name in RATINGS.items()}
_NAME = rf"(?:{'|'.join(_LEVELS)})"
_NUMBER = r"[0-9]{1,3}(?:\.[0-9]{1,3})?"
# 4, [4], [[4]], Good, Good (4), Good: 4, 4 (Good), 4 - Good.
_VALUE = re.compile(
    rf"\[{{0,2}}\s*(?:"
    rf"(?P<number>{_NUMBER})(?:\s*(?:[-\u2013\u2014:,=]\s|[(\[])?\s*(?P<named>{_NAME})\s*[)\]]?)?"
    rf"|(?P<name>{_NAME})"
    rf"(?:\s*(?:[-\u2013\u2014:,=]\s|[(\[]{{1,2}})?\s*(?P<numbered>{_NUMBER})\s*[)\]]{{0,2}})?"
    r")\s*\]{0,2}",
    re.IGNORECASE,
)
_MAY_RATE = re.compile(rf"[0-9]|\b{_NAME}\b", re.IGNORECASE)
_LEAD = r"(?P<lead>(?:^|[.;,!?)]\s)[-#*_ \t]*(?:(?:my|the|your|overall|total|final)\s+){0,3})"
_OTHER = "judge?ment|verdict|level"  # labels that the judges' reader does not know
_SIGN = r"[*_]*(?:\s?\([^()\n]{1,20}\)[*_]*)?\s?[:=][\s*_]*"
_OTHER_LABEL = re.compile(
    rf"{_LEAD}(?:{_OTHER})(?={_SIGN}['\"]?[0-9])", re.IGNORECASE | re.MULTILINE
)
# A label with a value that the judges' reader does not know.
_STATED = re.compile(
    rf"{_LEAD}(?:rating|score|{_OTHER})(?P<sign>{_SIGN})(?P<quote>['\"]?)"
    rf"(?P<value>\[{{1,2}}[^\[\]\n]{{1,20}}\]{{1,2}}|{_NAME}\b(?:\s*[-:(\[]{{0,2}}\s*[0-9][\])]{{0,2}})?"
    rf"|{_NUMBER}\s*\(\s*{_NAME}\s*\))"
    r"(?P=quote)(?=[*_]*\s*(?:\Z|[.,;:!\n]|[-\u2013\u2014]\s))"
    # Not the first of several ratings.
    rf"(?![*_\s]*(?:[,/&~\u2013\u2014-]|or\b|and\b|to\b)[\s\[\"'(]*(?:[0-9]|{_NAME}\b))",
    re.IGNORECASE | re.MULTILINE,
)
_ANY_STATED = re.compile(
    rf"{_LEAD}(?:rating|score){_SIGN}['\"\[\]*_]*{_NUMBER}(?:\s*/\s*5)?[\]'\")*_]*"
    rf"|\[\[\s*{_NUMBER}\s*\]\]|\\boxed\{{\s*{_NUMBER}\s*\}}",
    re.IGNORECASE | re.MULTILINE,
)
_REASON = re.compile(
    r"(?:^|[.;,!?)\]'\"]\s*|\n)[-#*_ \t]*(?:reason(?:ing)?|explanation|justification)"
    r"[*_'\"]*\s?[:=](?P<reason>.*)\Z",
    re.IGNORECASE | re.DOTALL,
)
_OTHER_JUDGE = re.compile(r"^.*\bJudge [A-Z]\b.*$(?:(?<=:)\n.*$)?", re.MULTILINE)
# Not \u00e8, which JSON itself unescapes.
_ESCAPE = re.compile(r"\\(?!u[0-9a-fA-F]{4})(.)", re.DOTALL)
_MARKS = {"n": "\n", "t": "\t", "r": "\r"}


class RatingReply(NamedTuple):
    """The rating, reason and status of a reply."""

    rating: int | None  # 1 to 5
    reason: str  # the judge's; "" if there is none
    status: str  # ok; else empty, truncated, refused, model_error (answers.py) or unparsed


def read_rating(reply: str, sources: Sequence[str] = ()) -> RatingReply:
    """Read the rating in a judge's reply; never raises.

    A reply is `unparsed` if its rating is off the scale, lies between two levels (4.5), differs
    from another rating in it, or quotes a text in `sources`. A rating without a reason counts.

    Args:
        reply: the judge's reply.
        sources: texts of the candidate, which the judge may quote; not the other judges' texts,
            since a judge may agree word for word (the paper's Figure 7 has such ratings).
    """
    try:
        rest = without_reasoning(reply, KEYS, sources)
    except UnreadableError:
        return RatingReply(None, "", "truncated")
    # In an object's text, marks of reasoning or of a next turn are part of the text.
    is_own = OBJECT_FIRST.match(rest) or strip_reasoning(rest)[0] != rest.strip()
    shaped = reply_text.ShapedReply("ok", rest) if is_own else reply_text.shape(rest)
    if not shaped.has_text:
        return RatingReply(None, "", shaped.status)
    try:
        text = reply_text.without_special_tokens(shaped.text)  # special tokens of chat templates
        rating, reason = _rating(_unescaped(text), sources)
    except UnreadableError as error:
        cut = error.status is Status.TRUNCATED
        return RatingReply(None, "", "truncated" if cut else reply_text.unread(shaped))
    return RatingReply(rating, reason if reply_text.has_words(reason) else "", "ok")


def _rating(text: str, sources: Sequence[str]) -> tuple[int, str]:
    """Return rating and reason: from an object, an object without braces, or a statement.

    Raises:
        UnreadableError: there is no rating, or more than one.
    """
    spans = list(objects(text, KEYS))
    if any(span.value is not None and span.value.keys() & set(KEYS) for span in spans):
        found = _of_object(text, sources)
        lines = dict.fromkeys(_OTHER_JUDGE.sub("", outside(spans, text)).splitlines())
        told = [folded(source) for source in sources]
        for line in filter(_MAY_RATE.search, lines):
            if any(folded(line) in source for source in told):
                continue  # a quote
            try:
                other = _stated(_levelled(line), ())
            except UnreadableError:
                continue  # no rating, or the scale of a repeated rubric
            if other != found[0]:
                raise UnreadableError("different ratings in one reply")
        return found
    if (whole := _braced(text)) is not None:
        if any(folded(whole) in folded(source) for source in sources):
            raise UnreadableError("the reply repeats the candidate's text")
        try:
            return _of_object(whole, sources)
        except UnreadableError:
            pass  # `Rating: 4` before free text is a statement, not an object
    plain = _levelled(text)
    try:
        rating = _stated(plain, sources)
    except UnreadableError:
        plain = _levelled(_OTHER_JUDGE.sub("", text))
        rating = _stated(plain, sources)
    return rating, _reason(plain)


def _of_object(text: str, sources: Sequence[str]) -> tuple[int, str]:
    value: Any = reader.read_reply(text, _Schema, sources)
    values = [span.value for span in objects(text, KEYS) if span.value]
    ratings = {str(_number(own[key])) for own in values for key in _RATING_KEYS if key in own}
    if len(ratings) > 1:
        raise UnreadableError("different ratings in one object")
    return int(value.rating), value.reason.strip()


def _stated(text: str, sources: Sequence[str]) -> int:
    # As for the reply: without special tokens, and without the marks of a turn.
    plain = [reply_text.without_special_tokens(one) for one in sources]
    plain += [reply_text.shape(one).text for one in sources]
    if any(folded(text) == folded(one) for one in plain):
        raise UnreadableError("the reply repeats the candidate's text")
    value: Any = reader.read_reply(
        text, _Schema, [*sources, *plain, *map(_levelled, plain)], bare="rating"
    )
    return int(value.rating)


def _reason(text: str) -> str:
    """Return the reason in a reply without an object.

    It is the text after `Reason:`, else all text but the rating.
    """
    labelled = _REASON.search(text)
    rest = "" if _level(_unfenced(text)) is not None else text
    rest = _ANY_STATED.sub(
        lambda match: match[0][0] if match[0][0] in ".!?)" else " ",
        labelled["reason"] if labelled else rest,
    )
    return rest.lstrip(" \t\r\n'\"`*_.,:;-").rstrip(" \t\r\n'\"`*_,:;-")


def _unescaped(text: str) -> str:
    r"""Return a reply whose quotes are escaped (`{\n \"rating\": \"[[4]]\"`) without its escapes.

    Only if the first key of the reply is escaped: escapes in a reason belong to its own object.
    """
    start = max(text.find("{"), 0)
    # No text can be divided in two ways between these runs.
    blank, escaped = r"[\s{\"`]", r"\\[nrt]"
    lead = rf"{blank}*(?:(?:json\b|{escaped})(?:{blank}|{escaped})*)?"
    first = rf"{lead}\\[\"'](?:{'|'.join(KEYS)})\\[\"']\s*:"
    if not re.match(first, text[start:]):
        return text
    return _ESCAPE.sub(lambda match: _MARKS.get(match[1], match[1]), text)


def _braced(text: str) -> str | None:
    """Return a reply that is an object without braces (Figure 11) with them; None if it is none.

    Removes `json` and quotation marks before it, as in the figure, and as many after it.
    """
    names = "|".join(KEYS)
    # The two runs share no character, so that matching takes a single pass.
    lead = re.match(rf"[\s\"`]*(?:json\b[\s\"`]*)?(?=([\"']?)(?:{names})\1\s*:)", text)
    if lead is None:
        return None
    body = text[lead.end() :].rstrip("` \t\r\n")
    for _ in range(lead[0].count('"')):
        body = body.removesuffix('"').rstrip()
    body = body.rstrip("` \t\r\n").removesuffix(",")
    # A rating alone can be read without braces.
    return "{" + body + "}" if len(re.findall(rf"\b(?:{names})\b[\"']?\s*:", body)) > 1 else None


def _levelled(text: str) -> str:
    """Return a text with every statement of a rating in the form `Rating: 4`.

    A statement has a label, or is the whole text, or its first line.
    """
    if (whole := _level(_unfenced(text))) is not None:
        return str(whole)
    first, _, rest = text.strip().partition("\n")
    alone = None if _level(rest.strip().partition("\n")[0]) is not None else _level(first)
    if alone is not None:
        text = f"Rating: {alone}\n{rest}"

    def numbered(match: re.Match[str]) -> str:
        number, quote = _level(match["value"]), match["quote"]
        said = f"{match['lead']}Rating{match['sign']}{quote}{number}{quote}"
        return match[0] if number is None else said

    return _STATED.sub(numbered, _OTHER_LABEL.sub(r"\g<lead>Rating", text))


def _level(text: str) -> int | None:
    """Return the number of a text that is nothing but one whole rating; None if it is not.

    The name of a level is a rating, since each name occurs once in the rubric. A name with another
    level's number, and 4.5, are none. The number may be off the scale.
    """
    match = _VALUE.fullmatch(text.strip().strip("*_\"'`").strip().removesuffix(".").strip())
    if match is None:
        return None
    name, digits = match["name"] or match["named"], match["number"] or match["numbered"]
    if digits is None:
        return _LEVELS[name.lower()]
    number = float(digits)
    if not number.is_integer() or (name and _LEVELS[name.lower()] != number):
        return None
    return int(number)


def _unfenced(text: str) -> str:
    match = re.fullmatch(r"\s*(`{3,})[\w-]*\n(.*?)\n?\1\s*", text, re.DOTALL)
    return match[2] if match else text


def _number(value: object) -> object:
    """Return a rating in another notation ("[[4]]", [[4]], "Good (4)") as its number."""
    for _ in range(2):
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
    if isinstance(value, str) and (number := _level(value)) is not None:
        return number
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(value: object) -> str:
    """Return a reason in another form as a text: null is "", a list of texts is joined."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return " ".join(value)
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


class _Schema(BaseModel):
    """What a reply may have; the reason may be missing."""

    rating: Annotated[int, BeforeValidator(_number)] = Field(
        ge=min(RATINGS), le=max(RATINGS), validation_alias=AliasChoices(*_RATING_KEYS)
    )
    reason: Annotated[str, BeforeValidator(_text)] = Field(
        "", validation_alias=AliasChoices(*_REASON_KEYS)
    )
    more: Any = Field(None, validation_alias=AliasChoices(*_MORE_KEYS))
