"""G-Eval's ratings of one text, 1 to 5, all in one mode, and the metrics made of them.

A rating is the mean of the scale over the probabilities of the score's token where the judge gives
log-probabilities (judges/geval.py), else the mean of several samples. The two are different
measurements (metrics.md): the dimensions of one text are all rated in the same mode, and each mode
has a metric of its own. Which dimensions there are, and their prompts, is each benchmark's.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from lmms_eval_tasks import judges
from lmms_eval_tasks.judges import Criterion, Judge, JudgeConfig, Verdict, geval
from lmms_eval_tasks.judges.candidate import Judged, graded
from lmms_eval_tasks.judges.panel import failure_of
from lmms_eval_tasks.judges.verdict import Ask, Asks, Status, total_usage
from lmms_eval_tasks.utils import aggregate, answers

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


def describe(config: JudgeConfig) -> dict[str, Any]:
    """How ratings are made, for a run's results, as plain types.

    Args:
        config: the judge, which is described elsewhere.
    """
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
    *,
    samples: int = SAMPLES,
) -> Generator[Asks, Sequence[Verdict], dict[str, Any]]:
    """Rate a text in every dimension; where one gets no log-probabilities, all are sampled.

    For `yield from` in a task's `score` (asking.py). A failure is never turned into a minimum:
    where the judge fails there is no score. What is no answer (empty, refused, cut off) is not put
    to the judge and has the score 0: it is the candidate's own, and 0 is below the scale
    (rating_means.py).

    Args:
        asked: each dimension's criterion, by the name of its ask; of schema `Rating`, with `bare`
            set to its score and `top_logprobs` to `TOP_LOGPROBS`.
        fields: the criteria's fields but `candidate`.
        reply: the model's text.
        samples: how many to draw, at least 1.

    Returns:
        score (the mean of the dimensions' ratings, 1..5; 0 for what is no answer; None), status
        (as candidate.graded's), mode ("logprobs" or "samples"; None without a rating) and
        dimensions, by the name of their ask, each with score (1..5 or None), status and mass (share
        of the probability that lies on the scale).
    """
    status = answers.reply_status(reply)
    done = dict.fromkeys(asked, Judged("", status, 0.0, None))
    if status == "ok":
        candidate = answers.strip_reasoning(reply)[0].strip()
        shown = {**fields, "candidate": candidate}
        first = [Ask(name, one, shown, together=True) for name, one in asked.items()]
        given = yield first
        done = {ask.name: graded(candidate, one) for ask, one in zip(first, given, strict=True)}
        if _all_ok(done) and _mode(done) is None:
            pairs = zip(first, given, strict=True)
            given = yield [ask._replace(samples=samples, first=one) for ask, one in pairs]
            done = {ask.name: graded(candidate, one) for ask, one in zip(first, given, strict=True)}
    return _rated(done)


def _rated(done: Mapping[str, Judged]) -> dict[str, Any]:
    mode = _mode(done) if _all_ok(done) else None
    ratings = {name: _rating(one, mode) for name, one in done.items()}
    failed = [one for one in done.values() if one.status != "ok"]
    mean = aggregate.mean(value for value in ratings.values() if value is not None)
    return {
        "score": failed[0].score if failed else mean,
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

    Args:
        metric: a member of MODES.
        results: what `rate` returned for each item.
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
        criterion: what is asked.
        fields: its placeholders.
        samples: how many to draw, at least 1.
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
    mean = geval.mean_of_samples(drawn)
    usage = total_usage([*([first] if first else []), *drawn])
    common: dict[str, Any] = {
        "judge": drawn[0].judge,
        "model": drawn[0].model,
        "setup": drawn[0].setup,
        "usage": usage,
        "parts": tuple(drawn),
    }
    if mean.n_ok <= mean.n_failed:
        told = f"{mean.n_failed} of {len(drawn)} samples have no score"
        return Verdict(None, failure_of(drawn), told, **common)
    told = f"mean of {mean.n_ok} of {len(drawn)} samples"
    return Verdict(mean.value, Status.OK, told, **common)
