"""How far raters agree: Cohen's weighted kappa, Krippendorff's alpha, and flips.

A rating is a number of the scale or None (missing). The scale is always given whole: with the
labels left to the data, an unused one in the middle moves its neighbours together and kappa changes
(metrics.md, "Agreement (judges)"). Ratings that are not on the scale are left out and counted.

The formulas are ours because scikit-learn costs 1.5 s to import and 1 ms a call (a bootstrap needs
100,000 calls) and krippendorff is under the GPL and needs Python 3.11; tests compare them with
scikit-learn and NLTK.
Counts are integers and sums are fractions, so results do not depend on the order of items or raters
and a constant rater gives exactly 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

Weights = Literal["quadratic"]


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of agreement, and what it was computed on.

    Every item is in exactly one of `n`, `missing` and `off_scale`.
    """

    value: float | None  # at most 1; 0 is chance; None: undefined, see `reason`
    reason: str  # why there is no value; else empty
    n: int  # items that count
    missing: int = 0  # items left out because ratings are missing
    off_scale: int = 0  # items left out because a rating is no label of the scale

    @property
    def coverage(self) -> float:
        """Share of all items that count, 0 to 1; 0 without items."""
        return self.n / max(1, self.n + self.missing + self.off_scale)


@dataclass(frozen=True)
class Flips:
    """Scores of the same items by two judges; for 0/1 scores `up` is from wrong to right."""

    same: int
    up: int
    down: int
    only_before: int  # items that only the first judge rated
    only_after: int

    @property
    def n(self) -> int:
        """Items that both rated."""
        return self.same + self.up + self.down

    @property
    def agreement(self) -> float | None:
        """Share of equal scores among the items that both rated; None if there are none."""
        return self.same / self.n if self.n else None


def kappa(
    a: Sequence[float | None],
    b: Sequence[float | None],
    labels: Sequence[float],
    weights: Weights | None = None,
) -> Coefficient:
    """Cohen's kappa of two raters: 1 - sum(d O) / sum(d E), O observed and E expected counts.

    d is the disagreement of two labels by their places i, j on the scale: 0 or 1 without weights,
    (i-j)^2 quadratic; the paper of CVRR's judges uses the last (3.2, with the weights
    as metrics.md corrects them). One constant rater gives 0; None if both gave one and the same
    label only, or no item was rated by both.

    Args:
        a, b: one rating or None per item, in the same order.
        labels: the whole scale, also what nobody used.

    Raises:
        ValueError: different lengths, repeated labels.
    """
    places = _places(labels)
    pairs: Counter[tuple[int, int]] = Counter()
    missing = off_scale = 0
    for pair in zip(a, b, strict=True):
        if pair[0] is None or pair[1] is None:
            missing += 1
        elif pair[0] not in places or pair[1] not in places:
            off_scale += 1
        else:
            pairs[places[pair[0]], places[pair[1]]] += 1
    n = pairs.total()
    if not n:
        return Coefficient(None, "no item was rated on the scale by both", 0, missing, off_scale)
    rows, columns = _margin(pairs, 0), _margin(pairs, 1)

    def distance(i: int, j: int) -> int:
        return (i - j) ** 2 if weights else int(i != j)

    observed = sum(count * distance(i, j) for (i, j), count in pairs.items())
    expected = sum(x * y * distance(i, j) for i, x in rows.items() for j, y in columns.items())
    if not expected:
        reason = "both raters gave one and the same label to every item"
        return Coefficient(None, reason, n, missing, off_scale)
    return Coefficient(float(1 - Fraction(n * observed, expected)), "", n, missing, off_scale)


def krippendorff_alpha(
    items: Sequence[Sequence[float | None]], labels: Sequence[float]
) -> Coefficient:
    """Krippendorff's alpha (2011, "Computing Krippendorff's alpha-reliability") of interval data.

    Args:
        items: a row per item, one place per rater, None where a rating is missing. An item with
            fewer than two ratings on the scale cannot be compared with anything and is left out:
            as `off_scale` if it has a rating off the scale, else as `missing`. In an item that
            counts, a rating off the scale is as if it were missing.
        labels: the whole scale, as numbers.

    Raises:
        ValueError: rows of different lengths or of fewer than two, repeated labels.
    """
    sizes = {len(row) for row in items}
    if len(sizes) > 1 or (sizes and min(sizes) < 2):
        raise ValueError(f"every item has one place for each of two or more raters, not {sizes}")
    patterns, missing, off_scale = _patterns(items, labels)
    n = patterns.total()
    if not n:
        return Coefficient(None, "no item was rated by two raters", 0, missing, off_scale)
    totals = _totals(patterns)
    scale = [Fraction(label) for label in sorted(labels)]
    distances = [[(one - other) ** 2 for other in scale] for one in scale]
    observed = sum(
        Fraction(times * _spread(pattern, distances), sum(pattern) - 1)
        for pattern, times in patterns.items()
    )
    expected = _spread(totals, distances)
    if not expected:
        return Coefficient(None, "all ratings are one and the same label", n, missing, off_scale)
    return Coefficient(
        float(1 - (sum(totals) - 1) * observed / expected), "", n, missing, off_scale
    )


def flips(before: Sequence[float | None], after: Sequence[float | None]) -> Flips:
    """How the scores of the same items changed from one judge to another, compared exactly.

    Args:
        before, after: one score or None (no verdict) per item, in the same order.

    Raises:
        ValueError: different lengths.
    """
    kinds: Counter[str] = Counter()
    for first, second in zip(before, after, strict=True):
        if first is None or second is None:
            kinds["only_before"] += first is not None
            kinds["only_after"] += second is not None
        else:
            kinds["same" if first == second else "up" if second > first else "down"] += 1
    names = ("same", "up", "down", "only_before", "only_after")
    return Flips(**{name: kinds[name] for name in names})


def _places(labels: Sequence[float]) -> dict[float, int]:
    """Each label's place on the ascending scale, from 0."""
    places = {label: place for place, label in enumerate(sorted(labels))}
    if len(places) < len(labels) or not labels:
        raise ValueError(f"a scale is a list of different labels, not {list(labels)}")
    return places


def _margin(pairs: Counter[tuple[int, int]], side: int) -> Counter[int]:
    margin: Counter[int] = Counter()
    for pair, count in pairs.items():
        margin[pair[side]] += count
    return margin


def _patterns(
    items: Iterable[Sequence[float | None]], labels: Sequence[float]
) -> tuple[Counter[tuple[int, ...]], int, int]:
    """Items by how many ratings each label got; then how many items were left out, and why.

    Few patterns exist, so the sums that follow are short however many items there are.
    """
    places = _places(labels)
    patterns: Counter[tuple[int, ...]] = Counter()
    missing = off_scale = 0
    for row in items:
        given = [rating for rating in row if rating is not None]
        counts = [0] * len(places)
        for rating in given:
            if rating in places:
                counts[places[rating]] += 1
        if sum(counts) >= 2:
            patterns[tuple(counts)] += 1
        elif sum(counts) < len(given):
            off_scale += 1
        else:
            missing += 1
    return patterns, missing, off_scale


def _totals(patterns: Counter[tuple[int, ...]]) -> list[int]:
    """How often each label was given in the items that count."""
    weighted = [[times * count for count in pattern] for pattern, times in patterns.items()]
    return [sum(column) for column in zip(*weighted, strict=True)]


def _spread(counts: Sequence[int], distances: Sequence[Sequence[Fraction]]) -> Fraction:
    """Sum of the squared differences over all ordered pairs of ratings."""
    return sum(
        (
            x * y * distances[i][j]
            for i, x in enumerate(counts)
            for j, y in enumerate(counts)
            if x and y
        ),
        Fraction(0),
    )
