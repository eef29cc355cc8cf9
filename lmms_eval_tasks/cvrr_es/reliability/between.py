"""How far judges agree with each other, whatever the reference says."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from lmms_eval_tasks.cvrr_es.reliability import kappas
from lmms_eval_tasks.cvrr_es.reliability.fitting import SCALE
from lmms_eval_tasks.cvrr_es.reliability.kappa_values import Kappa
from lmms_eval_tasks.cvrr_es.reliability.study import Ratings, Study
from lmms_eval_tasks.utils.agreement import Coefficient, Level, krippendorff_alpha

# Squared differences, as in the quadratic kappa: of two judges with equal means and spreads both
# are nearly the same number, so the two can be read side by side. Ordinal alpha could not.
ALPHA: Level = "interval"


def pairwise(
    study: Study, ratings: Mapping[str, Ratings], *, resamples: int = 0, seed: int = 0
) -> dict[tuple[str, str], Kappa]:
    """Quadratic weighted kappa of every two judges, pooled over the items that both rated.

    Args:
        study: whose items count.
        ratings: judge -> what it gave. The reference may be one of them.
        resamples, seed: of intervals by video, if any are wanted.

    Returns:
        (one, other) -> kappa, once for each pair, in the order of `ratings`.
    """
    return {
        (one, other): kappas.between(
            study, ratings[one], ratings[other], study.items, resamples=resamples, seed=seed
        )
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
    return krippendorff_alpha(rows, SCALE, ALPHA)
