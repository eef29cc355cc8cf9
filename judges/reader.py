"""The one reader of judges' replies: text in, one validated verdict out, or why not. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from lmms_eval_tasks.judges.verdict import Status

_REASONING = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_MAX_REPLY = 200_000  # characters; a longer reply is no verdict and not worth scanning


class UnreadableError(Exception):
    """Why a reply is not one verdict; `status` is parse_failure or truncated."""

    def __init__(self, reason: str, status: Status = Status.PARSE_FAILURE) -> None:
        super().__init__(reason)
        self.status = status


class _Span(NamedTuple):
    text: str
    closed: bool  # False: the reply ends inside this object


def read(reply: str, schema: type[BaseModel], untrusted: Iterable[str] = ()) -> BaseModel:
    """The verdict object in `reply`, as an instance of `schema`.

    Closed reasoning blocks are dropped. Then every outermost `{...}` counts, bare, fenced or inside
    prose: exactly one may carry keys of the schema (repeated equal ones count once). An object that
    is not JSON gets one repair. An object inside another, or quoted from `untrusted` (the
    candidate's text), is never a verdict. Types are strict, apart from the strings "true" and
    "false" for a boolean; unknown keys and repeated keys are failures.

    Raises:
        UnreadableError: with the reason, short and without the reply's text.
    """
    if len(reply) > _MAX_REPLY:
        raise UnreadableError(f"the reply has {len(reply)} characters")
    text = _without_reasoning(reply)
    _refuse_list(text)
    quotable = [quote for source in untrusted for quote in _json_objects(source)]
    verdicts: list[dict[str, Any]] = []
    for span in _objects(text):
        value = _decode(span, schema.model_fields.keys())
        if not schema.model_fields.keys() & value.keys() or value in verdicts:
            continue
        if value in quotable:
            raise UnreadableError("the reply repeats an object of the candidate's text")
        verdicts.append(value)
    if not verdicts:
        raise UnreadableError("no JSON object with the keys of the schema")
    if len(verdicts) > 1:
        raise UnreadableError(f"{len(verdicts)} different verdicts in one reply")
    return _validate(verdicts[0], schema)


def _without_reasoning(reply: str) -> str:
    """The reply after the reasoning it starts with; tags inside a verdict's own text stay."""
    text = _REASONING.sub("", reply, count=1) if _REASONING.match(reply) else reply
    if text.lstrip().startswith("<think>"):
        raise UnreadableError("the reply ends inside its reasoning", Status.TRUNCATED)
    if not text.lstrip().startswith(("{", "```")):
        # Some chat templates open the reasoning in the prompt: only its end is in the reply.
        return text.rpartition("</think>")[2]
    return text


def _refuse_list(text: str) -> None:
    """A list of verdicts is not one verdict, even if it holds only one."""
    try:
        value = json.loads(_unfenced(text))
    except (ValueError, RecursionError):
        return
    if not isinstance(value, dict):
        raise UnreadableError(f"expected a JSON object, not {type(value).__name__}")


def _unfenced(text: str) -> str:
    match = re.fullmatch(r"\s*```[\w-]*\n(.*?)\n?```\s*", text, re.DOTALL)
    return match[1] if match else text


def _objects(text: str) -> Iterator[_Span]:
    """The outermost objects of a text, in order; a broken one is never searched for inner ones."""
    start = text.find("{")
    while start >= 0:
        end = _strict_end(text, start) or _balanced_end(text, start)
        if end is None:
            rest = _before_fence(text[start:])
            yield _Span(rest, closed=rest.endswith("}"))
            return
        yield _Span(text[start:end], closed=True)
        start = text.find("{", end)


def _strict_end(text: str, start: int) -> int | None:
    try:
        return json.JSONDecoder().raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return None


def _balanced_end(text: str, start: int) -> int | None:
    """End of the object that opens at `start`, braces counted outside double-quoted strings."""
    depth, quoted, position = 0, False, start
    while position < len(text):
        char = text[position]
        if char == "\\":
            position += 1
        elif char == '"':
            quoted = not quoted
        elif not quoted and char in "{}":
            depth += 1 if char == "{" else -1
            if depth == 0:
                return position + 1
        position += 1
    return None


def _before_fence(text: str) -> str:
    return re.sub(r"\s*```\s*$", "", text).rstrip()


def _json_objects(text: str) -> Iterator[dict[str, Any]]:
    """The outermost objects of a text that are plain JSON."""
    for span in _objects(text):
        try:
            value = json.loads(span.text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def _decode(span: _Span, keys: Iterable[str]) -> dict[str, Any]:
    """The object as a dict; {} for braces in prose, which name no key of the schema."""
    if span.closed:
        try:
            return _object(
                json.loads(
                    span.text, object_pairs_hook=_without_repeats, parse_constant=_no_constant
                )
            )
        except (ValueError, RecursionError):
            pass  # not JSON: looked at below
    counts = [len(re.findall(rf"\b{re.escape(key)}\b[\"']?\s*:", span.text)) for key in keys]
    if not any(counts):
        return {}
    if not span.closed:
        # A repair would invent the missing end: `"score": 1` may have been 10.
        raise UnreadableError("the reply ends inside its JSON object", Status.TRUNCATED)
    if max(counts) > 1:
        raise UnreadableError("a key occurs twice in one object")
    from json_repair import repair_json

    return _object(repair_json(span.text, return_objects=True, skip_json_loads=True))


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UnreadableError("a JSON object that cannot be repaired")
    return value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise UnreadableError("a key occurs twice in one object")
    return dict(pairs)


def _no_constant(name: str) -> float:
    raise UnreadableError(f"{name} is not a JSON number")


def _validate(value: dict[str, Any], schema: type[BaseModel]) -> BaseModel:
    if unknown := value.keys() - schema.model_fields.keys():
        raise UnreadableError(f"{len(unknown)} unknown keys in the verdict")
    for name, field in schema.model_fields.items():
        if field.annotation is bool and value.get(name) in ("true", "false"):
            value = value | {name: value[name] == "true"}
    try:
        return schema.model_validate(value, strict=True)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UnreadableError(f"{place or 'verdict'}: {first['msg']}") from error
