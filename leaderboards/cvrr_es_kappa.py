"""Weighted kappa as the study's formula has it (3.2), and as it must be.

3.2 writes 1 - sum(w O) / sum(w E), which needs weights of disagreement: nothing for equal ratings.
The weights it gives are those of agreement, 1 for equal ratings and 0 for the farthest two. With
d = 1 - w the right kappa is 1 - sum(d O) / sum(d E), or the same as (Po - Pe) / (1 - Pe) with Po
and Pe the weighted shares sum(w O) and sum(w E).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction


def weight(one: int, other: int, ratings: int, equal: Decimal, farthest: Decimal) -> Fraction:
    """A weight that falls or rises with the square of the distance.

    Args:
        one, other: ratings, 1 to `ratings`.
        equal: the weight of equal ratings.
        farthest: that of the lowest and the highest.
    """
    share = Fraction(one - other, ratings - 1) ** 2
    return Fraction(equal) + (Fraction(farthest) - Fraction(equal)) * share


def by_formula(
    pairs: Sequence[tuple[int, int]], ratings: int, equal: Decimal, farthest: Decimal
) -> Fraction:
    """1 - sum(w O) / sum(w E) of pairs of ratings.

    Raises:
        ZeroDivisionError: the expected weights are all 0.
    """

    def total(every: Iterable[tuple[int, int]]) -> Fraction:
        return sum((weight(a, b, ratings, equal, farthest) for a, b in every), Fraction(0))

    expected = total((a, b) for a, _ in pairs for _, b in pairs)
    return 1 - total(pairs) * len(pairs) / expected


def perfect(ratings: int) -> list[tuple[int, int]]:
    """Two judges who give every rating once, and always the same one."""
    return [(rating, rating) for rating in range(1, ratings + 1)]


def reversed_scale(ratings: int) -> list[tuple[int, int]]:
    """Two judges who give every rating once, the one 5 where the other gives 1, and so on."""
    return [(rating, ratings + 1 - rating) for rating in range(1, ratings + 1)]
