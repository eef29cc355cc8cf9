"""The reader of judges' replies, which turns a reply into a verdict. All functions are pure.

No other module reads judges' replies. So the same reply gives the same verdict from any source
(endpoint, cache, batch file, recording). Nothing in a reply is executed as code or guessed: an
ambiguous text is no verdict.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, get_args, get_origin

from pydantic import AliasChoices, BaseModel, ValidationError
from pydantic.fields import FieldInfo

from lmms_eval_tasks.judges import geval
from lmms_eval_tasks.judges.providers.exchange import JudgeReply
from lmms_eval_tasks.judges.reading import labels as label_words
from lmms_eval_tasks.judges.reading import ratings
from lmms_eval_tasks.judges.reading.doubts import is_doubted
from lmms_eval_tasks.judges.reading.objects import (
    ObjectSpan,
    UnreadableError,
    key_places,
    objects,
    outside,
)
from lmms_eval_tasks.judges.reading.quotations import in_list, is_copied, is_quoted
from lmms_eval_tasks.judges.reading.reasoning import without_reasoning
from lmms_eval_tasks.judges.verdict import (
    MAX_REPLY,
    Criterion,
    Status,
    Usage,
    Verdict,
    first_problem,
)
from lmms_eval_tasks.utils.json_files import Json, JsonObject
from lmms_eval_tasks.utils.replies import reply_text
from lmms_eval_tasks.utils.replies.reasoning import unknown_mark

_MAX_REASON = 300  # characters of an error that a verdict keeps
# Keys outside the schema whose texts are no second verdict; a text under another key may be one.
_REASONS = {"reason", "reasons", "reasoning", "explanation", "justification", "rationale"}
# Keys of numbers, beside a score, that may state the end of the scale.
_SCALE_ENDS = {"max_score", "max", "scale", "out_of"}
_VERDICTS = {"label", "verdict", "answer", "judgement", "judgment", "decision", "result"}
_MAX_RAW = 10_000  # characters that are kept of a reply without a verdict
# A field of the schema without braces, as a line before the reason: "correct: false".
_FIELD_LINE = re.compile(
    r"[\s`]*['\"]?(?P<name>\w{1,20})['\"]?: ?(?P<value>true|false)(?=,?\s*(?:\n|\Z))", re.IGNORECASE
)


def read_verdict(
    criterion: Criterion, fields: Mapping[str, object], reply: JudgeReply, label: str
) -> Verdict:
    """Return the verdict that `reply` states.

    The statuses are:

    - `api_error`: a recorded failure of the endpoint (JudgeReply.failure);
    - `truncated`: a reply that was cut off, even if it looks whole. A complete label whose reason
      was cut is read all the same (MAIA's authors read only the first word);
    - `refused`: a refusal, or a reply that a content filter stopped;
    - `parse_failure`: a text that does not state exactly one verdict (`read_reply`);
    - `ok`: a verdict, with the criterion's score. Without a reason, `reason` is "", so that such
      verdicts can be counted.

    Args:
        criterion: the criterion.
        fields: the request's fields; the reply may quote texts of `criterion.untrusted`.
        reply: the endpoint's reply. The verdict keeps its text in `raw`; of a long text without a
            verdict, it keeps the beginning and the end.
        label: the judge's label.
    """
    usage = Usage(1, reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens, reply.batch)
    common: dict[str, Any] = {"judge": label, "model": reply.model, "usage": usage}
    bare, cut = criterion.bare, reply.finish == "length"
    examples = [criterion.system, criterion.template]
    given = criterion.schema, quotable(criterion, fields), bare, criterion.labels

    def parse(text: str) -> BaseModel:
        return read_reply(text, *given, examples=examples, cut=cut)

    def stated(text: str) -> int | None:
        try:
            return int(getattr(parse(text), bare or ""))
        except UnreadableError:
            return None

    try:
        if reply.failure:
            raise UnreadableError(reply.failure, Status.API_ERROR)
        if cut and not criterion.labels:
            raise UnreadableError("the reply hit its token limit", Status.TRUNCATED)
        if reply.finish == "content_filter":
            raise UnreadableError("stopped by a content filter", Status.REFUSED)
        if reply.refusal or reply.text is None:
            raise UnreadableError(reply.refusal or "a reply without content", Status.REFUSED)
        value = parse(reply.text)
    except UnreadableError as problem:
        why = str(problem)[:_MAX_REASON]
        status = Status.TRUNCATED if cut else problem.status
        return Verdict(None, status, why, _ends(reply.text or ""), **common)
    if bare and criterion.top_logprobs and (found := geval.expected(reply, stated)):
        common["expected"], common["expected_mass"] = found
    reason = str(getattr(value, "reason", ""))
    return Verdict(float(criterion.score(value)), Status.OK, reason, reply.text, **common)


def _ends(text: str) -> str:
    """Return a text; of a long one only the beginning and the end, since only people read it."""
    if (left_out := len(text) - _MAX_RAW) <= 0:
        return text
    half = _MAX_RAW // 2
    return f"{text[:half]}\n[{left_out:,} characters left out]\n{text[-half:]}"


def quotable(criterion: Criterion, fields: Mapping[str, object]) -> list[str]:
    """Return the texts of the criterion's untrusted fields; a list gives one text for each item."""
    texts: list[str] = []
    for name in criterion.untrusted:
        value = fields.get(name, ())
        texts += map(str, value) if isinstance(value, (list, tuple)) else [str(value)]
    return texts


def parsed_reply(criterion: Criterion, fields: Mapping[str, object], verdict: Verdict) -> Any:
    """Return a verdict's reply in the criterion's schema; None if it cannot be read."""
    try:
        sources, labels = quotable(criterion, fields), criterion.labels
        return read_reply(verdict.raw, criterion.schema, sources, labels=labels)
    except UnreadableError:
        return None


def read_reply(
    reply: str,
    schema: type[BaseModel],
    untrusted: Iterable[str] = (),
    bare: str | None = None,
    labels: Sequence[tuple[str, BaseModel]] = (),
    *,
    examples: Iterable[str] = (),
    cut: bool = False,
) -> BaseModel:
    """Return the verdict in `reply`, as an instance of `schema`.

    Objects. Reasoning is removed first (`without_reasoning`). Every outermost `{...}` is an object,
    whether it is bare, fenced or inside prose; an object inside another is never a verdict. It may
    be JSON, a Python dict, or a dict with unescaped quotes in its strings. Exactly one object may
    have keys of the schema (equal objects count once), and no such key may occur outside it. It is
    no verdict if the words around it deny, question or suppose it, or call it an example.

    Types. They are strict, with these exceptions: "true" and "false" are booleans; a number may be
    in quotes, also with the end of its scale ("4/5"); 4.0 is a whole number; the case of a label
    does not matter. Repeated and unknown keys are failures. Ignored are the text of a reason that
    was not requested, a `confidence`, and the end of the scale.

    Ratings. With `bare`, a reply without such an object may state its rating in one of these forms:
    `[[4]]`, `\\boxed{4}`, `Rating: 4` (or `Score`, at the start of a sentence), or the number alone
    or before its reason (ratings.py). All ratings in the reply must be equal, including those
    outside an object, and the end of a scale must be that of the schema. If the text field `reason`
    is missing, also in an object, it is "".

    Labels. With `labels`, the verdict may be one of these words (labels.py), or an object with such
    a word under a key of the schema, or a key such as `label`. A missing `reason` is "".

    Quotations. A statement that also occurs in a text of `untrusted` (the candidate's) may be a
    quotation, so it is never a verdict. For an object, only the objects in that text matter, not
    its words. A label or a number that is the whole reply is no quotation.

    Copies. An object with free text that also occurs in a text of `examples` (the prompt) is a copy
    and no verdict. An object without free text, such as `{"score": 4}`, is a verdict, since a copy
    cannot be told from an honest reply.

    Args:
        reply: the judge's text.
        schema: the verdict's form.
        untrusted: texts that the judge may quote.
        bare: the field of a rating without an object.
        labels: words, each with the verdict that it means.
        examples: the prompt's texts.
        cut: True if the reply was cut off. Then a label is no verdict if the missing text could
            change it.

    Raises:
        UnreadableError: there is no single verdict; the message has a short reason, without the
            reply's text.
    """
    if len(reply) > MAX_REPLY:
        raise UnreadableError(f"the reply has more than {MAX_REPLY:,} characters")
    sources = [source for source in untrusted if source]
    fields = schema.model_fields
    names = _names(schema, labelled=bool(labels))
    text = without_reasoning(reply, names, sources)
    if "|" in unknown_mark(text).replace("\uff5c", "|"):
        raise UnreadableError("the reply begins with a special token that nobody knows")
    if labels and (line := _FIELD_LINE.match(text)) and line["name"] in fields:
        text = f'{{"{line["name"]}": {line["value"].lower()}}}\n{text[line.end() :]}'
    if labels and cut:
        text = _closed(text, names, labels)
    spans = list(objects(text, names))
    rest = outside([span for span in spans if span.value is not None], text)
    # Remove special tokens of chat templates, also from texts that a judge may have quoted.
    rest, *told = (reply_text.without_special_tokens(one) for one in (rest, *sources))
    told += sources
    words = [label for label, _ in labels]
    # A reply that is only a label or a number is no quotation: two texts may have it by chance.
    alone = reply.strip(" \t\r\n*.").casefold()
    if alone.isdigit() or alone in {word.casefold() for word in words}:
        told = []
    if span := _verdict(text, spans, names, sources):
        value = span.value or {}
        options = _options(schema) | set(words)
        if is_copied(value, text[span.start : span.end], examples, options):
            raise UnreadableError("the reply repeats the prompt's example")
        value = _labelled(value, rest, labels) if labels else value
        made = _validate(value, schema, reason_may_lack=bool(bare or labels))
        if bare:
            ratings.check_beside(text, span, float(getattr(made, bare)), fields[bare], told)
        return made
    if labels:
        return dict(labels)[label_words.label(rest, words, told, cut=cut)]
    if bare is None:
        raise UnreadableError("no object with the keys of the schema")
    rating = ratings.bare_rating(rest, fields[bare], told)
    return _validate({bare: rating}, schema, reason_may_lack=True)


def _verdict(
    text: str, spans: Sequence[ObjectSpan], keys: Collection[str], sources: Sequence[str]
) -> ObjectSpan | None:
    """Return the only object with keys of the schema; None if there is none.

    Raises:
        UnreadableError: there are different objects; or the object is in a list, is doubted by the
            words around it, or occurs in a source (an untrusted text).
    """
    verdicts: list[ObjectSpan] = []
    for span in spans:
        value = span.value
        if value is None or not keys & value.keys() or any(value == v.value for v in verdicts):
            continue
        if in_list(text, span):
            raise UnreadableError("a list, expected one object")
        if is_doubted(text, span.start, span.end):
            raise UnreadableError("an object that is denied, asked, supposed or an example")
        if is_quoted(value, text[span.start : span.end], sources):
            raise UnreadableError("the reply repeats an object of the candidate's text")
        verdicts.append(span)
    if len(verdicts) > 1:
        raise UnreadableError("different verdicts in one reply")
    if verdicts and any(place[1] for place in key_places(outside(spans, text), keys)):
        # The object may have ended early, at the candidate's quoted brace inside its reason.
        raise UnreadableError("a key of the schema stands outside the object")
    return verdicts[0] if verdicts else None


def _closed(text: str, keys: Collection[str], labels: Sequence[tuple[str, BaseModel]]) -> str:
    """Return a text with `}` after its label if the text is an object that was cut after the label.

    Such an object is `{"correct": false, "re`. Any other text is returned unchanged.
    """
    words = "|".join(re.escape(label) for label, _ in labels)
    names = "|".join(re.escape(key) for key in keys if key.casefold() not in _REASONS)
    start = rf"\s*(?:`{{3}}\w*\s*)?\{{\s*([\"']?)(?:{names})\1\s*:\s*"
    match = re.match(rf"{start}(?:true|false|([\"'])(?:{words})\2)(?=\s*,)", text, re.IGNORECASE)
    if match is None or "}" in text or re.search(rf"[\"'](?:{names})[\"']", text[match.end() :]):
        return text
    return text[: match.end()] + "}"


def _labelled(value: JsonObject, rest: str, labels: Sequence[tuple[str, BaseModel]]) -> JsonObject:
    """Return a verdict's object in which each label is replaced by the fields that it means.

    Raises:
        UnreadableError: the object, its reason or the text around it states another label too.
    """
    means = {label.casefold(): meaning.model_dump(exclude=_REASONS) for label, meaning in labels}
    merged: JsonObject = {}
    for key, part in value.items():
        name, word = key.casefold(), part.strip(" .*").casefold() if isinstance(part, str) else ""
        fields = means[word] if word in means and name not in _REASONS else {name: _boolean(part)}
        if any(merged.get(field, v) != v for field, v in fields.items()):
            raise UnreadableError("different labels in one object")
        merged |= fields
    words = [label for label, _ in labels]
    stated = [word for word in words if means[word.casefold()].items() <= merged.items()]
    for word in stated:
        label_words.check_around(rest, words, word)
    try:
        of_reason = label_words.label(str(merged.get("reason", "")), words, ())
    except UnreadableError:
        return merged
    if of_reason not in stated:
        raise UnreadableError("different labels in one reply")
    return merged


def _boolean(value: Json) -> Json:
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


@lru_cache(maxsize=256)
def _names(schema: type[BaseModel], *, labelled: bool) -> frozenset[str]:
    """Return the keys of a verdict; an object in a reply without any of them is none."""
    fields = schema.model_fields
    names = set(fields).union(*map(_aliases, fields.values()))
    if labelled:
        names |= _VERDICTS
        names |= {name.capitalize() for name in names}
    return frozenset(names)


@lru_cache(maxsize=256)
def _options(schema: type[BaseModel]) -> frozenset[str]:
    """Return the texts that the schema's fields offer as options."""
    kinds = [field.annotation for field in schema.model_fields.values()]
    literals = [kind for kind in kinds if get_origin(kind) is Literal]
    return frozenset(str(one) for kind in literals for one in get_args(kind))


def _aliases(field: FieldInfo) -> set[str]:
    """Return the other keys of a field."""
    alias = field.validation_alias
    return {str(name) for name in alias.choices} if isinstance(alias, AliasChoices) else set()


def _validate(value: JsonObject, schema: type[BaseModel], *, reason_may_lack: bool) -> BaseModel:
    fields = schema.model_fields
    for name, field in fields.items():
        there = value.keys() & _aliases(field)
        same = {key for key in there if name not in value or value[key] == value[name]}
        value = {name if key in same else key: part for key, part in value.items()}
    for part in value.values():
        if isinstance(part, list) and part and all(one in ("...", "\u2026") for one in part):
            raise UnreadableError("a placeholder in place of a list's texts")
    beside = value.keys() - fields.keys()
    reasons = {key for key in beside & _REASONS if isinstance(value[key], str)}
    ends = [end for field in fields.values() for end in ratings.ends(field)]
    reasons |= {key for key in beside & _SCALE_ENDS if value[key] in ends}
    reasons |= {key for key in beside & {"confidence"} if isinstance(value[key], (int, float))}
    if unknown := beside - reasons:
        raise UnreadableError(f"{len(unknown)} unknown keys in the verdict")
    value = {name: _typed(value[name], field) for name, field in fields.items() if name in value}
    reason = fields.get("reason")
    if reason_may_lack and reason and reason.annotation is str and value.get("reason") is None:
        value["reason"] = ""
    try:
        return schema.model_validate(value, strict=True)
    except ValidationError as error:
        raise UnreadableError(first_problem(error)) from error


def _typed(value: Json, field: FieldInfo) -> Json:
    """Return a value in the field's type, if only its notation differs."""
    kind = field.annotation
    options = get_args(kind) if get_origin(kind) is Literal else ()
    numeric = kind in (int, float) or (options and all(type(o) is int for o in options))
    if kind is bool and value in ("true", "false"):
        return value == "true"
    if numeric and isinstance(value, bool):
        raise UnreadableError("a boolean where a number is expected")
    if numeric and isinstance(value, str):
        rating = ratings.rating(value, field)
        value = value if rating is None else rating
    if numeric and kind is not float and isinstance(value, float) and value.is_integer():
        return int(value)
    if options and isinstance(value, str):
        label = value.strip().casefold()
        same = [o for o in options if isinstance(o, str) and o.casefold() == label]
        return same[0] if len(same) == 1 else value
    return value
