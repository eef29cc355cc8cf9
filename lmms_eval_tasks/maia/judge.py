"""What MAIA asks of a judge: does an open answer agree with a reference (paper, 4.2, B.2)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from lmms_eval_tasks import settings
from lmms_eval_tasks.judges import Criterion
from lmms_eval_tasks.utils import prompts

NAME = "reference_agreement"
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


def prompt() -> prompts.Prompt:
    """The judge's prompt, ours or the user's."""
    return _prompt(settings.prompts_dir())


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
