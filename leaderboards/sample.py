"""Published scores of a released sample, summed up: data beside a paper's tables."""

from __future__ import annotations

from decimal import Decimal

from pydantic import BaseModel, ConfigDict, model_validator


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Moments(_Strict):
    """Scores of some answers: how many, their mean, their population variance (four decimals)."""

    n: int
    mean: Decimal
    variance: Decimal


class SampleRow(_Strict):
    """A model or people in the sample, by dimension."""

    name: str  # as the sample spells it
    identity: str | None  # as Row.identity; None for people
    answers: int
    empty: int  # answers without text
    scored: dict[str, Moments]  # over every answer that has scores
    complete: dict[str, Moments]  # over the questions that all models have scores for

    @property
    def coverage(self) -> float:
        """Share of the answers that have scores, 0 to 1."""
        return next(iter(self.scored.values())).n / self.answers


class Sample(_Strict):
    """What a sample says about each model. `digest` is that of the file (the reader's)."""

    source: str  # our words
    digest: str
    questions: int
    complete: int  # questions that all models have scores for
    rows: list[SampleRow]

    def models(self) -> list[SampleRow]:
        """The rows of models, people left out."""
        return [row for row in self.rows if row.identity]

    @model_validator(mode="after")
    def _consistent(self) -> Sample:
        for row in self.rows:
            if list(row.scored) != list(row.complete):
                raise ValueError(f"sample, {row.name}: other dimensions in its two halves")
            for moments in row.complete.values():
                if moments.n > self.complete:
                    raise ValueError(f"sample, {row.name}: more scores than complete questions")
        return self
