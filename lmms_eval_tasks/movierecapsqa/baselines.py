"""The judged baselines of Table 4, G-Eval and HELMET: an answer against the dataset's answer.

G-Eval (Liu et al., 2023) rates coherence and consistency, 1 to 5 each. If the judge gives
log-probabilities, a rating is the mean of the scale over the probabilities of the score's token.
Else a rating is the mean of several samples. The two are different measurements and have separate
metrics (judges/geval.py). Table 4 has one column "normalized to 1" (its caption). Here it is the
mean of the two ratings, scaled by (mean - 1) / 4.

HELMET (Yen et al., 2025) rates fluency 0 or 1 and correctness 0 to 3, with one request for each;
its authors request both at once. The paper names no judge, and does not say how it scaled G-Eval.
Our choices of both are unverified.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic import BaseModel, ConfigDict, Field

from lmms_eval_tasks import prompts
from lmms_eval_tasks.judges import Criterion, JudgeConfig, geval
from lmms_eval_tasks.judges.asking import judge_reply
from lmms_eval_tasks.judges.geval import GEvalRating
from lmms_eval_tasks.judges.verdict import ScoringSteps
from lmms_eval_tasks.movierecapsqa.settings import JUDGED_BASELINES
from lmms_eval_tasks.utils.metrics import rating_means

GEVAL, HELMET = JUDGED_BASELINES
GEVAL_NAMES = ("geval_coherence", "geval_consistency")  # names of criteria and of requests
HELMET_NAMES = ("helmet_fluency", "helmet_correctness")
NO_REFERENCE = "no_reference"  # status of an item without a reference answer


_PARTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*GEVAL_NAMES, *HELMET_NAMES, "score", "reason_score"), ()),
    "compare": ("question", "reference", "candidate"),
    "read": ("question", "candidate"),
}
prompt = prompts.file("movierecapsqa", "baselines", _PARTS)


class _Reply(BaseModel):
    """A judge that gives a bare grade is read as well."""

    model_config = ConfigDict(extra="forbid")
    reason: str = ""


class Fluency(_Reply):
    """HELMET."""

    score: int = Field(ge=0, le=1)


class Correctness(_Reply):
    """HELMET."""

    score: int = Field(ge=0, le=3)


def criteria(
    which: Collection[str] = JUDGED_BASELINES,
) -> dict[str, Criterion]:
    """Return the criteria of some of `JUDGED_BASELINES`, by name.

    The fields of all criteria are `question`, `reference` and `candidate`.
    """
    given = prompt()
    forms: dict[str, tuple[type[BaseModel], str, str]] = {
        **dict.fromkeys(GEVAL_NAMES, (GEvalRating, "compare", "score")),
        "helmet_fluency": (Fluency, "read", "reason_score"),
        "helmet_correctness": (Correctness, "compare", "reason_score"),
    }
    return {
        name: Criterion(
            name=f"movierecapsqa_{name}",
            system=given.text[name],
            template="\n".join([given.text[shown], given.text[asked]]),
            schema=schema,
            score=lambda reply: float(reply.score),
            prompt_hash=given.hash,
            bare="score",
            top_logprobs=geval.TOP_LOGPROBS if schema is GEvalRating else 0,
        )
        for name, (schema, shown, asked) in forms.items()
        if name.partition("_")[0] in which
    }


def describe_baselines(which: Collection[str], config: JudgeConfig) -> dict[str, object]:
    """Return the chosen baselines and their computation, as plain types for a run's results."""
    known = [name for name in JUDGED_BASELINES if name in which]
    made = {GEVAL: geval.describe_ratings(config)} if GEVAL in which else {}
    return {"which": known, "prompt": prompt().note(), **made}


def rated(
    which: Collection[str], question: str, reference: str, reply: str
) -> ScoringSteps[Mapping[str, rating_means.DimensionRating]]:
    """Rate one answer by the chosen baselines; an empty or cut-off answer has 0.

    The statuses are those of asking.judge_reply, and `no_reference` if the dataset has no answer.

    Yields:
        Requests for judgements (asking.py).

    Returns:
        `geval`: score (0..1 or None), status, mode ("logprobs" or "samples" or None) and dimensions
            (geval.py). `helmet_fluency` (score 0 or 1) and `helmet_correctness` (score 0..3), each
            with its status.
    """
    chosen, fields = criteria(which), {"question": question, "reference": reference}
    if not reference.strip():
        nothing: rating_means.DimensionRating = {"score": None, "status": NO_REFERENCE}
        unrated: geval.TextRatings = {**nothing, "mode": None, "dimensions": {}}
        of_geval = {GEVAL: unrated} if GEVAL in which else {}
        return {**{name: nothing for name in HELMET_NAMES if name in chosen}, **of_geval}
    ratings: dict[str, rating_means.DimensionRating] = {}
    if GEVAL in which:
        whole = yield from geval.rated({name: chosen[name] for name in GEVAL_NAMES}, fields, reply)
        score, by_dimension = whole["score"], whole["dimensions"].items()
        if whole["status"] == "ok" and score is not None:  # 0 means no answer, on any scale
            score = geval.scaled(score, geval.LOWEST, geval.HIGHEST)
        dimensions = {name.removeprefix(f"{GEVAL}_"): rating for name, rating in by_dimension}
        scaled: geval.TextRatings = {**whole, "score": score, "dimensions": dimensions}
        ratings[GEVAL] = scaled
    for name in HELMET_NAMES if HELMET in which else ():
        answer = yield from judge_reply(name, chosen[name], fields, reply)
        ratings[name] = {"score": answer.number, "status": answer.status}
    return ratings
