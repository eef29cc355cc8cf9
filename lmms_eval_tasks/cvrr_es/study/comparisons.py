"""Raters beside each other: whose kappa is higher, how far they agree, with and without an offset.

Kappas of different answers cannot be compared (metrics.md): in a difference an item counts if both
raters and the reference gave it a whole rating. Both are drawn together in every resample, since
they rated the same answers on the same videos.

Would a judge agree if it only rated too high? Each rating loses the judge's mean offset (rating
minus reference) on the *other* folds' videos: one offset for all dimensions, since it is the judge
that is lenient. What is left is rounded to the next whole number, halves up, and clipped to the
scale, since kappa knows whole labels only. Kappa of the result beside the kappa of the ratings
themselves tells a biased judge, which this mends, from one that does not see differences.

Pairs of candidates from single ratings: of two answers the one rated higher wins (4.3).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from lmms_eval_tasks.cvrr_es.labels import RATINGS, SCALE
from lmms_eval_tasks.cvrr_es.study import kappas
from lmms_eval_tasks.cvrr_es.study.ratings import Item
from lmms_eval_tasks.cvrr_es.study.study import Folds, Part, Ratings, Study
from lmms_eval_tasks.utils.metrics.agreement import Coefficient, krippendorff_alpha

if TYPE_CHECKING:
    from lmms_eval_tasks.cvrr_es.study.kappas import Matrix


def told_difference(value: float | None, reason: str, n: int, interval: Part) -> Part:
    """A difference, None with its reason, and the number of items that count."""
    return {"value": value, "reason": reason, "n": n, **interval}


def shared(study: Study, *raters: Ratings) -> Study:
    """The study of the items to which all of these, and the reference, gave a whole rating."""
    everyone = (*raters, study.reference)
    return study.keep(lambda item: all(own.get(item) in RATINGS for own in everyone))


def difference(
    study: Study, one: Ratings, other: Ratings, *, resamples: int = kappas.RESAMPLES, seed: int = 0
) -> Part:
    """Mean kappa of `one` minus that of `other` (over candidates, then dimensions).

    Over the items that both rated; cells where either has no kappa are left out. The interval is
    paired, by bootstrap over videos.

    Args:
        study: with the reference; its items count.
        one, other: any raters or panels.
        resamples, seed: of the bootstrap over videos; 0 resamples for no interval.
    """
    both = shared(study, one, other)
    cells, n = list(both.cells.values()), len(both.items)
    if not n:
        why = "both rated" if study.reference else "has a reference rating: there is none yet"
        return told_difference(None, f"no item {why}", 0, kappas.no_interval(kappas.NO_VALUE))
    dimensions: dict[str, list[int]] = {}
    for place, items in enumerate(cells):
        dimensions.setdefault(study.dimension(items[0]), []).append(place)
    sums = _sums(study, cells, one, other)

    def statistic(drawn: Matrix) -> Matrix:
        import numpy as np

        first, second = np.split(drawn, 2, axis=1)
        apart = kappas.kappas_of(first) - kappas.kappas_of(second)  # nan where either has none
        means = [kappas.defined_mean(apart[:, own]) for own in dimensions.values()]
        return kappas.defined_mean(np.stack(means, axis=1))

    import numpy as np

    total = np.array(list(sums.values()), dtype=np.float64).sum(axis=0, keepdims=True)
    found = float(statistic(total)[0])
    value = None if np.isnan(found) else found
    interval = kappas.interval_or_reason(
        value,
        sums,
        statistic,
        n,
        unknown=sum(sums.get("", ())[: 5 * len(cells) : 5]),
        resamples=resamples,
        seed=seed,
    )
    reason = "" if value is not None else "no cell has a kappa of both"
    return told_difference(value, reason, n, interval)


def _sums(
    study: Study, cells: Iterable[Sequence[Item]], one: Ratings, other: Ratings
) -> Mapping[str, list[int]]:
    """Video -> the sums of every cell of the one rater, then of the other."""
    found: list[Mapping[str, kappas.Sums]] = [
        kappas.sums_by_video(study, kappas.whole_pairs(ratings, study.reference, items))
        for ratings in (one, other)
        for items in cells
    ]
    videos = sorted({video for own in found for video in own})
    return {video: [n for own in found for n in own.get(video, kappas.NONE)] for video in videos}


# --- agreement with each other, whatever the reference says ---------------------------------------

# Squared differences, as in the quadratic kappa: of two judges with equal means and spreads both
# are nearly the same number, so the two can be read side by side. Ordinal alpha could not.
ALPHA = "interval"


def pairwise(study: Study, ratings: Mapping[str, Ratings]) -> dict[tuple[str, str], Part]:
    """Quadratic weighted kappa of every two judges, pooled over the items that both rated.

    Args:
        study: whose items count.
        ratings: judge -> what it gave. The reference may be one of them.

    Returns:
        (one, other) -> kappa, once for each pair, in the order of `ratings`.
    """
    return {
        (one, other): kappas.between(study, ratings[one], ratings[other], study.items, resamples=0)
        for one, other in itertools.combinations(ratings, 2)
    }


def alpha(study: Study, ratings: Sequence[Ratings]) -> Coefficient:
    """Krippendorff's alpha (interval) of all judges at once, over items that two or more rated.

    Of an item that counts, ratings that are not whole are as if they were missing. With fewer than
    two judges there is none, and the reason says so.
    """
    if len(ratings) < 2:
        return Coefficient(None, "alpha needs two judges", 0, len(study.items))
    rows = [[own.get(item) for own in ratings] for item in study.items]
    return krippendorff_alpha(rows, SCALE)


# --- without a constant leniency ------------------------------------------------------------------


def take_off(study: Study, ratings: Ratings, folds: Folds) -> tuple[Ratings, Part]:
    """Take the mean offset off a judge's ratings, cross-fitted.

    Args:
        study: with the reference that the offset is fitted to.
        ratings: of one rater.
        folds: of the same study.

    Returns:
        Whole ratings 1 to 5, None where there was none or no offset could be fitted; ratings that
        are not whole stay as they are: agreement leaves them out before and after, so that both
        kappas are of the same items where `not_fitted` is 0. And `offsets`, what each fold's
        ratings lost, None where there was nothing to fit it on elsewhere; `clipped` ratings had to
        be put back on the scale; `not_fitted` ones were lost since their fold has no offset.
    """
    offsets = _offsets(study, ratings, folds)
    corrected: dict[Item, float | None] = {}
    clipped = not_fitted = 0
    for item in study.items:
        if item not in ratings:
            continue
        rating, offset = ratings[item], offsets[folds.fold(item)]
        if rating is None or rating not in RATINGS:
            corrected[item] = rating
        elif offset is None:
            corrected[item] = None
            not_fitted += 1
        else:
            label = math.floor(int(rating) - offset + Fraction(1, 2))
            corrected[item] = min(max(label, SCALE[0]), SCALE[-1])
            clipped += corrected[item] != label
    return corrected, {
        "offsets": [None if offset is None else float(offset) for offset in offsets],
        "clipped": clipped,
        "not_fitted": not_fitted,
    }


def _offsets(study: Study, ratings: Ratings, folds: Folds) -> list[Fraction | None]:
    """Each fold's mean difference over all others; exact, so that halves are halves anywhere."""
    totals, numbers = [Fraction(0)] * folds.count, [0] * folds.count
    pairs: Counter[tuple[int, float, float]] = Counter(
        (folds.fold(item), rating, compared)
        for item in study.items
        if (rating := ratings.get(item)) is not None
        and (compared := study.reference.get(item)) is not None
    )
    for (fold, rating, compared), times in pairs.items():
        totals[fold] += times * (Fraction(rating) - Fraction(compared))
        numbers[fold] += times
    everything, n = sum(totals, Fraction(0)), sum(numbers)
    return [
        (everything - total) / (n - number) if n > number else None
        for total, number in zip(totals, numbers, strict=True)
    ]


# --- pairs of candidates --------------------------------------------------------------------------


def win_rates(study: Study, ratings: Ratings) -> Part:
    """Every candidate against every other, both ways; ratings such as 4.5 count as they are.

    Args:
        study: whose items count.
        ratings: of one rater, or the reference.

    Returns:
        `against`: two candidates -> wins, ties and losses over the questions where both have a
        rating, with shares of them, None without any: in `win_rate` a tie is not won, in `score` it
        is half a win, so that both sides make 1. `score`: candidate -> the same of all its pairs.
    """
    outcomes: dict[tuple[str, str], Counter[int]] = {
        pair: Counter() for pair in itertools.permutations(study.candidates, 2)
    }
    for (_, one, other), outcome in _outcomes(study, ratings):
        outcomes[one, other][outcome] += 1
        outcomes[other, one][-outcome] += 1
    against: dict[str, Part] = {}
    every: dict[str, Counter[int]] = {}
    for (one, other), own in outcomes.items():
        against.setdefault(one, {})[other] = {
            "wins": own[1],
            "ties": own[0],
            "losses": own[-1],
            "win_rate": own[1] / own.total() if own.total() else None,
            "score": _score(own),
        }
        every.setdefault(one, Counter()).update(own)
    return {"against": against, "score": {one: _score(own) for one, own in every.items()}}


def _score(outcomes: Counter[int]) -> float | None:
    n = outcomes.total()
    return (outcomes[1] + outcomes[0] / 2) / n if n else None


def agreement(study: Study, ratings: Ratings) -> Part:
    """Does the judge prefer the answers that the reference prefers?

    Returns:
        Numbers of the pairs of answers to one question that both rated, each in exactly one of:
        `same` and `opposite` where both prefer one, `both_tied`, or `judge_tied` and
        `reference_tied` where only that one has a tie; `n` is all of them. `agreement` is the share
        of the same outcome, a tie being one of three, with its interval; `decided` that of the same
        winner where both have one: chance is 0.5.
    """
    reference = dict(_outcomes(study, study.reference))
    kinds = dict.fromkeys(("same", "opposite", "both_tied", "judge_tied", "reference_tied"), 0)
    values, videos = [], []
    for pair, outcome in _outcomes(study, ratings):
        if pair in reference:
            kinds[_kind(outcome, reference[pair])] += 1
            values.append(float(outcome == reference[pair]))
            videos.append(study.questions[pair[0]].video)
    n, decided = len(values), kinds["same"] + kinds["opposite"]
    interval = kappas.clustered_or_reason(values, videos, "pairs")
    return {
        **kinds,
        **interval,
        "n": n,
        "agreement": (kinds["same"] + kinds["both_tied"]) / n if n else None,
        "decided": kinds["same"] / decided if decided else None,
    }


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
