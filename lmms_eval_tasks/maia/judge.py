"""What MAIA asks of a judge: does an open answer agree with a reference (paper, 4.2, B.2)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from lmms_eval_tasks.judges import Criterion
from lmms_eval_tasks.utils import prompts

NAME = "reference_agreement"
_PLACEHOLDERS = {"system": (), "user": ("question", "references", "candidate")}


class ReferenceAgreement(BaseModel):
    """The judge's reply; the reason comes first, so that it is written before the decision."""

    model_config = ConfigDict(extra="forbid")

    reason: str
    correct: bool


@prompts.once
def prompt() -> prompts.Prompt:
    """The judge's prompt, ours or the user's.

    Raises:
        PromptError: the user's file does not fit.
    """
    return prompts.load("maia", "judge", _PLACEHOLDERS)


@prompts.once
def criterion() -> Criterion:
    """The criterion of `judge_acc`: 1.0 if the answer agrees with at least one reference, else 0.0.

    Its fields are `question`, `references` (list of texts) and `candidate`.
    """
    given = prompt()
    return Criterion(
        name=NAME,
        system=given.text["system"],
        template=given.text["user"],
        schema=ReferenceAgreement,
        score=_score,
        prompt_hash=given.hash,
    )


def _score(reply: ReferenceAgreement) -> float:
    return float(reply.correct)
