"""A judge's reply as a rating of 1 to 5, or why there is none: the judge is the model under test.

Objects and bare ratings are found by the shared reader (judges/reader.py), with its rules: nothing
is guessed, clipped or rounded, and of two different ratings none counts. The paper's prompt asks
for the score under 'Judgement' and for a reply under 'rating' (Figures 7 to 13): both are read.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.cvrr_es import rating_forms as forms
from lmms_eval_tasks.cvrr_es.labels import RATINGS
from lmms_eval_tasks.judges import reader
from lmms_eval_tasks.judges.loose import Found, UnreadableError, objects
from lmms_eval_tasks.judges.verdict import Status
from lmms_eval_tasks.utils import answer_patterns, reply_shape

if TYPE_CHECKING:
    from pydantic import BaseModel

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
        status: ok; else empty, truncated, refused, model_error (utils/answers.py) or unparsed.
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
        reply: the model's text, as the host hands it over.
        shown: what the candidate wrote, which the judge may quote. Not what other judges said:
            agreeing with one of them word for word is a rating (the paper's Figure 7 has some).
    """
    if _OBJECT_FIRST.match(reply):
        shaped = reply_shape.Reply("ok", reply)
    else:
        shaped = reply_shape.shape(reply)
    if not shaped.there:
        return RatingReply(None, "", shaped.status)
    text = forms.without_form(_plain(shaped.text))
    notes: Counter[str] = Counter()
    whole = forms.unescaped(text, KEYS)
    notes["escaped"] = int(whole != text)
    try:
        rating, reason = _rating(whole, shown, notes)
    except UnreadableError as error:
        cut = error.status is Status.TRUNCATED
        return RatingReply(None, "", "truncated" if cut else reply_shape.unread(shaped))
    notes["no_reason"] = int(not reply_shape.has_words(reason))
    return RatingReply(rating, reason, "ok", reply_shape.nonzero(notes))


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
    if (braced := forms.braced(text, KEYS)) is not None:
        own: Counter[str] = Counter(no_braces=1)
        try:
            if forms.quotes(braced, shown):
                raise UnreadableError("the reply repeats the candidate's text")
            found = _of_object(braced, list(objects(braced, KEYS)), shown, own)
        except UnreadableError:
            pass  # `Rating: 4` in front of free text is stated, and no object
        else:
            notes.update(own)
            return found
    notes["no_object"] = 1
    rating = _stated(text, shown)
    stated = forms.stated(text)
    notes["level_name"] = int(stated != text and forms.names_a_level(_difference(text, stated)))
    return rating, forms.reason(stated)


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
    notes["level_name"] = int(any(forms.names_a_level(str(one)) for one in written))
    notes["two_keys"] = int(len(ratings) > 1)
    notes["other_key"] = int("rating" not in ratings)
    reasons = dict.fromkeys(getattr(value, key).strip() for key in _REASON_KEYS)
    return next(iter(ratings.values())), " ".join(filter(None, reasons))


def _check_around(text: str, spans: Sequence[Found], rating: int, shown: Sequence[str]) -> None:
    """Another rating stated outside of the object leaves open which one is meant."""
    starts = [*(span.start for span in spans), len(text)]
    ends = [0, *(span.end for span in spans)]
    around = "\n".join(text[end:start] for end, start in zip(ends, starts, strict=True))
    for line in filter(str.strip, forms.own(around).splitlines()):
        try:
            other = _read_bare(forms.stated(line), shown)
        except UnreadableError:
            continue  # no rating; or a scale, as where the rubric is repeated
        if other != rating:
            raise UnreadableError("different ratings in one reply")


def _stated(text: str, shown: Sequence[str]) -> int:
    *literal, last = forms.variants(text)
    for variant in literal:
        try:
            return _read_bare(variant, shown)
        except UnreadableError:
            continue
    return _read_bare(last, shown)


def _read_bare(text: str, shown: Sequence[str]) -> int:
    plain = [_plain(one) for one in shown]
    sources = [*shown, *plain, *map(forms.stated, plain)]
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
    if isinstance(value, str) and (number := forms.level(value)) is not None:
        return number
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(value: Any) -> str:
    """A reason in another form: null is none, a list of texts is one text."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return " ".join(value)
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
