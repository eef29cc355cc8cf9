"""Ratings of candidate answers, one row for each: what the study's tasks, debate and report share.

A file of ratings holds one JSON object a line:

    {"dimension": "partial_actions", "question": "partial_actions/012",
     "video": "partial_actions/v3.mp4", "candidate": "TimeChat", "judge": "GPT-4o",
     "round": "first", "rating": 4, "reason": "...", "status": "ok"}
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple


class Item(NamedTuple):
    """What a rating is of: one candidate's answer to one question."""

    question: str
    candidate: str


@dataclass(frozen=True)
class RatingRow:
    """One judge's rating of one answer.

    Attributes:
        dimension: a slug of labels.DIMENSIONS.
        question: id of the question, `DIMENSION/NNN` (its place in the annotations, from 1).
        video: `DIMENSION/NAME`, the cluster of intervals, since names of two dimensions are not
            comparable; "" if it is not known.
        candidate: who answered.
        judge: who rated.
        round: one of labels.ROUNDS.
        rating: 1 to 5; None where it failed.
        reason: what the judge gave for it; "" if nothing.
        status: ok, or why there is no rating (parse_failure, empty_answer, ...).
        empty: whether the candidate's answer was empty (the published scripts skip such answers).
    """

    dimension: str
    question: str
    video: str
    candidate: str
    judge: str
    round: str
    rating: float | None
    reason: str = ""
    status: str = "ok"
    empty: bool = False

    @property
    def item(self) -> Item:
        """What was rated."""
        return Item(self.question, self.candidate)

    def as_dict(self) -> dict[str, Any]:
        """Plain types, for a line of a file."""
        return asdict(self)
