"""The benchmark's own judge: is an answer correct against the reference, and its score of 0 to 5.

Both numbers come from one reply, with the keys of the published judgements. An empty answer is not
put to the judge: it is the candidate's failure and worth 0 (judges/candidate.py). The published
scripts skip such answers, so results give both counts; `status == "empty"` tells them apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.cvrr_es.labels import HIGHEST_SCORE, LOWEST_SCORE
from lmms_eval_tasks.judges import Criterion, JudgeConfig, Verdict, reader
from lmms_eval_tasks.utils import aggregate, prompt_notes, prompts

NAME = "cvrr_es"
PAPER_JUDGE = "gpt-3.5-turbo"  # of the published judgements, which name no dated version
_PLACEHOLDERS = {"system": (), "user": ("question", "reference", "candidate")}


class Judgement(BaseModel):
    """The judge's reply, its keys in the published order. One of the published scores is 4.5."""

    model_config = ConfigDict(extra="forbid")

    pred: Literal["correct", "incorrect"]
    score: float = Field(ge=LOWEST_SCORE, le=HIGHEST_SCORE)
    reason: str


class Points(NamedTuple):
    """A verdict's two numbers: `correct` is what the verdict's own score is, 0 to 1."""

    correct: float
    score: float  # 0 to 5


def criterion(override_dir: Path | None = None) -> Criterion:
    """The criterion of an answer: 1.0 if it is correct, else 0.0; `points` has the score as well.

    Its fields are `question`, `reference` and `candidate`. Recorded replies are told apart by
    further ones, such as the question's id, since questions repeat.

    Args:
        override_dir: folder of prompts whose `cvrr_es/judge.yml` replaces ours; None for the
            user's setting. Read once for each folder.

    Raises:
        PromptError: the user's file does not fit.
    """
    return _criterion(override_dir or settings.prompts_dir())


def points(verdict: Verdict | None, answer: str = "") -> Points | None:
    """Both numbers of a verdict on `answer`, read from the reply that it keeps; None if it failed.

    Of a panel `score` is the mean of those members that voted, whatever its rule for `correct`.
    """
    if verdict is None or verdict.score is None:
        return None
    votes = [part for part in verdict.parts if part.score is not None]
    if votes and not verdict.raw:  # a panel's verdict has no reply of its own
        found = [one for one in (points(vote, answer) for vote in votes) if one is not None]
        mean = aggregate.mean(one.score for one in found)
        return None if mean is None else Points(verdict.score, mean)
    try:
        value = reader.read(verdict.raw, Judgement, [answer])
    except reader.UnreadableError:
        return None  # saved by somebody else's hand: its two numbers cannot be told
    return Points(verdict.score, float(getattr(value, "score")))  # noqa: B009


def check(spec: str | None = None) -> None:
    """Stop before a run whose judge (`spec`, or the user's) or judge's prompt cannot be used.

    Raises:
        JudgeError, PromptError: what is wrong and the choices there are.
    """
    judges.preflight(config(spec), [criterion()])


def describe(spec: str | None = None) -> dict[str, Any]:
    """Judge and prompt for a run's results, as plain types; no secrets."""
    return prompt_notes.judge(config(spec), _prompt(settings.prompts_dir()))


def prompt_name() -> str:
    """The prompt in use: its file and its hash."""
    return prompt_notes.name(_prompt(settings.prompts_dir()))


def config(spec: str | None = None, env: Mapping[str, str] | None = None) -> JudgeConfig:
    """The judge of `spec`, or of the user's setting, or the published one (judges.configured)."""
    return judges.configured(PAPER_JUDGE, spec, env)


def _prompt(override_dir: Path | None) -> prompts.Prompt:
    return prompts.load("cvrr_es", "judge", _PLACEHOLDERS, override_dir)


@lru_cache(maxsize=8)
def _criterion(override_dir: Path | None) -> Criterion:
    prompt = _prompt(override_dir)
    return Criterion(
        name=NAME,
        system=prompt.text["system"],
        template=prompt.text["user"],
        schema=Judgement,
        score=_correct,
        prompt_hash=prompt.hash,
    )


def _correct(reply: Judgement) -> float:
    return float(reply.pred == "correct")
