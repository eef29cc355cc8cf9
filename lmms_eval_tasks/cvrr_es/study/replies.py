"""A judge's reply as a rating of 1 to 5, or why there is none: the judge is the model under test.

The judges of the study (Figures 7 to 13) write `[4]`, `[[4]]`, `Judgement: 4`, keys and values
without braces, JSON whose quotes are escaped; weaker ones write a level's name, or a sentence. What
is ambiguous stays as it is: whether there is one rating, and on the scale, `judges.reader` decides.

Objects and bare ratings are found by the shared reader (judges/reader.py), with its rules: nothing
is guessed, clipped or rounded, and of two different ratings none counts. The paper's prompt asks
for the score under 'Judgement' and for a reply under 'rating' (Figures 7 to 13): both are read.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.cvrr_es.labels import RATINGS
from lmms_eval_tasks.judges import reader
from lmms_eval_tasks.judges.reader import Found, UnreadableError, objects
from lmms_eval_tasks.judges.verdict import Status
from lmms_eval_tasks.utils.replies import answer_patterns, answers

if TYPE_CHECKING:
    from pydantic import BaseModel

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
_LEAD = r"(?P<lead>(?:^|[.;,!?)]\s)[-#*_ \t]*(?:(?:my|the|your|overall|total|final)\s+){0,3})"
_OTHER = "judge?ment|verdict|level"  # labels that the reader does not know
_LABEL = rf"{_LEAD}(?:rating|score|{_OTHER})"
_SIGN = r"[*_]*(?:\s?\([^()\n]{1,20}\))?[*_]*\s?[:=][\s*_]*"
# A label that the reader does not know, or a value that it does not.
_STATED = re.compile(
    rf"{_LABEL}(?P<sign>{_SIGN})(?P<quote>['\"]?)"
    rf"(?P<value>\[{{1,2}}[^\[\]\n]{{1,20}}\]{{1,2}}|{_NAME}\b(?:\s*[-:(\[]{{0,2}}\s*[0-9][\])]{{0,2}})?"
    rf"|{_NUMBER}\s*\(\s*{_NAME}\s*\))"
    r"(?P=quote)(?=[*_]*\s*(?:\Z|[.,;:!\n]|[-\u2013\u2014]\s))"
    # Not the first one of several.
    rf"(?![*_\s]*(?:[,/&~\u2013\u2014-]|or\b|and\b|to\b)[\s\[\"'(]*(?:[0-9]|{_NAME}\b))",
    re.IGNORECASE | re.MULTILINE,
)
_OTHER_LABEL = re.compile(
    rf"{_LEAD}(?:{_OTHER})(?={_SIGN}['\"]?[0-9])", re.IGNORECASE | re.MULTILINE
)
# "I would give this answer a 4 out of 5", "a rating of 4", "the rating is 4".
_SAID = re.compile(
    rf"(?:\bI(?:\s+would|\s+will|\s+must|'d|'ll)?\s+(?:rate|give|score|assign|grade)\b"
    rf"[^.!?\n\d]{{0,120}}?(?P<over>{_NUMBER}\s*(?:/|out\s+of)\s*5)"
    rf"|\b(?:rating|score)\s+(?:of|is)\s+['\"\[(*_]{{0,4}}(?P<of>{_NUMBER})"
    rf"(?:\s*(?:/|out\s+of)\s*5\b)?)"
    rf"(?![\w%/]|[.,][0-9]|\s*(?:[-\u2013\u2014~&/,]|\b(?:to|or|and)\b)\s*[\[\"'(]*[0-9])",
    re.IGNORECASE,
)
# Such a sentence and nothing else: a rating without a reason.
_ONLY_SAID = re.compile(
    r"\W*(?:(?:(?:the|my|this|its|overall|final)\s+){1,3}"
    r"|I(?:\s+would|\s+will|'d|'ll)?\s+(?:rate|give|assign)\b[\w\s]{0,40}?)?"
    rf"(?:{_SAID.pattern})\W*",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"(?:^|[.;,!?)\]'\"]\s*|\n)[-#*_ \t]*(?:reason(?:ing)?|explanation|justification)"
    r"[*_'\"]*\s?[:=](?P<reason>.*)\Z",
    re.IGNORECASE | re.DOTALL,
)
_ANY_STATED = re.compile(
    rf"{_LABEL}{_SIGN}['\"\[\]*_]*(?:{_NUMBER}(?:\s*/\s*5)?|{_NAME})[\]'\")*_]*"
    rf"|\[\[\s*{_NUMBER}\s*\]\]|\\boxed\{{\s*{_NUMBER}\s*\}}",
    re.IGNORECASE | re.MULTILINE,
)
# Not \u00e8, which the object itself undoes.
_ESCAPE = re.compile(r"\\(?!u[0-9a-fA-F]{4})(.)", re.DOTALL)
_MARKS = {"n": "\n", "t": "\t", "r": "\r"}
# The form that the request shows, repeated; and filled in without its brackets being taken off.
_FORM = re.compile(r"\{{1,2}\s*[\"']rating[\"']\s*:\s*<[^<>{}\n0-9]*>[^{}\n]*\}{1,2}")
_IN_FORM = re.compile(r"([\"']rating[\"']\s*:\s*[\"']?)<\s*([0-9]+)\s*>")
_OTHER_JUDGE = re.compile(r"^.*\bJudge [A-Z]\b.*$(?:(?<=:)\n.*$)?", re.MULTILINE)
_NAMES = re.compile(rf"\b{_NAME}\b", re.IGNORECASE)


def level(text: str) -> int | None:
    """The whole number of a text that is nothing but one rating, None if it is not.

    A level's name alone is one, since the rubric has each name once; a name beside another level's
    number, and 4.5, are none. Whether the number is on the scale is not looked at.
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


def names_a_level(text: str) -> bool:
    """Whether a level's name stands in a text."""
    return _NAMES.search(text) is not None


def unescaped(text: str, keys: Iterable[str]) -> str:
    r"""A reply whose quotes are escaped (`{\n \"rating\": \"[[4]]\"`), without its escapes.

    Only where the first key of the reply is: escapes in a reason are for its own object to undo.
    """
    names = "|".join(map(re.escape, keys))
    start = max(text.find("{"), 0)
    first = rf"[\s{{\"`]*(?:json\b)?(?:[\s{{\"`]|\\[nrt])*\\[\"'](?:{names})\\[\"']\s*:"
    if not re.match(first, text[start:]):
        return text
    return _ESCAPE.sub(lambda match: _MARKS.get(match[1], match[1]), text)


def without_form(text: str) -> str:
    """A reply without the empty form (`{"rating": <your rating>, ...}`) that it may begin with.

    Of a form that was filled in (`{"rating": <4>, ...}`) the rating is left.
    """
    return _IN_FORM.sub(r"\1\2", _FORM.sub("", text))


def braced(text: str, keys: Iterable[str]) -> str | None:
    """A reply that is an object without its braces (Figure 11), with them; None if it is none.

    `json` and quotation marks before it, as in the figure, are dropped, with those behind it.
    """
    names = "|".join(map(re.escape, keys))
    lead = re.match(rf"[\s\"`]*(?:json\b)?[\s\"`]*(?=([\"']?)(?:{names})\1\s*:)", text)
    if lead is None:
        return None
    body = text[lead.end() :].rstrip("` \t\r\n")
    quotes = lead.group().count('"')
    while quotes and body.endswith('"'):
        body, quotes = body[:-1].rstrip(), quotes - 1
    body = body.rstrip("` \t\r\n").removesuffix(",")
    # A rating alone needs no braces to be read.
    return "{" + body + "}" if len(re.findall(rf"\b(?:{names})\b[\"']?\s*:", body)) > 1 else None


def quotes(text: str, sources: Iterable[str]) -> bool:
    """Whether a text stands in one of the sources, signs and case left aside."""
    plain = _letters(text)
    return any(plain in _letters(source) for source in sources)


def stated(text: str) -> str:
    """A text whose statements of a rating read `Rating: 4`, where they were others.

    A statement is labelled, or is the whole text, or its first line.
    """
    if (whole := level(_unfenced(text))) is not None:
        return str(whole)
    first, _, rest = text.strip().partition("\n")
    alone = None if level(rest.strip().partition("\n")[0]) is not None else level(first)
    if head := re.match(rf"{_NAME}\s*\([0-9]\)(?=[\s:.,-])", first, re.IGNORECASE):
        named = re.findall(rf"\b{_NAME}\s*\([0-9]\)", text, re.IGNORECASE)
        same = len({"".join(one.split()).lower() for one in named}) == 1
        alone, rest = level(head.group()) if same else None, text.strip()[head.end() :]
    if alone is not None:
        text = f"Rating: {alone}\n{rest}"
    text = _OTHER_LABEL.sub(r"\g<lead>Rating", text)
    return _STATED.sub(_as_number, text)


def said(text: str) -> str:
    """A text with the ratings that its sentences give ("a rating of 4") as statements behind it."""
    found = [
        match["over"] or match["of"]
        for match in _SAID.finditer(text)
        if not answers.is_denied(text[: match.start()], text[match.end() :])
    ]
    return "\n".join([text, *(f"Rating: {one}" for one in found)])


def own(text: str) -> str:
    """A text without lines about other judges (`Judge A: ...`), which may hold their ratings."""
    return _OTHER_JUDGE.sub("", text)


def variants(text: str) -> Iterator[str]:
    """The text in the forms to try one after another, the most literal first."""
    yield stated(text)
    if (without := own(text)) != text:
        yield stated(without)
    yield said(stated(own(text)))


def reason(text: str) -> str:
    """What a reply without an object gives as its reason; "" if nothing.

    What follows `Reason:`, else all that is not the rating itself.
    """
    labelled = _REASON.search(text)
    if labelled is None and (level(_unfenced(text)) is not None or _ONLY_SAID.fullmatch(text)):
        return ""
    rest = _ANY_STATED.sub(_end_of_sentence, labelled["reason"] if labelled else text)
    rest = rest.lstrip(" \t\r\n'\"`*_.,:;-").rstrip(" \t\r\n'\"`*_,:;-")
    return rest if answers.has_words(rest) else ""


def _end_of_sentence(match: re.Match[str]) -> str:
    return match[0][0] if match[0][0] in ".!?)" else " "


def _letters(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(filter(str.isalnum, folded))


def _as_number(match: re.Match[str]) -> str:
    number = level(match["value"])
    if number is None:
        return match[0]
    quote = match["quote"]
    return f"{match['lead']}Rating{match['sign']}{quote}{number}{quote}"


def _unfenced(text: str) -> str:
    match = re.fullmatch(r"\s*(`{3,})[\w-]*\n(.*?)\n?\1\s*", text, re.DOTALL)
    return match[2] if match else text


_RATING_KEYS = (
    *("rating", "Rating", "score", "Score"),
    *("judgement", "Judgement", "judgment", "Judgment"),
)
_REASON_KEYS = ("reason", "Reason", "reasoning", "Reasoning", "explanation", "Explanation")
# What models add to the two keys, such as a number for each of the rubric's five qualities: text,
# and no rating. An object with any other key is unparsed (judges/reader.py).
_QUALITIES = ("relevance", "accuracy", "comprehensiveness", "creativity", "granularity")
_MORE_KEYS = (
    *("analysis", "Analysis", "level", "label", "comment", "comments", "feedback", "confidence"),
    *_QUALITIES,
    *map(str.capitalize, _QUALITIES),
)
KEYS = (*_RATING_KEYS, *_REASON_KEYS, *_MORE_KEYS)
_ABSENT = 0  # not on the scale: no reply can say it
# Such a reply does not begin with reasoning: tags inside it are text of its own.
_OBJECT_FIRST = re.compile(r"\s*(?:`{3,}\w*\s*)?\{")


@dataclass(frozen=True)
class RatingReply:
    """What a reply says.

    Attributes:
        rating: 1 to 5; None where there is none.
        reason: what the judge gave for it; "" if nothing.
        status: ok; else empty, truncated, refused, model_error (answers.py) or unparsed.
        notes: what was special, each 1: `no_reason`; `other_key` (Judgement, Rating, ...);
            `two_keys` (equal ones); `level_name` (a level's name was read); `no_object` (stated
            without one); `no_braces`; `escaped` (quotes with backslashes); `repeated` (several
            objects with the same rating, of which the last one's reason stands).
    """

    rating: int | None
    reason: str
    status: str
    notes: dict[str, int] = field(default_factory=dict)


def read(reply: str, shown: Sequence[str] = ()) -> RatingReply:
    """The rating in a judge's reply. No text raises.

    A rating off the scale, between two levels (4.5), or beside another one is `unparsed`, and so is
    what stands in a text of `shown`. A rating without a reason counts.

    Args:
        shown: what the candidate wrote, which the judge may quote. Not what other judges said:
            agreeing with one of them word for word is a rating (the paper's Figure 7 has some).
    """
    shaped = answers.Reply("ok", reply) if _OBJECT_FIRST.match(reply) else answers.shape(reply)
    if not shaped.there:
        return RatingReply(None, "", shaped.status)
    text = without_form(_plain(shaped.text))
    notes: Counter[str] = Counter()
    whole = unescaped(text, KEYS)
    notes["escaped"] = int(whole != text)
    try:
        rating, reason = _rating(whole, shown, notes)
    except UnreadableError as error:
        cut = error.status is Status.TRUNCATED
        return RatingReply(None, "", "truncated" if cut else answers.unread(shaped))
    notes["no_reason"] = int(not answers.has_words(reason))
    return RatingReply(rating, reason, "ok", answers.nonzero(notes))


def _plain(text: str) -> str:
    """A text without the special tokens of chat templates."""
    return answer_patterns.SPECIAL_TOKEN.sub("", text)


def _rating(text: str, shown: Sequence[str], notes: Counter[str]) -> tuple[int, str]:
    """Rating and reason: of an object, of one without braces, or as stated.

    Raises:
        UnreadableError: there is no rating, or more than one.
    """
    spans = list(objects(text, KEYS))
    if earlier := _repeated(spans):
        for span in reversed(earlier):
            text = text[: span.start] + text[span.end :]
        spans = list(objects(text, KEYS))
        notes["repeated"] = 1
    if any(span.value is not None and span.value.keys() & set(KEYS) for span in spans):
        found = _of_object(text, spans, shown, notes)
        _check_around(text, spans, found[0], shown)
        return found
    if (whole := braced(text, KEYS)) is not None:
        own: Counter[str] = Counter(no_braces=1)
        try:
            if quotes(whole, shown):
                raise UnreadableError("the reply repeats the candidate's text")
            found = _of_object(whole, list(objects(whole, KEYS)), shown, own)
        except UnreadableError:
            pass  # `Rating: 4` in front of free text is stated, and no object
        else:
            notes.update(own)
            return found
    notes["no_object"] = 1
    rating = _stated(text, shown)
    plain = stated(text)
    notes["level_name"] = int(plain != text and names_a_level(_difference(text, plain)))
    return rating, reason(plain)


def _repeated(spans: Sequence[Found]) -> list[Found]:
    """Of several objects that give one and the same rating all but the last; else none."""
    rated = [span for span in spans if span.value and span.value.keys() & set(_RATING_KEYS)]
    given = {
        str(_number(value))
        for span in rated
        for key, value in (span.value or {}).items()
        if key in _RATING_KEYS
    }
    return rated[:-1] if len(given) == 1 else []


def _of_object(
    text: str, spans: Sequence[Found], shown: Sequence[str], notes: Counter[str]
) -> tuple[int, str]:
    value = reader.read(text, _schema(), shown)
    ratings = {key: getattr(value, key) for key in _RATING_KEYS if key in value.model_fields_set}
    if len(set(ratings.values())) != 1:
        raise UnreadableError(f"{len(set(ratings.values()))} ratings in one object")
    written = [span.value.get(key) for span in spans if span.value for key in ratings]
    notes["level_name"] = int(any(names_a_level(str(one)) for one in written))
    notes["two_keys"] = int(len(ratings) > 1)
    notes["other_key"] = int("rating" not in ratings)
    reasons = dict.fromkeys(getattr(value, key).strip() for key in _REASON_KEYS)
    return next(iter(ratings.values())), " ".join(filter(None, reasons))


def _check_around(text: str, spans: Sequence[Found], rating: int, shown: Sequence[str]) -> None:
    """Another rating stated outside of the object leaves open which one is meant."""
    starts = [*(span.start for span in spans), len(text)]
    ends = [0, *(span.end for span in spans)]
    around = "\n".join(text[end:start] for end, start in zip(ends, starts, strict=True))
    for line in filter(str.strip, own(around).splitlines()):
        try:
            other = _read_bare(stated(line), shown)
        except UnreadableError:
            continue  # no rating; or a scale, as where the rubric is repeated
        if other != rating:
            raise UnreadableError("different ratings in one reply")


def _stated(text: str, shown: Sequence[str]) -> int:
    *literal, last = variants(text)
    for variant in literal:
        try:
            return _read_bare(variant, shown)
        except UnreadableError:
            continue
    return _read_bare(last, shown)


def _read_bare(text: str, shown: Sequence[str]) -> int:
    plain = [_plain(one) for one in shown]
    sources = [*shown, *plain, *map(stated, plain)]
    return int(getattr(reader.read(text, _schema(), sources, bare="rating"), "rating"))  # noqa: B009


def _difference(text: str, changed: str) -> str:
    """The lines of a text that its changed form does not have."""
    kept = set(changed.splitlines())
    return "\n".join(line for line in text.splitlines() if line not in kept)


@lru_cache(maxsize=1)
def _schema() -> type[BaseModel]:
    """All keys that a reply may have; every one may be missing."""
    from typing import Annotated

    from pydantic import BeforeValidator, Field, create_model

    rating = Annotated[int, Field(ge=min(RATINGS), le=max(RATINGS)), BeforeValidator(_number)]
    reason = Annotated[str, BeforeValidator(_text)]
    fields: dict[str, Any] = dict.fromkeys(_RATING_KEYS, (rating, _ABSENT))
    fields |= dict.fromkeys((*_REASON_KEYS, *_MORE_KEYS), (reason, ""))
    return create_model("RatingWithReason", **fields)


def _number(value: Any) -> Any:
    """A rating in another notation ("[[4]]", [[4]], "Good (4)") as its number."""
    for _ in range(2):
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
    if isinstance(value, str) and (number := level(value)) is not None:
        return number
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(value: Any) -> str:
    """A reason in another form: null is none, a list of texts is one text."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return " ".join(value)
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
