"""Pairs of candidates from single ratings: of two answers the one rated higher wins (4.3)."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lmms_eval_tasks.cvrr_es.rating_rows import Item
from lmms_eval_tasks.cvrr_es.reliability import sums_bootstrap
from lmms_eval_tasks.cvrr_es.reliability.study import Ratings, Study
from lmms_eval_tasks.utils.stats import Interval


@dataclass(frozen=True)
class Duel:
    """One candidate against another, over the questions where both have a rating."""

    wins: int
    ties: int
    losses: int

    @property
    def n(self) -> int:
        """Questions that count."""
        return self.wins + self.ties + self.losses

    @property
    def win_rate(self) -> float | None:
        """Share of questions won, 0 to 1: a tie is not won. None without questions."""
        return self.wins / self.n if self.n else None

    @property
    def score(self) -> float | None:
        """As `win_rate` with a tie as half a win, so that both sides add up to 1."""
        return (self.wins + self.ties / 2) / self.n if self.n else None


@dataclass(frozen=True)
class SamePreferences:
    """A judge's preferences beside the reference's, over pairs of answers that both rated.

    Every pair is in exactly one of:
        same: both prefer the same answer. opposite: each prefers another one.
        both_tied: neither prefers one.
        judge_tied, reference_tied: only the one that is named has a tie.
    interval is that of `agreement`, clustered by video; None with the reason in `no_interval`.
    """

    same: int
    opposite: int
    both_tied: int
    judge_tied: int
    reference_tied: int
    interval: Interval | None
    no_interval: str

    @property
    def n(self) -> int:
        """Pairs of answers to one question."""
        return self.same + self.opposite + self.both_tied + self.judge_tied + self.reference_tied

    @property
    def agreement(self) -> float | None:
        """Share of pairs with the same outcome, a tie being one of three; None without pairs."""
        return (self.same + self.both_tied) / self.n if self.n else None

    @property
    def decided(self) -> float | None:
        """Share of the same winner among the pairs where both have one; chance is 0.5."""
        number = self.same + self.opposite
        return self.same / number if number else None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        shares = {"n": self.n, "agreement": self.agreement, "decided": self.decided}
        interval = self.interval.as_dict() if self.interval else None
        return {**vars(self), **shares, "interval": interval}


def win_rates(study: Study, ratings: Ratings) -> dict[tuple[str, str], Duel]:
    """Every candidate against every other, both ways; ratings such as 4.5 count as they are.

    Args:
        study: whose items count.
        ratings: of one rater, or the reference.
    """
    found: dict[tuple[str, str], Counter[int]] = {
        pair: Counter() for pair in itertools.permutations(study.candidates, 2)
    }
    for (_, one, other), outcome in _outcomes(study, ratings):
        found[one, other][outcome] += 1
        found[other, one][-outcome] += 1
    return {pair: Duel(made[1], made[0], made[-1]) for pair, made in found.items()}


def agreement(study: Study, ratings: Ratings) -> SamePreferences:
    """Does the judge prefer the answers that the reference prefers?"""
    reference = dict(_outcomes(study, study.reference))
    kinds: Counter[str] = Counter()
    values, videos = [], []
    for pair, outcome in _outcomes(study, ratings):
        if pair in reference:
            kinds[_kind(outcome, reference[pair])] += 1
            values.append(float(outcome == reference[pair]))
            videos.append(study.questions[pair[0]].video)
    interval, no_interval = sums_bootstrap.clustered_or_reason(values, videos, "pairs")
    names = ("same", "opposite", "both_tied", "judge_tied", "reference_tied")
    return SamePreferences(
        **{name: kinds[name] for name in names}, interval=interval, no_interval=no_interval
    )


def _outcomes(study: Study, ratings: Ratings) -> Iterator[tuple[tuple[str, str, str], int]]:
    """(question, one, other) and 1, 0 or -1: whether `one`, the first by name, wins."""
    by_question: dict[str, list[Item]] = {}
    for item in study.items:
        by_question.setdefault(item.question, []).append(item)
    for question, items in by_question.items():
        rated = [
            (item.candidate, rating) for item in items if (rating := ratings.get(item)) is not None
        ]
        for (one, first), (other, second) in itertools.combinations(rated, 2):
            yield (question, one, other), (first > second) - (first < second)


def _kind(judge: int, reference: int) -> str:
    if judge == reference:
        return "same" if judge else "both_tied"
    if not judge or not reference:
        return "reference_tied" if judge else "judge_tied"
    return "opposite"
