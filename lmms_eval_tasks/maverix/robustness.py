"""Paraphrase robustness of open answers: a question and its paraphrase are one pool (ours).

The paper names robustness without defining it. Ratings count as in utils/rating_means.py; items
whose answer is withheld are dropped before (scores.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmms_eval_tasks.utils import aggregate
from lmms_eval_tasks.utils.aggregate import Item
from lmms_eval_tasks.utils.rating_means import is_unjudged, value

GOOD = 4  # correctness from which an answer counts as right in `robust_both`
VERSIONS = ("original", "paraphrase")


@dataclass(frozen=True)
class Pair:
    """A question's two answers and their correctness; None where one is missing or unjudged."""

    question: str
    video: str
    original: float | None
    paraphrase: float | None

    @property
    def both(self) -> tuple[float, float] | None:
        """The two ratings, or None unless both are there."""
        if self.original is None or self.paraphrase is None:
            return None
        return self.original, self.paraphrase

    @property
    def good(self) -> bool:
        """Whether both answers have a correctness of 4 or more."""
        return self.both is not None and min(self.both) >= GOOD

    @property
    def gap(self) -> float:
        """Absolute difference of the two ratings, nan where there are not two."""
        return abs(self.both[0] - self.both[1]) if self.both is not None else float("nan")


def pairs(items: Sequence[Item]) -> list[Pair]:
    """Questions with their two answers, sorted by question; none in a run that is not judged."""
    groups: dict[str, dict[str, list[Item]]] = {}
    for item in items:
        versions = groups.setdefault(item["question_id"], {})
        versions.setdefault(item["version"], []).append(item)
    waiting = is_unjudged("correctness", items)
    made = []
    for question, versions in sorted(groups.items()):
        # Two items of one version are not a pair, and which of them came first must not matter.
        both = [versions.get(name, []) for name in VERSIONS]
        single = [None if waiting or len(v) != 1 else value("correctness", v[0]) for v in both]
        video = min(item["video"] for found in versions.values() for item in found)
        made.append(Pair(question, video, single[0], single[1]))
    return made


def judged_pairs(items: Sequence[Item]) -> list[Pair]:
    """The pairs that count: both answers are there and judged."""
    return [pair for pair in pairs(items) if pair.both is not None]


def robust_both(items: Sequence[Item]) -> float | None:
    """Share of pairs with a correctness of 4 or more in both answers."""
    return aggregate.mean(float(pair.good) for pair in judged_pairs(items))


def robust_diff(items: Sequence[Item]) -> float | None:
    """Mean absolute difference, 0..5, of the two answers' correctness."""
    return aggregate.mean(pair.gap for pair in judged_pairs(items))


def robust_n(items: Sequence[Item]) -> int:
    """Number of pairs that count."""
    return len(judged_pairs(items))


def robust_failed(items: Sequence[Item]) -> int:
    """Number of questions that do not: a version is missing, or has no rating that counts."""
    return len(pairs(items)) - robust_n(items)
