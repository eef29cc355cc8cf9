"""What MAIA asks of a judge: does an open answer agree with a reference (paper, 4.2, B.2)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.judges import Criterion, JudgeConfig
from lmms_eval_tasks.utils import prompt_notes, prompts

NAME = "reference_agreement"
PAPER_JUDGE = "gpt-4o"  # paper, 4.2; it names no dated version
_PLACEHOLDERS = {"system": (), "user": ("question", "references", "candidate")}


class ReferenceAgreement(BaseModel):
    """The judge's reply; the reason comes first, so that it is written before the decision."""

    model_config = ConfigDict(extra="forbid")

    reason: str
    correct: bool


def criterion(override_dir: Path | None = None) -> Criterion:
    """The criterion of `judge_acc`: 1.0 if the answer agrees with at least one reference, else 0.0.

    Its fields are `question`, `references` (list of texts) and `candidate`.

    Args:
        override_dir: folder of prompts whose `maia/judge.yml` replaces ours; None for the
            user's setting. Read once for each folder.

    Raises:
        PromptError: the user's file does not fit.
    """
    return _criterion(override_dir or settings.prompts_dir())


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
    """The judge of `spec`, or of the user's setting, or the paper's (judges.configured)."""
    return judges.configured(PAPER_JUDGE, spec, env)


def _prompt(override_dir: Path | None) -> prompts.Prompt:
    return prompts.load("maia", "judge", _PLACEHOLDERS, override_dir)


@lru_cache(maxsize=8)
def _criterion(override_dir: Path | None) -> Criterion:
    prompt = _prompt(override_dir)
    return Criterion(
        name=NAME,
        system=prompt.text["system"],
        template=prompt.text["user"],
        schema=ReferenceAgreement,
        score=_score,
        prompt_hash=prompt.hash,
    )


def _score(reply: ReferenceAgreement) -> float:
    return float(reply.correct)
