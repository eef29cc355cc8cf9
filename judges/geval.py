"""G-Eval: a rating finer than the judge's scale, from log-probabilities or from samples.

Liu et al. 2023, "G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment", section 2: with
the scores s_1 ... s_n of the scale and their probabilities, the rating is sum p(s_i) * s_i. Where
a judge gives no log-probabilities, the paper takes the mean of 20 samples drawn at temperature 1.
The two are different measurements (metrics.md): the dimensions of one text are all rated in the
same mode, and each mode has a metric of its own. Which dimensions there are, and their prompts, is
each benchmark's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field

from lmms_eval_tasks import judges
from lmms_eval_tasks.judges.verdict import (
    Ask,
    Asks,
    Criterion,
    Judge,
    JudgeConfig,
    Judged,
    Reply,
    Status,
    Token,
    Verdict,
    failure_of,
    graded,
    total_usage,
)
from lmms_eval_tasks.utils.metrics.aggregate import CANDIDATE_FAILURES
from lmms_eval_tasks.utils.replies import answers

LOWEST, HIGHEST = 1, 5  # of a rating
MODES = {"geval_logprobs": "logprobs", "geval_samples": "samples"}  # metric -> mode
SAMPLES = 5  # G-Eval's authors draw 20, at four times the price
TEMPERATURE = 1.0  # of these samples, as the authors': at 0 all samples would be one
TOP_LOGPROBS = 20  # what OpenAI and vLLM give at most
OTHER_MODE = "other_mode"  # status: rated in the way of the other metric


class Rating(BaseModel):
    """G-Eval: the score alone, so that its token stands at once."""

    # The schema is part of a request, its title and this docstring included: a change of either
    # asks every cached judgement again.
    model_config = ConfigDict(extra="forbid")

    score: int = Field(ge=LOWEST, le=HIGHEST)


def stated(reply: Rating) -> float:
    """The score that a reply states, for `Criterion.score`."""
    return float(reply.score)


# --- a rating's mean over the probabilities of its token ------------------------------------------

# What a token may carry beside its number, in JSON, in a list and in Markdown.
_AROUND = " \t\r\n\"'`:,{}[]*"
_INTEGER = r"[-+]?[0-9]{1,9}"


@dataclass(frozen=True, slots=True)
class Expected:
    """The rating's mean over the judge's own probabilities, at the place of the rating's token."""

    value: float  # within the scale
    mass: float  # (0, 1]: the probability that lies on numbers of the scale; the rest is left out


def expected(
    reply: Reply, numbers: Sequence[int], read: Callable[[str], int | None]
) -> Expected | None:
    """The mean of `field` over the probabilities of the token that states it.

    At that token's place every listed token counts that shows one number of the scale, whatever
    white space, quotes or punctuation stand around it; equal numbers are added up, and the weights
    are normalised over the numbers found. Tokens that show no number yet (a space, a quote) lie
    outside `mass`, as do those that the endpoint does not list.

    The rating's token is the first one that decides what is read: with another number in its place
    the reply would say something else.

    None where the reply has no log-probabilities, or where one token does not tell the number: it
    spans several tokens, or a listed number begins a longer one of the scale (1 and 10) and no
    token listed there is as long, so that the judge may write digit by digit.

    Args:
        reply: with tokens.
        numbers: of the scale, ascending (`scale`).
        read: what a text states, None where that is no one rating (judges/reader.py).
    """
    chosen = read(reply.text or "") if reply.tokens else None
    token = None if chosen is None else _place(reply.tokens or (), chosen, numbers, read)
    if token is None:
        return None
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
    return Expected(min(max(value, min(sums)), max(sums)), min(mass, 1.0))


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


def scaled(value: float, low: float, high: float) -> float:
    """A rating on the scale from `low` to `high` as a share of it: low is 0, high is 1.

    Raises:
        ValueError: an empty scale, or a value that is not on it.
    """
    if not low < high or not low <= value <= high:
        raise ValueError(f"{value} is not on a scale from {low} to {high}")
    return (value - low) / (high - low)


def _place(
    tokens: Sequence[Token],
    chosen: int,
    numbers: Sequence[int],
    read: Callable[[str], int | None],
) -> Token | None:
    """The token that shows the rating and decides what is read; None if no single one does."""
    texts = [token.text for token in tokens]
    other = str(next(number for number in numbers if number != chosen))
    for place, text in enumerate(texts):
        if text.strip(_AROUND) == str(chosen):
            changed = [*texts[:place], text.replace(str(chosen), other), *texts[place + 1 :]]
            if read("".join(changed)) != chosen:
                return tokens[place]
    return None


# --- the ratings of one text ----------------------------------------------------------------------


def describe(config: JudgeConfig) -> dict[str, Any]:
    """How ratings are made, for a run's results, as plain types."""
    drawn = sampling(config)
    return {
        "top_logprobs": TOP_LOGPROBS,
        "samples_without_logprobs": SAMPLES,
        "temperature_of_samples": drawn.sampling.temperature if drawn.endpoints else None,
    }


def rated(
    asked: Mapping[str, Criterion],
    fields: Mapping[str, Any],
    reply: str,
    status: str = "ok",
) -> Generator[Asks, Sequence[Verdict], dict[str, Any]]:
    """Rate a text in every dimension; where one gets no log-probabilities, all are sampled.

    For `yield from` in a task's `score` (asking.py). A failure is never turned into a minimum:
    where the judge or the host's request fails there is no score. What is no answer (empty,
    refused, cut off) is not put to the judge and has the score 0: it is the candidate's own, and 0
    is below the scale (rating_means.py).

    Args:
        asked: each dimension's criterion, by the name of its ask; of schema `Rating`, with `bare`
            set to its score and `top_logprobs` to `TOP_LOGPROBS`.
        status: of the text where it was parsed from a reply; other than ok, nobody is asked.

    Returns:
        score (the mean of the dimensions' ratings, 1..5; 0 for what is no answer; None), status
        (as verdict.graded's), mode ("logprobs" or "samples"; None without a rating) and
        dimensions, by the name of their ask, each with score (1..5 or None), status and mass (share
        of the probability that lies on the scale).
    """
    candidate = ""
    if status in ("ok", "refused"):
        status, candidate = answers.to_judge(reply)
    nothing = 0.0 if status in CANDIDATE_FAILURES else None
    done = dict.fromkeys(asked, Judged("", status, nothing, None))
    if status == "ok":
        shown = {**fields, "candidate": candidate}
        first = [Ask(name, one, shown, together=True) for name, one in asked.items()]
        given = yield first
        done = {ask.name: graded(candidate, one) for ask, one in zip(first, given, strict=True)}
        if _all_ok(done) and _mode(done) is None:
            pairs = zip(first, given, strict=True)
            given = yield [ask._replace(samples=SAMPLES, first=one) for ask, one in pairs]
            done = {ask.name: graded(candidate, one) for ask, one in zip(first, given, strict=True)}
    return _rated(done)


def _rated(done: Mapping[str, Judged]) -> dict[str, Any]:
    mode = _mode(done) if _all_ok(done) else None
    ratings = {name: _rating(one, mode) for name, one in done.items()}
    failed = [one for one in done.values() if one.status != "ok"]
    known = [value for value in ratings.values() if value is not None]
    return {
        "score": failed[0].score if failed else fmean(known) if known else None,
        "status": failed[0].status if failed else "ok",
        "mode": mode,
        "dimensions": {
            name: {
                "score": ratings[name],
                "status": one.status,
                "mass": one.verdict.expected_mass if one.verdict and mode == "logprobs" else None,
            }
            for name, one in done.items()
        },
    }


def column(metric: str, results: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """G-Eval's results as one of its two metrics takes them, each with `score` and `status`.

    Texts that were not rated have no mode: they are in the column of a run's mode, and in both
    if it has both. One of the other mode has no score here and the status `other_mode`. If
    none has the metric's mode the column is empty: there is no such number.
    """
    given, mode = list(results), MODES[metric]
    if all(one["mode"] != mode for one in given):
        return []
    other = {"score": None, "status": OTHER_MODE}
    return [one if one["mode"] in (mode, None) else other for one in given]


def sampling(config: JudgeConfig) -> JudgeConfig:
    """The judge that draws G-Eval's samples: the same at `TEMPERATURE`.

    A temperature above 0 is the user's choice and stays; a reasoning model's has no setting.
    """
    if not config.endpoints or config.members or config.sampling.temperature != 0:
        return config
    return replace(config, sampling=replace(config.sampling, temperature=TEMPERATURE))


def drawn(
    judge: Judge,
    criterion: Criterion,
    fields: Mapping[str, Any],
    samples: int,
    first: Verdict | None = None,
) -> Verdict:
    """A verdict that is the mean of several samples.

    Args:
        judge: who is asked; drawn at `TEMPERATURE`.
        first: the verdict without log-probabilities that this follows; its usage counts here.
    """
    return _mean(first, _sampler(judge).verdicts(criterion, fields, samples))


def _all_ok(done: Mapping[str, Judged]) -> bool:
    return all(one.status == "ok" for one in done.values())


def _mode(done: Mapping[str, Judged]) -> str | None:
    """The mode that all dimensions have; None if they have none in common yet."""
    given = [one.verdict for one in done.values() if one.verdict is not None]
    if all(verdict.expected is not None for verdict in given):
        return MODES["geval_logprobs"]
    return MODES["geval_samples"] if all(map(_is_sampled, given)) else None


def _is_sampled(verdict: Verdict) -> bool:
    """Whether a verdict is `_mean`'s: its parts are the same judge's (a panel's are others')."""
    return bool(verdict.parts) and all(part.judge == verdict.judge for part in verdict.parts)


def _rating(one: Judged, mode: str | None) -> float | None:
    if one.verdict is None or mode is None:
        return None
    return one.verdict.expected if mode == "logprobs" else one.verdict.score


def _sampler(judge: Judge) -> Judge:
    """Who draws the samples; a judge that is not the run's own (a stand-in) draws them itself."""
    config = sampling(judge.config)
    is_ours = config != judge.config and judges.make(judge.config) is judge
    return judges.make(config) if is_ours else judge


def _mean(first: Verdict | None, drawn: Sequence[Verdict]) -> Verdict:
    """The samples as one verdict; a failure unless more than half of them have a score.

    `usage` has the request for log-probabilities (`first`) too, whose score is not among them.
    """
    scores = [one.score for one in drawn if one.score is not None]
    usage = total_usage([*([first] if first else []), *drawn])
    common: dict[str, Any] = {
        "judge": drawn[0].judge,
        "model": drawn[0].model,
        "setup": drawn[0].setup,
        "usage": usage,
        "parts": tuple(drawn),
    }
    if 2 * len(scores) <= len(drawn):
        told = f"{len(drawn) - len(scores)} of {len(drawn)} samples have no score"
        return Verdict(None, failure_of(drawn), told, **common)
    told = f"mean of {len(scores)} of {len(drawn)} samples"
    return Verdict(fmean(scores), Status.OK, told, **common)
