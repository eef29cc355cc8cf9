"""Agreement of raters: kappa, alpha, rank correlation; and of our scores with published ones.

A rating is a number of the scale or None (missing). The scale is always given completely: if it
came from the data, an unused label in the middle would move its neighbours together and change
kappa (docs/metrics.md, "Agreement (judges)"). Ratings that are not on the scale are left out and
counted.

Kappa and alpha are computed here because scikit-learn takes 1.5 s to import and 1 ms for a call
(intervals need a call for each video), and because krippendorff is under the GPL. Tests compare
with scikit-learn and NLTK. Sums are of integers and fractions. So nothing depends on the order of
items or raters, and a constant rater gives exactly 0. All functions are pure.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from lmms_eval_tasks.utils.metrics import stats
from lmms_eval_tasks.utils.metrics.aggregate import mean
from lmms_eval_tasks.utils.metrics.rating_means import variance
from lmms_eval_tasks.utils.metrics.stats import Interval

OneRating = float | None
Both = Sequence[tuple[float, float]]  # the scores of two raters, in pairs


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of agreement; every item is in exactly one of `n`, `missing`, `off_scale`."""

    value: float | None  # at most 1, 0 for chance; None if undefined (see `reason`)
    reason: str  # reason why there is no value; else ""
    n: int  # items that count
    missing: int = 0  # items left out because ratings are missing
    off_scale: int = 0  # items left out because a rating is no label of the scale

    @property
    def coverage(self) -> float:
        """The share of all items that count, 0 to 1; 0 without items."""
        return self.n / max(1, self.n + self.missing + self.off_scale)


def kappa(
    a: Sequence[OneRating],
    b: Sequence[OneRating],
    labels: Sequence[float],
    weights: Literal["quadratic"] | None = None,
) -> Coefficient:
    """Return Cohen's kappa of two raters: 1 - sum(d O) / sum(d E), O observed, E expected.

    d is the disagreement of two labels by their places i, j on the scale: 0 or 1 without weights,
    (i-j)^2 with quadratic ones. The paper of CVRR's judges uses quadratic weights (3.2, with the
    weights corrected: docs/metrics.md, "Agreement (judges)"). The value is None if both raters gave
    only one and the same label, or if no item was rated by both.

    Args:
        a: one rating or None for each item.
        b: the other rater's, in the same order.
        labels: the whole scale, including unused labels.
        weights: "quadratic", or None.

    Raises:
        ValueError: different lengths, repeated labels.
    """
    places = _places(labels)
    rated = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    pairs = [(places[x], places[y]) for x, y in rated if x in places and y in places]
    n = len(pairs)
    left_out = len(a) - len(rated), len(rated) - n
    if not pairs:
        return Coefficient(None, "no item was rated on the scale by both", 0, *left_out)
    if weights:  # sums over all n^2 pairs of a rating in a and a rating in b
        observed = sum((x - y) ** 2 for x, y in pairs)
        sums = [sum(x for x, _ in pairs), sum(y for _, y in pairs)]
        expected = n * sum(x * x + y * y for x, y in pairs) - 2 * sums[0] * sums[1]
    else:
        observed = sum(x != y for x, y in pairs)
        mine, theirs = Counter(x for x, _ in pairs), Counter(y for _, y in pairs)
        expected = n * n - sum(mine[place] * theirs[place] for place in mine)
    if not expected:
        return Coefficient(
            None, "both raters gave one and the same label to every item", n, *left_out
        )
    return Coefficient(float(1 - Fraction(n * observed, expected)), "", n, *left_out)


def krippendorff_alpha(
    items: Sequence[Sequence[OneRating]], labels: Sequence[float]
) -> Coefficient:
    """Return Krippendorff's alpha (2011, "Computing ... alpha-reliability") of interval data.

    Args:
        items: a row for each item, with a place for each rater, None for a missing rating. An item
            with fewer than two ratings on the scale has nothing to compare and is left out: as
            `off_scale` if it has a rating off the scale, else as `missing`.
        labels: the whole scale, as numbers.

    Raises:
        ValueError: repeated labels.
    """
    places = _places(labels)
    given = [[one for one in row if one is not None] for row in items]
    kept = [[Fraction(one) for one in row if one in places] for row in given]
    units = [row for row in kept if len(row) > 1]
    off = sum(len(row) < 2 and len(row) < len(own) for row, own in zip(kept, given, strict=True))
    left_out = len(items) - len(units) - off, off
    if not units:
        return Coefficient(None, "no item was rated by two raters", 0, *left_out)
    observed = sum((_spread(row) / (len(row) - 1) for row in units), Fraction(0))
    ratings = [one for row in units for one in row]
    if not (expected := _spread(ratings)):
        return Coefficient(None, "all ratings are one and the same label", len(units), *left_out)
    alpha = 1 - (len(ratings) - 1) * observed / expected
    return Coefficient(float(alpha), "", len(units), *left_out)


def _places(labels: Sequence[float]) -> dict[float, int]:
    """Return each label's place on the ascending scale, from 0."""
    places = {label: place for place, label in enumerate(sorted(labels))}
    if len(places) < len(labels) or not labels:
        raise ValueError(f"a scale is a list of different labels, not {list(labels)}")
    return places


def _spread(ratings: Sequence[Fraction]) -> Fraction:
    """Return the sum of the squared differences over all ordered pairs."""
    squares = sum((one * one for one in ratings), Fraction(0))
    return 2 * (len(ratings) * squares - sum(ratings) ** 2)


def spearman(both: Both) -> float | None:
    """Return Spearman's rho with the mean rank for ties; None if one side is constant.

    Twice the ranks are whole numbers, so that rho is exact except for its root. scipy's result
    differs in the last digit and takes longer.
    """

    def centred(values: Sequence[float]) -> list[int]:
        """Return twice the ranks, minus their mean."""
        ranks, below = {}, 0
        for value, count in sorted(Counter(values).items()):
            ranks[value] = 2 * below + count - len(values)
            below += count
        return [ranks[value] for value in values]

    first, second = (centred([pair[side] for pair in both]) for side in (0, 1))
    across = sum(x * y for x, y in zip(first, second, strict=True))
    squares = [sum(x * x for x in ranks) for ranks in (first, second)]
    return across / math.sqrt(squares[0] * squares[1]) if all(squares) else None


# --- our scores of the same answers and published ones --------------------------------------------


# Our score and the published score of an answer, None for a missing one; and the answer's video.
ScorePair = tuple[float | None, float | None, str]


@dataclass(frozen=True)
class AgreementRow:
    """The agreement over the answers that have both scores.

    A coefficient is None if it is undefined. `intervals` have the names of the coefficients.
    """

    n: int  # answers with both scores
    missing: int  # answers with a published score and none of ours
    kappa: float | None  # quadratic weights, over the whole scale; None if a score is off it
    rho: float | None  # Spearman's rho
    absolute: float | None  # mean |ours - published|
    ours: float | None  # mean of our scores
    published: float | None
    ours_var: float | None  # population variance of our scores
    published_var: float | None
    intervals: Mapping[str, Interval]

    def as_dict(self) -> dict[str, object]:
        """Return the row in the form for JSON."""
        found = {name: interval.as_dict() for name, interval in self.intervals.items()}
        return {**vars(self), "intervals": found}


def row(pairs: Sequence[ScorePair], scale: Sequence[int]) -> AgreementRow:
    """Return the agreement over some answers, with intervals clustered by video.

    Args:
        pairs: pairs of one model, or of all models; pairs without a published score are ignored.
        scale: all possible scores. If a score is not on the scale, there is no kappa.
    """

    def weighted(pairs: Both) -> float | None:
        found = kappa([one for one, _ in pairs], [other for _, other in pairs], scale, "quadratic")
        return None if found.off_scale else found.value

    computed: dict[str, Callable[[Both], float | None]] = {
        "kappa": weighted,
        "rho": spearman,
        "absolute": lambda drawn: mean(abs(ours - published) for ours, published in drawn),
    }
    scored = [(a, b, video) for a, b, video in pairs if a is not None and b is not None]
    both, clusters = [(a, b) for a, b, _ in scored], [video for *_, video in scored]
    ours, published = [one for one, _ in both], [other for _, other in both]
    return AgreementRow(
        n=len(both),
        missing=sum(a is None and b is not None for a, b, _ in pairs),
        **{name: statistic(both) for name, statistic in computed.items()},
        ours=mean(ours),
        published=mean(published),
        ours_var=variance(ours),
        published_var=variance(published),
        intervals={
            name: stats.jackknife(statistic, both, clusters, coefficient=name != "absolute")
            for name, statistic in computed.items()
            if both
        },
    )
