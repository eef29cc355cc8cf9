"""G-Eval: a rating finer than the judge's scale, from log-probabilities or from samples.

Liu et al. 2023, "G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment", section 2: with
the scores s_1 ... s_n of the scale and their probabilities, the rating is sum p(s_i) * s_i. For a
judge without log-probabilities the paper takes the mean of 20 samples drawn at temperature 1. These
are two different measurements (docs/metrics.md, "Text"): the dimensions of one text are all rated
in the same mode, and each mode has its own metric. The benchmarks define dimensions and prompts.
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

LOWEST, HIGHEST = 1, 5  # of a rating: every score is one digit, hence one token
MODES = {"geval_logprobs": "logprobs", "geval_samples": "samples"}  # metric -> mode
SAMPLES = 5  # G-Eval's authors draw 20, at four times the price
TEMPERATURE = 1.0  # of the samples, as the authors': at 0 all samples would be equal
TOP_LOGPROBS = 20  # the most that OpenAI and vLLM return
OTHER_MODE = "other_mode"  # status of a text rated in the other metric's mode


class GEvalRating(BaseModel):
    """G-Eval: the score alone, so that its token stands at once."""

    # The schema is part of a request, with its title and this docstring: a change of either makes
    # every cached judgement invalid.
    model_config = ConfigDict(extra="forbid", title="Rating")

    score: int = Field(ge=LOWEST, le=HIGHEST)


def stated_rating(reply: GEvalRating) -> float:
    """Return the score that a reply states, for `Criterion.score`."""
    return float(reply.score)


# --- a rating's mean over the probabilities of its token ------------------------------------------

_NUMBERS = [str(number) for number in range(LOWEST, HIGHEST + 1)]
# Characters around the number in its token, from JSON, lists and Markdown.
_AROUND = " \t\r\n\"'`:,{}[]*"


def expected(
    reply: JudgeReply, read_rating: Callable[[str], int | None]
) -> tuple[float, float] | None:
    """Return the rating's mean over the judge's probabilities at the token of the rating.

    The rating's token is the first one that decides the rating: with another number there the reply
    would state another rating. Every listed token counts that shows one number of the scale, with
    any white space, quotes or punctuation around it; equal numbers are added up.

    Args:
        reply: a reply with tokens.
        read_rating: returns the rating that a text states, None if it states none
            (judges/reader.py).

    Returns:
        The mean, and the probability (0, 1] of all numbers of the scale together. None if the reply
        has no log-probabilities, or if no single token decides the rating.
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
    # Rounding must not carry the mean beyond the scale.
    return min(max(value, min(sums)), max(sums)), min(mass, 1.0)


def scaled(value: float, low: float, high: float) -> float:
    """Return a rating as a share of its scale: low is 0, high is 1.

    Raises:
        ValueError: the rating is not on the scale.
    """
    if not low < high or not low <= value <= high:
        raise ValueError(f"{value} is not on a scale from {low} to {high}")
    return (value - low) / (high - low)


# --- the ratings of one text ----------------------------------------------------------------------


class TextDimension(rating_means.DimensionRating):
    """A text's rating in one dimension, 1 to 5; 0 for a text that is no answer."""

    mass: ReadOnly[float | None]  # probability of the scale's numbers; None for samples


class TextRating(rating_means.DimensionRating):
    """The mean of a text's ratings, and their mode."""

    mode: ReadOnly[str | None]  # logprobs or samples; None without a rating


class TextRatings(TextRating):
    """The mean of a text's ratings, with the ratings."""

    dimensions: ReadOnly[Mapping[str, TextDimension]]


def describe_ratings(config: JudgeConfig) -> JsonObject:
    """Return the settings of ratings as plain types, for a run's results."""
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
    """Rate a text in every dimension; if one has no log-probabilities, all are sampled.

    For `yield from` in a task's `score` (asking.py). If the judge or the model's request fails,
    there is no score. A text that is no answer (empty, refused, cut off) is the candidate's
    failure: it needs no judge and has the score 0, below the scale (rating_means.py).

    Args:
        criteria: criterion by dimension, the name of its ask; of schema `GEvalRating`, with `bare`
            set to its score and `top_logprobs` to `TOP_LOGPROBS`.
        fields: the criteria's fields but `candidate`.
        reply: the text.
        status: the text's status if it was parsed from a reply; no judge is asked unless it is ok.
    """
    candidate = ""
    if status in ("ok", "refused"):
        status, candidate = reply_text.to_judge(reply)
    nothing = 0.0 if status in CANDIDATE_FAILURES else None
    answers = dict.fromkeys(criteria, JudgedAnswer("", status, nothing, None))
    if status == "ok":
        shown = {**fields, "candidate": candidate}
        first = [_RatingRequest(name, one, shown) for name, one in criteria.items()]
        verdicts = yield first
        answers = {
            request.name: judged_answer(candidate, verdict)
            for request, verdict in zip(first, verdicts, strict=True)
        }
        if all(answer.status == "ok" for answer in answers.values()) and _mode(answers) is None:
            pairs = zip(first, verdicts, strict=True)
            verdicts = yield [
                _SampledRequest(a.name, a.criterion, shown, first=verdict) for a, verdict in pairs
            ]
            answers = {
                request.name: judged_answer(candidate, verdict)
                for request, verdict in zip(first, verdicts, strict=True)
            }
    failed = [one for one in answers.values() if one.status != "ok"]
    mode = None if failed else _mode(answers)
    field = {"logprobs": "expected", "samples": "score"}.get(mode or "", "")
    ratings = {name: getattr(one.verdict, field, None) for name, one in answers.items()}
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
            for name, one in answers.items()
        },
    }


def _mode(answers: Mapping[str, JudgedAnswer]) -> str | None:
    """Return the common mode of all dimensions; None if they have none yet."""
    given = [one.verdict for one in answers.values() if one.verdict is not None]
    if all(verdict.expected is not None for verdict in given):
        return MODES["geval_logprobs"]
    # The parts of a mean are by the same judge, those of a panel by others.
    means = [one.parts and all(part.judge == one.judge for part in one.parts) for one in given]
    return MODES["geval_samples"] if all(means) else None


def column(metric: str, results: Iterable[TextRating]) -> list[rating_means.DimensionRating]:
    """Return G-Eval's results for one of its two metrics, each with `score` and `status`.

    A text without a rating has no mode: it counts in the metric of the run's mode, and in both if
    the run has both. A text of the other mode has no score here and the status `other_mode`. If no
    text has the metric's mode, the result is empty: there is no such number.
    """
    given, mode = list(results), MODES[metric]
    if all(one["mode"] != mode for one in given):
        return []
    other: rating_means.DimensionRating = {"score": None, "status": OTHER_MODE}
    return [one if one["mode"] in (mode, None) else other for one in given]


def sampling(config: JudgeConfig) -> JudgeConfig:
    """Return the judge that draws G-Eval's samples: the same judge at `TEMPERATURE`.

    A temperature above 0 is the user's choice and stays; a reasoning model has no temperature.
    """
    if not config.endpoints or config.members or config.sampling.temperature != 0:
        return config
    return replace(config, sampling=replace(config.sampling, temperature=TEMPERATURE))


@dataclass(frozen=True)
class _RatingRequest(JudgeRequest):
    """An ask for a dimension's rating with its token's probabilities; all have the same mode."""

    in_one: ClassVar[bool] = True


@dataclass(frozen=True)
class _SampledRequest(JudgeRequest):
    """An ask for the mean of SAMPLES ratings, from a judge without probabilities."""

    first: Verdict | None = None  # the verdict without probabilities; its usage is counted

    def answered(self, judge: Judge) -> Verdict:
        """Return the mean of the samples (`drawn`)."""
        return sampled_verdict(judge, self)

    def stands(self, saved: Verdict) -> bool:  # noqa: ARG002
        """Return False: among saved verdicts, the first rating's verdict has the mean's place."""
        return False


def sampled_verdict(judge: Judge, request: _SampledRequest) -> Verdict:
    """Return the mean of a request's samples at `TEMPERATURE`; a failure if most have no score.

    The verdict before it (`first`) is not in the mean, but its usage is counted here.
    """
    config = sampling(judge.config)
    # A judge of another session (a stand-in) draws the samples itself.
    if config != judge.config and judges.make_judge(judge.config) is judge:
        judge = judges.make_judge(config)
    verdicts = judge.verdicts(request.criterion, request.fields, SAMPLES)
    scores = [verdict.score for verdict in verdicts if verdict.score is not None]
    enough = 2 * len(scores) > len(verdicts)
    reason = f"mean of {len(scores)} of {len(verdicts)} samples"
    if not enough:
        reason = f"{len(verdicts) - len(scores)} of {len(verdicts)} samples have no score"
    return Verdict(
        fmean(scores) if enough else None,
        Status.OK if enough else failure_of(verdicts),
        reason,
        judge=verdicts[0].judge,
        model=verdicts[0].model,
        setup=verdicts[0].setup,
        usage=total_usage([*([request.first] if request.first else []), *verdicts]),
        parts=tuple(verdicts),
    )
