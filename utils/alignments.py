"""Sets of clips that sentences are grounded to: F1, IoU, Hit@1 and what baselines give.

`alignment_replies.py` reads a reply. Numbers are per sentence, then averaged over the sentences of
a video (metrics.md, "Keyframes and shots"). n is the number of clips, g the number of true ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SetScores:
    """F1, intersection over union and Hit@1 (any predicted clip is a true one), all in 0..1."""

    f1: float
    iou: float
    hit: float


BEST = SetScores(1.0, 1.0, 1.0)  # the true clips themselves can always be given


def set_scores(predicted: Collection[int], true: Collection[int]) -> SetScores:
    """How well the clips of one sentence are met; nothing predicted is worth 0.

    Args:
        predicted: numbers given; one that no clip has is wrong like any other.
        true: numbers of the true clips, at least one.

    Raises:
        ValueError: there is no true clip.
    """
    given, wanted = set(predicted), set(true)
    if not wanted:
        raise ValueError("no true clip: such a sentence cannot be asked about, leave it out")
    return _scores(len(given & wanted), len(given), len(wanted))


def mean_scores(scores: Sequence[SetScores]) -> SetScores:
    """Mean over the sentences of a video, each weighing the same.

    Raises:
        ValueError: no sentences.
    """
    if not scores:
        raise ValueError("no sentences: there is nothing to ground, leave the item out")
    f1, iou, hit = (
        math.fsum(values) / len(scores)
        for values in zip(*((one.f1, one.iou, one.hit) for one in scores), strict=True)
    )
    return SetScores(f1, iou, hit)


def score(predicted: Sequence[Collection[int]], true: Sequence[Collection[int]]) -> SetScores:
    """`set_scores` of each sentence, averaged.

    Raises:
        ValueError: the lengths differ, no sentences, or one without a true clip.
    """
    if len(predicted) != len(true):
        raise ValueError(f"clips of {len(predicted)} sentences, {len(true)} asked for")
    return mean_scores([set_scores(one, other) for one, other in zip(predicted, true, strict=True)])


def clips_predicted(predicted: Sequence[Collection[int]]) -> float:
    """Mean number of clips given for a sentence: Hit@1 rises with it, whatever they are.

    Raises:
        ValueError: no sentences.
    """
    if not predicted:
        raise ValueError("no sentences")
    return sum(map(len, predicted)) / len(predicted)


def baseline(
    of_sentence: Callable[[int, int], SetScores], true: Sequence[Collection[int]], n_clips: int
) -> SetScores:
    """A baseline of a video: `all_clips`, `one_at_random` or `as_many_at_random`, averaged.

    Raises:
        ValueError: no sentences, or one whose true clips are none or more than there are.
    """
    return mean_scores([of_sentence(n_clips, len(set(clips))) for clips in true])


def all_clips(n: int, g: int) -> SetScores:
    """Every clip for the sentence: F1 = 2g/(n + g), IoU = g/n, Hit = 1."""
    _check(n, g)
    return _scores(g, n, g)


def one_at_random(n: int, g: int) -> SetScores:
    """Expected scores of one clip drawn at random: F1 = 2g/(n(1 + g)), IoU = 1/n, Hit = g/n."""
    _check(n, g)
    return SetScores(2 * g / (n * (1 + g)), 1 / n, g / n)


def as_many_at_random(n: int, g: int) -> SetScores:
    """Expected scores of g clips drawn without replacement, as many as are true.

    The number of hits t is hypergeometric: F1 = g/n, Hit = 1 - C(n-g, g)/C(n, g), and IoU is the
    sum over t of P(t) t/(2g - t), which has no shorter form.
    """
    _check(n, g)
    sets = math.comb(n, g)
    iou = math.fsum(
        math.comb(g, t) * math.comb(n - g, g - t) / sets * t / (2 * g - t) for t in range(1, g + 1)
    )
    return SetScores(g / n, iou, 1 - math.comb(n - g, g) / sets)


def _scores(hits: int, given: int, true: int) -> SetScores:
    return SetScores(2 * hits / (given + true), hits / (given + true - hits), float(hits > 0))


def _check(n: int, g: int) -> None:
    if not 1 <= g <= n:
        raise ValueError(f"{g} true clips of {n}; expected 1 to {n}")
