"""What a model replies to the four steps of `lmms-eval-tasks haven build`: schemas with checks.

The check of shots' numbers is in Python: the JSON schema that is sent is the same for any number.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, create_model, model_validator


def _line(value: str) -> str:
    if not (line := " ".join(value.split())):
        raise ValueError("an empty text")
    return line


def _some(values: list[Any]) -> list[Any]:
    if not values:
        raise ValueError("an empty list")
    return values


Line = Annotated[str, AfterValidator(_line)]


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Description(_Reply):
    """Of a frame or of a shot."""

    description: Line


class AlignedSentence(_Reply):
    """A sentence and the numbers of the shots that it tells about, as they were shown, from 1."""

    sentence: Line
    shots: Annotated[list[int], AfterValidator(_some)]


class Sentences(_Reply):
    """A document or a summary."""

    sentences: Annotated[list[AlignedSentence], AfterValidator(_some)]


@lru_cache(maxsize=256)
def sentences_on(shots: int) -> type[Sentences]:
    """Sentences that name only shots 1 to `shots`, none twice in one sentence."""

    def known(reply: Sentences) -> Sentences:
        for number, one in enumerate(reply.sentences, 1):
            if wrong := [shot for shot in one.shots if not 1 <= shot <= shots]:
                raise ValueError(f"sentence {number} names shot {wrong[0]} of {shots}")
            if len(set(one.shots)) < len(one.shots):
                raise ValueError(f"sentence {number} names a shot twice")
        return reply

    validators: dict[str, Any] = {"check": model_validator(mode="after")(known)}
    return create_model(
        "Sentences", __base__=Sentences, __doc__=Sentences.__doc__, __validators__=validators
    )
