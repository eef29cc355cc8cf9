"""Panels by hand, and what holds for all of them; Dawid-Skene against crowd-kit's EM."""

from __future__ import annotations

import itertools
import math
import warnings
from random import Random

import pytest

from lmms_eval_tasks.cvrr_es.study import panels
from lmms_eval_tasks.cvrr_es.study.panels import FITTED, PANELS, dawid_skene, panel
from lmms_eval_tasks.cvrr_es.study.ratings import AnswerKey
from lmms_eval_tasks.cvrr_es.study.selection import Stratum

SCALE = (1, 2, 3, 4, 5)
Table = dict[str, dict[AnswerKey, int]]
ITEMS = [AnswerKey(f"d/{n:03d}", candidate) for n in range(1, 31) for candidate in "xy"]
FOLDS = {item: int(item.question[2:]) % 3 for item in ITEMS}
STRATA = {
    item: Stratum(FOLDS[item], "late" if item.question > "d/015" else "early") for item in ITEMS
}


def drawn(seed: int, missing: float = 0.0) -> tuple[Table, dict[AnswerKey, int]]:
    """Ratings by a good, a lenient, a random and a contrary judge, and the reference."""
    rng = Random(seed)
    truth = {item: rng.choice((1, 1, 1, 2, 2, 3, 4, 5)) for item in ITEMS}
    rules = {
        "good": lambda r: min(5, max(1, r + rng.choice((0, 0, 0, 1, -1)))),
        "lenient": lambda r: min(5, r + 1),
        "random": lambda _: rng.choice(SCALE),
        "contrary": lambda r: 6 - r,
    }
    ratings = {
        name: {item: rule(r) for item, r in truth.items() if rng.random() >= missing}
        for name, rule in rules.items()
    }
    return ratings, truth


def test_votes() -> None:
    for ratings, majority, mean in (
        ([4], 4, 4),
        ([2, 2, 5], 2, 3),
        ([1, 5], 1, 3),  # tied: the lower of two
        ([1, 3, 5], 3, 3),  # the middle one of three
        ([1, 2, 4, 5], 2, 3),  # of two middle ones the lower
        ([2, 3], 2, 2),  # halves go down
        ([1, 1, 2, 2, 5], 1, 2),
        ([1, 1, 4, 4], 1, 2),
    ):
        for order in (ratings, ratings[::-1]):
            assert panels.majority(order) == majority
            assert panels.mean(order) == panels.mean(order, [0.1] * len(order)) == mean
    assert panels.mean([1, 5], [0.9, 0.1]) == 1  # 1.4
    # A half whose weights are no exact binary numbers.
    assert panels.mean([2, 3], [0.7, 0.7]) == 2
    values = {0.2: 1, 1.5: 1, 1.51: 2, 2.5 + 1e-12: 2, 3.49: 3, 4.6: 5, 7.0: 5, -1.0: 1}
    assert {value: panels.to_scale(value) for value in values} == values
    for probabilities, probable in (
        ((0.2, 0.2, 0.2, 0.2, 0.2), 1),
        ((0, 0.5, 0.5, 0, 0), 2),
        ((0.1 + 0.2, 0.3, 0.2, 0.1, 0.1), 1),  # 0.30000000000000004 and 0.3 are equal
        ((0.3, 0.1 + 0.2, 0.2, 0.1, 0.1), 1),
    ):
        assert panels.Latent({ITEMS[0]: probabilities}, 1, True).ratings()[ITEMS[0]] == probable


def crowd_kits(ratings: Table, rounds: int) -> dict[AnswerKey, list[float]]:
    """crowd-kit's posteriors after so many rounds."""
    import pandas as pd
    from crowdkit.aggregation import DawidSkene

    number = {item: place for place, item in enumerate(ITEMS)}
    rows = [(number[i], judge, x) for judge, own in ratings.items() for i, x in own.items()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = DawidSkene(n_iter=rounds, tol=-math.inf).fit_predict_proba(
            pd.DataFrame(rows, columns=["task", "worker", "label"])
        )
    return {ITEMS[place]: [row.get(x, 0.0) for x in SCALE] for place, row in found.iterrows()}


def test_dawid_skene_is_crowd_kits_round_by_round() -> None:
    for seed, rounds in itertools.product((1, 2), (1, 4)):
        ratings, _ = drawn(seed, 0.2)
        model = dawid_skene(ratings, iterations=rounds)
        assert (model.iterations, model.converged) == (rounds, False)
        expected = crowd_kits(ratings, rounds)  # it puts 1e-10 in place of probabilities of 0
        assert set(model.probabilities) == set(expected)
        for item, probabilities in model.probabilities.items():
            assert probabilities == pytest.approx(expected[item], abs=1e-6)
    assert dawid_skene(ratings).converged
    assert dawid_skene({"a": {}}) == ({}, 0, True)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", PANELS)
def test_every_panel(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rates every item once, on the scale; a fold's reference has no say in its own ratings."""
    # How a panel is put together does not depend on how far its model is fitted.
    monkeypatch.setattr(
        panels, "dawid_skene", lambda own: dawid_skene(own, 8)._replace(converged=True)
    )
    ratings, truth = drawn(1, 0.2)
    before = panel(name, ratings, truth, STRATA)
    assert set(before.ratings) == {item for own in ratings.values() for item in own}
    assert {type(rating) for rating in before.ratings.values()} == {int}
    assert set(before.ratings.values()) <= set(SCALE)
    # The order of judges and items changes nothing.
    turned = {j: dict(reversed(ratings[j].items())) for j in reversed(ratings)}
    assert panel(name, turned, truth, STRATA) == before
    upside_down = panel(name, ratings, {i: 6 - r for i, r in truth.items()}, STRATA)
    assert (upside_down.ratings != before.ratings) is (name == FITTED)
    # Ratings that are no whole numbers of the scale are as if there were none.
    odd = {**ratings, "odd": dict(zip(ITEMS, (0, 6, 4.5, float("nan"), None), strict=False))}
    assert panel(name, odd, truth, STRATA) == before
    for fold in (0, 1, 2):
        own = [item for item in ITEMS if FOLDS[item] == fold]
        other = {item: 6 - r if item in own else r for item, r in truth.items()}
        after = panel(name, ratings, other, STRATA).ratings
        assert all(after.get(item) == before.ratings.get(item) for item in own)


def test_what_cannot_be_weighted_is_the_plain_mean_and_counted() -> None:
    ratings, truth = drawn(10)
    one_fold = {item: stratum._replace(fold=0) for item, stratum in STRATA.items()}
    told = "plain mean, because no judge of the answer has a positive kappa: 60"
    found = panel(FITTED, ratings, truth, one_fold)  # no other folds to fit to
    assert (found.ratings, found.note) == (panel("mean", ratings, {}, STRATA).ratings, told)
    assert panel(FITTED, {"contrary": ratings["contrary"]}, truth, STRATA).note == told
    # A perfect judge outweighs two constant ones, whose kappa is 0.
    constant = dict.fromkeys("bc", dict.fromkeys(ITEMS, 4))
    assert panel(FITTED, {"a": truth, **constant}, truth, STRATA) == (truth, "")
