"""What MAVERIX asks of a judge: four ratings of an open answer, one request each (paper, C.2)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from lmms_eval_tasks.judges import Criterion
from lmms_eval_tasks.maverix.labels import DIMENSIONS
from lmms_eval_tasks.utils import prompts

_USER = ("question", "reference", "candidate")
_PLACEHOLDERS = {**dict.fromkeys(DIMENSIONS, ()), "user": _USER}
# A user's file may have one for each dimension, as the authors' code does; `user` is for the rest.
_OWN_USER = {f"user_{dimension}": _USER for dimension in DIMENSIONS}


class Rating(BaseModel):
    """The judge's reply: a whole number, as in the paper."""

    model_config = ConfigDict(extra="forbid")

    score: int = Field(ge=0, le=5)


@prompts.once
def prompt() -> prompts.Prompt:
    """The judge's prompts, ours or the user's.

    Raises:
        PromptError: the user's file does not fit.
    """
    return prompts.load("maverix", "judge", _PLACEHOLDERS, optional=_OWN_USER)


@prompts.once
def criteria() -> dict[str, Criterion]:
    """The criterion of each dimension; fields `question`, `reference`, `candidate`."""
    given = prompt()
    return {
        dimension: Criterion(
            name=f"maverix_{dimension}",
            system=given.text[dimension],
            template=given.text.get(f"user_{dimension}", given.text["user"]),
            schema=Rating,
            score=_score,
            prompt_hash=given.hash,
            bare="score",
        )
        for dimension in DIMENSIONS
    }


def _score(reply: Rating) -> float:
    return float(reply.score)
