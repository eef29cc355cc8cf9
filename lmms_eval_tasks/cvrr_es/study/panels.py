"""Panels: several judges' ratings of an answer combined into one rating.

The study asks for methods that weigh judges by their reliability (5.3, 6); these are some. Each
panel rates every answer that at least one judge rated. A panel that uses the reference is fitted by
dimension, as the study's reliability scores are, and always on other folds than the answer's. Ties
and halves go down, so that a tie never gains.

Dawid-Skene takes the errors of judges as independent, given the true rating. Judges that copy each
other, or share a bias, violate this: see benchmarks/simulation.py.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import multimode
from typing import NamedTuple

from lmms_eval_tasks.cvrr_es.labels import SCALE
from lmms_eval_tasks.cvrr_es.study.ratings import AnswerKey
from lmms_eval_tasks.cvrr_es.study.selection import ByJudge, Reference, Strata, kappas_elsewhere


def majority(ratings: Sequence[int]) -> int:
    """The most frequent rating; of several, the middle one, and of two middle ones the lower.

    The middle one, since 1, 3 and 5 by three judges mean 3 rather than 1.
    """
    tied = sorted(multimode(ratings))
    return tied[(len(tied) - 1) // 2]


def mean(ratings: Sequence[int], weights: Sequence[float] | None = None) -> int:
    """The weighted mean on the scale; weights are not negative, and at least one is positive."""
    given = weights or [1.0] * len(ratings)
    return to_scale(
        math.fsum(r * w for r, w in zip(ratings, given, strict=True)) / math.fsum(given)
    )


def to_scale(value: float) -> int:
    """The rating on the scale nearest to a value; a half goes down."""
    # Round to nine digits: a half computed from weights may be a last bit too high.
    nearest = math.ceil(round(value, 9) - 0.5)
    return min(max(nearest, SCALE[0]), SCALE[-1])


RatingsByJudge = Mapping[str, Mapping[AnswerKey, int]]  # judge -> item -> rating on the scale

ITERATIONS = 5000  # the limit; five invented judges of 760 to 1,400 answers took 500 to 1,000
# EM stops when the log likelihood gains less, in nats per rating. EM is slow at the end: with 1e-6
# up to a tenth of these answers' most probable ratings would still change.
TOLERANCE = 1e-10
# Instead of log 0: a rating that a judge never gave to a class nearly excludes the class.
_TINY = 1e-300


class Latent(NamedTuple):
    """A fitted latent-class model: the probabilities of the ratings 1 to 5 of each item."""

    probabilities: Mapping[AnswerKey, Sequence[float]]
    iterations: int
    converged: bool

    def ratings(self) -> dict[AnswerKey, int]:
        """The most probable rating of each item; the lower one if two are equally probable."""
        # Round to nine digits: equal probabilities differ in the last bits of their sums.
        return {
            item: -max(zip((round(p, 9) for p in own), (-one for one in SCALE), strict=True))[1]
            for item, own in self.probabilities.items()
        }


def dawid_skene(ratings: RatingsByJudge, iterations: int = ITERATIONS) -> Latent:
    """Fit Dawid and Skene's model (1979) by EM, without any reference.

    The classes are the ratings. EM starts from the shares of the votes, so a class means what most
    judges mean by it: a majority with a common error moves the classes with it. The model knows no
    order of ratings: 1 and 5 differ as much as 1 and 2. Nothing is random, and the order of judges
    and items has no influence.

    The EM step is the same as in crowd-kit (a test compares them); the stopping rule is not.
    crowd-kit 1.4 stops on a bound that sometimes falls, since it adds the classes' shares once per
    rating instead of once per item. Measured on 21 draws of benchmarks/simulation.py: with tol=1e-9
    its labels differ in 9 draws, for up to 129 of 400 answers; in most of them it stops after 7 to
    35 steps, while the likelihood still rises for 33 to 770. It takes 0.15 to 31 s per draw; this
    function takes 0.3 s at most.

    Args:
        ratings: judge -> item -> 1 to 5; missing ratings are left out.
        iterations: the largest number of EM steps; EM stops when the likelihood gains less than
            TOLERANCE.
    """
    import numpy as np

    judges = sorted(ratings)
    items = sorted({item for own in ratings.values() for item in own})
    if not items:
        return Latent({}, 0, True)
    # Items with the same votes share their posterior; 0: the judge gave no rating.
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
        pattern: tuple(p / math.fsum(own) for p in own)
        for pattern, own in zip(patterns, posterior.tolist(), strict=True)
    }
    return Latent({item: found[votes] for item, votes in votes_of.items()}, number, converged)


FITTED = "kappa_weighted"  # the panel that is fitted to the reference
PANELS = ("majority", "mean", "dawid_skene", FITTED)


class Panel(NamedTuple):
    """The ratings of a panel (whole, 1 to 5), and a note for readers."""

    ratings: Mapping[AnswerKey, int]
    note: str = ""


def panel(name: str, ratings: ByJudge, reference: Reference, strata: Strata) -> Panel:
    """Return the ratings of one panel.

    Ratings off the whole scale (4.5) are left out, as in every kappa, so that panels and judges are
    compared on the same ratings.

    Args:
        name: one of PANELS.
        ratings: by judge and item.
        reference: used only by the panel that is fitted to it.
        strata: dimension and fold of each item.

    Returns:
        The panel. FITTED is the plain mean for an answer if none of its judges has a positive
        kappa; the note counts such answers.
    """
    # math.fsum sums exactly, so the order of judges has no influence.
    votes: dict[AnswerKey, dict[str, int]] = {}
    dimensions: dict[str, dict[str, dict[AnswerKey, int]]] = {}
    for judge, judge_ratings in sorted(ratings.items()):
        for item, rating in judge_ratings.items():
            if rating in SCALE:
                votes.setdefault(item, {})[judge] = int(rating)
                of_dimension = dimensions.setdefault(strata[item].dimension, {})
                of_dimension.setdefault(judge, {})[item] = int(rating)
    panel_ratings: dict[AnswerKey, int] = {}
    if name == "dawid_skene":  # the most probable class, with a model per dimension
        models = {dimension: dawid_skene(table) for dimension, table in sorted(dimensions.items())}
        for model in models.values():
            panel_ratings |= model.ratings()
        return Panel(
            panel_ratings,
            "; ".join(
                f"not converged in {model.iterations} iterations: {dimension}"
                for dimension, model in models.items()
                if not model.converged
            ),
        )
    if name != FITTED:
        vote = {"majority": majority, "mean": mean}[name]
        return Panel({item: vote([*item_votes.values()]) for item, item_votes in votes.items()})
    kappas = kappas_elsewhere(ratings, reference, {item: strata[item] for item in votes})
    plain = 0
    for item, of_item in votes.items():
        weights = [max(0.0, kappas[strata[item]][judge] or 0.0) for judge in of_item]
        plain += not any(weights)
        panel_ratings[item] = mean([*of_item.values()], weights if any(weights) else None)
    why = "plain mean, because no judge of the answer has a positive kappa"
    return Panel(panel_ratings, f"{why}: {plain}" if plain else "")
