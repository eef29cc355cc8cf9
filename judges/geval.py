"""G-Eval: a rating finer than the judge's scale, from log-probabilities or from samples. Pure.

Liu et al. 2023, "G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment", section 2: with
the scores s_1 ... s_n of the scale and their probabilities, the rating is sum p(s_i) * s_i. Where
a judge gives no log-probabilities, the paper takes the mean of 20 samples drawn at temperature 1.
The two are different measurements: every result says in `mode` which one it is, and they never
share a column (metrics.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Literal, get_args, get_origin

from lmms_eval_tasks.judges.exchange import Reply, Token
from lmms_eval_tasks.judges.verdict import Status, Verdict

if TYPE_CHECKING:
    from pydantic import BaseModel

# What a token may carry beside its number, in JSON, in a list and in Markdown.
_AROUND = " \t\r\n\"'`:,{}[]*"
_INTEGER = r"[-+]?[0-9]{1,9}"
_VALUE = re.compile(rf"[\s\"'*]*({_INTEGER})(?![\w%]|\.0*[1-9])")
_REASONING = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_COLON = re.compile(r"\s*:")
_LEXEME = re.compile(r'"(?:[^"\\]|\\.)*"|' r"'(?:[^'\\]|\\.)*'|[{}\[\]]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Expected:
    """The rating's mean over the judge's own probabilities, at the place of the rating's token."""

    value: float  # within the scale
    mass: float  # (0, 1]: the probability that lies on numbers of the scale; the rest is left out
    chosen: int  # the rating that the reply states
    mode: Literal["logprobs"] = "logprobs"


@dataclass(frozen=True, slots=True)
class SampledScore:
    """The mean over the samples that gave a score."""

    value: float | None  # None: all failed
    n_ok: int
    n_failed: int
    sd: float | None  # of the samples, with n - 1; None for fewer than two
    mode: Literal["samples"] = "samples"


def expected(reply: Reply, schema: type[BaseModel], field: str) -> Expected | None:
    """The mean of `field` over the probabilities of the token that states it.

    At that token's place every listed token counts that shows one number of the scale, whatever
    white space, quotes or punctuation stand around it; equal numbers are added up, and the weights
    are normalised over the numbers found. Tokens that show no number yet (a space, a quote) lie
    outside `mass`, as do those that the endpoint does not list.

    The rating is the value of `field` in an outermost object that is closed, or without one a bare
    rating: `[[4]]`, `\\boxed{4}`, `Rating: 4`, `Score: 4`, the field's name, or a number alone.

    None where the reply has no log-probabilities, states no rating of the scale or several, or
    where one token does not tell the number: it spans several tokens, or a listed number begins a
    longer one of the scale (1 and 10) and no token listed there is as long, so that the judge may
    write digit by digit.

    Raises:
        ValueError: `field` has no scale of whole numbers (`scale`).
    """
    numbers = scale(schema, field)
    if not reply.tokens:
        return None
    place = _place(reply.tokens, field)
    if place is None:
        return None
    token, chosen = place
    listed = list(token.top)
    if all(text != token.text for text, _ in listed):  # a sample from further down the list
        listed.append((token.text, token.logprob))
    stripped = [(text.strip(_AROUND), min(logprob, 0.0)) for text, logprob in listed]
    shown = [(text, logprob) for text, logprob in stripped if re.fullmatch(_INTEGER, text)]
    digits = max((len(text.lstrip("+-")) for text, _ in shown), default=0)
    begun = [n for n in map(str, numbers) if len(n.lstrip("-")) > digits]
    weights: dict[int, list[float]] = {}
    for text, logprob in shown:
        if (number := int(text)) in numbers:
            if any(longer.startswith(text) for longer in begun):
                return None
            weights.setdefault(number, []).append(math.exp(logprob))
    # fsum and a sorted scale: the order of the list must not change the last digit.
    sums = {number: math.fsum(weights[number]) for number in sorted(weights)}
    mass = math.fsum(sums.values())
    if chosen not in sums or not mass > 0:
        return None
    value = math.fsum(number * weight for number, weight in sums.items()) / mass
    # Rounding must not carry the mean past an end.
    return Expected(min(max(value, min(sums)), max(sums)), min(mass, 1.0), chosen)


def scale(schema: type[BaseModel], field: str) -> Sequence[int]:
    """The whole numbers that `field` can be, ascending: a Literal's, or those between its bounds.

    Raises:
        ValueError: it is no bounded whole number.
    """
    info = schema.model_fields[field]
    if get_origin(info.annotation) is Literal:
        numbers = [value for value in get_args(info.annotation) if type(value) is int]
        if len(numbers) == len(get_args(info.annotation)):
            return sorted(numbers)
    elif info.annotation is int:
        # Each bound with what it is off the last number inside; pydantic takes whole bounds only.
        ends = {"ge": 0, "gt": 1, "le": 0, "lt": -1}
        found = [
            (name, int(bound) + more)
            for constraint in info.metadata
            for name, more in ends.items()
            if (bound := getattr(constraint, name, None)) is not None
        ]
        low = [number for name, number in found if name in ("ge", "gt")]
        high = [number for name, number in found if name in ("le", "lt")]
        if low and high:
            return range(max(low), min(high) + 1)
    raise ValueError(f"{schema.__name__}.{field} is no whole number between two bounds")


def mean_of_samples(verdicts: Iterable[Verdict]) -> SampledScore:
    """The mean of several verdicts on one item; failed ones are left out and counted."""
    given = list(verdicts)
    ok = Status.OK.value
    scores = [v.score for v in given if v.status == ok and v.score is not None]
    return SampledScore(
        value=fmean(scores) if scores else None,
        n_ok=len(scores),
        n_failed=len(given) - len(scores),
        sd=stdev(scores) if len(scores) > 1 else None,
    )


def scaled(value: float, low: float, high: float) -> float:
    """A rating on the scale from `low` to `high` as a share of it: low is 0, high is 1.

    Raises:
        ValueError: an empty scale, or a value that is not on it.
    """
    if not low < high or not low <= value <= high:
        raise ValueError(f"{value} is not on a scale from {low} to {high}")
    return (value - low) / (high - low)


def _place(tokens: Sequence[Token], field: str) -> tuple[Token, int] | None:
    """The token that holds the whole number of the rating, and that number."""
    text = "".join(token.text for token in tokens)
    found = list(_ratings(text, _start(text), field))
    if len({int(match[1]) for match in found}) != 1:
        return None
    begin, end = found[0].span(1)  # the others repeat what is already said
    position = 0
    for token in tokens:
        if position <= begin < position + len(token.text):
            return (token, int(found[0][1])) if end <= position + len(token.text) else None
        position += len(token.text)
    return None


def _start(text: str) -> int:
    """Where the reply begins after its reasoning, as the reader has it; its end if in the midst."""
    if match := _REASONING.match(text):
        return match.end()
    if text.lstrip().startswith("<think>"):
        return len(text)
    if text.lstrip().startswith(("{", "```")):
        return 0
    return text.rfind("</think>") + len("</think>") if "</think>" in text else 0


def _ratings(text: str, start: int, field: str) -> Iterator[re.Match[str]]:
    """Matches of `_VALUE` or a bare form; group 1 is the number."""
    values = list(_values(text, start, field))
    if values:
        for value in values:
            if match := _VALUE.match(text, value):
                yield match
        return
    names = f"rating|score|{re.escape(field)}"
    alone = re.compile(rf"[\s\"'*`]*({_INTEGER})[\s\"'*`.]*\Z")
    if match := alone.match(text, start):
        yield match
        return
    stated = rf"(?:\[\[|\\boxed\{{|(?<![\"'])\b(?:{names})\b[\"'*]*\s*[:=])" + _VALUE.pattern
    yield from re.compile(stated, re.IGNORECASE).finditer(text, start)


def _values(text: str, start: int, field: str) -> Iterator[int]:
    """Where the values of the key `field` begin, in outermost objects that are closed."""
    opening = text.find("{", start)
    while opening >= 0:
        depth, end, values = 0, -1, []
        for lexeme in _LEXEME.finditer(text, opening):
            if lexeme[0] in "{[":
                depth += 1
            elif lexeme[0] in "}]":
                depth -= 1
                if depth == 0:
                    end = lexeme.end()
                    break
            elif depth == 1 and lexeme[0][1:-1] == field:
                colon = _COLON.match(text, lexeme.end())
                values += [colon.end()] if colon else []
        if end < 0:
            return
        yield from values
        opening = text.find("{", end)
