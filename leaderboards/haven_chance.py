"""What HAVEN's keyframe scores are worth: chance, and what P and R say of the number of frames.

Of a video's F frames t are true and k are given. Random ones have P = t/F and R = k/F on average,
and F1 = 2h/(k + t) with h hits. In every video R = P k/t, so that mean R over mean P lies between
the least and the greatest k/t of the videos: a quotient of 2.4 means that somewhere at least 2.4
times as many frames were given as are true. As a mean over videos it only suggests k/t.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from lmms_eval_tasks.leaderboards.checking import half
from lmms_eval_tasks.leaderboards.haven_paper import Paper

# More than what rounding 15 % to whole frames can do to true and given ones in all but the
# shortest videos: the shortest source has 103 frames on average.
TOLERANCE = Decimal("0.2")


def true_share(paper: Paper) -> Decimal:
    """The share of true keyframes among a video's frames (3.2)."""
    return paper.stated("keyframe_percent") / 100


def expected_f1(share: Decimal, true: Decimal) -> Decimal:
    """F1 that random frames get on average.

    Args:
        share: of the frames that are given, above 0.
        true: share of the frames that are true keyframes, above 0.
    """
    return 2 * share * true / (share + true)


@dataclass(frozen=True)
class Given:
    """How many frames a model gave for every true one, by R over P."""

    quotient: Decimal
    low: Decimal  # what rounding of P and R leaves possible
    high: Decimal

    @property
    def off_budget(self) -> bool:
        """Whether it is farther from one for one than rounding and the tolerance allow."""
        return self.low > 1 + TOLERANCE or self.high < 1 / (1 + TOLERANCE)


def given(paper: Paper, model: str, precision: str, recall: str) -> Given:
    """A row's quotient; columns of Table 4. KeyError if one is a dash or not there."""
    p, r = paper(model, precision), paper(model, recall)
    return Given(r / p, (r - half(r)) / (p + half(p)), (r + half(r)) / (p - half(p)))


def by_chance(paper: Paper, model: str, precision: str, recall: str) -> Decimal:
    """F1 of random frames, as many in every video as the model's P and R suggest.

    No more than all frames can be given.
    """
    true = true_share(paper)
    share = min(Decimal(1), given(paper, model, precision, recall).quotient * true)
    return expected_f1(share, true)


def highest_f1(precision: Decimal, recall: Decimal) -> Decimal:
    """The highest mean F1 with these means: the harmonic mean is concave (Jensen).

    Rounding of both is allowed for.
    """
    p, r = precision + half(precision), recall + half(recall)
    return 2 * p * r / (p + r)
