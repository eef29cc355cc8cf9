"""What MAIA asks of a judge: does an open answer agree with one of the references (paper, 4.2, B.2)."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from lmms_eval_tasks.judges import Criterion
from lmms_eval_tasks.utils import prompts

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
        override_dir: the user's folder of prompts; `maia/judge.yaml` in it replaces ours.

    Raises:
        PromptError: the user's file does not fit.
    """
    prompt = prompts.load("maia", "judge", _PLACEHOLDERS, override_dir)
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
