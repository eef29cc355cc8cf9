"""Dawid-Skene against EM written out, and naive Bayes against counts by hand."""

from __future__ import annotations

import math
import warnings
from itertools import pairwise
from random import Random

import pytest

from benchmarks import simulation
from lmms_eval_tasks.cvrr_es.study import panels
from lmms_eval_tasks.cvrr_es.study.ratings import Item

SCALE = (1, 2, 3, 4, 5)
Table = dict[str, dict[Item, int]]


def made(seed: int, items: int = 60, missing: float = 0.2) -> Table:
    """Four judges, one of them at random, with missing ratings."""
    rng = Random(seed)
    truth = {Item(f"d/{n:03d}", "x"): rng.choice((1, 1, 1, 2, 2, 3, 4, 5)) for n in range(items)}
    ratings: Table = {}
    for judge, share in (("a", 0.1), ("b", 0.3), ("c", 0.4), ("d", 1.0)):
        ratings[judge] = {
            item: rng.choice(SCALE) if rng.random() < share else rating
            for item, rating in truth.items()
            if judge == "a" or rng.random() > missing
        }
    return ratings


def by_hand(ratings: Table, rounds: int) -> tuple[dict[Item, list[float]], list[float]]:
    """EM as Dawid and Skene (1979) write it, in plain loops: posteriors, log likelihoods."""
    items = sorted({item for own in ratings.values() for item in own})
    posterior = {}
    for item in items:
        votes = [own[item] for own in ratings.values() if item in own]
        posterior[item] = [votes.count(label) / len(votes) for label in SCALE]
    likelihoods = []
    for _ in range(rounds):
        prior = [sum(posterior[item][c] for item in items) / len(items) for c in range(5)]
        says = {}
        for judge, own in ratings.items():
            for c in range(5):
                total = sum(posterior[item][c] for item in own)
                for x in SCALE:
                    count = sum(posterior[item][c] for item, label in own.items() if label == x)
                    says[judge, c, x] = count / total if total else 0.0
        likelihoods.append(0.0)
        for item in items:
            joint = [
                prior[c]
                * math.prod(
                    says[judge, c, own[item]] for judge, own in ratings.items() if item in own
                )
                for c in range(5)
            ]
            posterior[item] = [value / sum(joint) for value in joint]
            likelihoods[-1] += math.log(sum(joint))
    return posterior, likelihoods


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("rounds", [1, 4])
def test_dawid_skene_is_em(seed: int, rounds: int) -> None:
    ratings = made(seed)
    model = panels.dawid_skene(ratings, iterations=rounds)
    expected, _ = by_hand(ratings, rounds)
    assert (model.iterations, model.converged) == (rounds, False)
    assert set(model.probabilities) == set(expected)
    for item, probabilities in model.probabilities.items():
        assert probabilities == pytest.approx(expected[item], abs=1e-9)


@pytest.mark.parametrize("seed", [1, 4])
def test_dawid_skene_goes_on_until_no_rating_changes(seed: int) -> None:
    ratings = made(seed)
    model = panels.dawid_skene(ratings)
    assert model.converged
    further, likelihoods = by_hand(ratings, 2 * model.iterations)
    assert all(after >= before - 1e-9 for before, after in pairwise(likelihoods))
    for item, probabilities in model.probabilities.items():
        assert probabilities == pytest.approx(further[item], abs=0.01)


def crowd_kits(ratings: Table, rounds: int | None = None) -> tuple[dict[Item, list[float]], int]:
    """crowd-kit's posteriors after so many rounds (None: when it stops), and the rounds."""
    import pandas as pd
    from crowdkit.aggregation import DawidSkene

    items = sorted({item for own in ratings.values() for item in own})
    number = {item: place for place, item in enumerate(items)}
    rows = [(number[i], judge, x) for judge, own in ratings.items() for i, x in own.items()]
    model = DawidSkene(n_iter=100) if rounds is None else DawidSkene(n_iter=rounds, tol=-math.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.fit_predict_proba(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    table = {items[place]: [row.get(x, 0.0) for x in SCALE] for place, row in found.iterrows()}
    return table, len(model.loss_history_)


def test_dawid_skene_is_crowd_kits_round_by_round() -> None:
    ratings = made(1)
    for rounds in (1, 8):
        expected, _ = crowd_kits(ratings, rounds)
        model = panels.dawid_skene(ratings, iterations=rounds)
        for item, probabilities in model.probabilities.items():
            # crowd-kit puts 1e-10 in place of probabilities of 0.
            assert probabilities == pytest.approx(expected[item], abs=1e-6)


def test_crowd_kit_itself_would_have_stopped_too_early() -> None:
    """Why EM is ours; if this fails, crowd-kit may have been repaired."""
    ratings = simulation.draw(simulation.WORLDS["five"], 12).ratings
    _, rounds = crowd_kits(ratings)
    model = panels.dawid_skene(ratings)
    assert model.converged
    assert model.iterations > 2 * rounds
    _, likelihoods = by_hand(ratings, 2 * rounds)
    assert likelihoods[-1] > likelihoods[rounds] + 1


def test_dawid_skene_says_when_it_did_not_converge() -> None:
    assert not panels.dawid_skene(made(1), iterations=2).converged
    empty = panels.dawid_skene({"a": {}})
    assert (empty.probabilities, empty.iterations, empty.converged) == ({}, 0, True)


def test_dawid_skene_does_not_depend_on_the_order_of_judges_and_items() -> None:
    ratings = made(5)
    shuffled = {
        judge: dict(sorted(ratings[judge].items(), reverse=True)) for judge in reversed(ratings)
    }
    assert panels.dawid_skene(shuffled) == panels.dawid_skene(ratings)


def test_dawid_skene_leaves_warnings_and_numpys_random_state_alone() -> None:
    import numpy as np

    np.random.seed(7)
    expected = np.random.random()
    np.random.seed(7)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        panels.dawid_skene(made(1), iterations=3)
    assert not seen
    assert np.random.random() == expected


def test_ratings_that_nobody_gave_have_no_probability() -> None:
    items = [Item(f"d/{n:03d}", "x") for n in range(4)]
    model = panels.dawid_skene({"a": dict(zip(items, (2, 2, 5, 5), strict=True))})
    assert model.probabilities[items[0]] == pytest.approx((0, 1, 0, 0, 0), abs=1e-8)
    assert model.probabilities[items[3]] == pytest.approx((0, 0, 0, 0, 1), abs=1e-8)


def test_naive_bayes_by_hand() -> None:
    first, second, third, new = (Item(f"d/{n:03d}", "x") for n in range(4))
    reference = {first: 1, second: 1, third: 2, new: 5}  # `new` is not fitted to
    ratings = {"a": {first: 4, second: 4, third: 5, new: 4}, "b": {first: 1, new: 2}}
    found = panels.naive_bayes(ratings, reference, [first, second, third], [new])
    # Prior (1 + counts) / 8; a says 4 where the reference is 1: (2+1)/(2+5), 2: (0+1)/(1+5), else
    # 1/5. b saw one item, a 1: it says 2 there with (0+1)/(1+5), elsewhere 1/5.
    joint = [
        3 / 8 * 3 / 7 * 1 / 6,
        2 / 8 * 1 / 6 * 1 / 5,
        *[1 / 8 * 1 / 5 * 1 / 5] * 3,
    ]
    assert set(found) == {new}
    assert found[new] == pytest.approx([value / sum(joint) for value in joint])
    # Many judges: the product is far below the smallest float.
    many = {f"j{n}": ratings["a"] for n in range(2000)}
    assert panels.naive_bayes(many, reference, [first, second, third], [new])[new][0] == 1


@pytest.mark.parametrize(
    ("probabilities", "probable", "mean"),
    [
        ((1, 0, 0, 0, 0), 1, 1),
        ((0.4, 0, 0, 0.3, 0.3), 1, 3),  # 3.1
        ((0.2, 0.2, 0.2, 0.2, 0.2), 1, 3),
        ((0, 0.5, 0.5, 0, 0), 2, 2),
        ((0.1 + 0.2, 0.3, 0.2, 0.1, 0.1), 1, 2),  # 0.30000000000000004 and 0.3 are equal
        ((0.3, 0.1 + 0.2, 0.2, 0.1, 0.1), 1, 2),
    ],
)
def test_one_rating_of_the_probabilities(
    probabilities: tuple[float, ...], probable: int, mean: int
) -> None:
    assert panels.most_probable(probabilities) == probable
    assert panels.mean_rating(probabilities) == mean
