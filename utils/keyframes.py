"""Keyframes: precision, recall and F1 of a selection, what chance gives, and the knapsack.

Frames are numbered 1..F as they were sampled; `frame_replies.py` reads a reply. A selection is
scored against the one set of true keyframes, index by index (metrics.md, "Keyframes and shots"):
these are single-reference numbers, never TVSum's or SumMe's F1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

BUDGET_PERCENT = 15  # of the sampled frames (paper, 3.2, 4.1)


@dataclass(frozen=True)
class Scores:
    """Precision, recall and F1, all in 0..1."""

    precision: float
    recall: float
    f1: float


def precision_recall_f1(predicted: Collection[int], true: Collection[int]) -> Scores:
    """How well a selection meets the true keyframes, one to one by number.

    Args:
        predicted: distinct numbers given; one that no frame has is wrong like any other. Nothing
            selected is worth 0 in all three.
        true: distinct numbers of the true keyframes, at least one.

    Raises:
        ValueError: there is no true keyframe, or a number is repeated.
    """
    chosen, wanted = set(predicted), set(true)
    if not wanted:
        raise ValueError("no true keyframes: recall is undefined, leave the item out")
    if len(chosen) < len(predicted) or len(wanted) < len(true):
        raise ValueError("a frame is repeated; frames count once")
    return _scores(len(chosen & wanted), len(chosen), len(wanted))


def uniform(n_frames: int, k: int) -> list[int]:
    """The middle frames of k equal parts of a video, ascending: floor((2i + 1) F / 2k) + 1.

    Not the ends of the range, as when frames are sampled for a model: the first and last frame are
    often titles, and with k = 1 this would be the first frame again.

    Raises:
        ValueError: not 1 <= k <= F.
    """
    _check(n_frames, k)
    return [(2 * part + 1) * n_frames // (2 * k) + 1 for part in range(k)]


def first(n_frames: int, k: int) -> list[int]:
    """The first k frames.

    Raises:
        ValueError: not 1 <= k <= F.
    """
    _check(n_frames, k)
    return list(range(1, k + 1))


def chance(n_frames: int, n_true: int, k: int) -> Scores:
    """Expected scores of k frames drawn without replacement, with G true ones among F.

    The number of hits is hypergeometric with mean KG/F, and all three are linear in it:
    P = G/F, R = K/F, F1 = 2KG / (F (K + G)).

    Raises:
        ValueError: not 1 <= k <= F, or not 1 <= n_true <= F.
    """
    _check(n_frames, k)
    _check(n_frames, n_true)
    return _scores(k * n_true / n_frames, k, n_true)


def best(n_true: int, k: int) -> Scores:
    """The most that exactly k frames can reach with G true ones: min(K, G) hits.

    Raises:
        ValueError: a number is below 1.
    """
    if min(n_true, k) < 1:
        raise ValueError(f"{k} frames asked for, {n_true} true ones; expected 1 or more of both")
    return _scores(min(n_true, k), k, n_true)


def capacity(n_frames: int, percent: int = BUDGET_PERCENT) -> int:
    """floor(percent of F) in whole numbers: what the frames of key shots may add up to."""
    return n_frames * percent // 100


def knapsack(values: Sequence[int], weights: Sequence[int], capacity: int) -> list[int]:
    """The 0/1 knapsack: places of the items worth most together within the capacity, ascending.

    Exact, by dynamic programming over whole numbers: scale scores first, as with
    `round(score * 10**6)`, so that sums do not depend on rounding and equals are equal. Ties are
    resolved in this order: most value, least weight, the list of places that comes first (earlier
    items win). Items of value 0 are therefore never taken.

    Time and memory grow with items times capacity.

    Args:
        values: of each item, whole numbers, 0 or more.
        weights: of each item, whole numbers, 1 or more.
        capacity: 0 or more.

    Raises:
        ValueError: the lengths differ, or a number is not whole or out of its range.
    """
    if len(values) != len(weights):
        raise ValueError(f"{len(values)} values, {len(weights)} weights")
    given = ((values, 0, "value"), (weights, 1, "weight"), ([capacity], 0, "capacity"))
    for numbers, least, name in given:
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, int) or number < least:
                raise ValueError(f"{name} {number!r}: expected a whole number, {least} or more")
    # One number for both criteria: weights add up to less than capacity + 1, so value decides.
    gains = [value * (capacity + 1) - weight for value, weight in zip(values, weights, strict=True)]
    best_from = [[0] * (capacity + 1)]  # best_from[-1 - i][room]: most gain of items i, i+1, ...
    for gain, weight in zip(reversed(gains), reversed(weights), strict=True):
        later = best_from[-1]
        best_from.append(
            [
                max(later[room], gain + later[room - weight]) if weight <= room else later[room]
                for room in range(capacity + 1)
            ]
        )
    taken, room = [], capacity
    for place, (gain, weight) in enumerate(zip(gains, weights, strict=True)):
        here, later = best_from[-1 - place], best_from[-2 - place]
        if weight <= room and gain + later[room - weight] == here[room]:
            taken.append(place)
            room -= weight
    return taken


def _scores(hits: float, chosen: int, true: int) -> Scores:
    precision = hits / chosen if chosen else 0.0
    return Scores(precision, hits / true, 2 * hits / (chosen + true))


def _check(n_frames: int, number: int) -> None:
    if not 1 <= number <= n_frames:
        raise ValueError(f"{number} of {n_frames} frames; expected 1 to {n_frames}")
