"""Ratings of open answers, 0 to 5 in four dimensions (C.2), and paraphrase robustness (ours).

Means of ratings exist as `_valid` only, with the count of failures and the coverage beside them
(metrics.md). An answer that is empty, refused or cut off is worth 0, since abstaining must not pay.
Items whose answer is withheld are dropped before (scores.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lmms_eval_tasks.utils import aggregate
from lmms_eval_tasks.utils.aggregate import CANDIDATE_FAILURES, Item

GOOD = 4  # correctness from which an answer counts as right in `robust_both`
VERSIONS = ("original", "paraphrase")


def rating(dimension: str, item: Item) -> Item:
    """The dimension's `score` and `status`; of an item that has none, no score and its status."""
    given: Item | None = (item.get("dimensions") or {}).get(dimension)
    return given or {"score": None, "status": item["status"]}


def value(dimension: str, item: Item) -> float | None:
    """The rating that counts, 0..5: 0 for the candidate's failures, None for all others."""
    found = rating(dimension, item)
    if found["status"] in CANDIDATE_FAILURES:
        return 0.0
    if found["status"] != "ok" or found["score"] is None:
        return None
    return float(found["score"])


def is_unjudged(dimension: str, items: Sequence[Item]) -> bool:
    """Whether the run waits for its judge: then 0 for empty answers alone is no number."""
    return aggregate.is_unjudged([rating(dimension, item) for item in items])


def mean_valid(dimension: str, items: Sequence[Item]) -> float | None:
    """Mean rating, 0..5, of the items that have one that counts (Tables 6, 8, 9)."""
    if is_unjudged(dimension, items):
        return None
    return aggregate.mean(v for v in _values(dimension, items) if v is not None)


def count_failed(dimension: str, items: Sequence[Item]) -> int:
    """Items without a rating that counts: the judge failed, or the host's request did."""
    return sum(v is None for v in _values(dimension, items))


def coverage(dimension: str, items: Sequence[Item]) -> float | None:
    """Share of items that `mean_valid` takes in."""
    return aggregate.mean(float(v is not None) for v in _values(dimension, items))


def _values(dimension: str, items: Sequence[Item]) -> list[float | None]:
    return [value(dimension, item) for item in items]


# --- a question and its paraphrase ------------------------------------------------------------


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
