"""Orders of numbered shots or sentences, and their rank correlations (metrics.md, "Ranks").

`order_replies.py` reads a reply; here are the numbers. Everywhere a rank is 1 for the first, so
that a correlation is between two lists of ranks: places predicted and true places (temporal order),
or places predicted and ranks by importance, where the most important has rank 1 (saliency).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

IMPORTANCE_DIGITS = 6  # significant; the release stores 32-bit floats, which have seven


@dataclass(frozen=True)
class Correlation:
    """Spearman's rho and Kendall's tau-b in -1..1, or None for both with the reason."""

    spearman: float | None
    kendall: float | None
    reason: str = ""


def predicted_ranks(order: Sequence[int], n: int) -> list[float]:
    """Rank of each unit 1..n in an order; units that it leaves out are tied last.

    Args:
        order: distinct numbers of 1..n, first one first; all of them, some, or none.
        n: number of units.

    Returns:
        n ranks; those of `order` are 1, 2, ..., the others share the mean of the places left.

    Raises:
        ValueError: a number is out of range or repeated.
    """
    if len(set(order)) < len(order) or not set(order) <= set(range(1, n + 1)):
        raise ValueError(f"{list(order)} is no order of distinct numbers of 1..{n}")
    ranks = [(len(order) + 1 + n) / 2] * n
    for place, unit in enumerate(order, 1):
        ranks[unit - 1] = float(place)
    return ranks


def importance_ranks(importance: Sequence[float]) -> list[float]:
    """Ranks of units by importance, the most important 1; ties share the mean of their places.

    Values that agree to `IMPORTANCE_DIGITS` significant digits are ties: means of the same scores
    over shots of different lengths differ in their last bits.

    Raises:
        ValueError: a value is not finite.
    """
    if not all(math.isfinite(value) for value in importance):
        raise ValueError("an importance is not finite; such an item has no ranking")
    values = [float(f"{value:.{IMPORTANCE_DIGITS}g}") for value in importance]
    above = {value: sum(other > value for other in values) for value in set(values)}
    sizes = Counter(values)
    return [above[value] + (sizes[value] + 1) / 2 for value in values]


def correlations(predicted: Sequence[float], truth: Sequence[float]) -> Correlation:
    """Spearman's rho and Kendall's tau-b (scipy) between two lists of ranks.

    Args:
        predicted: rank of each unit, as `predicted_ranks` gives it.
        truth: true rank of each unit, 1 first, as `importance_ranks` gives it; ties allowed.

    Returns:
        None with the reason for fewer than two units, or if all units of a side have one rank.

    Raises:
        ValueError: the lengths differ.
    """
    if len(predicted) != len(truth):
        raise ValueError(f"{len(predicted)} predicted ranks, {len(truth)} true ones")
    if len(truth) < 2:
        return Correlation(None, None, "fewer than two units to order")
    for side, ranks in (("true", truth), ("predicted", predicted)):
        if len(set(ranks)) == 1:
            return Correlation(None, None, f"all {side} ranks are equal")

    from scipy.stats import kendalltau, spearmanr  # slow to import

    rho = float(spearmanr(predicted, truth).statistic)
    return Correlation(rho, float(kendalltau(predicted, truth, variant="b").statistic))


def best_reachable(truth: Sequence[float]) -> Correlation:
    """Correlations of the best strict order; below 1 for tau-b and rho if the truth has ties.

    A reply cannot say that two shots are equal. Every order that agrees with the truth reaches the
    same: units of equal rank may stand in any order.
    """
    order = sorted(range(1, len(truth) + 1), key=lambda unit: truth[unit - 1])
    return correlations(predicted_ranks(order, len(truth)), truth)


def identity(truth: Sequence[float]) -> Correlation:
    """Correlations of the order as shown, 1, 2, ..., n."""
    return correlations([float(unit) for unit in range(1, len(truth) + 1)], truth)


def chance(truth: Sequence[float]) -> Correlation:
    """Expected correlations of a strict order drawn at random: 0 for both, if defined.

    An order and its reverse are equally likely, and their correlations cancel, with ties too.
    """
    found = identity(truth)
    return found if found.reason else Correlation(0.0, 0.0)


def chance_variance(truth: Sequence[float]) -> Correlation:
    """Variances of rho and tau-b over random strict orders.

    For n units with groups of t tied ones, n0 = n(n-1)/2 and n1 = sum of t(t-1)/2:
    rho: 1/(n-1); tau-b: (n(n-1)(2n+5) - sum of t(t-1)(2t+5)) / (18 n0 (n0 - n1)), which without
    ties is 2(2n+5)/(9n(n-1)).
    """
    found = identity(truth)
    if found.reason:
        return found
    n, sizes = len(truth), Counter(truth).values()
    pairs = n * (n - 1) / 2
    untied = pairs - sum(t * (t - 1) / 2 for t in sizes)
    spread = n * (n - 1) * (2 * n + 5) - sum(t * (t - 1) * (2 * t + 5) for t in sizes)
    return Correlation(1 / (n - 1), spread / (18 * pairs * untied))
