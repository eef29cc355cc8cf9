"""The judge's criteria for MAVERIX, with one request each.

Four of them rate an open answer (paper, C.2). The fifth rates the consistency of the answers to a
question's two wordings (the authors' code).
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from lmms_eval_tasks import prompts
from lmms_eval_tasks.judges import Criterion
from lmms_eval_tasks.maverix.labels import CONSISTENCY, DIMENSIONS

_USER = ("question", "reference", "candidate")
_ANSWERS = ("candidate", "candidate_paraphrase")  # fields that the tested model wrote
_PLACEHOLDERS = {
    **dict.fromkeys((*DIMENSIONS, CONSISTENCY), ()),
    "user": _USER,
    f"user_{CONSISTENCY}": ("question", "paraphrase", "reference", *_ANSWERS),
}
# A user's file may have a part for each dimension, like the authors' code; `user` serves all
# others.
_OWN_USER = {f"user_{dimension}": _USER for dimension in DIMENSIONS}


LOWEST, HIGHEST = 0, 5  # range of a rating


class MaverixRating(BaseModel):
    """The judge's reply: a whole number, as in the paper."""

    # The title is part of every request: a change would repeat all cached judgements.
    model_config = ConfigDict(extra="forbid", title="Rating")

    score: int = Field(ge=LOWEST, le=HIGHEST)


prompt = prompts.file("maverix", "judge", _PLACEHOLDERS, _OWN_USER)


@prompts.once
def criteria() -> dict[str, Criterion]:
    """Return the criterion of each dimension and of consistency, by name; fields: _PLACEHOLDERS."""
    given = prompt()
    return {
        name: Criterion(
            name=f"maverix_{name}",
            system=given.text[name],
            template=given.text.get(f"user_{name}", given.text["user"]),
            schema=MaverixRating,
            score=lambda reply: float(reply.score),
            prompt_hash=given.hash,
            untrusted=_ANSWERS if name == CONSISTENCY else _ANSWERS[:1],
            bare="score",
        )
        for name in (*DIMENSIONS, CONSISTENCY)
    }
