"""From a judge's reply to a verdict: the one reader of what judges say. Pure.

The same reply gives the same verdict, however it was obtained (endpoint, cache, batch file,
recording). Nothing is evaluated and nothing is guessed: what a text leaves open is no verdict.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, get_args, get_origin

from annotated_types import Le
from pydantic import AliasChoices, BaseModel, ValidationError
from pydantic.fields import FieldInfo

from lmms_eval_tasks.judges import geval
from lmms_eval_tasks.judges.objects import Found, UnreadableError, objects, unescaped
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
    r"(?:rating|score|{field})[*_]*(?:\s?\([^()\n]{{1,20}}\)[*_]*)?\s?[:=][\s*_]*)"
    r"(?P<quote>['\"]?)(?=[-+]?[0-9])"
)
# What can surround or split the same words in two texts: space, quotes, escapes, emphasis, and
# characters without a width.
_UNSEEN = re.compile(
    r"[\s'\"`\u2018-\u201f\u00ab\u00bb\\*_"
    r"\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]+"
)


def judged(criterion: Criterion, fields: Mapping[str, Any], reply: Reply, label: str) -> Verdict:
    """What `reply` says about `fields`.

    Statuses: `api_error` for a recorded failure of the endpoint (Reply.failure); `truncated` for a
    reply that was cut off, also where what arrived looks whole; `refused` for a content filter or
    a refusal; `parse_failure` (or `truncated`) for a text that is not one verdict (`reader.read`);
    else `ok`, with the criterion's score. An `ok` without a reason has `reason == ""`, so that such
    verdicts can be counted.

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
        if reply.failure:
            raise UnreadableError(reply.failure, Status.API_ERROR)
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
    text = _without_reasoning(reply, names, sources)
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


def _without_reasoning(reply: str, keys: Collection[str], sources: Sequence[str]) -> str:
    """The reply after the reasoning it starts with; tags inside a verdict's own text stay."""
    text = _REASONING.sub("", reply, count=1) if _REASONING.match(reply) else reply
    if text.lstrip().startswith("<think>"):
        raise UnreadableError("the reply ends inside its reasoning", Status.TRUNCATED)
    end = text.rfind("</think>")
    if end < 0 or text.lstrip().startswith(("{", "```")):
        return text
    if any("</think>" in _squashed(source) for source in sources):
        return text  # the tag may be a quotation
    # Inside the object of a verdict, as far as can be told, it is that one's text.
    sides = text[:end], text[end:]
    inside = any(side.count("{") != side.count("}") for side in sides)
    with suppress(UnreadableError):
        inside |= any(one.value and one.start < end < one.end for one in objects(text, keys))
    # Some chat templates open the reasoning in the prompt: only its end is in the reply.
    return text if inside else text[end + len("</think>") :]


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
        for text in map(_squashed, {source, unescaped(source)})
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
        stated = [(rating["form"], rating) for form in _MARKED for rating in form.finditer(text)]
        label = re.compile(_LABEL.format(field=re.escape(bare)), re.IGNORECASE | re.MULTILINE)
        for place in label.finditer(text):
            rating = _ALONE.match(text, place.end())
            if rating is None or not text.startswith(place["quote"], rating.end()):
                raise UnreadableError("a rating that is not one number")
            stated.append((place["label"], rating))
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
