"""G-Eval: a rating finer than the judge's scale, from log-probabilities or from samples.

Liu et al. 2023, "G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment", section 2: with
the scores s_1 ... s_n of the scale and their probabilities, the rating is sum p(s_i) * s_i. Where
a judge gives no log-probabilities, the paper takes the mean of 20 samples drawn at temperature 1.
The two are different measurements (docs/metrics.md, "Text"): the dimensions of one text are all
rated in the same mode, and each mode has a metric of its own. Which dimensions there are, and their
prompts, is each benchmark's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import ReadOnly

from lmms_eval_tasks import judges
from lmms_eval_tasks.judges import Criterion, Judge, JudgeConfig, Status, Verdict
from lmms_eval_tasks.judges.providers.exchange import JudgeReply
from lmms_eval_tasks.judges.verdict import (
    JudgedAnswer,
    JudgeRequest,
    ScoringSteps,
    failure_of,
    judged_answer,
    total_usage,
)
from lmms_eval_tasks.utils.json_files import JsonObject
from lmms_eval_tasks.utils.metrics import rating_means
from lmms_eval_tasks.utils.metrics.aggregate import CANDIDATE_FAILURES
from lmms_eval_tasks.utils.replies import reply_text

LOWEST, HIGHEST = 1, 5  # of a rating: every number is one digit, which one token shows
MODES = {"geval_logprobs": "logprobs", "geval_samples": "samples"}  # metric -> mode
SAMPLES = 5  # G-Eval's authors draw 20, at four times the price
TEMPERATURE = 1.0  # of these samples, as the authors': at 0 all samples would be one
TOP_LOGPROBS = 20  # what OpenAI and vLLM give at most
OTHER_MODE = "other_mode"  # status: rated in the way of the other metric


class GEvalRating(BaseModel):
    """G-Eval: the score alone, so that its token stands at once."""

    # The schema is part of a request, its title and this docstring included: a change of either
    # asks every cached judgement again.
    model_config = ConfigDict(extra="forbid", title="Rating")

    score: int = Field(ge=LOWEST, le=HIGHEST)


def stated_rating(reply: GEvalRating) -> float:
    """The score that a reply states, for `Criterion.score`."""
    return float(reply.score)


# --- a rating's mean over the probabilities of its token ------------------------------------------

_NUMBERS = [str(number) for number in range(LOWEST, HIGHEST + 1)]
# What a token may carry beside its number, in JSON, in a list and in Markdown.
_AROUND = " \t\r\n\"'`:,{}[]*"


def expected(
    reply: JudgeReply, read_rating: Callable[[str], int | None]
) -> tuple[float, float] | None:
    """The rating's mean over the judge's own probabilities at the place of the rating's token, and
    the probability (0, 1] that lies on numbers of the scale at all; None where the reply has no
    log-probabilities, or where no single token tells the number.

    The rating's token is the first one that decides what is read: with another number in its place
    the reply would say something else. Every token listed there counts that shows one number of the
    scale, whatever white space, quotes or punctuation stand around it; equal numbers are added up.

    Args:
        reply: with tokens.
        read: what a text states, None where that is no one rating (judges/reader.py).
    """
    tokens = reply.tokens or ()
    chosen = read_rating(reply.text or "") if tokens else None
    texts = [token.text for token in tokens]
    other = next(number for number in _NUMBERS if number != str(chosen))
    for place, token in enumerate(tokens):
        if token.text.strip(_AROUND) == str(chosen):
            changed = token.text.replace(str(chosen), other)
            if read_rating("".join([*texts[:place], changed, *texts[place + 1 :]])) != chosen:
                break
    else:
        return None
    listed = list(token.top)
    if all(text != token.text for text, _ in listed):  # a sample from further down the list
        listed.append((token.text, token.logprob))
    weights: dict[str, list[float]] = {}
    for text, logprob in listed:
        if (number := text.strip(_AROUND)) in _NUMBERS:
            weights.setdefault(number, []).append(math.exp(min(logprob, 0.0)))
    # fsum and a sorted scale: the order of the list must not change the last digit.
    sums = {int(number): math.fsum(weights[number]) for number in sorted(weights)}
    mass = math.fsum(sums.values())
    if chosen not in sums or not mass > 0:
        return None
    value = math.fsum(number * weight for number, weight in sums.items()) / mass
    # Rounding must not carry the mean past an end.
    return min(max(value, min(sums)), max(sums)), min(mass, 1.0)


def scaled(value: float, low: float, high: float) -> float:
    """A rating as a share of the scale it is on: low is 0, high is 1; else ValueError."""
    if not low < high or not low <= value <= high:
        raise ValueError(f"{value} is not on a scale from {low} to {high}")
    return (value - low) / (high - low)


# --- the ratings of one text ----------------------------------------------------------------------


class TextDimension(rating_means.DimensionRating):
    """A text's rating in one dimension, 1 to 5; 0 for what is no answer."""

    mass: ReadOnly[float | None]  # of the probability, the share on the scale; None of samples


class TextRating(rating_means.DimensionRating):
    """The mean of a text's ratings, and how they were made."""

    mode: ReadOnly[str | None]  # logprobs or samples; None without a rating


class TextRatings(TextRating):
    """The same with the ratings themselves."""

    dimensions: ReadOnly[Mapping[str, TextDimension]]


def describe_ratings(config: JudgeConfig) -> JsonObject:
    """Return the settings of ratings, for a run's results, as plain types."""
    drawn = sampling(config)
    return {
        "top_logprobs": TOP_LOGPROBS,
        "samples_without_logprobs": SAMPLES,
        "temperature_of_samples": drawn.sampling.temperature if drawn.endpoints else None,
    }


def rated(
    criteria: Mapping[str, Criterion],
    fields: Mapping[str, object],
    reply: str,
    status: str = "ok",
) -> ScoringSteps[TextRatings]:
    """Rate a text in every dimension; where one gets no log-probabilities, all are sampled.

    For `yield from` in a task's `score` (asking.py). Where the judge or the host's request fails
    there is no score. What is no answer (empty, refused, cut off) is the candidate's own failure:
    it is not put to the judge and has the score 0, which is below the scale (rating_means.py).

    Args:
        asked: each dimension's criterion, by the name of its ask; of schema `GEvalRating`, with
            `bare` set to its score and `top_logprobs` to `TOP_LOGPROBS`.
        status: of the text where it was parsed from a reply; other than ok, nobody is asked.
    """
    candidate = ""
    if status in ("ok", "refused"):
        status, candidate = reply_text.to_judge(reply)
    nothing = 0.0 if status in CANDIDATE_FAILURES else None
    done = dict.fromkeys(criteria, JudgedAnswer("", status, nothing, None))
    if status == "ok":
        shown = {**fields, "candidate": candidate}
        first = [_RatingRequest(name, one, shown) for name, one in criteria.items()]
        given = yield first
        done = {
            request.name: judged_answer(candidate, one)
            for request, one in zip(first, given, strict=True)
        }
        if all(one.status == "ok" for one in done.values()) and _mode(done) is None:
            pairs = zip(first, given, strict=True)
            given = yield [
                _SampledRequest(a.name, a.criterion, shown, first=one) for a, one in pairs
            ]
            done = {
                request.name: judged_answer(candidate, one)
                for request, one in zip(first, given, strict=True)
            }
    failed = [one for one in done.values() if one.status != "ok"]
    mode = None if failed else _mode(done)
    field = {"logprobs": "expected", "samples": "score"}.get(mode or "", "")
    ratings = {name: getattr(one.verdict, field, None) for name, one in done.items()}
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


def _mode(answers: Mapping[str, JudgedAnswer]) -> str | None:
    """The mode that all dimensions have; None if they have none in common yet."""
    given = [one.verdict for one in answers.values() if one.verdict is not None]
    if all(verdict.expected is not None for verdict in given):
        return MODES["geval_logprobs"]
    # A mean's parts are the same judge's; a panel's are others'.
    means = [one.parts and all(part.judge == one.judge for part in one.parts) for one in given]
    return MODES["geval_samples"] if all(means) else None


def column(metric: str, results: Iterable[TextRating]) -> list[rating_means.DimensionRating]:
    """G-Eval's results as one of its two metrics takes them, each with `score` and `status`.

    Texts that were not rated have no mode: they are in the column of a run's mode, and in both
    if it has both. One of the other mode has no score here and the status `other_mode`. If
    none has the metric's mode the column is empty: there is no such number.
    """
    given, mode = list(results), MODES[metric]
    if all(one["mode"] != mode for one in given):
        return []
    other: rating_means.DimensionRating = {"score": None, "status": OTHER_MODE}
    return [one if one["mode"] in (mode, None) else other for one in given]


def sampling(config: JudgeConfig) -> JudgeConfig:
    """The judge that draws G-Eval's samples: the same at `TEMPERATURE`.

    A temperature above 0 is the user's choice and stays; a reasoning model's has no setting.
    """
    if not config.endpoints or config.members or config.sampling.temperature != 0:
        return config
    return replace(config, sampling=replace(config.sampling, temperature=TEMPERATURE))


@dataclass(frozen=True)
class _RatingRequest(JudgeRequest):
    """A dimension's rating with the probabilities of its token; all have the same mode."""

    in_one: ClassVar[bool] = True


@dataclass(frozen=True)
class _SampledRequest(JudgeRequest):
    """SAMPLES ratings, where a judge gives no probabilities: their mean."""

    first: Verdict | None = None  # that told so; its usage counts with theirs

    def answered(self, judge: Judge) -> Verdict:
        """Return the mean of samples (`drawn`)."""
        return sampled_verdict(judge, self)

    def stands(self, saved: Verdict) -> bool:  # noqa: ARG002
        """Not by itself: the rating before it has the mean's place among saved verdicts."""
        return False


def sampled_verdict(judge: Judge, request: _SampledRequest) -> Verdict:
    """The mean of a request's samples at `TEMPERATURE`; a failure if half of them have no score.

    The verdict that it follows (`first`) is not in the mean, but its usage counts here.
    """
    config = sampling(judge.config)
    # A judge that is not the run's own (a stand-in) draws them itself.
    if config != judge.config and judges.make_judge(judge.config) is judge:
        judge = judges.make_judge(config)
    given = judge.verdicts(request.criterion, request.fields, SAMPLES)
    scores = [one.score for one in given if one.score is not None]
    enough = 2 * len(scores) > len(given)
    told = f"mean of {len(scores)} of {len(given)} samples"
    if not enough:
        told = f"{len(given) - len(scores)} of {len(given)} samples have no score"
    return Verdict(
        fmean(scores) if enough else None,
        Status.OK if enough else failure_of(given),
        told,
        judge=given[0].judge,
        model=given[0].model,
        setup=given[0].setup,
        usage=total_usage([*([request.first] if request.first else []), *given]),
        parts=tuple(given),
    )
