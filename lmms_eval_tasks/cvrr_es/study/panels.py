"""Panels: the judges' ratings of an answer made into one.

The study ends with the wish for methods that weigh judges by their reliability (5.3, 6); these are
some, from counting votes to latent classes. Each rates every answer that at least one judge rated.
What a panel takes from the reference is fitted by dimension, as the study's reliability scores are,
and always on other folds than the answer's own. Ties and halves go down, as in judges/debate.py: a
tie never pays.

Two estimate how each judge confuses the ratings, without the reference and with it. They take a
judge's errors as independent of the other judges' once the true rating is given. Judges that copy
each other, or share a bias, break that: see benchmarks/simulation.py. EM is ours, and a test
compares it with crowd-kit's, round by round: crowd-kit 1.4 stops on a bound that falls now and then
(it adds the classes' shares once per rating instead of once per item), so that it often ends early,
and a round takes some hundred times longer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lmms_eval_tasks.cvrr_es.labels import SCALE
from lmms_eval_tasks.cvrr_es.study.ratings import Item
from lmms_eval_tasks.cvrr_es.study.selection import (
    ByJudge,
    Reference,
    Strata,
    best_first,
    fitting_items,
    judge_kappa,
)
from lmms_eval_tasks.cvrr_es.study.study import Ratings, Stratum

# --- one rating out of several of the same answer -------------------------------------------------


def majority(ratings: Sequence[int]) -> int:
    """The most frequent rating; of equally frequent ones the middle one, of two middle the lower.

    The middle one, since 1, 3 and 5 by three judges say 3 rather than 1.
    """
    counts = Counter(ratings)
    most = max(counts.values())
    tied = sorted(rating for rating, count in counts.items() if count == most)
    return tied[(len(tied) - 1) // 2]


def median(ratings: Sequence[int]) -> int:
    """The middle rating; the mean of the two middle ones, on the scale, where they differ."""
    ordered = sorted(ratings)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return to_scale((low + high) / 2)


def weighted_mean(ratings: Sequence[int], weights: Sequence[float]) -> int:
    """The mean on the scale; weights are not negative, and at least one is positive."""
    total = math.fsum(weights)
    return to_scale(math.fsum(r * w for r, w in zip(ratings, weights, strict=True)) / total)


def mean(ratings: Sequence[int]) -> int:
    """The plain mean on the scale."""
    return weighted_mean(ratings, [1.0] * len(ratings))


def to_scale(value: float) -> int:
    """The nearest rating of the scale; a half goes down."""
    # Nine digits: a half that was computed from weights may lie a last bit above it.
    nearest = math.ceil(round(value, 9) - 0.5)
    return min(max(nearest, SCALE[0]), SCALE[-1])


# --- judges' confusion of the ratings -------------------------------------------------------------

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
        reference: of the items in `fitted_to`; others are not looked at.
        fitted_to: items to count; none of `items` if the result is to be scored.
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


# --- the panels -----------------------------------------------------------------------------------

# Name -> whether it is fitted to the reference.
PANELS = {
    "majority": False,
    "median": False,
    "mean": False,
    "dawid_skene": False,  # the most probable class
    "dawid_skene_mean": False,  # the mean of the classes: the same model, but ratings have an order
    "kappa_weighted": True,  # mean by max(0, kappa)
    "best_judge": True,
    "naive_bayes": True,
    "naive_bayes_mean": True,
}
_VOTES = {"majority": majority, "median": median, "mean": mean}
_READ = {"": most_probable, "_mean": mean_rating}  # end of a latent panel's name


@dataclass(frozen=True)
class Panel:
    """The ratings of a panel (whole, 1 to 5) or a judge, and what a reader should know of them."""

    ratings: Ratings
    note: str = ""


class Judges:
    """The judges' ratings, with what several panels share; each part is computed once, if at all.

    Args:
        ratings: judge -> item -> rating. Those that are no whole number of the scale (4.5) are left
            out, as in every kappa, so that panels and judges are compared on the same ratings.
        reference: only looked at by panels that are fitted to it.
        strata: of all rated items, with folds for panels that are fitted to the reference. One
            dimension for all fits over all of them.
    """

    def __init__(self, ratings: ByJudge, reference: Reference, strata: Strata) -> None:
        self._given = {
            judge: {item: int(one) for item, one in own.items() if one in SCALE}
            for judge, own in sorted(ratings.items())
        }
        given = sum(one is not None for own in ratings.values() for one in own.values())
        self._off_scale = given - sum(map(len, self._given.values()))
        self._reference, self._strata = reference, strata
        # Answer -> judge -> rating. Sums are of math.fsum, so the judges' order has no influence.
        self._votes: dict[Item, dict[str, int]] = {}
        for judge, own in self._given.items():
            for item, rating in own.items():
                self._votes.setdefault(item, {})[judge] = rating

    def panel(self, name: str) -> Panel:
        """One panel's ratings.

        Fitting falls back where it has nothing to go by, and the note counts the answers: the plain
        mean where no judge of the answer has a positive weight, where no judge has a kappa, and
        where a dimension has no reference in other folds; the next best judge where the best one
        did not rate (of several without a kappa the first by name).
        """
        notes: Counter[str] = Counter(
            {"ratings left out, being no whole number of the scale": self._off_scale}
        )
        unfinished: list[str] = []
        if name in _VOTES:
            ratings = {item: _VOTES[name]([*own.values()]) for item, own in self._votes.items()}
        elif name == "kappa_weighted":
            ratings = dict(self._weighted(notes))
        elif name == "best_judge":
            ratings = dict(self._best(notes))
        elif name.startswith("dawid_skene"):
            ratings = dict(self._dawid_skene(name.removeprefix("dawid_skene"), unfinished))
        else:
            ratings = dict(self._naive_bayes(name.removeprefix("naive_bayes"), notes))
        counted = [f"{what}: {count}" for what, count in notes.items() if count]
        return Panel(ratings, "; ".join([*counted, *unfinished]))

    def _weighted(self, notes: Counter[str]) -> Iterator[tuple[Item, int]]:
        for item, votes in self._votes.items():
            kappas = self._kappas[self._strata[item]]
            weights = [max(0.0, kappas[judge] or 0.0) for judge in votes]
            if not any(weights):
                notes["plain mean, no judge of the answer has a positive kappa"] += 1
                weights = [1.0] * len(votes)
            yield item, weighted_mean([*votes.values()], weights)

    def _best(self, notes: Counter[str]) -> Iterator[tuple[Item, int]]:
        ranked = {stratum: best_first(kappas) for stratum, kappas in self._kappas.items()}
        for item, votes in self._votes.items():
            order = ranked[self._strata[item]]
            if not order:
                notes["plain mean, no judge has a kappa in other folds"] += 1
                yield item, mean([*votes.values()])
                continue
            notes["rated by the next best judge"] += order[0] not in votes
            yield item, votes[next((judge for judge in order if judge in votes), min(votes))]

    def _dawid_skene(self, end: str, unfinished: list[str]) -> Iterator[tuple[Item, int]]:
        for dimension, model in self._latent.items():
            if not model.converged:
                unfinished.append(f"not converged in {model.iterations} iterations: {dimension}")
            yield from ((item, _READ[end](p)) for item, p in model.probabilities.items())

    def _naive_bayes(self, end: str, notes: Counter[str]) -> Iterator[tuple[Item, int]]:
        for stratum, fitted_to in self._fit_to.items():
            own = [item for item in self._votes if self._strata[item] == stratum]
            if fitted_to:
                posterior = naive_bayes(self._given, self._reference, fitted_to, own)
                yield from ((item, _READ[end](p)) for item, p in posterior.items())
            else:
                notes["plain mean, no reference in other folds of the dimension"] += len(own)
                yield from ((item, mean([*self._votes[item].values()])) for item in own)

    @cached_property
    def _fit_to(self) -> dict[Stratum, list[Item]]:
        return fitting_items(self._votes, self._reference, self._strata)

    @cached_property
    def _kappas(self) -> dict[Stratum, dict[str, float | None]]:
        return {
            stratum: {
                judge: judge_kappa(own, self._reference, items)
                for judge, own in self._given.items()
            }
            for stratum, items in self._fit_to.items()
        }

    @cached_property
    def _latent(self) -> dict[str, Latent]:
        dimensions: dict[str, dict[str, dict[Item, int]]] = {}
        for judge, own in self._given.items():
            for item, rating in own.items():
                dimension = self._strata[item].dimension
                dimensions.setdefault(dimension, {}).setdefault(judge, {})[item] = rating
        return {name: dawid_skene(own) for name, own in sorted(dimensions.items())}
