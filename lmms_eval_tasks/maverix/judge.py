"""What MAVERIX asks of a judge: four ratings of an open answer, one request each (paper, C.2)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from lmms_eval_tasks import settings
from lmms_eval_tasks.judges import Criterion
from lmms_eval_tasks.maverix.labels import DIMENSIONS
from lmms_eval_tasks.utils import prompts

_PLACEHOLDERS = {
    **dict.fromkeys(DIMENSIONS, ()),
    "user": ("question", "reference", "candidate"),
}


class Rating(BaseModel):
    """The judge's reply: a whole number, as in the paper."""

    model_config = ConfigDict(extra="forbid")

    score: int = Field(ge=0, le=5)


def criteria() -> dict[str, Criterion]:
    """The criterion of each dimension; fields `question`, `reference`, `candidate`.

    Raises:
        PromptError: the user's file does not fit.
    """
    return _criteria(settings.prompts_dir())


def prompt() -> prompts.Prompt:
    """The judge's prompts, ours or the user's."""
    return _prompt(settings.prompts_dir())


def _prompt(override_dir: Path | None) -> prompts.Prompt:
    return prompts.load("maverix", "judge", _PLACEHOLDERS, override_dir)


@lru_cache(maxsize=8)
def _criteria(override_dir: Path | None) -> dict[str, Criterion]:
    prompt = _prompt(override_dir)
    return {
        dimension: Criterion(
            name=f"maverix_{dimension}",
            system=prompt.text[dimension],
            template=prompt.text["user"],
            schema=Rating,
            score=_score,
            prompt_hash=prompt.hash,
            bare="score",
        )
        for dimension in DIMENSIONS
    }


def _score(reply: Rating) -> float:
    return float(reply.score)
