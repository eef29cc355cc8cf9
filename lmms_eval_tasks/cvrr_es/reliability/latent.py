"""Panels that estimate how each judge confuses the ratings: without the reference, and with it.

Both give for each item a probability of each rating, which `most_probable` or `mean_rating` makes
one rating of. They take a judge's errors as independent of the other judges' once the true rating
is given. Judges that copy each other, or share a bias, break that: see simulation.py.

EM is ours, and a test compares it with crowd-kit's, round by round: crowd-kit 1.4 stops on a bound
that falls now and then (it adds the classes' shares once per rating instead of once per item), so
that it often ends early, and a round takes some hundred times longer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lmms_eval_tasks.cvrr_es.rating_rows import Item
from lmms_eval_tasks.cvrr_es.reliability.fitting import SCALE, Reference
from lmms_eval_tasks.cvrr_es.reliability.voting import to_scale

Probabilities = tuple[float, ...]  # of the ratings 1 to 5, in this order; their sum is 1
Given = Mapping[str, Mapping[Item, int]]  # judge -> item -> rating on the scale

ITERATIONS = 5000  # at most; five made-up judges of 760 to 1,400 answers took 500 to 1,000
# The gain of the log likelihood, in nats per rating, below which it stops. EM creeps: with 1e-6 up
# to a tenth of these answers' most probable ratings would still change.
TOLERANCE = 1e-10
_TINY = 1e-300  # for log 0: what a judge was never seen to say of a class all but rules it out
# Laplace's rule: one rating of each kind is added to what a judge was seen to give.
SMOOTHING = 1.0


@dataclass(frozen=True)
class Latent:
    """A fitted latent-class model."""

    probabilities: Mapping[Item, Probabilities]
    iterations: int
    converged: bool


def dawid_skene(ratings: Given, iterations: int = ITERATIONS) -> Latent:
    """Dawid and Skene's model (1979), fitted by EM; it never sees a reference.

    Classes are the ratings, begun from the shares of the votes, so a class means what most judges
    mean by it: a majority that errs together moves the classes with it. It knows no order: 1 and 5
    are as different as 1 and 2. Nothing is random, and the order of judges and items has no
    influence.

    Args:
        ratings: judge -> item -> 1 to 5; missing ratings are left out.
        iterations: at most so many; it stops where the likelihood gains less than TOLERANCE.
    """
    import numpy as np

    judges = sorted(ratings)
    items = sorted({item for own in ratings.values() for item in own})
    if not items:
        return Latent({}, 0, True)
    # Items with the same votes share their posterior: 0 where a judge gave no rating.
    votes_of = {item: tuple(ratings[judge].get(item, 0) for judge in judges) for item in items}
    times_of = Counter(votes_of.values())
    patterns = sorted(times_of)
    times = np.array([[times_of[pattern]] for pattern in patterns], dtype=np.float64)
    said = (np.array(patterns).T[:, :, None] == np.array(SCALE)).astype(np.float64)  # (j, p, x)
    given = said.sum(axis=(0, 2))[:, None]
    posterior = said.sum(axis=0) / given  # (p, classes)
    before, number, converged = -math.inf, 0, False
    while not converged and number < iterations:
        number += 1
        expected = times * posterior
        prior = expected.sum(axis=0) / len(items)
        confused = np.einsum("pc,jpx->jcx", expected, said)
        of_class = confused.sum(axis=2, keepdims=True)
        says = confused / np.where(of_class == 0, 1, of_class)
        logs = np.log(prior.clip(_TINY)) + np.einsum("jpx,jcx->pc", said, np.log(says.clip(_TINY)))
        highest = logs.max(axis=1, keepdims=True)
        joint = np.exp(logs - highest)
        total = joint.sum(axis=1, keepdims=True)
        posterior = joint / total
        likelihood = float((times * (highest + np.log(total))).sum() / (times * given).sum())
        converged = likelihood - before < TOLERANCE
        before = likelihood
    found = {
        pattern: _normal(own) for pattern, own in zip(patterns, posterior.tolist(), strict=True)
    }
    return Latent({item: found[votes] for item, votes in votes_of.items()}, number, converged)


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
