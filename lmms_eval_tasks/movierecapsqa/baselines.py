"""The judged baselines of Table 4: an answer against the dataset's one, by G-Eval and by HELMET.

G-Eval (Liu et al., 2023): coherence and consistency, 1 to 5 each. A rating is the mean of the scale
over the probabilities of the score's token where the judge gives log-probabilities, else the mean
of several samples; the two are different measurements and have metrics of their own
(../geval_ratings.py). Table 4 has one column "normalized to 1" (its caption): here the mean of the
two ratings, scaled by (mean - 1) / 4.

HELMET (Yen et al., 2025): fluency 0 or 1, correctness 0 to 3, each by a request of its own (its
authors ask for both in one). The paper names neither the judges nor how it scaled G-Eval: both are
ours, unverified.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from lmms_eval_tasks import settings
from lmms_eval_tasks.judges import Criterion, Judge, JudgeConfig, Verdict, geval_ratings
from lmms_eval_tasks.judges.candidate import judge_answer
from lmms_eval_tasks.judges.geval_ratings import SAMPLES, Rating
from lmms_eval_tasks.movierecapsqa.geval_ratings import DIMENSIONS, rate
from lmms_eval_tasks.utils import prompt_notes, prompts

GEVAL, HELMET = settings.JUDGED_BASELINES
HELMET_METRICS = ("helmet_fluency", "helmet_correctness")
NO_REFERENCE = "no_reference"  # status: the dataset has no answer to compare with

_PLACEHOLDERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys([f"geval_{name}" for name in DIMENSIONS], ()),
    **dict.fromkeys(HELMET_METRICS, ()),
    "compare": ("question", "reference", "candidate"),
    "read": ("question", "candidate"),
    "score": (),
    "reason_score": (),
}


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Fluency(_Reply):
    """HELMET; a judge that gives a bare grade is read as well."""

    reason: str = ""
    score: int = Field(ge=0, le=1)


class Correctness(_Reply):
    """HELMET."""

    reason: str = ""
    score: int = Field(ge=0, le=3)


# Criterion -> schema, what it is shown, what it replies.
_FORMS: dict[str, tuple[type[BaseModel], str, str]] = {
    **{f"geval_{name}": (Rating, "compare", "score") for name in DIMENSIONS},
    "helmet_fluency": (Fluency, "read", "reason_score"),
    "helmet_correctness": (Correctness, "compare", "reason_score"),
}


def criteria(
    which: Collection[str] = settings.JUDGED_BASELINES, override_dir: Path | None = None
) -> dict[str, Criterion]:
    """The criteria of some baselines, by name: geval_coherence, ..., helmet_correctness.

    Fields: `question`, `reference`, `candidate`.

    Args:
        which: members of `settings.JUDGED_BASELINES`.
        override_dir: folder of prompts whose `movierecapsqa/baselines.yml` replaces ours; None for
            the user's setting.

    Raises:
        PromptError: the user's file does not fit.
    """
    found = _criteria(override_dir or settings.prompts_dir())
    return {name: one for name, one in found.items() if name.partition("_")[0] in which}


def describe(which: Collection[str], config: JudgeConfig) -> dict[str, Any]:
    """Which baselines there are and how they are made, for a run's results, as plain types.

    Args:
        which: members of `settings.JUDGED_BASELINES`.
        config: their judge, which is described elsewhere.
    """
    notes: dict[str, Any] = {
        "which": [name for name in settings.JUDGED_BASELINES if name in which],
        "prompt": prompt_notes.note(_prompt(settings.prompts_dir())),
    }
    if GEVAL in which:
        notes[GEVAL] = geval_ratings.describe(config)
    return notes


def judge_baselines(
    judge: Judge,
    which: Collection[str],
    fields: Mapping[str, str],
    reply: str,
    saved: Mapping[str, Verdict | None] | None = None,
    *,
    samples: int = SAMPLES,
) -> dict[str, dict[str, Any]]:
    """Judge one answer by the baselines that were asked for.

    Statuses are those of `judge_answer`, and `no_reference`; 0 is the score of an answer that is
    none. HELMET has a `verdict` each, G-Eval one per dimension.

    Args:
        judge: who is asked.
        which: members of `settings.JUDGED_BASELINES`; nothing is asked for none.
        fields: `question` and `reference` ("": the item has none).
        reply: the model's text, as the host hands it over.
        saved: verdicts by criterion that stand in place of asking; G-Eval's two only together,
            since they have to be of one mode.
        samples: to draw where the judge gives no log-probabilities, at least 1.

    Returns:
        `geval`: score (0..1 or None), status, mode ("logprobs" or "samples"; None without a
        rating) and dimensions, each with score (1..5 or None), status, mass (share of the
        probability that lies on the scale) and verdict; `helmet_fluency` (score 0, 1) and
        `helmet_correctness` (0..3), each with score, status and verdict.
    """
    given = saved or {}
    has_reference = bool(fields["reference"].strip())
    made: dict[str, dict[str, Any]] = {}
    asked = criteria(which)
    if GEVAL in which:
        pair = {name: asked[f"geval_{name}"] for name in DIMENSIONS}
        kept = {name: given.get(f"geval_{name}") for name in DIMENSIONS}
        made[GEVAL] = (
            rate(judge, pair, fields, reply, saved=kept, samples=samples)
            if has_reference
            else {"score": None, "status": NO_REFERENCE, "mode": None, "dimensions": {}}
        )
    for name in HELMET_METRICS if HELMET in which else ():
        if not has_reference:
            made[name] = {"score": None, "status": NO_REFERENCE, "verdict": None}
            continue
        done = judge_answer(judge, asked[name], fields, reply, given.get(name))
        made[name] = {
            "score": None if done.score is None else int(done.score),
            "status": done.status,
            "verdict": None if done.verdict is None else done.verdict.as_dict(),
        }
    return made


def verdicts(made: Mapping[str, Mapping[str, Any]]) -> dict[str, Verdict]:
    """The verdicts in what `judge_baselines` returned, as it takes them for `saved`.

    Raises:
        ValueError, TypeError: one of them is none.
    """
    rated = (made.get(GEVAL) or {}).get("dimensions") or {}
    found = {f"geval_{name}": one.get("verdict") for name, one in rated.items()}
    found |= {name: (made.get(name) or {}).get("verdict") for name in HELMET_METRICS}
    return {name: Verdict.from_dict(one) for name, one in found.items() if one is not None}


# --- prompts ----------------------------------------------------------------------------------


def _prompt(override_dir: Path | None) -> prompts.Prompt:
    return prompts.load("movierecapsqa", "baselines", _PLACEHOLDERS, override_dir)


@lru_cache(maxsize=8)
def _criteria(override_dir: Path | None) -> dict[str, Criterion]:
    prompt = _prompt(override_dir)
    return {
        name: Criterion(
            name=f"movierecapsqa_{name}",
            system=prompt.text[name],
            template="\n".join([prompt.text[shown], prompt.text[asked]]),
            schema=schema,
            score=_score,
            prompt_hash=prompt.hash,
            bare="score",
            top_logprobs=geval_ratings.TOP_LOGPROBS if schema is Rating else 0,
        )
        for name, (schema, shown, asked) in _FORMS.items()
    }


def _score(reply: Any) -> float:
    return float(reply.score)
