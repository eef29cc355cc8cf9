"""How far a rater agrees with the reference: Cohen's kappa with quadratic weights (vlm_judge, 3.2).

The paper writes kappa = 1 - sum(w O) / sum(w E), which needs weights of *disagreement*, and defines
w = 1 - ((a - b) / (k - 1))^2, which is a weight of *agreement*: taken together they would give a
perfect judge a negative number. Right is one of the two pairs, which are equal (metrics.md):
1 - sum(d O) / sum(d E) with d = ((a - b) / (k - 1))^2, or (Po - Pe) / (1 - Pe) with w. O and E are
counts observed and expected from the margins, k = 5, and the labels are always the whole scale.
Table 5's numbers are kappa times 100: `percent`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lmms_eval_tasks.cvrr_es.labels import RATINGS
from lmms_eval_tasks.cvrr_es.rating_rows import Item
from lmms_eval_tasks.cvrr_es.reliability import sums_bootstrap
from lmms_eval_tasks.cvrr_es.reliability.fitting import SCALE
from lmms_eval_tasks.cvrr_es.reliability.kappa_values import Kappa, MeanKappa, average
from lmms_eval_tasks.cvrr_es.reliability.study import Cell, Ratings, Study
from lmms_eval_tasks.utils.agreement import kappa

if TYPE_CHECKING:
    from lmms_eval_tasks.cvrr_es.reliability.sums_bootstrap import Matrix

# Of the pairs of one video, or of more: number, sum of a, sum of b, sum of (a - b)^2, of a^2 + b^2.
Sums = tuple[int, int, int, int, int]
NONE: Sums = (0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Reliability:
    """One rater against the reference.

    Attributes:
        cells: per dimension and candidate.
        by_dimension: mean over candidates, as the averages of Table 5.
        mean: of `by_dimension`, where it is defined.
        pooled_by_dimension, pooled: of all the items at once, the second column. It also counts
            that a judge ranks the candidates rightly, which no kappa of one candidate can.
    """

    cells: Mapping[Cell, Kappa]
    by_dimension: Mapping[str, MeanKappa]
    mean: MeanKappa
    pooled_by_dimension: Mapping[str, Kappa]
    pooled: Kappa


def reliability(
    study: Study, ratings: Ratings, *, resamples: int = sums_bootstrap.RESAMPLES, seed: int = 0
) -> Reliability:
    """All kappas of one rater (or panel) against the study's reference.

    Args:
        study: whose items count.
        ratings: of these items; what they lack is `missing`.
        resamples: of each interval, at least 1000; 0 for none.
        seed: of each interval.

    Raises:
        ValueError: resamples from 1 to 999.
    """
    options = {"resamples": resamples, "seed": seed}
    reference, cells = study.reference, study.cells
    by_dimension: dict[str, list[Cell]] = {}
    for cell in cells:
        by_dimension.setdefault(cell.dimension, []).append(cell)
    found = {
        cell: between(study, ratings, reference, items, **options) for cell, items in cells.items()
    }
    sums = {
        cell: sums_by_video(study, whole_pairs(ratings, reference, items))
        for cell, items in cells.items()
    }
    return Reliability(
        cells=found,
        by_dimension={
            dimension: _mean([own], found, sums, **options)
            for dimension, own in by_dimension.items()
        },
        mean=_mean(list(by_dimension.values()), found, sums, **options),
        pooled_by_dimension={
            dimension: between(
                study, ratings, reference, [item for cell in own for item in cells[cell]], **options
            )
            for dimension, own in by_dimension.items()
        },
        pooled=between(study, ratings, reference, study.items, **options),
    )


def between(
    study: Study,
    one: Ratings,
    other: Ratings,
    items: Sequence[Item],
    *,
    resamples: int = sums_bootstrap.RESAMPLES,
    seed: int = 0,
) -> Kappa:
    """Kappa of two raters over some items.

    Args:
        study: which knows the items' videos, and what its reference is.
        one, other: may lack items.
        items: all that should be rated.
        resamples, seed: as in `reliability`.
    """
    a, b = [one.get(item) for item in items], [other.get(item) for item in items]
    agreement = kappa(a, b, SCALE, "quadratic")
    if other is study.reference and not other:
        agreement = replace(agreement, reason="there is no reference yet")
    pairs = whole_pairs(one, other, items)
    sums = sums_by_video(study, pairs)
    interval, no_interval = sums_bootstrap.interval_or_reason(
        agreement.value,
        sums,
        lambda drawn: kappas_of(drawn)[:, 0],
        agreement.n,
        unknown=sums.get("", NONE)[0],
        resamples=resamples,
        seed=seed,
    )
    return Kappa(agreement, interval, no_interval, _note(pairs))


def _mean(
    groups: Sequence[Sequence[Cell]],
    found: Mapping[Cell, Kappa],
    sums: Mapping[Cell, Mapping[str, Sums]],
    *,
    resamples: int,
    seed: int,
) -> MeanKappa:
    """Mean over groups of the mean over their cells."""
    cells = [cell for group in groups for cell in group]
    values = [found[cell].value for cell in cells]
    inner = [average(found[cell].value for cell in group) for group in groups]
    value = average(inner)
    reasons = sorted({found[cell].agreement.reason for cell in cells} - {""})
    videos = {video for cell in cells for video in sums[cell]}
    columns = {
        video: [number for cell in cells for number in sums[cell].get(video, NONE)]
        for video in videos
    }
    places = {cell: place for place, cell in enumerate(cells)}

    def statistic(drawn: Matrix) -> Matrix:
        import numpy as np

        kappas = kappas_of(drawn)
        means = [defined_mean(kappas[:, [places[c] for c in group]]) for group in groups]
        return defined_mean(np.stack(means, axis=1))

    interval, no_interval = sums_bootstrap.interval_or_reason(
        value,
        columns,
        statistic,
        sum(found[cell].agreement.n for cell in cells),
        unknown=sum(sums[cell].get("", NONE)[0] for cell in cells),
        resamples=resamples,
        seed=seed,
    )
    return MeanKappa(
        value,
        ("; ".join(reasons) or "there are no items") if value is None else "",
        sum(one is not None for one in values),
        len(cells),
        interval,
        no_interval,
    )


def whole_pairs(one: Ratings, other: Ratings, items: Iterable[Item]) -> list[tuple[Item, int, int]]:
    """Items that count, with both ratings."""
    return [
        (item, int(a), int(b))
        for item in items
        if (a := one.get(item)) is not None and (b := other.get(item)) is not None
        if a in RATINGS and b in RATINGS
    ]


def sums_by_video(study: Study, pairs: Iterable[tuple[Item, int, int]]) -> dict[str, Sums]:
    """What a kappa needs of every video's pairs, "" being those whose video is not known."""
    found: dict[str, Sums] = {}
    for item, a, b in pairs:
        video = study.video(item)
        n, total_a, total_b, apart, squares = found.get(video, NONE)
        found[video] = (
            n + 1,
            total_a + a,
            total_b + b,
            apart + (a - b) ** 2,
            squares + a * a + b * b,
        )
    return found


def kappas_of(drawn: Matrix) -> Matrix:
    """Kappas from sums, exact: shape (resamples, 5 x cells) to (resamples, cells).

    The observed disagreement is sum((a - b)^2); the expected one, over all n^2 pairs, is
    n sum(a^2 + b^2) - 2 sum(a) sum(b). All are whole numbers below 2^53.
    """
    import numpy as np

    n, a, b, apart, squares = np.moveaxis(drawn.reshape(len(drawn), -1, 5), 2, 0)
    expected = n * squares - 2 * a * b
    undefined = expected == 0  # nobody rated, or both gave one and the same label
    made = (expected - n * apart) / np.where(undefined, 1, expected)
    return np.where(undefined, np.nan, made)


def defined_mean(values: Matrix) -> Matrix:
    """Mean of each row's defined values, nan where there are none: (r, c) to (r,)."""
    import numpy as np

    defined = np.isfinite(values)
    number = defined.sum(axis=1)
    total = np.where(defined, values, 0.0).sum(axis=1)
    return np.where(number == 0, np.nan, total / np.maximum(number, 1))


def _note(pairs: Sequence[tuple[Item, int, int]]) -> str:
    """Which side gave one rating only."""
    first, second = Counter(a for _, a, _ in pairs), Counter(b for _, _, b in pairs)
    sides = [
        f"{side} is always {next(iter(given))}"
        for side, given in (("the rating", first), ("the other side", second))
        if len(given) == 1 and len(pairs) > 1
    ]
    return " and ".join(sides)
