"""Scores of orders, of selected frames and of clips for sentences, with their baselines.

Rank 1 is always the first, so that a correlation is between two lists of ranks: predicted and true
places (temporal order), or ranks by importance, in which the most important unit is 1 (saliency). A
selection is compared with the one set of true keyframes, by number. These are single-reference
numbers, never TVSum's or SumMe's F1. Alignments are scored for each sentence, then averaged over
the sentences of a video.

The rules are in docs/metrics.md, "Ranks and orders" and "Keyframes and shots".
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from statistics import fmean
from typing import NamedTuple

# --- orders ---------------------------------------------------------------------------------------

IMPORTANCE_DIGITS = 6  # significant digits; the release stores 32-bit floats, which have seven


class Correlation(NamedTuple):
    """Spearman's rho and Kendall's tau-b in -1..1, or None for both with the reason."""

    spearman: float | None
    kendall: float | None
    reason: str = ""


def predicted_ranks(order: Sequence[int], n: int) -> list[float]:
    """Return the rank of each unit 1..n in an order.

    Missing units share the mean of the last ranks.

    Args:
        order: distinct numbers of 1..n, the first one first; all of them, some, or none.
        n: number of units.
    """
    ranks = [(len(order) + 1 + n) / 2] * n
    for place, unit in enumerate(order, 1):
        ranks[unit - 1] = float(place)
    return ranks


def importance_ranks(importance: Sequence[float]) -> list[float]:
    """Return the ranks of units by importance, the most important 1; ties share their mean place.

    Values that agree to `IMPORTANCE_DIGITS` significant digits are ties, because means of the same
    scores over shots of different lengths differ in their last bits.

    Raises:
        ValueError: a value is not finite.
    """
    if not all(math.isfinite(value) for value in importance):
        raise ValueError("an importance is not finite; such an item has no ranking")
    from scipy.stats import rankdata

    ranks = rankdata([-float(f"{value:.{IMPORTANCE_DIGITS}g}") for value in importance])
    return [float(rank) for rank in ranks]


def correlations(predicted: Sequence[float], truth: Sequence[float]) -> Correlation:
    """Return Spearman's rho and Kendall's tau-b (scipy) between two lists of ranks.

    Args:
        predicted: rank of each unit, from `predicted_ranks`.
        truth: true rank of each unit, 1 first, from `importance_ranks`; ties are allowed.

    Returns:
        None with the reason for fewer than two units, or if all units of a side have one rank.
    """
    if len(truth) < 2:
        return Correlation(None, None, "fewer than two units to order")
    for side, ranks in (("true", truth), ("predicted", predicted)):
        if len(set(ranks)) == 1:
            return Correlation(None, None, f"all {side} ranks are equal")
    from scipy.stats import kendalltau, spearmanr  # slow to import

    rho = float(spearmanr(predicted, truth).statistic)
    return Correlation(rho, float(kendalltau(predicted, truth, variant="b").statistic))


def identity(truth: Sequence[float]) -> Correlation:
    """Return the correlations of the order as shown: 1, 2, ..., n."""
    return correlations([float(unit) for unit in range(1, len(truth) + 1)], truth)


def chance(truth: Sequence[float]) -> Correlation:
    """Return the expected correlations of a random strict order: 0 for both, if defined.

    An order and its reverse are equally likely, and their correlations cancel, with ties too.
    """
    found = identity(truth)
    return found if found.reason else Correlation(0.0, 0.0)


# --- sets: keyframes of a video, clips of a sentence ----------------------------------------------


class SetScores(NamedTuple):
    """Scores of a given set against a true one, 0..1; `hit1` (Hit@1) is 1 if any given is true."""

    precision: float
    recall: float
    f1: float
    iou: float
    hit1: float


def set_scores(selected: Collection[int], true: Collection[int]) -> SetScores:
    """Return the scores of a selection against the true one; an empty selection has 0.

    Args:
        selected: numbers; a number that does not exist is wrong like any other.
        true: numbers. If both sets are empty, IoU is 1, as in the benchmark's own code, and all
            other scores are 0.
    """
    chosen, wanted = set(selected), set(true)
    return _scores(len(chosen & wanted), len(chosen), len(wanted))


def _scores(hits: float, n_selected: int, true: int) -> SetScores:
    if not n_selected and not true:
        return SetScores(0.0, 0.0, 0.0, 1.0, 0.0)
    return SetScores(
        precision=hits / n_selected if n_selected else 0.0,
        recall=hits / true if true else 0.0,
        f1=2 * hits / (n_selected + true),
        iou=hits / (n_selected + true - hits),
        hit1=float(hits > 0),
    )


def random_frames(n_frames: int, n_true: int, k: int) -> SetScores:
    """Return the expected precision, recall and F1 of k random frames, with G true ones among F.

    Frames are drawn without replacement. The number of hits is hypergeometric with mean KG/F, and
    all three are linear in it: P = G/F, R = K/F, F1 = 2KG / (F (K + G)). 1 <= k <= F.
    """
    return _scores(k * n_true / n_frames, k, n_true)


def aligned(predicted: Sequence[Collection[int]], true: Sequence[Collection[int]]) -> SetScores:
    """Return the mean of `set_scores` over a video's sentences, each with the same weight."""
    return _mean([set_scores(one, other) for one, other in zip(predicted, true, strict=True)])


def random_clips(true: Sequence[Collection[int]], n: int) -> SetScores:
    """Return the expected mean scores of one random clip of n for each sentence of a video.

    With g true ones F1 = 2g/(n(1 + g)), IoU = 1/n, Hit = g/n.
    """
    found = []
    for clips in true:
        g = len(set(clips))
        one = 1 / n if g else 0.0
        found.append(SetScores(g / n, recall=one, f1=2 * g / (n * (1 + g)), iou=one, hit1=g / n))
    return _mean(found)


def _mean(of_sentences: Sequence[SetScores]) -> SetScores:
    return SetScores(*map(fmean, zip(*of_sentences, strict=True)))
