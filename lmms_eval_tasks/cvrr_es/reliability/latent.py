"""Panels that estimate how each judge confuses the ratings: without the reference, and with it.

Both give for each item a probability of each rating, which `most_probable` or `mean_rating` makes
one rating of. They take a judge's errors as independent of the other judges' once the true rating
is given. Judges that copy each other, or share a bias, break that: see simulation.py.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_eval_tasks.cvrr_es.rating_rows import Item
from lmms_eval_tasks.cvrr_es.reliability.fitting import SCALE, Reference
from lmms_eval_tasks.cvrr_es.reliability.voting import to_scale

Probabilities = tuple[float, ...]  # of the ratings 1 to 5, in this order; their sum is 1
Given = Mapping[str, Mapping[Item, int]]  # judge -> item -> rating on the scale

ITERATIONS = 500  # at most; crowd-kit's default of 100 is often too few for five judges
TOLERANCE = 1e-6  # the gain of the likelihood's bound, in nats per rating, below which it stops
# Laplace's rule: one rating of each kind is added to what a judge was seen to give.
SMOOTHING = 1.0


@dataclass(frozen=True)
class Latent:
    """A fitted latent-class model."""

    probabilities: Mapping[Item, Probabilities]
    iterations: int
    converged: bool


def dawid_skene(ratings: Given, iterations: int = ITERATIONS) -> Latent:
    """Dawid and Skene's model (1979) by crowd-kit; it never sees a reference.

    Classes are the ratings that occur, begun from the shares of the votes, so a class means what
    most judges mean by it: a majority that errs together moves the classes with it. It knows no
    order: 1 and 5 are as different as 1 and 2. Nothing is random; rows are sorted first, so their
    order has no influence.

    Args:
        ratings: judge -> item -> 1 to 5; missing ratings are left out.
        iterations: at most so many; it stops where the bound gains less than TOLERANCE.
    """
    import pandas as pd  # type: ignore[import-untyped]  # comes with crowd-kit

    items = sorted({item for own in ratings.values() for item in own})
    if not items:
        return Latent({}, 0, True)
    number = {item: place for place, item in enumerate(items)}
    rows = sorted(
        (number[item], judge, rating)
        for judge, own in ratings.items()
        for item, rating in own.items()
    )
    model = _model(iterations)
    with warnings.catch_warnings():
        # crowd-kit 1.4 uses what pandas 3 deprecates (copy=, inplace=), once per iteration.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        table = model.fit_predict_proba(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    found = {}
    for place, row in zip(table.index, table.to_numpy(), strict=True):
        of_rating = dict(zip(table.columns, row, strict=True))
        found[items[place]] = _normal([float(of_rating.get(rating, 0.0)) for rating in SCALE])
    bounds = [-math.inf, *model.loss_history_]
    return Latent(found, len(bounds) - 1, bounds[-1] - bounds[-2] < TOLERANCE)


def _model(iterations: int) -> Any:
    """crowd-kit's model, with a bound that EM never lowers.

    crowd-kit 1.4 stops as soon as its bound gains too little, but adds the classes' shares to it
    once per rating instead of once per item, so that it falls now and then and EM ends early: in a
    quarter of the draws of simulation.py's world "five" after 6 to 12 iterations instead of about
    20, in one of them with a kappa of 0.715 instead of 0.680.
    """
    import numpy as np
    from crowdkit.aggregation import DawidSkene

    class Bounded(DawidSkene):  # type: ignore[misc]  # untyped for mypy
        def _evidence_lower_bound(self, data: Any, probas: Any, priors: Any, errors: Any) -> float:
            posterior = probas.to_numpy()
            of_rows = probas.loc[data["task"]].to_numpy()
            chances = data[["worker", "label"]].join(errors, on=["worker", "label"])
            chances = chances[list(probas.columns)].to_numpy()
            # What has no probability adds nothing, x log x being 0 at 0.
            tiny = np.finfo(float).tiny
            return float(
                (of_rows * np.log(chances.clip(tiny))).sum()
                + (posterior * np.log(priors[probas.columns].to_numpy().clip(tiny))).sum()
                - (posterior * np.log(posterior.clip(tiny))).sum()
            )

    return Bounded(n_iter=iterations, tol=TOLERANCE)


def naive_bayes(
    ratings: Given, reference: Reference, fitted_to: Collection[Item], items: Collection[Item]
) -> dict[Item, Probabilities]:
    """Judges' confusion matrices counted against the reference, and what they say of `items`.

    P(rating r of the reference) is (its count + a) / (all + 5a), and P(judge says x | r) is (count
    of x where the reference is r + a) / (all of r + 5a), a = SMOOTHING. A judge that is always one
    too high is thus corrected, and one that rates at random has no say.

    Args:
        ratings: judge -> item -> 1 to 5, of both kinds of items.
        reference: of the items in `fitted_to`; others are not looked at.
        fitted_to: items to count; none of `items` if the result is to be scored.
        items: items to rate.
    """
    prior = _shares([reference[item] for item in fitted_to])
    confusion: dict[str, list[Probabilities]] = {}
    for judge, own in ratings.items():
        seen = [(reference[item], own[item]) for item in fitted_to if item in own]
        confusion[judge] = [_shares([x for r, x in seen if r == true]) for true in SCALE]
    found = {}
    for item in items:
        logs = [
            math.fsum(
                [
                    math.log(prior[place]),
                    *(
                        math.log(confusion[judge][place][own[item] - SCALE[0]])
                        for judge, own in ratings.items()
                        if item in own
                    ),
                ]
            )
            for place in range(len(SCALE))
        ]
        highest = max(logs)
        found[item] = _normal([math.exp(value - highest) for value in logs])
    return found


def most_probable(probabilities: Probabilities) -> int:
    """The most probable rating; of equally probable ones the lower."""
    # Nine digits: what is equal by the model differs in the last bits of its sums.
    return SCALE[max(range(len(SCALE)), key=lambda place: (round(probabilities[place], 9), -place))]


def mean_rating(probabilities: Probabilities) -> int:
    """The mean of the ratings by their probability, on the scale: it knows their order."""
    return to_scale(math.fsum(p * rating for p, rating in zip(probabilities, SCALE, strict=True)))


def _shares(ratings: Sequence[int]) -> Probabilities:
    total = len(ratings) + SMOOTHING * len(SCALE)
    return tuple((ratings.count(rating) + SMOOTHING) / total for rating in SCALE)


def _normal(values: Sequence[float]) -> Probabilities:
    total = math.fsum(values)
    return tuple(value / total for value in values)
