"""What the five steps of `lmms-eval-tasks facts` reply: schemas, and checks of their numbers.

The checks are in Python: the JSON schema that is sent stays one that every strict endpoint takes,
and the same one for any number of facts, so that it is compiled once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator

from lmms_eval_tasks.judges.writer import SOME, Form, Line, checked

R = TypeVar("R", bound=BaseModel)


def _upper(value: Any) -> Any:
    return value.strip().upper() if isinstance(value, str) else value


def _lower(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


Modality = Annotated[Literal["dialogue", "vision", "multimodal"], BeforeValidator(_lower)]
Category = Annotated[Literal["NPA", "CRD", "TH", "STA", "TEMP"], BeforeValidator(_upper)]


class Facts(Form):
    """Atomic facts."""

    facts: Annotated[list[Line], SOME]


class Pair(Form):
    """A question, its answer and the numbers of the facts they rest on, from 1."""

    question: Line
    answer: Line
    facts: Annotated[list[int], SOME]


class Pairs(Form):
    """Question-answer pairs."""

    pairs: Annotated[list[Pair], SOME]


class SimplePair(Form):
    """The simpler version of the pair with this number."""

    id: int
    question: Line
    answer: Line


class SimplePairs(Form):
    """Simplified pairs."""

    pairs: list[SimplePair]


class ModalityLabel(Form):
    """What the question with this number needs."""

    id: int
    label: Modality


class Modalities(Form):
    """Modality labels."""

    labels: list[ModalityLabel]


class CategoryLabel(Form):
    """What the question with this number is about."""

    id: int
    label: Category


class Categories(Form):
    """Category labels."""

    labels: list[CategoryLabel]


# The steps in their order.
SCHEMAS: Mapping[str, type[BaseModel]] = {
    "facts": Facts,
    "pairs": Pairs,
    "simplify": SimplePairs,
    "modality": Modalities,
    "category": Categories,
}


@lru_cache(maxsize=256)
def pairs_on(facts: int) -> type[Pairs]:
    """Pairs that name only facts 1 to `facts`."""

    def known(reply: Pairs) -> Pairs:
        for number, pair in enumerate(reply.pairs, 1):
            if wrong := [fact for fact in pair.facts if not 1 <= fact <= facts]:
                raise ValueError(f"pair {number} names fact {wrong[0]} of {facts}")
        return reply

    return checked(Pairs, known)


@lru_cache(maxsize=256)
def numbered(schema: type[R], number: int) -> type[R]:
    """A schema of simplified pairs or labels, with the numbers 1 to `number`, each once."""

    def complete(reply: R) -> R:
        (items,) = (value for _, value in reply)
        ids = sorted(item.id for item in items)
        if ids != list(range(1, number + 1)):
            raise ValueError(f"expected the numbers 1 to {number}, each once, found {ids[:50]}")
        return reply

    return checked(schema, complete)
